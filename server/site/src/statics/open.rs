//! Opens a file that was found, and no other file in its place.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;

use super::stamp::Stamp;

/// Opens the file at `real`, a path without symbolic links. None if what is there is no regular
/// file (any more).
///
/// The path was resolved when it was admitted. A link anywhere in it is a change, and is refused. A
/// pipe or a device in the file's place is opened without blocking, and closed again.
pub(crate) fn open(real: &Path) -> io::Result<Option<(File, Stamp)>> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let opened = openat2(
        CWD,
        real,
        OFlags::RDONLY | OFlags::CLOEXEC | flags,
        Mode::empty(),
        resolve,
    );
    let file = match opened {
        Ok(file) => File::from(file),
        // Older kernels, and sandboxes that do not know the call: then only the last part is sure
        // to be no link.
        Err(Errno::NOSYS | Errno::PERM) => OpenOptions::new()
            .read(true)
            .custom_flags(flags.bits().cast_signed())
            .open(real)?,
        Err(error) => return Err(error.into()),
    };
    let metadata = file.metadata()?;
    Ok(metadata.is_file().then(|| (file, Stamp::of(&metadata))))
}
