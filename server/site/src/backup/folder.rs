//! A copy of a folder with modes, times, links and, where that is permitted, owners.

use std::{
    collections::HashSet,
    fs::{self, DirBuilder, File, Metadata, Permissions},
    io::{self, ErrorKind},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _, lchown, symlink},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use super::{BackupReport, failed};
use millpond_site_format::Problem;

/// Copies folders, and counts what was copied.
pub(super) struct FolderCopy<'a> {
    /// The folder that is copied, and those outside of it that links have led to.
    roots: Vec<PathBuf>,
    left_out: HashSet<PathBuf>,
    stop: &'a AtomicBool,
    pub(super) report: BackupReport,
}

impl<'a> FolderCopy<'a> {
    pub(super) fn new(root: &Path, left_out: HashSet<PathBuf>, stop: &'a AtomicBool) -> Self {
        Self {
            roots: vec![root.to_owned()],
            left_out,
            stop,
            report: BackupReport::default(),
        }
    }

    /// Copies the folder `from` into `to`, which may exist; files that are there stay.
    pub(super) fn folder(&mut self, from: &Path, to: &Path) -> Result<(), Problem> {
        let read = || -> io::Result<Vec<_>> {
            if !to.exists() {
                DirBuilder::new().mode(0o700).create(to)?;
            }
            let entries = fs::read_dir(from)?;
            entries.map(|entry| Ok(entry?.file_name())).collect()
        };
        let names = match read() {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            read => read.map_err(|error| failed(from, &error))?,
        };
        for name in names {
            self.entry(&from.join(&name), &to.join(&name))?;
        }
        // The folder of the backup itself stays closed to others.
        if from != self.roots[0] {
            self.keep_metadata(from, to)?;
        }
        Ok(())
    }

    /// Copies what is at `from`, if it is there and not left out.
    pub(super) fn entry(&mut self, from: &Path, to: &Path) -> Result<(), Problem> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Problem::new(
                from,
                "the backup was ended before it was copied",
            ));
        }
        if self.left_out.contains(from) {
            return Ok(());
        }
        let result = match fs::symlink_metadata(from) {
            Ok(metadata) if metadata.is_symlink() => match self.leads_outside(from) {
                Some(target) => return self.target(from, &target, to),
                None => link(from, to),
            },
            Ok(metadata) if metadata.is_dir() => return self.folder(from, to),
            Ok(metadata) if metadata.is_file() && !to.exists() => self.file(from, to, &metadata),
            // What stands there already, a socket or a pipe.
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        };
        match result {
            // It went meanwhile.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            result => result.map_err(|error| failed(from, &error)),
        }
    }

    /// The target of a link that leads out of all that is copied as it stands.
    fn leads_outside(&self, link: &Path) -> Option<PathBuf> {
        let target = link.canonicalize().ok()?;
        let is_inside = self.roots.iter().any(|root| target.starts_with(root));
        (!is_inside).then_some(target)
    }

    /// Copies what a link leads to in place of the link.
    fn target(&mut self, from: &Path, target: &Path, to: &Path) -> Result<(), Problem> {
        self.roots.push(target.to_owned());
        let copied = match target.is_dir() {
            // By the link's own path, by which files are left out.
            true => self.folder(from, to),
            false => self.entry(target, to),
        };
        self.roots.pop();
        copied
    }

    fn file(&mut self, from: &Path, to: &Path, metadata: &Metadata) -> io::Result<()> {
        let (mut source, mut copy) = (File::open(from)?, File::create_new(to)?);
        self.report.bytes += io::copy(&mut source, &mut copy)?;
        self.report.files += 1;
        copy.set_permissions(Permissions::from_mode(metadata.mode()))?;
        copy.set_modified(metadata.modified()?)?;
        keep_owner(to, metadata);
        Ok(())
    }

    /// Gives the copy of a file or folder the mode and owner of the original, and counts a file.
    pub(super) fn keep_metadata(&mut self, from: &Path, to: &Path) -> Result<(), Problem> {
        let keep = || -> io::Result<u64> {
            let metadata = fs::metadata(from)?;
            fs::set_permissions(to, Permissions::from_mode(metadata.mode()))?;
            keep_owner(to, &metadata);
            Ok(if metadata.is_file() {
                to.metadata()?.len()
            } else {
                0
            })
        };
        match keep() {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            kept => {
                let bytes = kept.map_err(|error| failed(from, &error))?;
                self.report.bytes += bytes;
                self.report.files += u64::from(bytes > 0);
                Ok(())
            }
        }
    }
}

fn link(from: &Path, to: &Path) -> io::Result<()> {
    match symlink(fs::read_link(from)?, to) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// Only root may give files away, and a backup of anyone else is theirs.
fn keep_owner(to: &Path, metadata: &Metadata) {
    let _ = lchown(to, Some(metadata.uid()), Some(metadata.gid()));
}
