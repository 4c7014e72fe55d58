//! The folders whose files are tables: `data/`, and those that `[[data]]` names.

use std::path::{Path, PathBuf};

use super::{FOLDER, columns::RowSettings};
use millpond_site_format::{Config, config::DataFolder};

/// Places of the files of a site's tables. A file has a name below `data/`; one of a folder that
/// `[[data]]` names has the name that it would have there, which begins with the table's.
#[derive(Clone, Debug, Default)]
pub(crate) struct DataSources {
    /// The site's folder.
    pub(super) dir: PathBuf,
    pub(super) folders: Vec<DataFolder>,
}

impl DataSources {
    pub(crate) fn new(dir: &Path, config: &Config) -> Self {
        Self {
            dir: dir.to_owned(),
            folders: config.data.clone(),
        }
    }

    /// True if the site has a folder whose files are tables.
    pub(crate) fn has_any(&self) -> bool {
        !self.folders.is_empty() || self.dir.join(FOLDER).exists()
    }

    /// The folders other than `data/`.
    pub(super) fn elsewhere(&self) -> impl Iterator<Item = (&str, &Path)> {
        let folders = self.folders.iter().filter(|folder| !folder.is_own());
        folders.map(|folder| (&*folder.table, &*folder.folder))
    }

    /// True if `[[data]]` names a folder for the table.
    pub(super) fn is_elsewhere(&self, table: &str) -> bool {
        self.elsewhere().any(|(known, _)| known == table)
    }

    /// The settings of `[[data]]` for a table.
    pub(super) fn settings(&self, table: &str) -> Option<&DataFolder> {
        self.folders.iter().find(|folder| folder.table == table)
    }

    /// The settings of a table that change what its files say.
    pub(super) fn row_settings(&self, table: &str) -> RowSettings {
        let settings = self.settings(table);
        settings
            .map(|it| (it.names, it.element.clone()))
            .unwrap_or_default()
    }

    /// A file, by its name, as a problem names it: from the site's folder.
    pub(super) fn shown(&self, name: &str) -> PathBuf {
        let (table, rest) = name.split_once('/').unwrap_or((name, ""));
        match self.folders.iter().find(|folder| folder.table == table) {
            Some(folder) if rest.is_empty() => folder.shown.clone(),
            Some(folder) => folder.shown.join(rest),
            None => Path::new(FOLDER).join(name),
        }
    }
}
