//! What SQLite's write-ahead log says about commits: which pages each of them wrote.
//!
//! The format is public: <https://www.sqlite.org/fileformat2.html>, section 4, and
//! <https://www.sqlite.org/walformat.html> for the index. A log is named by two salts and only
//! grows. When all of it is in the database file, the next writer begins it again with other salts.

use super::log_file::{INDEX_WORDS, LogFile};

/// Bytes before the first frame, and before each page.
const LOG_HEADER: u64 = 32;
const FRAME_HEADER: u64 = 24;

/// A log with more new frames than this is not read.
const MAX_FRAMES: u32 = 65_536;

/// How far the log had been written at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogPosition {
    /// They name the log. The first one is counted up whenever the log begins again.
    salts: [u32; 2],
    /// The number of frames that are committed.
    frames: u32,
    /// A counter of the commits.
    commits: u32,
    page_size: u32,
}

/// Source of positions and frames.
pub(crate) trait LogSource {
    /// Both copies of the index's header.
    fn index(&self) -> Option<[u32; INDEX_WORDS]>;
    /// The size of the log in bytes.
    fn size(&self) -> Option<u64>;
    /// Fills `buffer`; false if the log ends before.
    fn read(&self, offset: u64, buffer: &mut [u8]) -> bool;
}

impl LogSource for LogFile<'_> {
    fn index(&self) -> Option<[u32; INDEX_WORDS]> {
        LogFile::index(self)
    }

    fn size(&self) -> Option<u64> {
        LogFile::size(self)
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> bool {
        LogFile::read(self, offset, buffer)
    }
}

/// The pages that one commit wrote.
pub(crate) type CommitPages = Vec<u32>;

struct FrameHeader {
    page: u32,
    ends_commit: bool,
    salts: [u32; 2],
}

/// Returns the present position of the log; `None` if the index cannot be read.
pub(crate) fn position(source: &impl LogSource) -> Option<LogPosition> {
    /// A commit writes the two copies within nanoseconds.
    const ATTEMPTS: usize = 1_000;
    (0..ATTEMPTS).find_map(|_| {
        let words = source.index()?;
        let (first, second) = words.split_at(INDEX_WORDS / 2);
        (first == second).then(|| parse(first)).flatten()
    })
}

/// Reads one copy of the header; `None` if it is not whole.
fn parse(words: &[u32]) -> Option<LogPosition> {
    let (mut one, mut two) = (0_u32, 0_u32);
    for pair in words[..10].chunks_exact(2) {
        one = one.wrapping_add(pair[0]).wrapping_add(two);
        two = two.wrapping_add(pair[1]).wrapping_add(one);
    }
    let flags = words[3].to_ne_bytes();
    let is_initialised = flags[0] != 0;
    if [one, two] != words[10..12] || !is_initialised {
        return None;
    }
    let page_size = match u16::from_ne_bytes([flags[2], flags[3]]) {
        1 => 65_536,
        size => u32::from(size),
    };
    let salt = |word: u32| u32::from_be_bytes(word.to_ne_bytes());
    Some(LogPosition {
        salts: [salt(words[8]), salt(words[9])],
        frames: words[4],
        commits: words[2],
        page_size,
    })
}

/// The commits between two positions. An error says why they are not known.
pub(crate) fn commits_between(
    source: &impl LogSource,
    from: &LogPosition,
    to: &LogPosition,
) -> Result<Vec<CommitPages>, &'static str> {
    let is_same_log = from.salts == to.salts && from.page_size == to.page_size;
    let first = if is_same_log {
        from.frames
    } else {
        ended_at(source, from, to)?;
        0
    };
    let commits = read_commits(source, first, to)?;
    // The frames may have been overwritten while they were read.
    if position(source).map(|now| now.salts) != Some(to.salts) {
        return Err("the log began again while it was read");
    }
    let counted = to.commits.wrapping_sub(from.commits);
    if !is_same_log && u32::try_from(commits.len()) != Ok(counted) {
        return Err("the log began again, and not all commits are in it");
    }
    Ok(commits)
}

