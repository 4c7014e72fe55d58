//! Files that were saved: if nothing else has changed, only these are looked at.

use std::{
    collections::{BTreeSet, HashSet},
    fs::{self, Metadata},
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    FOLDER,
    apply::Look,
    messages::unapplied,
    sync::{FolderSync, LookOutcome, Retry, SOON, by_name},
};
use crate::statics::Stamp;
use millpond_site_format::file_name::is_passed_over;

impl FolderSync {
    /// Returns the names of the files that were closed, if all of them were files with rows before
    /// and are so now, and the last look has left nothing open. What it found is brought up to
    /// date.
    pub(super) fn saved(&mut self, closed: &HashSet<PathBuf>) -> Option<BTreeSet<String>> {
        if !self.has_looked || self.is_unfinished || self.has_gone {
            return None;
        }
        let mut saved = BTreeSet::new();
        for path in closed {
            if path
                .iter()
                .any(|part| is_passed_over(part.as_encoded_bytes()))
            {
                continue;
            }
            let name = path.to_str()?;
            let file = self.last.files.get_mut(name)?;
            let metadata = fs::symlink_metadata(&file.path).ok();
            file.stamp = Stamp::of(&metadata.filter(Metadata::is_file)?);
            saved.insert(name.to_owned());
        }
        Some(saved)
    }

    /// Applies some files, whose names are those of the last look.
    pub(super) fn look_at(
        &mut self,
        saved: BTreeSet<String>,
        closed: &HashSet<PathBuf>,
        outcome: &mut LookOutcome,
    ) {
        // What was refused may be good once these have been applied.
        let refused = self.known.iter().filter(|(_, it)| it.retry != Retry::Never);
        let refused = refused.map(|(name, _)| name.clone());
        let names = saved.iter().cloned().chain(refused).collect();
        let scan = std::mem::take(&mut self.last);
        let fault = match self.database.applied_of(names) {
            Ok(applied) => {
                self.apply_changed(
                    &Look {
                        scan: &scan,
                        applied: by_name(&applied),
                        gone: &Arc::default(),
                        closed,
                        is_first: false,
                        saved: Some(saved),
                    },
                    outcome,
                );
                None
            }
            Err(error) => {
                outcome.retry_after(SOON);
                Some(unapplied(Path::new(FOLDER), &error))
            }
        };
        if !self.inbox.is_stopped() {
            self.finish(scan, fault.into_iter().collect(), outcome);
        }
    }
}
