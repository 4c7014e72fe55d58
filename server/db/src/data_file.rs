//! Files whose rows a table has: what is applied, and what one of them is to become.

use std::sync::Arc;

use crate::{Error, Value};

/// The column that names the file of a row. A table that has it is a table of files.
pub const FILE_COLUMN: &str = "_file";
/// The column with the key of a row that has no key of its own: the hash of its values.
pub const KEY_COLUMN: &str = "_key";

/// Kind of values that a column of a table takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableColumnKind {
    /// A 64-bit integer.
    Integer,
    /// A double.
    Real,
    /// True or false, which SQLite has no type for.
    Boolean,
    /// A moment: `timestamptz` and `timestamp`; on SQLite `datetime` and `timestamp`.
    Moment,
    /// Text.
    Text,
    /// A JSON document.
    Json,
    /// Another type: its values are given as text, which the database parses.
    Other,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableColumn {
    /// Its name.
    pub name: String,
    /// The type, as the database names it.
    pub type_name: String,
    /// Kind of values that the column takes.
    pub kind: TableColumnKind,
    /// True if it is part of the primary key.
    pub is_key: bool,
    /// True if it takes no null.
    pub not_null: bool,
    /// Value of the column in a new row, as an expression of SQL; none for null.
    pub default: Option<String>,
}

impl TableColumn {
    /// True if a row may get another value: also a key, where keys are equal that differ, such as
    /// `a` and `A` without case.
    pub(crate) fn may_change(&self) -> bool {
        let has_one_form = matches!(
            self.kind,
            TableColumnKind::Integer | TableColumnKind::Boolean
        );
        !self.is_key || (!has_one_form && self.name != KEY_COLUMN)
    }
}

/// A file that was applied, as the database remembers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedFile {
    /// Its name below the folder of data.
    pub file: String,
    /// The table with its rows.
    pub table: String,
    /// The [hash](FileChange::hash) of what was applied; empty if the file was removed.
    pub hash: String,
    /// The names of the columns that it has filled.
    pub filled: Vec<String>,
    /// When it came to be, in milliseconds since 1970; later wins.
    pub version: i64,
}

impl AppliedFile {
    /// Reads a record whose `hash` is [`stored`](Self::stored).
    pub(crate) fn read(file: String, table: String, stored: &str, version: i64) -> Self {
        let names = stored.match_indices('-').nth(1);
        let (hash, names) =
            names.map_or((stored, ""), |(at, _)| (&stored[..at], &stored[at + 1..]));
        let names = names.split(',').filter(|name| !name.is_empty());
        Self {
            file,
            table,
            hash: hash.to_owned(),
            filled: names.map(str::to_owned).collect(),
            version,
        }
    }

    /// The hash and the names of the filled columns as one text.
    pub(crate) fn stored(&self) -> String {
        match &*self.hash {
            "" => String::new(),
            hash => format!("{hash}-{}", self.filled.join(",")),
        }
    }

    /// Returns the record once another file has taken rows of the file over: no content is known to
    /// be applied.
    pub(crate) fn without_rows(&self) -> Self {
        Self {
            hash: "taken-".to_owned(),
            ..self.clone()
        }
    }

    /// Returns those of some columns that the file has filled.
    pub(crate) fn filled_of<'a>(&self, columns: &'a [TableColumn]) -> Vec<&'a TableColumn> {
        let is_filled = |column: &&TableColumn| self.filled.contains(&column.name);
        columns.iter().filter(is_filled).collect()
    }
}

/// A file that is gone, but whose rows are still there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoneFile {
    /// Its name below the folder of data.
    pub file: String,
    /// The table with its rows.
    pub table: String,
    /// When it was seen to be gone, in milliseconds since 1970.
    pub version: i64,
    /// True if this node saw it go.
    pub is_news: bool,
}

impl GoneFile {
    /// The change that removes its rows.
    #[must_use]
    pub fn removal(&self) -> FileChange {
        FileChange {
            file: self.file.clone(),
            table: self.table.clone(),
            hash: String::new(),
            version: self.version,
            is_news: self.is_news,
            seen: None,
            state: FileState::Gone,
        }
    }

    /// True if it counts as gone, given what was applied: another node may have it.
    pub(crate) fn is_gone(&self, applied: Option<&AppliedFile>, alone: bool) -> bool {
        let decision = self.removal().decision(applied, alone);
        matches!(decision, FileDecision::Apply(_))
    }
}

/// The rows of a file. They are asked for once for each attempt.
pub trait RowSource: Send {
    /// Calls `each` with the values of each row, in the order of the columns.
    ///
    /// # Errors
    /// What `each` gave, or that the file cannot be read. The source knows at which row.
    fn rows(&mut self, each: &mut dyn FnMut(&[Value]) -> Result<(), Error>) -> Result<(), Error>;
}

