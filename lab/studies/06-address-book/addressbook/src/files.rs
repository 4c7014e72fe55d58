//! The files in `data/`, which are made, not kept.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::{generate, write};

/// How the data are arranged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Model {
    /// Flat records, as in a single table.
    Simple,
    /// Names, addresses, phones and mailboxes are elements of their own within an entry.
    Medium,
    /// Normalized: entries refer to lists of countries, cities, organisations and groups.
    Complex,
}

impl Model {
    /// The name in files and addresses.
    pub fn name(self) -> &'static str {
        match self {
            Model::Simple => "simple",
            Model::Medium => "medium",
            Model::Complex => "complex",
        }
    }
}

/// One of the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DataFile {
    /// How the data are arranged.
    pub model: Model,
    /// How many entries the generator makes.
    pub entries: usize,
}

/// All files.
pub const FILES: [DataFile; 6] = [
    DataFile::new(Model::Simple, 100),
    DataFile::new(Model::Simple, 500),
    DataFile::new(Model::Medium, 100),
    DataFile::new(Model::Medium, 500),
    DataFile::new(Model::Complex, 100),
    DataFile::new(Model::Complex, 500),
];

impl DataFile {
    const fn new(model: Model, entries: usize) -> Self {
        Self { model, entries }
    }

    /// The name in addresses, such as `simple-100`.
    pub fn name(self) -> String {
        format!("{}-{}", self.model.name(), self.entries)
    }

    /// The file of this name.
    pub fn named(name: &str) -> Option<Self> {
        FILES.into_iter().find(|file| file.name() == name)
    }

    /// Returns the path of the file in the folder `data`.
    pub fn path(self, data: &Path) -> PathBuf {
        data.join(self.name()).with_extension("xml")
    }

    /// The content that the generator makes.
    ///
    /// # Errors
    /// None in practice: it is made in memory.
    pub fn generate(self) -> io::Result<Vec<u8>> {
        let book = generate::book(generate::SEED, self.entries);
        write::xml(self.model, &book)
    }
}

/// Makes the files that are missing in the folder `data`, and the folder.
///
/// # Errors
/// The folder or a file cannot be written.
pub fn make_missing(data: &Path) -> io::Result<()> {
    fs::create_dir_all(data)?;
    for file in FILES {
        let path = file.path(data);
        if !path.exists() {
            replace(&path, &file.generate()?)?;
        }
    }
    Ok(())
}

/// Writes a file in one step, so that a reader sees the whole of the former or of the new one.
///
/// # Errors
/// The file cannot be written beside the former one.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let beside = path.with_extension("new");
    let mut file = File::create(&beside)?;
    file.write_all(content)?;
    fs::rename(&beside, path)
}
