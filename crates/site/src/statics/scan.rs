//! Which files of a folder may be served, and at which paths.

use std::fs::{self, DirEntry};
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};

use super::stamp::Stamp;
use crate::problem::Problem;

/// Names looked at in all. Links may make a small folder look like a large one.
const MAX_NAMES: usize = 100_000;
/// Folders within folders.
const MAX_DEPTH: usize = 32;

/// A file to be served.
#[derive(Debug)]
pub(super) struct Found {
    /// The path that a client asks for, in normal form.
    pub(super) url: String,
    /// Where the file is, without symbolic links.
    pub(super) real: PathBuf,
    /// Its name for the owner: beginning with the folder's own name.
    pub(super) shown: PathBuf,
    pub(super) stamp: Stamp,
}

/// All files of the folder `dir`, in no order.
pub(super) fn scan(dir: &Path) -> Result<Vec<Found>, Problem> {
    let shown = PathBuf::from(dir.file_name().unwrap_or(dir.as_os_str()));
    let root = match dir.canonicalize() {
        Ok(root) => root,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unreadable(&shown, &error)),
    };
    let mut scan = Scan {
        root: &root,
        ancestors: Vec::new(),
        names: 0,
        found: Vec::new(),
    };
    scan.folder(&root, "/", &shown)?;
    Ok(scan.found)
}

/// The problem of a file or folder that cannot be read.
pub(super) fn unreadable(shown: &Path, error: &io::Error) -> Problem {
    let problem = Problem::new(shown, format!("cannot be read: {error}"));
    let too_many = [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE];
    match error.kind() {
        ErrorKind::PermissionDenied => {
            problem.hint("let the user that runs millpond read it, or take it out of the folder")
        }
        ErrorKind::NotADirectory => problem.hint("it must be a folder"),
        _ if too_many
            .iter()
            .any(|errno| error.raw_os_error() == Some(errno.raw_os_error())) =>
        {
            problem.hint("each large file is kept open: raise the limit of open files (ulimit -n)")
        }
        _ => problem,
    }
}

/// Whether the file went away, or became something else, since its folder was listed. Then it is not an error: the
/// folder has changed, and will be loaded again.
pub(super) fn has_gone(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
        || error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
}

struct Scan<'a> {
    root: &'a Path,
    /// The folders above the present one, by the way that led here: a link to one of them is a circle.
    ancestors: Vec<PathBuf>,
    names: usize,
    found: Vec<Found>,
}

impl Scan<'_> {
    fn folder(&mut self, real: &Path, url: &str, shown: &Path) -> Result<(), Problem> {
        if self.ancestors.iter().any(|ancestor| ancestor == real) {
            return Ok(());
        }
        if self.ancestors.len() >= MAX_DEPTH {
            let message = format!("is more than {MAX_DEPTH} folders deep");
            return Err(Problem::new(shown, message).hint("serve such a tree from less deep"));
        }
        let entries = match fs::read_dir(real) {
            Ok(entries) => entries,
            Err(error) if has_gone(&error) && real != self.root => return Ok(()),
            Err(error) => return Err(unreadable(shown, &error)),
        };
        self.ancestors.push(real.to_owned());
        for entry in entries {
            let entry = entry.map_err(|error| unreadable(shown, &error))?;
            self.entry(&entry, url, shown)?;
        }
        self.ancestors.pop();
        Ok(())
    }

    fn entry(&mut self, entry: &DirEntry, url: &str, shown: &Path) -> Result<(), Problem> {
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| !name.starts_with('.')) else {
            return Ok(());
        };
        self.names += 1;
        if self.names > MAX_NAMES {
            let message = format!("has more than {MAX_NAMES} files");
            return Err(Problem::new(shown, message).hint("serve them from another place"));
        }
        let shown = shown.join(name);
        let real = entry.path();
        let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
        let real = match is_link.then(|| real.canonicalize()) {
            None => real,
            Some(Ok(target)) if self.may_be_served(&target) => target,
            Some(_) => return Ok(()),
        };
        let metadata = match fs::metadata(&real) {
            Ok(metadata) => metadata,
            Err(error) if has_gone(&error) => return Ok(()),
            Err(error) => return Err(unreadable(&shown, &error)),
        };
        if metadata.is_dir() {
            return self.folder(&real, &format!("{url}{name}/"), &shown);
        }
        if metadata.is_file() {
            self.found.push(Found {
                url: format!("{url}{name}"),
                real,
                shown,
                stamp: Stamp::of(&metadata),
            });
        }
        Ok(())
    }

    /// Whether the target of a link is inside the folder and not hidden in it.
    fn may_be_served(&self, target: &Path) -> bool {
        target.strip_prefix(self.root).is_ok_and(|inside| {
            inside.components().all(|part| {
                matches!(part, Component::Normal(name) if !name.as_encoded_bytes().starts_with(b"."))
            })
        })
    }
}
