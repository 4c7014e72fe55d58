//! Reads logs with several threads, and again where spikes are.

use std::num::NonZero;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::{io, thread};

use base_chart::number;
use base_logs::{LogBlock, LogEntry, LogInput, LogParser};

use crate::agent::AgentClass;
use crate::counter::LogCounter;
use crate::filter::{Filters, Period};
use crate::spikes::{self, Spike};

/// Threads at most: beyond these, reading a file is what takes the time.
const THREADS: usize = 8;

/// Choice of the requests that are counted, and how.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Counts addresses with their queries.
    pub with_query: bool,
    /// Counts requests of this time only.
    pub period: Period,
    /// Counts requests that these pass only.
    pub filters: Filters,
}

impl Options {
    pub(crate) fn address<'l>(&self, entry: &LogEntry<'l>) -> &'l [u8] {
        if self.with_query {
            entry.target
        } else {
            entry.path()
        }
    }

    /// True if a request is to be counted.
    pub(crate) fn counts(&self, entry: &LogEntry<'_>, class: AgentClass) -> bool {
        self.period.has(entry.local_time()) && self.filters.pass(entry, class)
    }
}

/// The figures of logs.
pub struct Statistics {
    pub(crate) logs: Vec<PathBuf>,
    pub(crate) totals: LogCounter,
    pub(crate) spikes: Vec<Spike>,
    /// Sentences on logs that were not read to their end, or not again for the origins of spikes.
    pub problems: Vec<String>,
    /// False if a log breaks off.
    pub is_whole: bool,
}

impl Statistics {
    /// A sentence on the first line that is no request, with their number.
    pub fn damage(&self) -> Option<String> {
        let (log, line) = self.totals.first_damaged?;
        let [damaged, lines] = [self.totals.damaged, self.totals.lines].map(number::count);
        let path = self.logs[log].display();
        Some(format!(
            "{damaged} of {lines} lines are no requests in a known format, the first is {path}:{line}"
        ))
    }
}

/// Part of a log: which block, and the first and last minute of its requests.
struct BlockSpan {
    log: usize,
    number: u64,
    minutes: (i64, i64),
}

/// One thread's work on the logs.
struct LogWorker {
    parser: LogParser,
    counter: LogCounter,
    spans: Vec<BlockSpan>,
}

