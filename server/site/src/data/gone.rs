//! Removes the rows of files that are gone.

use std::{collections::VecDeque, sync::Arc};

use base_clock::Boottime;
use millpond_db::{AppliedFile, Error, FileOutcome, GoneFile, RowCounts};

use super::{
    apply::Look,
    batch::{MAX_FILES, halves},
    gone_folder::gone_folder,
    messages::{is_passing, rows, unapplied},
    scan::FolderScan,
    sync::{FolderSync, LookOutcome, SETTLED, SLOWLY, SOON},
};
use millpond_site_format::Problem;

impl FolderSync {
    /// Removes the rows of files that are gone, but for those that are kept for another file.
    pub(super) fn remove(&mut self, look: &Look<'_>, outcome: &mut LookOutcome) -> Vec<Problem> {
        if self.inbox.is_stopped() {
            return Vec::new();
        }
        let gone: Vec<&GoneFile> = look.gone.iter().collect();
        let before = std::mem::take(&mut self.held);
        self.stuck.clear();
        let mut faults = Vec::new();
        match self.held(look, &gone) {
            Ok(held) => self.held = held,
            Err(error) => {
                self.keep_stuck(&gone, &error, &mut faults, outcome);
                return faults;
            }
        }
        let mut leaving = Vec::new();
        for file in gone {
            if let Some(holder) = self.held.get(&file.file) {
                let message = format!(
                    "is gone; its rows are kept for {}, which could not be applied and may be this file with another name",
                    holder.display()
                );
                let fault = Problem::new(self.sources.shown(&file.file), message);
                faults.push(fault.hint("mend that file, or remove it"));
            } else if before.contains_key(&file.file) {
                // It may come back, as that file has gone.
                self.missing.insert(file.file.clone(), Boottime::now());
                outcome.retry_after(SOON);
            } else {
                leaving.push(file);
            }
        }
        self.remove_rows(&leaving, &mut faults, outcome);
        faults
    }

    fn remove_rows(
        &mut self,
        gone: &[&GoneFile],
        faults: &mut Vec<Problem>,
        outcome: &mut LookOutcome,
    ) {
        let mut lists: VecDeque<Vec<&GoneFile>> =
            gone.chunks(MAX_FILES).map(<[_]>::to_vec).collect();
        while let Some(files) = lists.pop_front() {
            let changes = files.iter().map(|file| file.removal()).collect();
            match self.database.apply_files(changes, Arc::default()) {
                Ok(outcomes) => {
                    for (file, removed) in files.iter().zip(outcomes) {
                        self.note_removed(file, &removed, outcome);
                    }
                }
                Err(error) if files.len() > 1 && !is_passing(&error) => lists.extend(halves(files)),
                Err(error) => self.keep_stuck(&files, &error, faults, outcome),
            }
        }
    }

    /// Remembers files whose rows the database did not let go. They are tried again.
    fn keep_stuck(
        &mut self,
        gone: &[&GoneFile],
        error: &Error,
        faults: &mut Vec<Problem>,
        outcome: &mut LookOutcome,
    ) {
        if !outcome.retry_passing(error) {
            outcome.retry_after(SLOWLY);
        }
        for file in gone {
            self.stuck.insert(file.file.clone());
            faults.push(unapplied(&self.sources.shown(&file.file), error));
        }
    }

    /// The files whose rows are to be removed: all that are missing, or those that had been missing
    /// for long at this time: a program that writes a file anew may remove it first, so a file
    /// counts as gone once it is missing at two looks with [`SETTLED`] in between. Those that may
    /// come back are remembered.
    pub(super) fn gone(
        &mut self,
        scan: &FolderScan,
        at: Option<Boottime>,
        applied: &[AppliedFile],
        outcome: &mut LookOutcome,
        faults: &mut Vec<Problem>,
    ) -> Vec<GoneFile> {
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
            let was_gone = self.held.contains_key(&file.file) || self.stuck.contains(&file.file);
            if was_gone || at.is_none_or(|at| is_gone(since, at)) {
                gone.push(GoneFile {
                    file: file.file.clone(),
                    table: file.table.clone(),
                    version: scan.version,
                    is_news: at.is_some() && self.seen.contains(&file.file),
                });
            } else {
                self.missing.insert(file.file.clone(), since);
                outcome.retry_after(SOON);
            }
        }
        gone
    }

    fn note_removed(&mut self, file: &GoneFile, removed: &FileOutcome, outcome: &mut LookOutcome) {
        let shown = self.sources.shown(&file.file);
        match removed {
            FileOutcome::Applied(counts) => {
                self.changes += 1;
                self.seen.remove(&file.file);
                outcome.has_changed = true;
                // Of rows that were taken over, the other file's line says so.
                if *counts != RowCounts::default() {
                    let line = format!("{}: is gone; {}", shown.display(), rows(*counts));
                    outcome.lines.push(line);
                }
            }
            FileOutcome::Older if self.elsewhere.insert(file.file.clone()) => {
                outcome.lines.push(format!(
                    "{}: is not in this folder, and another node has applied it since; its rows stay",
                    shown.display()
                ));
            }
            FileOutcome::Older | FileOutcome::Raced | FileOutcome::Same => {}
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
