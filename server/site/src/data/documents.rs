//! The Markdown files among those of data, for a look at their texts.

use std::{
    collections::{HashMap, HashSet},
    path::{Component, Path, PathBuf},
};

use millpond_data::{FieldValue, Format, read};

use super::{
    DataSources,
    scan::{DataFile, scan},
};

/// Files of more bytes in all are not looked at.
const MAX_BYTES: u64 = 64 << 20;

/// A Markdown file.
pub(crate) struct DocumentFile {
    pub(crate) path: PathBuf,
    /// The file as a problem names it, from the site's folder.
    pub(crate) shown: PathBuf,
    /// The table that has its row.
    pub(crate) table: String,
    /// The slug of its row.
    pub(crate) slug: Option<String>,
}

/// The Markdown files of the site's tables; none if they are very large.
#[derive(Default)]
pub(crate) struct Documents {
    pub(crate) all: Vec<DocumentFile>,
    /// The places of files by their paths.
    paths: HashMap<PathBuf, usize>,
    /// The places of files by their names alone.
    names: HashMap<String, Vec<usize>>,
    /// The tables with rows of files in other formats, too.
    mixed: HashSet<String>,
}

impl Documents {
    pub(crate) fn new(sources: &DataSources) -> Self {
        let scan = scan(sources);
        let is_document = |file: &&DataFile| file.format == Format::Markdown;
        let (files, others): (Vec<&DataFile>, Vec<&DataFile>) =
            scan.files.values().partition(is_document);
        let mut documents = Self {
            mixed: others.iter().map(|file| file.table.clone()).collect(),
            ..Self::default()
        };
        if files.iter().map(|file| file.stamp.size).sum::<u64>() > MAX_BYTES {
            return documents;
        }
        for file in files {
            let place = documents.all.len();
            let name = file.path.file_name().and_then(|name| name.to_str());
            let same_name = documents.names.entry(name.unwrap_or_default().to_owned());
            same_name.or_default().push(place);
            documents.paths.insert(file.path.clone(), place);
            documents.all.push(DocumentFile {
                path: file.path.clone(),
                shown: file.shown.clone(),
                table: file.table.clone(),
                slug: slug(file),
            });
        }
        documents
    }

    /// The file that another one names from its folder.
    pub(crate) fn at(&self, from: &DocumentFile, link: &str) -> Option<&DocumentFile> {
        let path = plain(&from.path.parent()?.join(link));
        self.paths.get(&path).map(|place| &self.all[*place])
    }

    /// The files of this name, without their folders.
    pub(crate) fn named(&self, name: &str) -> impl Iterator<Item = &DocumentFile> {
        let places = self.names.get(name).into_iter().flatten();
        places.map(|place| &self.all[*place])
    }

    /// True if a table may have rows that no document gives.
    pub(crate) fn has_other_rows(&self, table: &str) -> bool {
        self.mixed.contains(table)
    }

    /// The names of a table's files.
    pub(crate) fn names_of(&self, table: &str) -> impl Iterator<Item = &str> {
        let of_table = self.all.iter().filter(move |file| file.table == table);
        of_table.filter_map(|file| file.path.file_name()?.to_str())
    }
}

/// A path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

/// The slug of a file's row; none if the file has a fault.
fn slug(file: &DataFile) -> Option<String> {
    let opened = file.open().ok()?;
    let mut slug = None;
    let outcome = read(file.format, opened, file.row_name.as_ref(), &mut |row| {
        let at = row.names.iter().position(|name| name == "slug");
        slug = at.and_then(|at| match &row.values[at] {
            FieldValue::Text(text) | FieldValue::Plain(text) => Some(text.to_string()),
            _ => None,
        });
        Ok(())
    });
    outcome.ok()?;
    slug
}
