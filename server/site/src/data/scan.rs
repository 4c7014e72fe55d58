//! The files of the folder, and the table of each.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, Metadata},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use millpond_data::{Format, table_name};

use super::FOLDER;
use crate::{Problem, file_name::is_passed_over};

/// A file of one state: another inode, size or time is another state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileStamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileStamp {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// When the file came to be here, or was changed last, in milliseconds since 1970.
    pub(super) const fn version(&self) -> i64 {
        self.changed.0 * 1_000 + self.changed.1 / 1_000_000
    }
}

/// A file with rows of a table.
#[derive(Clone, Debug)]
pub(super) struct DataFile {
    /// Below the folder: `rates.csv`, `posts/hello.md`.
    pub(super) name: String,
    pub(super) path: PathBuf,
    pub(super) table: String,
    pub(super) format: Format,
    /// The value of `slug` where the file is one row and has none.
    pub(super) slug: Option<String>,
    pub(super) stamp: FileStamp,
}

impl DataFile {
    /// The file as a problem names it.
    pub(super) fn shown(&self) -> PathBuf {
        Path::new(FOLDER).join(&self.name)
    }

    /// True if other files may have rows of the same table.
    pub(super) fn is_one_of_many(&self) -> bool {
        self.name.contains('/')
    }
}

/// What is in the folder.
#[derive(Debug, Default)]
pub(super) struct FolderScan {
    /// True if there is a folder.
    pub(super) is_there: bool,
    /// When the folder was changed last, in milliseconds since 1970.
    pub(super) version: i64,
    /// By their names.
    pub(super) files: BTreeMap<String, DataFile>,
    /// Files that are there and are not read: their rows stay.
    pub(super) held: BTreeSet<String>,
    pub(super) problems: Vec<Problem>,
}

/// Lists the files. What cannot be a table's is a problem.
pub(super) fn scan(dir: &Path) -> FolderScan {
    let mut scan = FolderScan::default();
    let folder = dir.join(FOLDER);
    let Ok(root) = folder.canonicalize() else {
        return scan;
    };
    let Ok(metadata) = fs::metadata(&root) else {
        return scan;
    };
    scan.is_there = metadata.is_dir();
    scan.version = FileStamp::of(&metadata).version();
    // The kinds of each table's sources: a table has one file, or one folder.
    let mut sources: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, path) in scan.entries(&root, "") {
        match kind(&root, &path) {
            Err(problem) => scan.refuse(&name, problem),
            Ok((metadata, true)) => {
                if let Some(table) = scan.table(&name, &name) {
                    scan.version = scan.version.max(FileStamp::of(&metadata).version());
                    sources.entry(table.clone()).or_default().push(name.clone());
                    scan.folder(&root, &path, &name, &table);
                }
            }
            Ok((metadata, false)) => {
                let Some((stem, format)) = scan.format(&name, &name) else {
                    continue;
                };
                let Some(table) = scan.table(&name, stem) else {
                    continue;
                };
                sources.entry(table.clone()).or_default().push(name.clone());
                let slug = (format == Format::Markdown).then(|| stem.to_owned());
                scan.files.insert(
                    name.clone(),
                    DataFile {
                        path,
                        table,
                        format,
                        slug,
                        stamp: FileStamp::of(&metadata),
                        name,
                    },
                );
            }
        }
    }
    scan.refuse_shared(&sources);
    scan
}

impl FolderScan {
    /// True if the file may be there and was not read, or the folder that it is in.
    pub(super) fn holds(&self, name: &str) -> bool {
        let folder = name.split_once('/').map_or(name, |(folder, _)| folder);
        self.held.contains(name) || self.held.contains(folder)
    }

