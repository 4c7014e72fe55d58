//! Removes the rows of files that are gone.

use std::collections::VecDeque;

use base_clock::Boottime;
use millpond_db::{AppliedFile, FileChange, FileOutcome, FileState};

use super::{
    batch::{MAX_FILES, halves},
    gone_folder::gone_folder,
    messages::{is_passing, rows, unapplied},
    scan::FolderScan,
    sync::{LookOutcome, SETTLED, SOON, Sync},
};
use crate::Problem;

impl Sync {
    /// Removes the rows of files that are gone: a program that writes a file anew may remove it
    /// first, so a file counts as gone once it is missing at two looks with [`SETTLED`] in between.
    /// The scan was `begun` then. Gives what is wrong, and what is remembered of files that have
    /// taken rows over.
    pub(super) fn remove(
        &mut self,
        scan: &FolderScan,
        begun: Boottime,
        applied: &[AppliedFile],
        is_first: bool,
        outcome: &mut LookOutcome,
    ) -> (Vec<Problem>, Vec<AppliedFile>) {
        self.known.retain(|name, _| scan.files.contains_key(name));
        let mut faults = Vec::new();
        let at = (!is_first).then_some(begun);
        let gone = self.gone(scan, at, applied, outcome, &mut faults);
        let moved = self.keep_moved(scan, &gone, applied, outcome);
        let mut lists: VecDeque<Vec<&AppliedFile>> =
            gone.chunks(MAX_FILES).map(<[_]>::to_vec).collect();
        while let Some(files) = lists.pop_front() {
            let change = |file: &&AppliedFile| FileChange {
                file: file.file.clone(),
                table: file.table.clone(),
                hash: String::new(),
                version: scan.version,
                is_news: !is_first,
                state: FileState::Gone,
            };
            match self
                .database
                .apply_files(files.iter().map(change).collect())
            {
                Ok(outcomes) => {
                    for (file, removed) in files.iter().zip(outcomes) {
                        self.note_removed(file, &removed, outcome);
                    }
                }
                Err(error) if files.len() > 1 && !is_passing(&error) => lists.extend(halves(files)),
                Err(error) => {
                    outcome.retry_passing(&error);
                    let shown = files.iter().map(|file| self.sources.shown(&file.file));
                    faults.extend(shown.map(|shown| unapplied(&shown, &error)));
                }
            }
        }
        (faults, moved)
    }

    /// The files whose rows are to be removed: all that are missing, or those that had been missing
    /// for long at this time. Those that may come back are remembered.
    fn gone<'a>(
        &mut self,
        scan: &FolderScan,
        at: Option<Boottime>,
        applied: &'a [AppliedFile],
        outcome: &mut LookOutcome,
        faults: &mut Vec<Problem>,
    ) -> Vec<&'a AppliedFile> {
        let now = Boottime::now();
        let before = std::mem::take(&mut self.missing);
        let missing = applied.iter().filter(|known| !known.hash.is_empty());
        let missing = missing.filter(|known| !scan.files.contains_key(&known.file));
        let mut gone = Vec::new();
        for file in missing.filter(|known| !scan.holds(&known.file)) {
            if let Some(fault) = gone_folder(scan, &self.sources, &self.database, file) {
                if !faults.contains(&fault) {
                    faults.push(fault);
                }
                continue;
            }
            // The scan that found it missing was over by then.
            let since = before.get(&file.file).copied().unwrap_or(now);
            if at.is_none_or(|at| is_gone(since, at)) {
                gone.push(file);
            } else {
                self.missing.insert(file.file.clone(), since);
                outcome.retry_after(SOON);
            }
        }
        gone
    }

    fn note_removed(
        &mut self,
        file: &AppliedFile,
        removed: &FileOutcome,
        outcome: &mut LookOutcome,
    ) {
        let shown = self.sources.shown(&file.file);
        match removed {
            FileOutcome::Applied(counts) => {
                self.changes += 1;
                outcome.has_changed = true;
                let line = format!("{}: is gone; {}", shown.display(), rows(*counts));
                outcome.lines.push(line);
            }
            FileOutcome::Older => outcome.lines.push(format!(
                "{}: is not in this folder, and another node has applied it since; its rows stay",
                shown.display()
            )),
            FileOutcome::Same => {}
        }
    }
}

/// True if a file that was seen to be missing at `since`, and that a look which began at `at` finds
/// missing, is gone. Both times lie within the time in which it was missing.
fn is_gone(since: Boottime, at: Boottime) -> bool {
    at.since(since) >= SETTLED
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_file_is_gone_once_it_is_missing_at_two_looks_with_a_pause_in_between() {
        let seen = Boottime::now();
        let instant = Duration::from_millis(1);
        assert!(!is_gone(seen, seen));
        assert!(!is_gone(seen, seen.plus(SETTLED - instant)));
        assert!(is_gone(seen, seen.plus(SETTLED)));
        // The first look was over only after the second had begun.
        assert!(!is_gone(seen.plus(SETTLED), seen));
    }
}
