//! Lines for the owner of a running site, and a limit on those that repeat.

use std::time::Duration;

use base_clock::Boottime;
use parking_lot::Mutex;

/// A line that comes again within this time is only counted.
const PERIOD: Duration = Duration::from_secs(10);
/// Different lines that are counted at a time; more are counted together.
const MOST: usize = 64;
/// Characters of such a line.
const LONGEST: usize = 1_000;

/// Log for the owner.
pub(crate) struct Log {
    write: fn(&str),
    repeats: Mutex<Repeats>,
}

#[derive(Default)]
struct Repeats {
    lines: Vec<RepeatedLine>,
    others: u64,
}

struct RepeatedLine {
    line: String,
    since: Boottime,
    repeats: u64,
}

impl Log {
    pub(crate) fn new(write: fn(&str)) -> Self {
        Self {
            write,
            repeats: Mutex::default(),
        }
    }

    pub(crate) fn line(&self, line: &str) {
        (self.write)(line);
    }

    /// A line that requests bring about: a crowd of them fills no disk.
    pub(crate) fn line_of_request(&self, line: &str, now: Boottime) {
        let line = &one_line(line);
        let mut repeats = self.repeats.lock();
        if let Some(known) = repeats.lines.iter_mut().find(|known| known.line == *line) {
            known.repeats += 1;
            return;
        }
        if repeats.lines.len() == MOST {
            repeats.others += 1;
            return;
        }
        repeats.lines.push(RepeatedLine {
            line: line.clone(),
            since: now,
            repeats: 0,
        });
        drop(repeats);
        self.line(line);
    }

    /// Says how often lines were repeated. To be called now and then.
    pub(crate) fn summarize(&self, now: Boottime) {
        let mut lines = Vec::new();
        let mut repeats = self.repeats.lock();
        repeats.lines.retain_mut(|known| {
            if now.since(known.since) < PERIOD {
                return true;
            }
            let repeated = std::mem::take(&mut known.repeats);
            if repeated > 0 {
                lines.push(format!("{} ({repeated} more times)", known.line));
                known.since = now;
            }
            repeated > 0
        });
        if repeats.lines.len() < MOST && repeats.others > 0 {
            let others = std::mem::take(&mut repeats.others);
            lines.push(format!("{others} more lines of other kinds were left out"));
        }
        drop(repeats);
        lines.iter().for_each(|line| self.line(line));
    }
}

/// The beginning of a text on one line: part of it may be a visitor's, and must not look like a
/// line of its own.
fn one_line(text: &str) -> String {
    let shown = |letter: char| match letter.is_control() {
        true => ' ',
        false => letter,
    };
    let mut line: String = text.chars().take(LONGEST).map(shown).collect();
    if text.chars().nth(LONGEST).is_some() {
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

    fn taken() -> Vec<String> {
        std::mem::take(&mut LINES.lock())
    }

    #[test]
    fn a_visitors_text_makes_no_line_of_its_own() {
        assert_eq!(one_line("a\nb\u{1b}[1m"), "a b [1m");
        assert_eq!(one_line(&"ä".repeat(LONGEST)).chars().count(), LONGEST);
        assert_eq!(one_line(&"ä".repeat(9_999)).chars().count(), LONGEST + 1);
    }

    #[test]
    fn a_crowd_of_requests_makes_a_line_and_a_count() {
        let log = Log::new(|line| LINES.lock().push(line.to_owned()));
        let start = Boottime::from_nanos(1);
        for _ in 0..1_000 {
            log.line_of_request("/a: no", start);
        }
        log.summarize(start);
        assert_eq!(taken(), ["/a: no"]);
        log.summarize(start.plus(PERIOD));
        assert_eq!(taken(), ["/a: no (999 more times)"]);
        log.summarize(start.plus(PERIOD * 2));
        assert!(taken().is_empty());
        for number in 0..200 {
            log.line_of_request(&number.to_string(), start);
        }
        assert_eq!(taken().len(), MOST);
        log.summarize(start.plus(PERIOD));
        assert_eq!(taken(), ["136 more lines of other kinds were left out"]);
    }
}
