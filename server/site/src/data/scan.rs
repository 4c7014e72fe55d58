//! The files of the folders, and the table of each.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File, Metadata},
    io,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use millpond_data::{Format, RowName, table_name};
use rustix::fs::OFlags;

use super::{FOLDER, sources::DataSources};
use crate::statics::Stamp;
use millpond_site_format::{
    Problem, config::DataFolder, file_name::is_passed_over, problem::SETTINGS as CONFIG,
};

/// A file with rows of a table.
#[derive(Clone, Debug)]
pub(super) struct DataFile {
    /// Below the folder, or below that of the table: `rates.csv`, `posts/hello.md`.
    pub(super) name: String,
    pub(super) path: PathBuf,
    /// The file as a problem names it, from the site's folder.
    pub(super) shown: PathBuf,
    pub(super) table: String,
    pub(super) format: Format,
    /// Fields that its path gives, where the file is one row; none for a file that has no name.
    pub(super) row_name: Option<RowName>,
    pub(super) stamp: Stamp,
}

impl DataFile {
    /// Opens it. A pipe in its place is not waited for.
    pub(super) fn open(&self) -> io::Result<File> {
        let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
        let mut options = File::options();
        let opened = options.read(true).custom_flags(flags).open(&self.path)?;
        match opened.metadata()?.is_file() {
            true => Ok(opened),
            false => Err(io::Error::other("it is no file any more")),
        }
    }

    /// True if it is a row with a folder between its own and that of the table.
    pub(super) fn is_nested(&self) -> bool {
        let name = self.row_name.as_ref();
        self.format == Format::Markdown && name.is_some_and(RowName::is_nested)
    }

    /// True if other files may have rows of the same table.
    pub(super) fn is_one_of_many(&self) -> bool {
        self.name.contains('/')
    }
}

/// Files in the folders.
#[derive(Debug, Default)]
pub(super) struct FolderScan {
    /// True if there is a folder `data/`.
    pub(super) is_there: bool,
    /// When one of the folders was changed last, in milliseconds since 1970.
    pub(super) version: i64,
    /// By their names.
    pub(super) files: BTreeMap<String, DataFile>,
    /// Files and folders that are there and are not read: their rows stay.
    held: BTreeSet<String>,
    /// Tables that have a folder in `data/`.
    pub(super) folders: BTreeSet<String>,
    pub(super) problems: Vec<Problem>,
    /// Remarks that keep no other file from being a row.
    pub(super) notes: Vec<Problem>,
}

/// The files of one table are in this folder.
struct TableFolder<'a> {
    /// No link may lead out of it.
    root: &'a Path,
    table: &'a str,
    /// The endings of the names that count; empty for all that are known, and others are problems.
    endings: &'a [String],
    settings: Option<&'a DataFolder>,
}

impl TableFolder<'_> {
    /// Returns the fields that the path of a file gives, without the ending.
    fn row_name(&self, stem: &str) -> RowName {
        row_name(stem, self.settings)
    }
}

/// Returns the fields that the path of a file gives by the settings of its table.
fn row_name(stem: &str, settings: Option<&DataFolder>) -> RowName {
    let names = settings.map(|settings| settings.names).unwrap_or_default();
    let element = settings.and_then(|settings| settings.element.as_deref());
    RowName::of(stem, names).with_element(element)
}

/// Lists the files. What cannot be a table's is a problem.
pub(super) fn scan(sources: &DataSources) -> FolderScan {
    let mut scan = FolderScan::default();
    // The files and folders of each table: a table has one.
    let mut tables = BTreeMap::new();
    scan.data_folder(sources, &mut tables);
    for folder in sources.folders.iter().filter(|folder| !folder.is_own()) {
        scan.folder_elsewhere(sources, folder, &mut tables);
    }
    scan.refuse_shared(sources, &tables);
    scan
}

/// For each table, the names of what has its rows.
type TableNames = BTreeMap<String, Vec<PathBuf>>;

impl FolderScan {
    /// True if the rows of a file, by its name, stay although it was not found.
    pub(super) fn holds(&self, name: &str) -> bool {
        let folders = name.match_indices('/').map(|(at, _)| &name[..at]);
        folders.chain([name]).any(|part| self.held.contains(part))
    }

    /// True if a file, by its name and table, has had its rows from the folder of its table in
    /// `data/`, and there is no such folder any more, nor another file of the table.
    pub(super) fn lacks_folder(&self, name: &str, table: &str) -> bool {
        let is_fed = || self.files.values().any(|file| file.table == table);
        name.contains('/') && !self.folders.contains(table) && !is_fed()
    }

