//! Distinguishes the states of a file without reading it.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime};

/// File times move in steps: of a timer tick (10 ms at most) on Linux's own file systems, of up to
/// two seconds on others. Two writes within one step leave the same times.
const TIME_STEP: Duration = Duration::from_secs(2);

/// One state of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    device: u64,
    inode: u64,
    pub(crate) size: u64,
    /// When the content changed, in seconds and nanoseconds since 1970.
    pub(super) modified: (i64, i64),
    /// When anything changed. Unlike the other time it cannot be set back, as `cp -p` and `tar` do.
    changed: (i64, i64),
}

impl Stamp {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// The stamp of a text in the program, which never changes.
    pub(super) const fn embedded(size: usize) -> Self {
        Self {
            device: 0,
            inode: 0,
            size: size as u64,
            modified: (0, 0),
            changed: (0, 0),
        }
    }

    /// When the content changed; 1970 for what is earlier, which HTTP cannot say.
    pub(crate) fn modified_time(&self) -> SystemTime {
        let seconds = u64::try_from(self.modified.0).unwrap_or(0);
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    /// When the file came to be here, or was changed last, in milliseconds since 1970.
    pub(crate) const fn version(&self) -> i64 {
        self.changed.0 * 1_000 + self.changed.1 / 1_000_000
    }

    /// Different for different stamps.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let signed = [self.modified, self.changed].map(|(seconds, nanos)| [seconds, nanos]);
        let unsigned = [self.device, self.inode, self.size].map(u64::to_be_bytes);
        let signed = signed.as_flattened().iter().map(|time| time.to_be_bytes());
        unsigned.into_iter().chain(signed).flatten().collect()
    }

    /// True if a write after `now` is sure to give another stamp.
    pub(super) fn settled(&self, now: SystemTime) -> bool {
        now.duration_since(self.modified_time())
            .is_ok_and(|age| age > TIME_STEP)
    }
}
