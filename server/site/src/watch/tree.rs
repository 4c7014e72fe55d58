//! The folders of a site, each watched.
//!
//! inotify watches no folders in a folder. So the walk is done here, and repeated whenever a name
//! has changed.

use std::collections::HashSet;
use std::fs;
use std::io::{Error, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;

use super::filter::{Meaning, is_hidden, meaning};
use crate::data::Inbox;
use crate::inotify::Inotify;
use millpond_site_format::{config::UPLOAD_FOLDER, problem::Problem};

/// Folders of one site. More are a mistake, such as a link to the root of the file system.
const MAX_FOLDERS: usize = 10_000;

/// Device and inode.
type Identity = (u64, u64);

/// All folders of a site, without hidden ones.
#[derive(Debug)]
pub(super) struct Tree {
    inotify: Inotify,
    /// Without symbolic links.
    root: PathBuf,
    identity: Identity,
    /// Folders of data elsewhere: as they are named, and what that led to.
    elsewhere: Vec<(PathBuf, Option<Identity>)>,
    /// True if files outside that links lead to are watched.
    outside_files: bool,
}

impl Tree {
    /// Watches `dir` and what is in it. `note` is called with what each event means, on a thread of
    /// its own; events of files of data go to `data` alone.
    pub(super) fn plant(
        dir: &Path,
        outside_files: bool,
        data: Arc<Inbox>,
        note: impl Fn(Meaning) + Send + 'static,
    ) -> Result<Self, Problem> {
        let unreadable = |error: Error| Problem::new(dir, format!("cannot be watched: {error}"));
        let root = dir.canonicalize().map_err(unreadable)?;
        let identity = identity(&root).map_err(unreadable)?;
        let elsewhere = data.elsewhere().into_iter();
        let elsewhere = elsewhere.map(|named| (named.clone(), self::identity(&named).ok()));
        let elsewhere = elsewhere.collect();
        let relative_to = root.clone();
        let inotify = Inotify::start(move |event| {
            let meaning = match event {
                None => Some(Meaning::Lost),
                Some(event) if data.event(&event, &relative_to) => None,
                Some(event) => meaning(&event, &relative_to),
            };
            if let Some(meaning) = meaning {
                note(meaning);
            }
        });
        let tree = Self {
            inotify: inotify.map_err(|error| unwatchable(dir, &error))?,
            root,
            identity,
            elsewhere,
            outside_files,
        };
        tree.grow()?;
        Ok(tree)
    }

    /// True if `dir` leads to this very folder, and the names of folders elsewhere to those that
    /// are watched.
    pub(super) fn is_of(&self, dir: &Path) -> bool {
        let is_same = |(path, known): &(PathBuf, Option<Identity>)| identity(path).ok() == *known;
        identity(dir).is_ok_and(|identity| identity == self.identity)
            && self.elsewhere.iter().all(is_same)
    }

    /// Watches all folders, and none that have left the tree. Each folder is watched before it is
    /// listed, so a later entry makes an event.
    pub(super) fn grow(&self) -> Result<(), Problem> {
        let mut seen = HashSet::new();
        let mut watches = HashSet::new();
        let elsewhere = self.elsewhere.iter();
        let elsewhere = elsewhere.filter_map(|(named, _)| named.canonicalize().ok());
        let mut folders: Vec<PathBuf> = elsewhere.collect();
        folders.push(self.root.clone());
        while let Some(folder) = folders.pop() {
            // A folder that links lead to twice is watched under the name found first.
            let Ok(identity) = identity(&folder) else {
                continue;
            };
            if !seen.insert(identity) {
                continue;
            }
            if seen.len() > MAX_FOLDERS {
                let message = format!("has more than {MAX_FOLDERS} folders, too many to watch");
                return Err(Problem::new(&self.root, message)
                    .hint("keep the site in a folder of its own, without links to large trees"));
            }
            match self.inotify.watch(&folder) {
                Ok(watch) => {
                    watches.insert(watch);
                    let uploads = self.root.join(UPLOAD_FOLDER);
                    let found = folders_in(&folder).into_iter();
                    folders.extend(found.filter(|found| *found != uploads));
                    self.watch_outside_files(&folder, &mut watches)?;
                }
                // The folder was removed, and its parent has reported that; or it is not readable,
                // and nothing in it is served.
                Err(error) if folder != self.root && is_no_loss(&error) => {}
                Err(error) => return Err(unwatchable(&folder, &error)),
            }
        }
        if !seen.contains(&self.identity) {
            return Err(Problem::new(&self.root, "is not there any more"));
        }
        self.inotify.keep(&watches);
        Ok(())
    }

    /// Watches the files outside that links in `folder` lead to: a write to them, and another file
    /// in their place, make no event in the folder. The path of a link's target is looked up anew
    /// each time, so what is watched is what the link leads to now.
    fn watch_outside_files(
        &self,
        folder: &Path,
        watches: &mut HashSet<i32>,
    ) -> Result<(), Problem> {
        if !self.outside_files {
            return Ok(());
        }
        for target in targets_of_links_in(folder) {
            if target.starts_with(&self.root) || !target.is_file() {
                continue;
            }
            match self.inotify.watch(&target) {
                Ok(watch) => drop(watches.insert(watch)),
                Err(error) if is_no_loss(&error) => {}
                Err(error) => return Err(unwatchable(&target, &error)),
            }
        }
        Ok(())
    }
}

fn identity(path: &Path) -> std::io::Result<Identity> {
    let metadata = fs::metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

/// Folders and links to folders. What cannot be listed has none.
fn folders_in(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter(|entry| !is_hidden(&entry.file_name()))
        .filter(|entry| {
            entry
                .file_type()
                .is_ok_and(|kind| kind.is_dir() || (kind.is_symlink() && entry.path().is_dir()))
        })
        .map(|entry| entry.path())
        .collect()
}

/// The targets of the links in a folder, without links that lead nowhere.
fn targets_of_links_in(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()))
        .filter_map(|entry| entry.path().canonicalize().ok())
        .collect()
}

fn is_no_loss(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::PermissionDenied
    )
}

fn unwatchable(path: &Path, error: &Error) -> Problem {
    let problem = |reason: &str| Problem::new(path, format!("cannot be watched: {reason}"));
    match Errno::from_io_error(error) {
        Some(Errno::NOSPC) => problem("inotify has no more watches")
            .hint("raise the limit: sysctl fs.inotify.max_user_watches=524288"),
        // For both of the user's limits.
        Some(Errno::MFILE) => problem("inotify has no more instances").hint(
            "raise the limit: sysctl fs.inotify.max_user_instances=1024 (or that of open files: ulimit -n)",
        ),
        _ => problem(&error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_reported_with_the_sysctl_to_raise() {
        let told = |errno: Errno| unwatchable(Path::new("site"), &errno.into()).to_string();
        assert_eq!(
            told(Errno::NOSPC),
            "site: cannot be watched: inotify has no more watches\n  \
             hint: raise the limit: sysctl fs.inotify.max_user_watches=524288"
        );
        assert!(told(Errno::MFILE).contains("fs.inotify.max_user_instances"));
    }

    #[test]
    fn a_missing_folder_is_a_problem() {
        let dir = lab_testkit::fast_dir();
        let error =
            Tree::plant(&dir.path().join("none"), false, Arc::default(), |_| {}).unwrap_err();
        assert!(error.message.contains("cannot be watched"), "{error}");
    }
}
