//! How much memory and how many descriptors static files may take.

use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};

use super::plain::{ContentSource, Keep, Plain};
use millpond_site_format::{config::StaticOptions, problem::Problem};

/// Descriptors for static files at most.
const MAX_DESCRIPTORS: usize = 4096;
/// The share of the process's descriptors that static files may take: most are for connections.
const SHARE: u64 = 4;

/// Descriptors that static files may take in this process.
pub(super) fn descriptors() -> usize {
    let limit = getrlimit(Resource::Nofile).current;
    let share = limit.map_or(u64::MAX, |limit| limit / SHARE);
    usize::try_from(share).map_or(MAX_DESCRIPTORS, |share| share.min(MAX_DESCRIPTORS))
}

/// Memory and descriptors that are left while a folder is loaded.
#[derive(Debug)]
pub(super) struct Budget {
    memory: u64,
    descriptors: usize,
    all_descriptors: usize,
    closed: usize,
    in_memory: u64,
    sendfile_from: u64,
}

impl Budget {
    pub(super) fn new(options: &StaticOptions, descriptors: usize) -> Self {
        Self {
            memory: options.memory as u64,
            descriptors,
            all_descriptors: descriptors,
            closed: 0,
            in_memory: options.in_memory as u64,
            sendfile_from: options.sendfile_from as u64,
        }
    }

    /// How a file of `size` bytes is to be kept.
    pub(super) fn keep(&self, size: u64) -> Keep {
        let has_descriptor = self.descriptors > 0;
        if size <= self.in_memory.min(self.memory) {
            let in_kernel = has_descriptor && size >= self.sendfile_from.max(1);
            Keep::Copy { in_kernel }
        } else if has_descriptor {
            Keep::Open
        } else {
            Keep::Closed
        }
    }

    /// Notes what a file has taken.
    pub(super) fn spend(&mut self, plain: &Plain) {
        self.memory = self.memory.saturating_sub(plain.memory());
        self.descriptors = self.descriptors.saturating_sub(plain.descriptors());
        self.closed += usize::from(matches!(plain.source, ContentSource::Closed(_)));
    }

    /// Bytes of memory that are left.
    pub(super) fn memory(&self) -> usize {
        usize::try_from(self.memory).unwrap_or(usize::MAX)
    }

    /// Says that not all large files are kept open.
    pub(super) fn note(&self, dir: &Path) -> Option<Problem> {
        let Self {
            closed,
            all_descriptors: most,
            ..
        } = *self;
        (closed > 0).then(|| {
            let shown = dir.file_name().map_or_else(|| dir.to_owned(), PathBuf::from);
            let message = format!(
                "{closed} of its large files are opened for each request, because no more than {most} are kept open"
            );
            Problem::new(shown, message).hint(
                "raise the limit of open files (ulimit -n), or static.in_memory and static.memory",
            )
        })
    }
}
