//! The output of a program: its end, for errors, and a text that is awaited.

use std::io::{self, PipeReader, Read as _};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Output that is kept, in bytes: the last of it.
pub(super) const TAIL: usize = 16 * 1024;
/// The longest wait for the last output of an ended program.
const PATIENCE: Duration = Duration::from_secs(5);
/// Wait for the last output before an error reports it: the program may still run, and another
/// thread reads its output.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// The last output of a program.
#[derive(Debug, Default)]
pub(super) struct Output {
    state: Mutex<CollectedOutput>,
    more: Condvar,
}

#[derive(Debug, Default)]
struct CollectedOutput {
    tail: Vec<u8>,
    awaited: Option<String>,
    seen: bool,
    ended: bool,
}

impl Output {
    /// Begins to search the output for `text`.
    pub(super) fn await_text(&self, text: &str) {
        let mut told = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        told.awaited = Some(text.to_owned());
        told.look();
    }

    /// True if the awaited text appeared.
    pub(super) fn has_awaited_text(&self) -> bool {
        let told = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        told.seen
    }

    /// Waits for more output, at most for `longest`.
    pub(super) fn wait_for_output(&self, longest: Duration) {
        let told = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // If the program has closed its output, this waits for the whole time.
        let _ = self
            .more
            .wait_timeout(told, longest)
            .unwrap_or_else(PoisonError::into_inner);
    }

    /// The kept output of a program that has ended.
    pub(super) fn all_output(&self) -> String {
        String::from_utf8_lossy(&self.collected_within(PATIENCE).tail).into_owned()
    }

    /// The collected output once the other end is closed, or after `longest`, because another
    /// process may hold the other end.
    fn collected_within(&self, longest: Duration) -> MutexGuard<'_, CollectedOutput> {
        let told = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (told, _) = self
            .more
            .wait_timeout_while(told, longest, |told| !told.ended)
            .unwrap_or_else(PoisonError::into_inner);
        told
    }

    /// The last lines of its output, indented, to be set behind an error.
    pub(super) fn last_lines(&self) -> String {
        let told = self.collected_within(LAST_WORDS);
        let text = String::from_utf8_lossy(&told.tail);
        let lines: Vec<&str> = text
            .lines()
            .filter(|line| !line.trim().is_empty())
            .collect();
        let last = &lines[lines.len().saturating_sub(12)..];
        if last.is_empty() {
            return "it wrote nothing".to_owned();
        }
        let indented: Vec<String> = last.iter().map(|line| format!("    {line}")).collect();
        format!("it wrote at last:\n{}", indented.join("\n"))
    }

    /// Reads until the other end is closed.
    pub(super) fn collect(&self, mut reader: PipeReader) {
        let mut chunk = [0; 4096];
        loop {
            let read = match reader.read(&mut chunk) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Ok(0) | Err(_) => break,
                Ok(read) => read,
            };
            let mut told = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            told.tail.extend_from_slice(&chunk[..read]);
            told.look();
            let beyond = told.tail.len().saturating_sub(TAIL);
            told.tail.drain(..beyond);
            drop(told);
            self.more.notify_all();
        }
        let mut told = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        told.ended = true;
        drop(told);
        self.more.notify_all();
    }
}

impl CollectedOutput {
    /// Updates whether the awaited text appeared. Called for each 4 KiB, before older output is
    /// dropped.
    fn look(&mut self) {
        if let Some(awaited) = self.awaited.as_deref().filter(|_| !self.seen) {
            self.seen = String::from_utf8_lossy(&self.tail).contains(awaited);
        }
    }
}
