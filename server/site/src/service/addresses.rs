//! Additional addresses of files and folders: short addresses, folders without their slash, folders
//! that are listed.
//!
//! The addresses are determined when the folder is read. A request for a file by its own path takes
//! one look-up in [`Statics`], as before.

use std::collections::{BTreeMap, HashMap};

use super::listing::Listing;
use crate::statics::{StaticFile, Statics};
use millpond_site_format::{config::FileSettings, route::Router};

/// Addresses that a folder answers in addition to its files.
#[derive(Debug, Default)]
pub(crate) struct Addresses {
    others: HashMap<String, Other, foldhash::fast::RandomState>,
    /// True if files ending in `.html` have shorter addresses.
    clean: bool,
}

#[derive(Debug)]
enum Other {
    /// A file at its short address.
    File(StaticFile),
    /// The client is led to this path.
    Moved(String),
    Listing(Listing),
}

/// The file or listing at a path.
#[derive(Debug)]
pub(crate) enum AddressMatch<'a> {
    File(&'a StaticFile),
    Listing(&'a Listing),
}

/// The ending that short addresses leave out.
const HTML: &str = ".html";

impl Addresses {
    /// The addresses of these files, but for those where a page answers.
    pub(crate) fn new(statics: &Statics, pages: &Router, settings: &FileSettings) -> Self {
        let mut builder = Builder {
            statics,
            pages,
            settings,
            others: HashMap::default(),
        };
        if settings.clean_urls {
            for (path, file) in statics.files() {
                builder.shorten(path, file);
            }
        }
        builder.folders();
        Self {
            others: builder.others,
            clean: settings.clean_urls,
        }
    }

    /// Finds the page or file that answers at a path in its normal form.
    pub(crate) fn find<'a>(&'a self, statics: &'a Statics, path: &str) -> Option<AddressMatch<'a>> {
        if self.clean && path.ends_with(HTML) && self.moved(path).is_some() {
            return None;
        }
        self.behind(statics, path)
    }

    /// Finds the page or file for a path that the client does not see: there a file answers by its
    /// own path, though its address is another.
    #[inline]
    pub(crate) fn behind<'a>(
        &'a self,
        statics: &'a Statics,
        path: &str,
    ) -> Option<AddressMatch<'a>> {
        if let Some(file) = statics.find(path) {
            return Some(AddressMatch::File(file));
        }
        match self.others.get(path)? {
            Other::File(file) => Some(AddressMatch::File(file)),
            Other::Listing(listing) => Some(AddressMatch::Listing(listing)),
            Other::Moved(_) => None,
        }
    }

    /// The path to which a path leads, both in normal form.
    pub(crate) fn moved(&self, path: &str) -> Option<&str> {
        match self.others.get(path)? {
            Other::Moved(to) => Some(to),
            _ => None,
        }
    }
}

struct Builder<'a> {
    statics: &'a Statics,
    pages: &'a Router,
    settings: &'a FileSettings,
    others: HashMap<String, Other, foldhash::fast::RandomState>,
}

