//! Which columns of a table a file fills.

use millpond_data::NameParts;
use millpond_db::{FILE_COLUMN, KEY_COLUMN, TableColumn, TableColumnKind};

use super::hiding::{DRAFT, HidingField, hiding, is_known, position};
use millpond_site_format::time_zone::SiteZone;

/// The path between the folder of a table and a file.
pub(super) const PATH_COLUMN: &str = "folder";

/// The columns of a table of files.
#[derive(Clone, Debug)]
pub(super) struct TargetTable {
    pub(super) name: String,
    pub(super) columns: Vec<TableColumn>,
    /// The zone of moments without an offset.
    pub(super) zone: SiteZone,
    /// Meaning of the names of files.
    pub(super) names: RowSettings,
}

/// Settings of a table that change what its files say.
pub(super) type RowSettings = (NameParts, Option<String>);

/// Number of the way in which files become rows: files are applied anew where it is another.
const READING: u32 = 2;

impl TargetTable {
    /// Returns the fault that keeps files from being rows of the table.
    pub(super) fn fault(&self) -> Option<(String, String)> {
        let table = &self.name;
        let has = |name: &str| self.columns.iter().any(|column| column.name == name);
        if !has(FILE_COLUMN) {
            return Some((
                format!(
                    "there is a table {table} that is not made for files: it has no column {FILE_COLUMN}"
                ),
                format!("rename the file, or add the column to the table: {FILE_COLUMN} text"),
            ));
        }
        if !self.columns.iter().any(|column| column.is_key) {
            return Some((
                format!("the table {table} has no primary key, so its rows are not told apart"),
                format!("give it one in a migration, or the column {KEY_COLUMN} text primary key"),
            ));
        }
        None
    }

    /// A text that is another one if the table is another one.
    pub(super) fn signature(&self) -> String {
        let mut parts: Vec<String> = self
            .columns
            .iter()
            .map(|column| {
                format!(
                    "{}:{}:{}:{}",
                    column.name, column.type_name, column.is_key, column.not_null
                )
            })
            .collect();
        parts.push(format!("{READING}{:?}", self.names));
        let has_moments = |column: &TableColumn| column.kind == TableColumnKind::Moment;
        if self.columns.iter().any(has_moments) {
            parts.push(self.zone.name().to_owned());
        }
        format!(
            "{:032x}",
            millpond_data::hash_bytes(parts.join(",").as_bytes())
        )
    }

    /// The names of the columns in lower case.
    pub(super) fn lower_names(&self) -> impl Iterator<Item = String> {
        self.columns.iter().map(|column| column.name.to_lowercase())
    }

    /// The columns beside those that a file fills, but for those of the key and of the file's name.
    pub(super) fn others(&self, filled: &[TableColumn]) -> Vec<TableColumn> {
        let is_filled = |name: &str| filled.iter().any(|known| known.name == name);
        let columns = self.columns.iter();
        columns
            .filter(|it| !it.is_key && it.name != FILE_COLUMN && !is_filled(&it.name))
            .cloned()
            .collect()
    }

    /// The columns of the key, if the rows of files are told apart by what the files say: not by a
    /// hash of it.
    pub(super) fn own_key(&self) -> Option<Vec<TableColumn>> {
        let keys = self.columns.iter().filter(|column| column.is_key);
        let keys: Vec<TableColumn> = keys.cloned().collect();
        let is_hash = keys.iter().any(|column| column.name == KEY_COLUMN);
        (!keys.is_empty() && !is_hash).then_some(keys)
    }

    /// The columns that a file with these names fills, and for each of the file's columns the place
    /// among them.
    pub(super) fn filled(&self, file: &str, names: &[String]) -> FilledColumns {
        let mut filled = FilledColumns {
            file: file.to_owned(),
            zone: self.zone,
            hiding: hiding(names, &self.columns),
            ..FilledColumns::default()
        };
        for column in &self.columns {
            let name = column.name.to_lowercase();
            let from = position(names, &name, &self.columns);
            // A file that is in no folder within the table's has an empty text for it.
            let is_folder = column.name == PATH_COLUMN && column.is_key && column.not_null;
            if column.name == KEY_COLUMN && column.is_key {
                filled.content_key = Some(filled.columns.len());
            } else if from.is_none() && !is_folder && (name != DRAFT || filled.hiding.is_empty())
                || column.name == FILE_COLUMN
            {
                if column.is_key {
                    filled
                        .missing_key
                        .get_or_insert_with(|| column.name.clone());
                }
                continue;
            }
            filled.columns.push(column.clone());
            filled.from.push(from);
        }
        let columns: Vec<String> = self.lower_names().collect();
        let unknown = |name: &&String| !columns.contains(name) && !is_known(name, &columns);
        filled.unknown = names.iter().filter(unknown).cloned().collect();
        filled
    }
}

/// The hash by which an applied file is known: its content and the table's signature say what its
/// rows are.
pub(super) fn applied_hash(content: u128, signature: &str) -> String {
    format!("{content:032x}-{signature}")
}

/// The columns of a table that a file fills.
#[derive(Clone, Debug, Default)]
pub(super) struct FilledColumns {
    /// The file's name.
    pub(super) file: String,
    /// The zone of moments without an offset.
    pub(super) zone: SiteZone,
    pub(super) columns: Vec<TableColumn>,
    /// For each of them, the column of the file; none for the hash of the content.
    pub(super) from: Vec<Option<usize>>,
    /// Fields of the file that say in other words whether the row is a draft.
    pub(super) hiding: Vec<HidingField>,
    /// The place of the hash of the content.
    pub(super) content_key: Option<usize>,
    /// A part of the table's key that the file does not have.
    pub(super) missing_key: Option<String>,
    /// The columns of the file that the table does not have.
    pub(super) unknown: Vec<String>,
}
