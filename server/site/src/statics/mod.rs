//! Static files: found once, prepared once, and prepared anew when the folder changes.
//!
//! [`Statics::load`] reads the folder; a request is then one look-up in a map from normalized paths
//! to prepared responses. No name from a client is ever given to the system, so no request reaches
//! outside the folder. The watch over the site's folder (`watch`) is the feed of changes: a value
//! never changes; a change loads a second value, which takes over everything that is still the
//! same.
//!
//! | what | how it is kept | what a request costs in addition |
//! |---|---|---|
//! | up to `static.in_memory`, as far as `static.memory` goes | a copy in memory | nothing |
//! | of these, from `static.sendfile_from` on | an unnamed file, sent by `sendfile` | nothing |
//! | larger | open | one `fstat`, if content is sent (see `disk`) |
//! | larger, and too many to keep open | by its path | `openat2`, `fstat`, `close` |

mod budget;
mod coding_memory;
mod copy;
mod disk;
mod media;
mod open;
mod plain;
mod precompressed;
mod scan;
mod stamp;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use millpond_http::{Body, Coding, Compressor, Prepared, Request, Response};

use budget::Budget;
use coding_memory::CodingMemory;
pub(crate) use disk::refused_for as refused;
use millpond_site_format::{
    config::{FileSettings, StaticOptions},
    folder::EmbeddedFiles,
    problem::Problem,
};
pub(crate) use open::open;
use plain::{ContentSource, Loaded, ServingOptions};
use precompressed::Precompressed;
pub(crate) use scan::WELL_KNOWN;
pub(crate) use stamp::Stamp;

type ByPath<T> = HashMap<String, T, foldhash::fast::RandomState>;

/// The files of one folder as they were when it was loaded.
#[derive(Debug, Default)]
pub(crate) struct Statics {
    /// By path: `/docs/index.html`.
    files: ByPath<StaticFile>,
    /// The index of each folder that has one (`index.html`), by the folder's path: `/docs/`.
    indexes: ByPath<StaticFile>,
    /// Files that could not be read, or not as intended.
    notes: Vec<Problem>,
    /// Memory that is left for codings.
    room: CodingMemory,
}

impl Statics {
    /// Reads the folder `dir`; one that is not there has no files. What has the same device, inode,
    /// times and size as in `previous` is taken from there and not read again.
    ///
    /// Left out are names that begin with a dot (but `.well-known` in the folder itself), symbolic
    /// links that lead out of the folder unless `options` allow it (or to such a name, or nowhere),
    /// names that are not UTF-8, and what is neither file nor folder.
    ///
    /// # Errors
    /// The folder itself cannot be read, or is too large or too deep.
    pub(crate) fn load(
        dir: &Path,
        options: &StaticOptions,
        settings: &FileSettings,
        previous: Option<&Self>,
    ) -> Result<Self, Problem> {
        let budget = Budget::new(options, budget::descriptors());
        Self::load_within(dir, options, settings, previous, budget)
    }

    /// The files of `static/` among those in the program.
    pub(crate) fn embedded(files: EmbeddedFiles, settings: &FileSettings) -> Self {
        let files = files.iter().filter_map(|(path, text)| {
            let url = path.strip_prefix("static")?;
            let loaded = plain::embedded(Path::new(url), text, settings.cache_control(url));
            let file = StaticFile::new(&loaded, Precompressed::default(), None);
            Some((url.to_owned(), file))
        });
        Self {
            files: files.collect(),
            ..Self::default()
        }
    }

    fn load_within(
        dir: &Path,
        options: &StaticOptions,
        settings: &FileSettings,
        previous: Option<&Self>,
        mut budget: Budget,
    ) -> Result<Self, Problem> {
        let (mut found, mut notes) = scan::scan(dir, options.follow_links)?;
        // The smallest first, so that what does not fit is the largest; the path makes it the same
        // every time.
        found.sort_unstable_by(|a, b| (a.stamp.size, &a.url).cmp(&(b.stamp.size, &b.url)));
        let mut all = ByPath::default();
        for file in found {
            let before = previous.and_then(|previous| previous.files.get(&file.url));
            let before = before.map(|before| &before.loaded);
            let wanted = ServingOptions {
                keep: budget.keep(file.stamp.size),
                cache_control: settings.cache_control(&file.url),
            };
            if let Some(loaded) = plain::load(&file, wanted, before, &mut notes) {
                budget.spend(&loaded.plain);
                all.insert(file.url, loaded);
            }
        }
        notes.extend(budget.note(dir));
        let mut statics = Self {
            notes,
            ..Self::default()
        };
        let mut made = 0;
        let mut wrong = Vec::new();
        let mut ranks: HashMap<String, usize> = HashMap::new();
        for (url, loaded) in &all {
            let before = previous.and_then(|previous| previous.files.get(url));
            let precompressed = precompressed::find(url, loaded, &all, before, &mut wrong);
            let file = StaticFile::new(loaded, precompressed, before);
            made += file.made();
            let (folder, name) = url.split_at(url.rfind('/').map_or(0, |at| at + 1));
            if let Some(rank) = settings.index_rank(name)
                && ranks.get(folder).is_none_or(|best| rank < *best)
            {
                ranks.insert(folder.to_owned(), rank);
                statics.indexes.insert(folder.to_owned(), file.clone());
            }
            statics.files.insert(url.clone(), file);
        }
        statics.notes.extend(precompressed::notes(dir, wrong));
        statics.room = CodingMemory::new(budget.memory().saturating_sub(made));
        Ok(statics)
    }

    /// The file at a path in the form that [`millpond_http::path::normalize`] gives; a path that
    /// ends with a slash is that folder's index. Costs one look-up.
    pub(crate) fn find(&self, normalized_path: &str) -> Option<&StaticFile> {
        if normalized_path.ends_with('/') {
            self.indexes.get(normalized_path)
        } else {
            self.files.get(normalized_path)
        }
    }