impl Builder<'_> {
    /// Gives a file that ends in `.html` its short address.
    fn shorten(&mut self, path: &str, file: &StaticFile) {
        let Some(short) = path
            .strip_suffix(HTML)
            .filter(|short| !short.ends_with('/'))
        else {
            return;
        };
        let (folder, name) = split(path);
        if self.is_index_of(folder, name) {
            if self.pages.find(folder).is_none() {
                self.others
                    .insert(path.to_owned(), Other::Moved(folder.to_owned()));
            }
            return;
        }
        // The page keeps the short address, and the file keeps its full name.
        if self.pages.find(short).is_some() || self.statics.find(short).is_some() {
            return;
        }
        let as_folder = format!("{short}/");
        if self.statics.find(&as_folder).is_none() {
            self.others
                .insert(as_folder, Other::Moved(short.to_owned()));
        }
        self.others
            .insert(path.to_owned(), Other::Moved(short.to_owned()));
        self.others
            .insert(short.to_owned(), Other::File(file.clone()));
    }

    /// True if the file of this name is the one that answers for the folder.
    fn is_index_of(&self, folder: &str, name: &str) -> bool {
        let Some(rank) = self.settings.index_rank(name) else {
            return false;
        };
        let better = &self.settings.index[..rank];
        better
            .iter()
            .all(|name| self.statics.find(&format!("{folder}{name}")).is_none())
    }

    /// Redirects to folders that answer, and lists the folders with a listing.
    fn folders(&mut self) {
        for (folder, files) in self.contents() {
            let has_index = self.statics.find(&folder).is_some();
            let is_listed = !has_index && self.is_listed(&folder);
            if is_listed {
                let listing = Listing::new(&folder, self.answers(parent(&folder)), files);
                self.others.insert(folder.clone(), Other::Listing(listing));
            }
            let bare = &folder[..folder.len() - 1];
            if (has_index || is_listed)
                && !bare.is_empty()
                && self.pages.find(bare).is_none()
                && !matches!(self.others.get(bare), Some(Other::File(_)))
            {
                self.others.insert(bare.to_owned(), Other::Moved(folder));
            }
        }
    }

    fn is_listed(&self, folder: &str) -> bool {
        self.settings.lists(folder) && self.pages.find(folder).is_none()
    }

    fn answers(&self, folder: Option<&str>) -> bool {
        folder.is_some_and(|folder| {
            self.statics.find(folder).is_some()
                || self.settings.lists(folder)
                || self.pages.find(folder).is_some()
        })
    }

    /// Every folder with a file at any depth, and its entries; an entry that is a folder has no
    /// file of its own.
    fn contents(&self) -> BTreeMap<String, BTreeMap<String, Option<StaticFile>>> {
        let mut folders: BTreeMap<String, BTreeMap<String, Option<StaticFile>>> = BTreeMap::new();
        for (path, file) in self.statics.files() {
            let (mut folder, name) = split(path);
            let entries = folders.entry(folder.to_owned()).or_default();
            let mut is_new = entries.is_empty();
            entries.insert(name.to_owned(), Some(file.clone()));
            // The folders above a known one are known.
            while is_new && let Some(above) = parent(folder) {
                let entries = folders.entry(above.to_owned()).or_default();
                is_new = entries.is_empty();
                entries.insert(folder[above.len()..].to_owned(), None);
                folder = above;
            }
        }
        folders
    }
}

/// A path as its folder, with the slash, and the name in it.
fn split(path: &str) -> (&str, &str) {
    path.split_at(path.rfind('/').map_or(0, |at| at + 1))
}

/// The folder above a folder; both end with a slash.
fn parent(folder: &str) -> Option<&str> {
    let bare = folder.strip_suffix('/').filter(|bare| !bare.is_empty())?;
    Some(split(bare).0)
}

/// Returns every path at which the content of each file is given.
pub(crate) fn of_files<'s>(
    statics: &'s Statics,
    settings: &'s FileSettings,
) -> impl Iterator<Item = Vec<String>> + 's {
    let files = statics.files();
    files.map(|(path, _)| of_file(path, statics, settings))
}

/// Every path at which the content of the file at `path` is given.
fn of_file(path: &str, statics: &Statics, settings: &FileSettings) -> Vec<String> {
    // A compressed file has the content of the file of which it is made.
    let plain = [".gz", ".br", ".zst"].into_iter();
    let plain = plain.filter_map(|ending| path.strip_suffix(ending));
    let plain = plain.filter(|plain| statics.find(plain).is_some());
    let mut all = vec![path.to_owned()];
    for path in plain.chain([path]) {
        let (folder, name) = path.split_at(path.rfind('/').map_or(0, |at| at + 1));
        if settings.index_rank(name).is_some() {
            let bare = folder.trim_end_matches('/');
            all.extend([folder, bare].map(str::to_owned));
        }
        if settings.clean_urls
            && let Some(short) = path.strip_suffix(".html")
        {
            all.extend([short.to_owned(), format!("{short}/")]);
        }
        all.push(path.to_owned());
    }
    all.retain(|path| !path.is_empty());
    all.sort_unstable();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_and_what_is_above_them() {
        assert_eq!(split("/a/b"), ("/a/", "b"));
        assert_eq!(split("/b"), ("/", "b"));
        assert_eq!(parent("/a/b/"), Some("/a/"));
        assert_eq!(parent("/a/"), Some("/"));
        assert_eq!(parent("/"), None);
    }
}
