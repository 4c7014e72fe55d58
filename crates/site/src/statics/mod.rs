//! Static files, served from memory.
//!
//! [`Statics::load`] reads the folder once; a request is then one look-up in a map from normalized paths to prepared
//! responses. Nothing is opened by a name that a client sent, so no name reaches outside the folder.
//!
//! A value never changes. When the folder does, another is loaded beside it, which takes over what is still the same.

mod conditions;
mod disk;
mod media;
mod read;
mod scan;
mod stamp;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use millpond_http::{Prepared, Request, Response};

use crate::config::FileSettings;
use crate::problem::Problem;
use disk::DiskFile;
use stamp::Stamp;

/// Files larger than this stay on disk: they are few, and the kernel sends them without a copy.
const MAX_IN_MEMORY: u64 = 1 << 20;
/// Bytes of all files in memory; when it is used up the larger ones stay on disk.
const MEMORY_LIMIT: u64 = 256 << 20;

type Map = HashMap<String, StaticFile, foldhash::fast::RandomState>;

/// The files of one folder as they were when it was loaded.
#[derive(Debug, Default)]
pub(crate) struct Statics {
    /// By path: `/docs/index.html`.
    files: Map,
    /// The index of each folder that has one (`index.html`), by the folder's path: `/docs/`.
    indexes: Map,
}

impl Statics {
    /// Reads the folder `dir`; one that is not there has no files. What has the same device, inode, times and size as
    /// in `previous` is taken from there and not read again.
    ///
    /// Left out are names that begin with a dot, symbolic links that lead out of the folder (or to such a name, or
    /// nowhere), names that are not UTF-8, and what is neither file nor folder.
    pub(crate) fn load(
        dir: &Path,
        previous: Option<&Self>,
        settings: &FileSettings,
    ) -> Result<Self, Problem> {
        Self::load_within(dir, previous, settings, MEMORY_LIMIT)
    }

    fn load_within(
        dir: &Path,
        previous: Option<&Self>,
        settings: &FileSettings,
        limit: u64,
    ) -> Result<Self, Problem> {
        let mut found = scan::scan(dir)?;
        // The smallest first, so that what does not fit is the largest; the path makes it the same every time.
        found.sort_unstable_by(|a, b| (a.stamp.size, &a.url).cmp(&(b.stamp.size, &b.url)));
        let mut statics = Self::default();
        let mut room = limit;
        let mut ranks: HashMap<String, usize> = HashMap::new();
        for file in found {
            let in_memory = file.stamp.size <= MAX_IN_MEMORY.min(room);
            let before = previous.and_then(|previous| previous.files.get(&file.url));
            let cache_control = settings.cache_control(&file.url);
            let Some(loaded) = read::load(&file, cache_control, in_memory, before)? else {
                continue;
            };
            room = room.saturating_sub(loaded.memory());
            let (folder, name) = file
                .url
                .split_at(file.url.rfind('/').map_or(0, |at| at + 1));
            if let Some(rank) = settings.index_rank(name)
                && ranks.get(folder).is_none_or(|best| rank < *best)
            {
                ranks.insert(folder.to_owned(), rank);
                statics.indexes.insert(folder.to_owned(), loaded.clone());
            }
            statics.files.insert(file.url, loaded);
        }
        Ok(statics)
    }

    /// The file at a path in the form that [`millpond_http::path::normalize`] gives; a path that ends with a slash is
    /// that folder's index. Costs one look-up.
    pub(crate) fn find(&self, normalized_path: &str) -> Option<&StaticFile> {
        if normalized_path.ends_with('/') {
            self.indexes.get(normalized_path)
        } else {
            self.files.get(normalized_path)
        }
    }

    /// All files by their own paths, in no order.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &StaticFile)> {
        self.files.iter().map(|(path, file)| (path.as_str(), file))
    }

    /// How many files there are.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }
}

/// One file, in memory or open on disk. Cloning it copies a pointer.
#[derive(Clone, Debug)]
pub(crate) struct StaticFile {
    stamp: Stamp,
    /// Whether a later write was sure to change the stamp.
    settled: bool,
    /// The value of its Cache-Control.
    cache_control: &'static str,
    content: Content,
}

#[derive(Clone, Debug)]
enum Content {
    Memory(Arc<Prepared>),
    Disk(Arc<DiskFile>),
}

impl StaticFile {
    /// The response to a GET or HEAD: conditions, ranges and (in memory) codings are taken care of. From memory it
    /// costs no system call; from disk one `fstat`.
    pub(crate) fn respond(&self, request: &Request<'_>) -> Response {
        match &self.content {
            Content::Memory(prepared) => prepared.respond(request, Bytes::new()),
            Content::Disk(disk) => disk.respond(request),
        }
    }

    /// The prepared response, for its codings to be made; none for a file that is sent from disk.
    pub(crate) fn prepared(&self) -> Option<&Arc<Prepared>> {
        match &self.content {
            Content::Memory(prepared) => Some(prepared),
            Content::Disk(_) => None,
        }
    }

    /// Whether both are one file.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.stamp == other.stamp
    }

    /// Its size when it was loaded, in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.stamp.size
    }

    /// When its content had last changed when it was loaded.
    pub(crate) fn modified(&self) -> SystemTime {
        self.stamp.modified_time()
    }

    /// Bytes of content it keeps in memory.
    fn memory(&self) -> u64 {
        self.prepared()
            .map_or(0, |prepared| prepared.body().len() as u64)
    }
}
