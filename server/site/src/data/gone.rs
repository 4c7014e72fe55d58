//! Removes the rows of files that are gone.

use std::{collections::VecDeque, sync::Arc};

use base_clock::Boottime;
use millpond_db::{AppliedFile, FileOutcome, GoneFile};

use super::{
    batch::{MAX_FILES, halves},
    gone_folder::gone_folder,
    messages::{is_passing, rows, unapplied},
    scan::FolderScan,
    sync::{LookOutcome, SETTLED, SOON, Sync},
};
use crate::Problem;

impl Sync {
    /// Removes the rows of files that are gone, but for those whose keys a file has that is not
    /// applied yet.
    pub(super) fn remove(
        &mut self,
        scan: &FolderScan,
        gone: &[GoneFile],
        outcome: &mut LookOutcome,
    ) -> Vec<Problem> {
        let held = match self.held(scan, gone) {
            Ok(held) => held,
            Err(error) => {
                outcome.retry_passing(&error);
                self.kept = gone.iter().map(|file| file.file.clone()).collect();
                let shown = gone.iter().map(|file| self.sources.shown(&file.file));
                return shown.map(|shown| unapplied(&shown, &error)).collect();
            }
        };
        let mut faults = Vec::new();
        let is_held = |file: &&GoneFile| held.contains_key(&file.file);
        let (kept, leaving): (Vec<&GoneFile>, Vec<&GoneFile>) = gone.iter().partition(is_held);
        for file in &kept {
            let message = format!(
                "is gone; its rows stay, as {} has their key and is not applied yet",
                held[&file.file].display()
            );
            faults.push(Problem::new(self.sources.shown(&file.file), message));
        }
        self.kept = kept.iter().map(|file| file.file.clone()).collect();
        let mut lists: VecDeque<Vec<&GoneFile>> =
            leaving.chunks(MAX_FILES).map(<[_]>::to_vec).collect();
        while let Some(files) = lists.pop_front() {
            let changes = files.iter().map(|file| file.removal()).collect();
            match self.database.apply_files(changes, Arc::default()) {
                Ok(outcomes) => {
                    for (file, removed) in files.iter().zip(outcomes) {
                        self.note_removed(file, &removed, outcome);
                    }
                }
                Err(error) if files.len() > 1 && !is_passing(&error) => lists.extend(halves(files)),
                Err(error) => {
                    outcome.retry_passing(&error);
                    self.kept.extend(files.iter().map(|file| file.file.clone()));
                    let shown = files.iter().map(|file| self.sources.shown(&file.file));
                    faults.extend(shown.map(|shown| unapplied(&shown, &error)));
                }
            }
        }
        faults
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
            let was_gone = self.kept.contains(&file.file);
            if was_gone || at.is_none_or(|at| is_gone(since, at)) {
                gone.push(GoneFile {
                    file: file.file.clone(),
                    table: file.table.clone(),
                    version: scan.version,
                    is_news: at.is_some(),
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