/// Proves that the log `from` ended at this position, and that `to` is the log that followed it.
///
/// SQLite writes a new log over the old one. So if the new log is not longer, the file still shows
/// what the old log had behind the position, unless the file was made shorter meanwhile.
fn ended_at(
    source: &impl LogSource,
    from: &LogPosition,
    to: &LogPosition,
) -> Result<(), &'static str> {
    const UNKNOWN: &str = "the log began again, and what it had before is not known";
    let follows = to.salts[0] == from.salts[0].wrapping_add(1) && to.page_size == from.page_size;
    let is_kept = source
        .size()
        .is_some_and(|size| size >= offset(from, from.frames));
    if !follows || to.frames > from.frames || !is_kept {
        return Err(UNKNOWN);
    }
    match frame(source, from, from.frames) {
        Some(next) if next.salts == from.salts => Err(UNKNOWN),
        _ => Ok(()),
    }
}

/// The commits from the frame `first` (from 0) to the position.
fn read_commits(
    source: &impl LogSource,
    first: u32,
    to: &LogPosition,
) -> Result<Vec<CommitPages>, &'static str> {
    let new = to
        .frames
        .checked_sub(first)
        .ok_or("the log is shorter than it was")?;
    if new > MAX_FRAMES {
        return Err("too much was written to the log");
    }
    let mut commits = Vec::new();
    let mut pages = CommitPages::new();
    for index in first..to.frames {
        let frame = frame(source, to, index)
            .filter(|frame| frame.salts == to.salts)
            .ok_or("the log began again while it was read")?;
        pages.push(frame.page);
        if frame.ends_commit {
            commits.push(std::mem::take(&mut pages));
        }
    }
    if pages.is_empty() {
        Ok(commits)
    } else {
        Err("the log ends in the middle of a commit")
    }
}

fn offset(log: &LogPosition, frame: u32) -> u64 {
    LOG_HEADER + u64::from(frame) * (FRAME_HEADER + u64::from(log.page_size))
}

fn frame(source: &impl LogSource, log: &LogPosition, index: u32) -> Option<FrameHeader> {
    let mut header = [0; 16];
    source.read(offset(log, index), &mut header).then(|| {
        let word = |at: usize| {
            let bytes = [header[at], header[at + 1], header[at + 2], header[at + 3]];
            u32::from_be_bytes(bytes)
        };
        FrameHeader {
            page: word(0),
            ends_commit: word(4) != 0,
            salts: [word(8), word(12)],
        }
    })
}