    /// Starts making a coding of `file` that the sender of `request` could use, for later requests.
    /// Nothing happens once all codings are made, or if there is no memory left for another.
    pub(crate) fn request_coding(
        &self,
        file: &StaticFile,
        request: &Request<'_>,
        compressor: &Compressor,
    ) {
        if let Some(prepared) = file.prepared()
            && let Some(coding) = prepared.wanted(request)
            && let Ok(most) = usize::try_from(prepared.body().len())
            // A coding that is not shorter is not kept.
            && let Some(taken) = self.room.take(most)
        {
            compressor.request_coding(prepared, coding, move |bytes| taken.keep(bytes));
        }
    }

    /// Files that could not be read, or not as intended; the rest is served all the same.
    pub(crate) fn notes(&self) -> &[Problem] {
        &self.notes
    }

    /// Returns the notes that `before` had not.
    pub(crate) fn news<'a>(
        &'a self,
        before: Option<&'a Self>,
    ) -> impl Iterator<Item = &'a Problem> {
        let known = before.map_or(&[][..], Self::notes);
        self.notes.iter().filter(|note| !known.contains(note))
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

/// One file. Cloning it copies pointers.
#[derive(Clone, Debug)]
pub(crate) struct StaticFile {
    loaded: Loaded,
    precompressed: Precompressed,
    /// The response with the codings of the file, if there are any.
    coded: Option<Arc<Prepared>>,
    /// True if any of the contents is sent from a file that others may write.
    looks: bool,
    /// Weight of the representation when no coding had been made of it.
    weight: usize,
}

impl StaticFile {
    fn new(loaded: &Loaded, precompressed: Precompressed, before: Option<&Self>) -> Self {
        let before = before.filter(|before| {
            loaded.is(&before.loaded)
                && precompressed
                    .iter()
                    .zip(&before.precompressed)
                    .all(|pair| match pair {
                        (Some(one), Some(other)) => one.is(other),
                        (one, other) => one.is_none() && other.is_none(),
                    })
        });
        let coded = match before {
            Some(before) => before.coded.clone(),
            None => precompressed::prepare(&loaded.plain, &precompressed),
        };
        let looks = std::iter::once(loaded)
            .chain(precompressed.iter().flatten())
            .any(|part| matches!(part.plain.source, ContentSource::Open(..)));
        let mut file = Self {
            loaded: loaded.clone(),
            precompressed,
            coded,
            looks,
            weight: 0,
        };
        file.weight = match before {
            Some(before) => before.weight,
            None => file.prepared().map_or(0, |prepared| prepared.weight()),
        };
        file
    }

    fn has(&self, loaded: &Loaded, coding: Coding, precompressed: &Loaded) -> bool {
        let mut codings = Coding::ALL.into_iter().zip(&self.precompressed);
        let own = codings
            .find_map(|(own, precompressed)| precompressed.as_ref().filter(|_| own == coding));
        loaded.is(&self.loaded) && own.is_some_and(|own| own.is(precompressed))
    }

    /// The response to a GET or HEAD: conditions, ranges and codings are taken care of.
    pub(crate) fn respond(&self, request: &Request<'_>) -> Response {
        let plain = &*self.loaded.plain;
        let own = match &plain.source {
            ContentSource::Copy(own) | ContentSource::Open(_, own) => own,
            ContentSource::Closed(found) => {
                return disk::open_and_respond(found, &plain.media, request);
            }
            ContentSource::Refused(status) => return disk::refused(*status),
        };
        let prepared = self.coded.as_ref().unwrap_or(own);
        let response = prepared.respond(request, Bytes::new());
        if self.looks && self.has_changed(&response) {
            return match &plain.source {
                ContentSource::Open(file, _) => disk::respond(file, &plain.media, request),
                _ => own.respond(request, Bytes::new()),
            };
        }
        response
    }

    /// True if what `response` would send is no longer what it was prepared of.
    fn has_changed(&self, response: &Response) -> bool {
        let mut parts = std::iter::once(&self.loaded).chain(self.precompressed.iter().flatten());
        match response.body() {
            Body::File { file, .. } => parts.any(|part| part.has_changed(file)),
            // Parts of it that were read just now.
            Body::Bytes(_) if response.status() == 206 => self.loaded.is_another(),
            _ => false,
        }
    }

    /// Returns the prepared file; none if it is not kept, or cannot be read.
    pub(crate) fn prepared(&self) -> Option<&Arc<Prepared>> {
        self.coded.as_ref().or_else(|| self.loaded.plain.prepared())
    }

    /// The content, if it is kept and has at most `most` bytes. For a file that stays on disk, its
    /// current content.
    pub(crate) fn content(&self, most: u64) -> Option<Bytes> {
        copy::content(self.prepared()?.body(), most)
    }

    /// Returns the prepared file, if its responses need no look at the file: then they are the same
    /// until the folder changes.
    pub(crate) fn steady(&self) -> Option<&Arc<Prepared>> {
        self.prepared().filter(|_| !self.looks)
    }

    /// True if both are one file.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.loaded.plain.stamp == other.loaded.plain.stamp
    }

    /// Its size when it was loaded, in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.loaded.plain.stamp.size
    }

    /// When its content had last changed when it was loaded.
    pub(crate) fn modified(&self) -> SystemTime {
        self.loaded.plain.stamp.modified_time()
    }

    /// Bytes of the codings that were made of it in the background.
    fn made(&self) -> usize {
        self.prepared()
            .map_or(0, |prepared| prepared.weight().saturating_sub(self.weight))
    }
}