/// Counts logs, `-` for standard input, with as many threads as there are processors. A log that
/// breaks off is counted up to there.
///
/// # Errors
/// A log that cannot be opened, with the error of the operating system.
pub fn count(logs: &[PathBuf], options: &Options) -> Result<Statistics, (PathBuf, io::Error)> {
    let threads = thread::available_parallelism()
        .map_or(1, NonZero::get)
        .min(THREADS);
    let files: Vec<_> = logs.iter().map(|path| regular(path)).collect();
    let inputs = logs
        .iter()
        .map(|path| LogInput::open(path).map_err(|error| (path.clone(), error)));
    let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
    let hasher = foldhash::quality::RandomState::default();
    let worker = || LogWorker {
        parser: LogParser::default(),
        counter: LogCounter::new(hasher.clone(), threads),
        spans: Vec::new(),
    };
    let mut workers: Vec<LogWorker> = (0..threads).map(|_| worker()).collect();
    let mut problems = Vec::new();
    for (log, input) in inputs.into_iter().enumerate() {
        let input = Mutex::new(input);
        let failed = thread::scope(|scope| {
            let start = |worker| scope.spawn(|| LogWorker::read(worker, log, &input, options));
            let running: Vec<_> = workers.iter_mut().map(start).collect();
            let mut ends = running.into_iter().map(|thread| thread.join());
            ends.try_for_each(|end| end.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        });
        if let Err(error) = failed {
            problems.push(format!("{} breaks off: {error}", logs[log].display()));
        }
    }
    let is_whole = problems.is_empty();
    let all = workers.into_iter().reduce(|mut all, mut other| {
        all.spans.append(&mut other.spans);
        all.counter.merge(other.counter);
        all
    });
    let LogWorker {
        counter: totals,
        mut spans,
        ..
    } = all.unwrap_or_else(worker);
    let mut spikes = spikes::find(&totals.days);
    spans.retain(|span| spikes::touches(&spikes, span.minutes));
    spans.sort_by_key(|span| (span.log, span.number));
    for spans in spans.chunk_by(|one, next| one.log == next.log) {
        let (path, known) = (&logs[spans[0].log], files[spans[0].log]);
        if let Err(error) = read_again(path, known, spans, &mut spikes, options) {
            let path = path.display();
            let what = "was not read again for the origins of spikes";
            problems.push(format!("{path} {what}: {error}"));
        }
    }
    Ok(Statistics {
        logs: logs.to_vec(),
        totals,
        spikes,
        problems,
        is_whole,
    })
}

impl LogWorker {
    /// Takes blocks of a log and counts them until there are no more.
    fn read(&mut self, log: usize, input: &Mutex<LogInput>, options: &Options) -> io::Result<()> {
        let mut block = LogBlock::default();
        loop {
            // A panic leaves whole blocks.
            let mut source = input.lock().unwrap_or_else(PoisonError::into_inner);
            if !source.next_block(&mut block)? {
                return Ok(());
            }
            drop(source);
            self.count(log, &block, options);
        }
    }

    fn count(&mut self, log: usize, block: &LogBlock, options: &Options) {
        let counter = &mut self.counter;
        let mut minutes = (i64::MAX, i64::MIN);
        for (number, line) in block.lines() {
            counter.lines += 1;
            let Some(entry) = self.parser.parse(line) else {
                counter.add_damaged(log, number);
                continue;
            };
            if counter.add(&entry, options) {
                let minute = entry.local_time().div_euclid(60);
                minutes = (minutes.0.min(minute), minutes.1.max(minute));
            }
        }
        self.spans.push(BlockSpan {
            log,
            number: block.number,
            minutes,
        });
    }
}

/// Device, number and length of a regular file: others cannot be read twice.
fn regular(path: &Path) -> Option<[u64; 3]> {
    let file = path.metadata().ok()?;
    let is_regular = file.is_file() && path != Path::new("-");
    is_regular.then(|| [file.dev(), file.ino(), file.len()])
}

/// Reads the blocks of a log that have requests of spikes.
fn read_again(
    path: &Path,
    known: Option<[u64; 3]>,
    spans: &[BlockSpan],
    spikes: &mut [Spike],
    options: &Options,
) -> io::Result<()> {
    let files = known.zip(regular(path));
    if !files.is_some_and(|([a, b, was], [c, d, now])| (a, b) == (c, d) && was <= now) {
        let message = "only a file that stays the same is read twice";
        return Err(io::Error::other(message));
    }
    let (mut input, mut block) = (LogInput::open(path)?, LogBlock::default());
    let mut parser = LogParser::default();
    for span in spans {
        while input.next_block(&mut block)? {
            if block.number < span.number {
                continue;
            }
            for (_, line) in block.lines() {
                if let Some(entry) = parser.parse(line) {
                    spikes::add(spikes, &entry, options);
                }
            }
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_the_same_file_is_read_again() {
        let dir = lab_testkit::fast_dir();
        let [path, other] = ["a.log", "b.log"].map(|name| dir.path().join(name));
        fs::write(&path, "one\n").unwrap();
        let known = regular(&path);
        let again = || read_again(&path, known, &[], &mut [], &Options::default()).is_ok();
        fs::write(&path, "one\ntwo\n").unwrap();
        assert!(again(), "a longer one");
        fs::write(&path, "").unwrap();
        assert!(!again(), "a shorter one");
        fs::write(&other, "one\n").unwrap();
        fs::rename(&other, &path).unwrap();
        assert!(!again(), "another one");
        assert_eq!([regular(dir.path()), regular(Path::new("-"))], [None; 2]);
    }
}