    /// The files and folders in `data/`.
    fn data_folder(&mut self, sources: &DataSources, tables: &mut TableNames) {
        let Ok(root) = sources.dir.join(FOLDER).canonicalize() else {
            return;
        };
        let Ok(metadata) = fs::metadata(&root) else {
            return;
        };
        self.is_there = metadata.is_dir();
        self.changed(&metadata);
        for (name, path) in self.entries(sources, &root, "") {
            let (metadata, is_folder) = match kind(&root, &path) {
                Ok(found) => found,
                Err(problem) => {
                    self.refuse(sources, &name, problem);
                    continue;
                }
            };
            let format = match is_folder {
                true => None,
                false => match Format::of_name(&name) {
                    Some(format) => Some(format),
                    None => {
                        self.pass_over(sources, &name);
                        continue;
                    }
                },
            };
            let stem = format.map_or(&*name, |(stem, _)| stem);
            let Some(table) = self.table(sources, &name, stem) else {
                continue;
            };
            tables
                .entry(table.clone())
                .or_default()
                .push(sources.shown(&name));
            let Some((stem, format)) = format else {
                let settings = sources.settings(&table);
                let folder = TableFolder {
                    root: &root,
                    table: &table,
                    endings: settings.map_or(&[][..], |settings| &settings.endings[..]),
                    settings,
                };
                self.changed(&metadata);
                self.folders.insert(table.clone());
                self.table_folder(sources, &folder, &path, &table, 0);
                continue;
            };
            let row_name = matches!(format, Format::Markdown | Format::Xml)
                .then(|| row_name(stem, sources.settings(&table)));
            let file = DataFile {
                path,
                shown: sources.shown(&name),
                table,
                format,
                row_name,
                stamp: Stamp::of(&metadata),
                name: name.clone(),
            };
            self.files.insert(name, file);
        }
    }

    /// The files of a folder that `[[data]]` names.
    fn folder_elsewhere(
        &mut self,
        sources: &DataSources,
        folder: &DataFolder,
        tables: &mut TableNames,
    ) {
        let table = &folder.table;
        tables
            .entry(table.clone())
            .or_default()
            .push(folder.shown.clone());
        let root = folder.folder.canonicalize();
        match root.and_then(|root| Ok((fs::metadata(&root)?, root))) {
            Ok((metadata, root)) if metadata.is_dir() => {
                self.changed(&metadata);
                let folder = TableFolder {
                    root: &root,
                    table,
                    endings: &folder.endings,
                    settings: Some(folder),
                };
                self.table_folder(sources, &folder, &root, table, 0);
            }
            _ => {
                let message = format!("there is no such folder, and the rows of {table} stay");
                let hint = "correct `folder` of [[data]] in millpond.toml, or restore the folder; to \
                            remove the rows, make an empty folder";
                self.refuse(sources, table, (message, hint.to_owned()));
            }
        }
    }

    /// A folder is as old as the last change of a name in it.
    fn changed(&mut self, metadata: &Metadata) {
        self.version = self.version.max(Stamp::of(metadata).version());
    }

