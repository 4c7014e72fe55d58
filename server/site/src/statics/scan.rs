//! Which files of a folder may be served, and at which paths.

use std::fs::{self, DirEntry};
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};

use super::stamp::Stamp;
use millpond_site_format::{file_name::is_passed_over, problem::Problem};

/// Names looked at in all. Links may make a small folder look like a large one.
const MAX_NAMES: usize = 100_000;
/// Folders within folders.
const MAX_DEPTH: usize = 32;

/// The one hidden name that is served, in the folder itself (RFC 8615).
pub(crate) const WELL_KNOWN: &str = ".well-known";

/// A file to be served.
#[derive(Clone, Debug)]
pub(super) struct ScannedFile {
    /// The path that a client asks for, in normal form.
    pub(super) url: String,
    /// Path of the file, without symbolic links.
    pub(super) real: PathBuf,
    /// Its name for the owner: beginning with the folder's own name.
    pub(super) shown: PathBuf,
    pub(super) stamp: Stamp,
}

/// All files of the folder `dir`, in no order, and what in it cannot be read.
///
/// # Errors
/// The folder itself cannot be read; it has too many names, or folders too deep.
pub(super) fn scan(
    dir: &Path,
    follow_links: bool,
) -> Result<(Vec<ScannedFile>, Vec<Problem>), Problem> {
    scan_within(dir, follow_links, MAX_NAMES)
}

fn scan_within(
    dir: &Path,
    follow_links: bool,
    max_names: usize,
) -> Result<(Vec<ScannedFile>, Vec<Problem>), Problem> {
    let shown = PathBuf::from(dir.file_name().unwrap_or(dir.as_os_str()));
    let root = match dir.canonicalize() {
        Ok(root) => root,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Default::default()),
        Err(error) => return Err(unreadable(&shown, &error)),
    };
    let mut scan = Scan {
        root: &root,
        follow_links,
        max_names,
        ancestors: Vec::new(),
        names: 0,
        found: Vec::new(),
        notes: Vec::new(),
    };
    scan.folder(&root, "/", &shown)?;
    Ok((scan.found, scan.notes))
}

/// The problem of a file or folder that cannot be read.
pub(super) fn unreadable(shown: &Path, error: &io::Error) -> Problem {
    let problem = Problem::new(shown, format!("cannot be read: {error}"));
    match error.kind() {
        ErrorKind::PermissionDenied => {
            problem.hint("let the user that runs millpond read it, or take it out of the folder")
        }
        ErrorKind::NotADirectory => problem.hint("it must be a folder"),
        _ if is_descriptor_limit(error) => {
            problem.hint("raise the limit of open files (ulimit -n)")
        }
        _ => problem,
    }
}

/// True if the process, or the system, has too many files open.
pub(super) fn is_descriptor_limit(error: &io::Error) -> bool {
    let limits = [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE];
    limits
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// True if the file went away, or became something else, since its folder was listed. Then it is
/// not an error: the folder has changed, and will be loaded again.
pub(super) fn has_gone(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
        || error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
}

struct Scan<'a> {
    root: &'a Path,
    follow_links: bool,
    max_names: usize,
    /// The folders above the present one, by the way that led here: a link to one of them is a
    /// circle.
    ancestors: Vec<PathBuf>,
    names: usize,
    found: Vec<ScannedFile>,
    notes: Vec<Problem>,
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
            Err(error) if real == self.root => return Err(unreadable(shown, &error)),
            Err(error) => {
                self.note(shown, &error);
                return Ok(());
            }
        };
        self.ancestors.push(real.to_owned());
        for entry in entries {
            match entry {
                Ok(entry) => self.entry(&entry, url, shown)?,
                Err(error) => {
                    self.note(shown, &error);
                    break;
                }
            }
        }
        self.ancestors.pop();
        Ok(())
    }

    fn entry(&mut self, entry: &DirEntry, url: &str, shown: &Path) -> Result<(), Problem> {
        let name = entry.file_name();
        let is_served =
            |name: &&str| !is_passed_over(name.as_bytes()) || (url == "/" && *name == WELL_KNOWN);
        let Some(name) = name.to_str().filter(is_served) else {
            return Ok(());
        };
        self.names += 1;
        if self.names > self.max_names {
            let message = format!("has more than {} files and folders", self.max_names);
            let shown = shown.iter().next().map_or(shown, Path::new);
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
            Err(error) => {
                self.note(&shown, &error);
                return Ok(());
            }
        };
        if metadata.is_dir() {
            return self.folder(&real, &format!("{url}{name}/"), &shown);
        }
        if metadata.is_file() {
            self.found.push(ScannedFile {
                url: format!("{url}{name}"),
                real,
                shown,
                stamp: Stamp::of(&metadata),
            });
        }
        Ok(())
    }

    /// Notes what cannot be read; what has gone is no fault.
    fn note(&mut self, shown: &Path, error: &io::Error) {
        if !has_gone(error) {
            self.notes.push(unreadable(shown, error));
        }
    }

    /// True if a target outside of the folder is hidden: seen from `.sites/one/static`,
    /// `.sites/one/.git` is hidden, and a target that only lies below the same hidden folder as the
    /// site is not.
    fn is_hidden(&self, target: &Path) -> bool {
        let mut root = self.root.components();
        target
            .components()
            .skip_while(|part| root.next() == Some(*part))
            .any(|part| is_passed_over(part.as_os_str().as_encoded_bytes()))
    }

    /// True if the target of a link is not hidden in the folder, and not outside of it if that is
    /// not allowed.
    fn may_be_served(&self, target: &Path) -> bool {
        let Ok(inside) = target.strip_prefix(self.root) else {
            // A link to a parent of the folder would show the hidden files in it.
            return self.follow_links && !self.root.starts_with(target) && !self.is_hidden(target);
        };
        let mut parts = inside.components();
        let well_known = parts.clone().next() == Some(Component::Normal(WELL_KNOWN.as_ref()));
        if well_known {
            parts.next();
        }
        parts.all(|part| {
            matches!(part, Component::Normal(name) if !is_passed_over(name.as_encoded_bytes()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_too_many_names_is_a_problem() {
        let temp = lab_testkit::fast_dir();
        let dir = temp.path().join("static");
        fs::create_dir_all(dir.join("a")).unwrap();
        for name in ["x", "a/y", "a/z"] {
            fs::write(dir.join(name), "").unwrap();
        }
        assert_eq!(scan_within(&dir, false, 4).unwrap().0.len(), 3);
        let problem = scan_within(&dir, false, 3).unwrap_err();
        assert_eq!(
            problem.to_string(),
            "static: has more than 3 files and folders\n  hint: serve them from another place"
        );
    }
}
