//! Figures of a report that have a line each: of one kind of page, and of one kind of fault.

use std::fmt;
use std::time::Duration;

/// Pages of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pages {
    /// Pages that were compared with the log.
    pub reads: u64,
    /// Pages that came from memory.
    pub hits: u64,
    /// Pages that were older than promised.
    pub late: u64,
    /// Pages that never were one state of the database, or showed rolled back rows.
    pub mixed: u64,
}

impl Pages {
    pub(crate) fn add(&mut self, other: Self) {
        self.reads += other.reads;
        self.hits += other.hits;
        self.late += other.late;
        self.mixed += other.mixed;
    }
}

impl fmt::Display for Pages {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = self.hits as f64 * 100.0 / self.reads.max(1) as f64;
        write!(
            out,
            "{} reads, {percent:.1} % hits, {} late, {} mixed",
            self.reads, self.late, self.mixed
        )
    }
}

/// Streams of live pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamFigures {
    /// Streams that were opened.
    pub opened: u64,
    /// Streams that a node ended.
    pub ended: u64,
    /// Events that told of another state.
    pub told: u64,
    /// Comparisons with the log.
    pub looks: u64,
    /// Streams that had not told of a commit in time.
    pub late: u64,
}

impl StreamFigures {
    pub(crate) fn add(&mut self, other: Self) {
        self.opened += other.opened;
        self.ended += other.ended;
        self.told += other.told;
        self.looks += other.looks;
        self.late += other.late;
    }
}

impl fmt::Display for StreamFigures {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{} opened, {} ended by the node, {} events, {} looks, {} late",
            self.opened, self.ended, self.told, self.looks, self.late
        )
    }
}

/// Faults of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultFigures {
    /// How often.
    pub times: u64,
    /// How often it was waited until all nodes gave hits again that show what was written after it.
    pub measured: u64,
    /// How long that took in all, from the end of the fault; from its beginning if it stayed.
    pub sum: Duration,
    /// And at most.
    pub longest: Duration,
}

impl FaultFigures {
    /// One, after which everything was well within this time.
    pub(crate) fn single(recovery: Option<Duration>) -> Self {
        Self {
            times: 1,
            measured: u64::from(recovery.is_some()),
            sum: recovery.unwrap_or_default(),
            longest: recovery.unwrap_or_default(),
        }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.times += other.times;
        self.measured += other.measured;
        self.sum += other.sum;
        self.longest = self.longest.max(other.longest);
    }
}

impl fmt::Display for FaultFigures {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.times {
            1 => write!(out, "once")?,
            times => write!(out, "{times} times")?,
        }
        if self.measured > 0 {
            let mean = self.sum.as_secs_f64() / self.measured as f64;
            let longest = self.longest.as_secs_f64();
            write!(
                out,
                ", hits again after {mean:.1} s, at most {longest:.1} s"
            )?;
        }
        Ok(())
    }
}