    /// The entries of a folder with their names below `data/`, without hidden ones and backups.
    fn entries(
        &mut self,
        sources: &DataSources,
        path: &Path,
        below: &str,
    ) -> Vec<(String, PathBuf)> {
        let listed = match fs::read_dir(path) {
            Ok(listed) => listed,
            Err(error) => {
                self.unread_folder(sources, below, &error);
                return Vec::new();
            }
        };
        let mut entries = Vec::new();
        for entry in listed {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    self.unread_folder(sources, below, &error);
                    return Vec::new();
                }
            };
            let name = entry.file_name();
            let Some(name) = name.to_str() else {
                let name = format!("{below}{}", name.to_string_lossy());
                let message = "the file's name is not UTF-8".to_owned();
                self.refuse(sources, &name, (message, "rename it".to_owned()));
                continue;
            };
            if !is_passed_over(name.as_bytes()) {
                entries.push((format!("{below}{name}"), entry.path()));
            }
        }
        entries.sort();
        entries
    }

    /// Leaves the files below a folder that cannot be listed as they are.
    fn unread_folder(&mut self, sources: &DataSources, below: &str, error: &io::Error) {
        if below.is_empty() {
            self.is_there = false;
        }
        let message = format!("the folder cannot be read: {error}");
        let hint = "the user that runs millpond must be able to read it".to_owned();
        self.refuse(sources, below.trim_end_matches('/'), (message, hint));
    }

    /// The files of a table in `path`, which has the name `name`, and in the folders in it.
    fn table_folder(
        &mut self,
        sources: &DataSources,
        folder: &TableFolder<'_>,
        path: &Path,
        name: &str,
        depth: usize,
    ) {
        for (name, path) in self.entries(sources, path, &format!("{name}/")) {
            let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
            let counts = |ending: &str| {
                let is_same = |known: &String| known.eq_ignore_ascii_case(ending);
                folder.endings.is_empty() || folder.endings.iter().any(is_same)
            };
            let metadata = match kind(folder.root, &path) {
                Ok((_, false)) | Err(_) if !counts(ending) => continue,
                Err(problem) => {
                    self.refuse(sources, &name, problem);
                    continue;
                }
                Ok((_, true)) if depth == MAX_FOLDER_DEPTH || path.is_symlink() => {
                    self.refuse(sources, &name, too_deep(depth));
                    continue;
                }
                Ok((metadata, true)) => {
                    self.changed(&metadata);
                    self.table_folder(sources, folder, &path, &name, depth + 1);
                    continue;
                }
                Ok((metadata, false)) => metadata,
            };
            let name_below = &name[folder.table.len() + 1..];
            let found = match folder.endings.is_empty() {
                true => Format::of_name(name_below),
                false => Format::of_named(name_below),
            };
            let Some((stem, format)) = found else {
                self.pass_over(sources, &name);
                continue;
            };
            let file = DataFile {
                path,
                shown: sources.shown(&name),
                table: folder.table.to_owned(),
                format,
                row_name: Some(folder.row_name(stem)),
                stamp: Stamp::of(&metadata),
                name: name.clone(),
            };
            self.files.insert(name, file);
        }
    }

    /// A file of a kind that has no rows.
    fn pass_over(&mut self, sources: &DataSources, name: &str) {
        let message = "this kind of file has no rows, so it is not read".to_owned();
        let hint = format!(
            "pictures and files for visitors belong into static/; files with rows end in {}",
            Format::endings()
        );
        let note = Problem::new(sources.shown(name), message).hint(hint);
        self.notes.push(note);
    }

    fn table(&mut self, sources: &DataSources, name: &str, stem: &str) -> Option<String> {
        match table_name(stem) {
            Ok(table) => Some(table.to_owned()),
            Err((problem, better)) => {
                let ending = name.strip_prefix(stem).unwrap_or_default();
                self.refuse(
                    sources,
                    name,
                    (problem, format!("rename it to {better}{ending}")),
                );
                None
            }
        }
    }

    fn refuse(&mut self, sources: &DataSources, name: &str, (message, hint): (String, String)) {
        self.held.insert(name.to_owned());
        let problem = Problem::new(sources.shown(name), message).hint(hint);
        self.problems.push(problem);
    }

    /// Two sources for one table: which one counts is not to be guessed.
    fn refuse_shared(&mut self, sources: &DataSources, tables: &TableNames) {
        for (table, names) in tables.iter().filter(|(_, names)| names.len() > 1) {
            let shown: Vec<String> = names.iter().map(|it| it.display().to_string()).collect();
            let message = format!("{} are all the table {table}", shown.join(" and "));
            let hint = match sources.is_elsewhere(table) {
                true => format!("keep one of them, or name another table in [[data]] of {CONFIG}"),
                false => format!("keep one of them, or put the files into data/{table}/"),
            };
            self.problems
                .push(Problem::new(&names[1], message).hint(hint));
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
                "the link leads out of the folder of the data".to_owned(),
                "put the file itself there".to_owned(),
            ));
        }
        metadata = fs::metadata(&target).map_err(unreadable)?;
    }
    let is_folder = metadata.is_dir();
    if !is_folder && !metadata.is_file() {
        let message = "this is neither a file nor a folder".to_owned();
        return Err((message, "take it out of the folder".to_owned()));
    }
    Ok((metadata, is_folder))
}

/// How deep the folders of a table are nested.
const MAX_FOLDER_DEPTH: usize = 16;

/// A folder of a table that is not looked into.
fn too_deep(depth: usize) -> (String, String) {
    match depth == MAX_FOLDER_DEPTH {
        true => (
            format!("the folders of a table are nested more than {MAX_FOLDER_DEPTH} deep"),
            "put its files into a folder further up".to_owned(),
        ),
        false => (
            "a link to a folder is not followed within the folder of a table".to_owned(),
            "put the folder itself there".to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_cannot_be_listed_holds_its_files() {
        let mut found = FolderScan::default();
        let folder = TableFolder {
            root: Path::new("/"),
            table: "posts",
            endings: &[],
            settings: None,
        };
        let missing = Path::new("/missing/posts");
        found.table_folder(&DataSources::default(), &folder, missing, "posts", 0);
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
        let sources = DataSources {
            dir: dir.path().to_owned(),
            folders: Vec::new(),
        };
        let found = scan(&sources);
        assert!(found.is_there && found.files.is_empty());
        assert!(found.holds("posts/a.md"));
    }
}