/// Change that makes the rows of a file.
pub struct FileChange {
    /// Its name below the folder of data.
    pub file: String,
    /// The table with its rows. It has [`FILE_COLUMN`].
    pub table: String,
    /// The hash of the content, a hyphen, and the hash of the table's columns.
    pub hash: String,
    /// When the file came to be here, in milliseconds since 1970.
    pub version: i64,
    /// True if this node saw the file change: then it is newer than what was applied.
    pub is_news: bool,
    /// The version of what was applied when the file was read, as far as it is known.
    pub seen: Option<i64>,
    /// State of the file's rows.
    pub state: FileState,
}

/// State of the rows of a file.
pub enum FileState {
    /// It has rows.
    Rows(FileContent),
    /// It is gone.
    Gone,
    /// They were applied before, by their hash: only the version may be new.
    Known,
}

/// The rows that a file is to have.
pub struct FileContent {
    /// The columns of the table that are filled, [`KEY_COLUMN`] among them if it is part of the
    /// key.
    pub columns: Vec<TableColumn>,
    /// The other columns, but for those of the key and [`FILE_COLUMN`]. Those that a row's file has
    /// filled before become in the row what they are in a new one; what no file has filled stays.
    pub others: Vec<TableColumn>,
    /// The rows.
    pub source: Box<dyn RowSource>,
}

/// Outcome of a [`FileChange`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileOutcome {
    /// The table has these rows already.
    Same,
    /// Another node has applied a newer file of the name, and its rows stay.
    Older,
    /// Another node has applied a file of the name since this one was read: it is to be read again,
    /// as it may be the same file of one folder.
    Raced,
    /// The rows were changed.
    Applied(RowCounts),
}

/// The rows that a file has changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowCounts {
    /// Rows that are new.
    pub inserted: u64,
    /// Rows with another value than before.
    pub updated: u64,
    /// Rows that are gone.
    pub deleted: u64,
    /// Rows that were those of a file that is gone; they may have been updated, too.
    pub taken: u64,
}

/// Decision about a file, given the content that was applied.
pub(crate) enum FileDecision {
    Same,
    Older,
    Raced,
    /// With this version.
    Apply(i64),
}

impl FileChange {
    /// Of several nodes with several versions of a file, the newest wins, so that no two of them
    /// take turns. `alone`: there is one node, whose file is the one that counts.
    pub(crate) fn decision(&self, applied: Option<&AppliedFile>, alone: bool) -> FileDecision {
        let Some(applied) = applied else {
            return match self.state {
                FileState::Rows(_) => FileDecision::Apply(self.version),
                FileState::Gone | FileState::Known => FileDecision::Same,
            };
        };
        if applied.hash == self.hash {
            return FileDecision::Same;
        }
        if matches!(self.state, FileState::Known) {
            return FileDecision::Older;
        }
        if !alone && !self.is_news && self.version <= applied.version {
            return FileDecision::Older;
        }
        // Counterexample: the file is read, then changed, and another node of the same folder
        // applies it; these rows would take the place of newer ones.
        if !alone && self.is_news && self.seen.is_some_and(|seen| seen != applied.version) {
            return FileDecision::Raced;
        }
        FileDecision::Apply(self.version.max(applied.version + 1))
    }

    /// Returns the record of the file for when it is applied.
    pub(crate) fn record(&self, version: i64) -> AppliedFile {
        let filled = match &self.state {
            FileState::Rows(content) => &content.columns[..],
            FileState::Gone | FileState::Known => &[],
        };
        AppliedFile {
            file: self.file.clone(),
            table: self.table.clone(),
            hash: self.hash.clone(),
            filled: filled.iter().map(|column| column.name.clone()).collect(),
            version,
        }
    }
}

/// A name as SQL has it.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text as SQL has it.
pub(crate) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// The key of the `occurrence`th row with this hash; the first has the hash alone.
pub(crate) fn numbered_key(hash: &Value, occurrence: u64) -> Value {
    match hash {
        Value::Text(hash) => Value::Text(Arc::from(format!("{hash}-{occurrence}"))),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct NoRows;

    impl RowSource for NoRows {
        fn rows(&mut self, _: &mut dyn FnMut(&[Value]) -> Result<(), Error>) -> Result<(), Error> {
            Ok(())
        }
    }

    #[test]
    fn what_another_node_has_applied_since_the_file_was_read_stays() {
        let applied = AppliedFile {
            file: "a.csv".to_owned(),
            table: "a".to_owned(),
            hash: "new".to_owned(),
            filled: Vec::new(),
            version: 7,
        };
        let decision = |seen, is_news, alone| {
            let content = FileContent {
                columns: Vec::new(),
                others: Vec::new(),
                source: Box::new(NoRows),
            };
            let change = FileChange {
                file: "a.csv".to_owned(),
                table: "a".to_owned(),
                hash: "read".to_owned(),
                version: 9,
                is_news,
                seen,
                state: FileState::Rows(content),
            };
            change.decision(Some(&applied), alone)
        };
        assert!(matches!(
            decision(Some(6), true, false),
            FileDecision::Raced
        ));
        for (seen, is_news, alone) in [
            (Some(7), true, false),
            (None, true, false),
            (Some(6), false, false),
            (Some(6), true, true),
        ] {
            let decided = decision(seen, is_news, alone);
            assert!(matches!(decided, FileDecision::Apply(9)), "{seen:?}");
        }
    }
}
