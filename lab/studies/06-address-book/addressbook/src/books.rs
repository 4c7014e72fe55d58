//! The entries of all files in memory, in step with the files: what pages of the store are made of.
//!
//! The order is the store's rule: the entries are exchanged first, then what has changed is named.
//! So a page never depends on when it was made relative to a change of a file: one that was made
//! of the former entries has ended, or is not kept.

use std::collections::{HashMap, HashSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use millpond::{Page, Store};

use crate::entry::{BookEntry, BookView};
use crate::{BookError, DataFile, FILES, html::MainContent, stream};

/// Entries of a file, or `None` if there is no such file.
pub(crate) type Entries = Option<Arc<Vec<BookEntry>>>;

/// All files.
pub struct Books {
    data: PathBuf,
    store: Store,
    entries: RwLock<HashMap<DataFile, Entries>>,
    made: AtomicU64,
}

impl Books {
    /// No entries yet; `read` reads them.
    pub(crate) fn new(data: &Path, store: &Store) -> Self {
        Self {
            data: data.to_owned(),
            store: store.clone(),
            entries: RwLock::default(),
            made: AtomicU64::new(0),
        }
    }

    /// Reads a file again, and ends the pages of those of its entries that are others than before.
    /// True if any is.
    ///
    /// # Errors
    /// The file is broken. Its former entries stay.
    pub(crate) fn read(&self, file: DataFile) -> Result<bool, BookError> {
        let now = entries_of(&file.path(&self.data))?;
        let now = now.map(Arc::new);
        let before = self.get(file);
        if before == now {
            return Ok(false);
        }
        self.entries
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(file, now.clone());
        let name = file.name();
        self.store.change(|changes| {
            changes.one("file", &name);
            let [before, now] = [&before, &now].map(|entries| by_id(entries));
            let ids: HashSet<&&str> = before.keys().chain(now.keys()).collect();
            for id in ids {
                if before.get(*id) != now.get(*id) {
                    changes.one("entry", format!("{name}/{id}"));
                }
            }
        });
        Ok(true)
    }

    /// The content of a page, which is told what it depends on: an entry on that entry, a list and
    /// a search on the file. `None` if there is no such file or no such entry.
    pub(crate) fn render(
        &self,
        page: &mut Page,
        file: DataFile,
        base: &str,
        view: BookView<'_>,
    ) -> Option<String> {
        match view {
            BookView::Entry(id) => page.depends_on("entry", format!("{}/{id}", file.name())),
            BookView::List | BookView::Search(_) => page.depends_on("file", file.name()),
        };
        self.made.fetch_add(1, Ordering::Relaxed);
        let entries = self.get(file)?;
        let mut content = MainContent::new(base, view);
        for entry in entries.iter() {
            if !content.offer(entry) {
                break;
            }
        }
        content.finish()
    }

    /// How many pages were made.
    pub fn made(&self) -> u64 {
        self.made.load(Ordering::Relaxed)
    }

    /// The file with this name in the folder, if it is one of the program's.
    pub(crate) fn file_named(name: &str) -> Option<DataFile> {
        FILES.into_iter().find(|file| {
            name.strip_suffix(".xml")
                .is_some_and(|name| file.name() == name)
        })
    }

    /// The entries of a file as they are known.
    pub(crate) fn get(&self, file: DataFile) -> Entries {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        entries.get(&file).cloned().flatten()
    }
}

/// Of several entries with one id, a page shows the first.
fn by_id(entries: &Entries) -> HashMap<&str, &BookEntry> {
    let mut by_id = HashMap::new();
    for entry in entries.iter().flat_map(|entries| entries.iter()) {
        by_id.entry(entry.id.as_str()).or_insert(entry);
    }
    by_id
}

fn entries_of(path: &Path) -> Result<Option<Vec<BookEntry>>, BookError> {
    match path.symlink_metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        _ => {}
    }
    let mut entries = Vec::new();
    stream::for_each(path, |entry| {
        entries.push(entry.clone());
        true
    })?;
    Ok(Some(entries))
}