    /// The entries of a folder with their names below `data/`, without hidden ones and backups.
    fn entries(&mut self, path: &Path, below: &str) -> Vec<(String, PathBuf)> {
        let listed = match fs::read_dir(path) {
            Ok(listed) => listed,
            Err(error) => {
                self.unread_folder(below, &error);
                return Vec::new();
            }
        };
        let mut entries = Vec::new();
        for entry in listed {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    self.unread_folder(below, &error);
                    return Vec::new();
                }
            };
            let name = entry.file_name();
            let Some(name) = name.to_str() else {
                let message = "the file's name is not UTF-8".to_owned();
                self.refuse(
                    &format!("{below}{}", name.to_string_lossy()),
                    (message, "rename it".to_owned()),
                );
                continue;
            };
            if !is_passed_over(name.as_bytes()) {
                entries.push((format!("{below}{name}"), entry.path()));
            }
        }
        entries.sort();
        entries
    }

    /// What is below a folder that cannot be listed stays as it is.
    fn unread_folder(&mut self, below: &str, error: &io::Error) {
        if below.is_empty() {
            self.is_there = false;
        }
        self.refuse(
            below.trim_end_matches('/'),
            (
                format!("the folder cannot be read: {error}"),
                "the user that runs millpond must be able to read it".to_owned(),
            ),
        );
    }

    fn folder(&mut self, root: &Path, path: &Path, folder: &str, table: &str) {
        for (name, path) in self.entries(path, &format!("{folder}/")) {
            let metadata = match kind(root, &path) {
                Err(problem) => {
                    self.refuse(&name, problem);
                    continue;
                }
                Ok((_, true)) => {
                    let message = "a folder within the folder of a table is not read".to_owned();
                    let hint = format!("put its files directly into data/{folder}/");
                    self.refuse(&name, (message, hint));
                    continue;
                }
                Ok((metadata, false)) => metadata,
            };
            let own = name[folder.len() + 1..].to_owned();
            let Some((stem, format)) = self.format(&name, &own) else {
                continue;
            };
            let file = DataFile {
                path,
                table: table.to_owned(),
                format,
                slug: Some(stem.to_owned()),
                stamp: FileStamp::of(&metadata),
                name: name.clone(),
            };
            self.files.insert(name, file);
        }
    }

    /// The stem and the format of a file.
    fn format<'n>(&mut self, name: &str, own: &'n str) -> Option<(&'n str, Format)> {
        let found = Format::of_name(own);
        if found.is_none() {
            let message = "this kind of file is no table".to_owned();
            self.refuse(
                name,
                (message, format!("the kinds are {}", Format::endings())),
            );
        }
        found
    }

    fn table(&mut self, name: &str, stem: &str) -> Option<String> {
        match table_name(stem) {
            Ok(table) => Some(table.to_owned()),
            Err((problem, better)) => {
                let ending = name.strip_prefix(stem).unwrap_or_default();
                self.refuse(name, (problem, format!("rename it to {better}{ending}")));
                None
            }
        }
    }

    fn refuse(&mut self, name: &str, (message, hint): (String, String)) {
        self.held.insert(name.to_owned());
        let problem = Problem::new(Path::new(FOLDER).join(name), message).hint(hint);
        self.problems.push(problem);
    }

    /// Two sources for one table: which one counts is not to be guessed.
    fn refuse_shared(&mut self, sources: &BTreeMap<String, Vec<String>>) {
        for (table, names) in sources.iter().filter(|(_, names)| names.len() > 1) {
            let message = format!("{} are all the table {table}", names.join(" and "));
            let hint = format!("keep one of them, or put the files into data/{table}/");
            let problem = Problem::new(Path::new(FOLDER).join(&names[1]), message).hint(hint);
            self.problems.push(problem);
            let shared: Vec<String> = self
                .files
                .values()
                .filter(|file| file.table == *table)
                .map(|file| file.name.clone())
                .collect();
            for name in shared {
                self.files.remove(&name);
                self.held.insert(name);
            }
        }
    }
}

/// The metadata of an entry, and whether it is a folder. A link may not lead out of `root`.
fn kind(root: &Path, path: &Path) -> Result<(Metadata, bool), (String, String)> {
    let unreadable = |error: io::Error| {
        (
            format!("the file cannot be read: {error}"),
            "the user that runs millpond must be able to read it".to_owned(),
        )
    };
    let mut metadata = fs::symlink_metadata(path).map_err(unreadable)?;
    if metadata.is_symlink() {
        let target = path.canonicalize().map_err(unreadable)?;
        if !target.starts_with(root) {
            return Err((
                "the link leads out of the folder data".to_owned(),
                "put the file itself there".to_owned(),
            ));
        }
        metadata = fs::metadata(&target).map_err(unreadable)?;
    }
    let is_folder = metadata.is_dir();
    if !is_folder && !metadata.is_file() {
        let message = "this is neither a file nor a folder".to_owned();
        return Err((message, "take it out of the folder data".to_owned()));
    }
    Ok((metadata, is_folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_cannot_be_listed_holds_its_files() {
        let mut found = FolderScan::default();
        let root = Path::new("/");
        found.folder(root, &root.join("missing/posts"), "posts", "posts");
        assert!(found.holds("posts/a.md") && found.holds("posts/b.csv"));
        assert!(!found.holds("rates.csv") && !found.holds("more/a.md"));
        assert_eq!(found.problems[0].file, Path::new("data/posts"));
    }

    #[test]
    fn a_link_that_leads_nowhere_holds_the_files_of_its_folder() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join(FOLDER)).unwrap();
        let link = dir.path().join(FOLDER).join("posts");
        std::os::unix::fs::symlink("posts", link).unwrap();
        let found = scan(dir.path());
        assert!(found.is_there && found.files.is_empty());
        assert!(found.holds("posts/a.md"));
    }
}