impl LogPosition {
    /// True if exactly one commit lies between `before` and this position.
    pub(crate) fn is_next_commit(&self, before: &Self) -> bool {
        self.commits == before.commits.wrapping_add(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u32 = 512;

    #[derive(Clone)]
    struct MemoryLog {
        salts: [u32; 2],
        commits: u32,
        frames: u32,
        bytes: Vec<u8>,
    }

    impl MemoryLog {
        fn new() -> Self {
            Self {
                salts: [7, 70],
                commits: 5,
                frames: 0,
                bytes: vec![0; 32],
            }
        }

        fn commit(&mut self, pages: &[u32]) {
            for (index, page) in pages.iter().enumerate() {
                let is_last = index + 1 == pages.len();
                let at = offset(&self.now(), self.frames) as usize;
                let mut frame = vec![0; 24 + PAGE as usize];
                let words = [*page, u32::from(is_last), self.salts[0], self.salts[1]];
                for (word, bytes) in words.iter().zip(frame.chunks_mut(4)) {
                    bytes.copy_from_slice(&word.to_be_bytes());
                }
                self.bytes.resize(self.bytes.len().max(at + frame.len()), 0);
                self.bytes[at..at + frame.len()].copy_from_slice(&frame);
                self.frames += 1;
            }
            self.commits += 1;
        }

        fn begin_again(&mut self) {
            self.salts = [self.salts[0] + 1, self.salts[1] ^ 0x55];
            self.frames = 0;
        }

        fn now(&self) -> LogPosition {
            LogPosition {
                salts: self.salts,
                frames: self.frames,
                commits: self.commits,
                page_size: PAGE,
            }
        }

        fn since(&self, from: &LogPosition) -> Option<Vec<CommitPages>> {
            let to = position(self).expect("the header is whole");
            assert_eq!(to, self.now());
            commits_between(self, from, &to).ok()
        }
    }

    impl LogSource for MemoryLog {
        fn index(&self) -> Option<[u32; INDEX_WORDS]> {
            let mut words = [0; INDEX_WORDS];
            words[2] = self.commits;
            let size = (PAGE as u16).to_ne_bytes();
            words[3] = u32::from_ne_bytes([1, 0, size[0], size[1]]);
            words[4] = self.frames;
            for (index, salt) in self.salts.iter().enumerate() {
                words[8 + index] = u32::from_ne_bytes(salt.to_be_bytes());
            }
            for pair in 0..5 {
                let (one, two) = (words[10], words[11]);
                words[10] = one.wrapping_add(words[2 * pair]).wrapping_add(two);
                words[11] = two
                    .wrapping_add(words[2 * pair + 1])
                    .wrapping_add(words[10]);
            }
            let (first, second) = words.split_at_mut(INDEX_WORDS / 2);
            second.copy_from_slice(first);
            Some(words)
        }

        fn size(&self) -> Option<u64> {
            Some(self.bytes.len() as u64)
        }

        fn read(&self, offset: u64, buffer: &mut [u8]) -> bool {
            let at = offset as usize;
            let found = self.bytes.get(at..at + buffer.len());
            found.map(|bytes| buffer.copy_from_slice(bytes)).is_some()
        }
    }

    #[test]
    fn the_pages_of_each_commit_are_found() {
        let mut log = MemoryLog::new();
        log.commit(&[1, 2]);
        let from = log.now();
        assert_eq!(log.since(&from), Some(vec![]));
        log.commit(&[3]);
        log.commit(&[2, 4]);
        assert_eq!(log.since(&from), Some(vec![vec![3], vec![2, 4]]));
    }

    #[test]
    fn a_log_that_began_again_is_read_where_nothing_can_be_missing() {
        let mut log = MemoryLog::new();
        log.commit(&[1, 2]);
        log.commit(&[3]);
        let from = log.now();
        log.begin_again();
        log.commit(&[9]);
        assert_eq!(log.since(&from), Some(vec![vec![9]]));
        log.commit(&[8, 7]);
        assert_eq!(log.since(&from), Some(vec![vec![9], vec![8, 7]]));
        log.commit(&[1]);
        assert_eq!(log.since(&from), None, "what was behind is written over");
    }

    #[test]
    fn what_a_log_had_before_it_began_again_is_not_missed() {
        let mut log = MemoryLog::new();
        log.commit(&[1, 2]);
        log.commit(&[3]);
        let from = log.now();

        let mut unseen = log.clone();
        unseen.commit(&[4]);
        unseen.begin_again();
        unseen.commit(&[9]);
        assert_eq!(
            unseen.since(&from),
            None,
            "the frame behind is of the old log"
        );
        // Without the counter, the file alone says so, and the other way round.
        unseen.commits -= 1;
        assert_eq!(unseen.since(&from), None);

        let mut truncated = log.clone();
        truncated.begin_again();
        truncated.bytes.truncate(0);
        truncated.commit(&[9]);
        assert_eq!(truncated.since(&from), None, "the file was made shorter");

        let mut counted = log.clone();
        counted.begin_again();
        counted.commit(&[9]);
        counted.commits += 1;
        assert_eq!(counted.since(&from), None, "a commit is not in the log");

        let mut twice = log.clone();
        twice.begin_again();
        twice.begin_again();
        twice.commit(&[9]);
        assert_eq!(twice.since(&from), None, "it began again twice");
    }

    #[test]
    fn a_log_that_is_shorter_or_too_long_is_not_read() {
        let mut log = MemoryLog::new();
        log.commit(&[1, 2]);
        let from = log.now();
        log.frames = 1;
        assert_eq!(log.since(&from), None);
        log.frames = 3 + MAX_FRAMES;
        assert_eq!(log.since(&from), None);
    }
}
