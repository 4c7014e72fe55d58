//! Files of a table with one key, such as the same slug: the message names another one.

use std::collections::{BTreeMap, HashMap};

use millpond_data::{DataError, FieldValue, FilePlace, Format, read};
use millpond_db::{ConstraintKind, Error};

use super::{fields::place_of_field, scan::DataFile, survey::problem};
use millpond_site_format::Problem;

/// Files of a table among which those with one key are looked for, at most.
const MAX_FILES: usize = 10_000;

/// Columns of a table, in which no two rows may have the same values.
type UniqueColumns = (String, Vec<String>);
/// The files with each values of them, in the order of their names.
type FilesByKey<'a> = HashMap<Vec<String>, Vec<&'a DataFile>>;

/// Files that are one row each, by what they have in columns that a refusal has named. They are
/// read once for all refusals of a look.
pub(super) struct Twins<'a> {
    files: &'a BTreeMap<String, DataFile>,
    known: HashMap<UniqueColumns, FilesByKey<'a>>,
}

impl<'a> Twins<'a> {
    pub(super) fn new(files: &'a BTreeMap<String, DataFile>) -> Self {
        Self {
            files,
            known: HashMap::new(),
        }
    }

    /// Returns the fault of a file that is one row, and was refused because another one has its
    /// key.
    pub(super) fn same_key(&mut self, file: &DataFile, error: &Error) -> Option<Problem> {
        let Error::Constraint { kind, violated, .. } = error else {
            return None;
        };
        let columns = &violated.columns;
        let is_key = matches!(kind, ConstraintKind::Unique | ConstraintKind::PrimaryKey);
        if !is_key || columns.is_empty() {
            return None;
        }
        let own = values(file, columns)?;
        let unique = (file.table.clone(), columns.clone());
        let known = self.known.entry(unique);
        let known = known.or_insert_with(|| by_key(self.files, &file.table, columns));
        let mut others = known.get(&own)?.iter();
        let twin = others.find(|other| other.name != file.name)?;
        let names = columns.join(" and ");
        let place = place_of_field(file, FilePlace::line(1), &columns[0]);
        let message = format!(
            "the rows stay as they were: {} is a row with the same {names}",
            twin.shown.display()
        );
        let remedy = format!("give one of both another {names}");
        Some(problem(
            file,
            &DataError::new(place, message).remedy(remedy),
        ))
    }
}

/// The files of a table by their values in these columns.
fn by_key<'a>(
    files: &'a BTreeMap<String, DataFile>,
    table: &str,
    columns: &[String],
) -> FilesByKey<'a> {
    let mut found = FilesByKey::new();
    let is_document = |file: &&DataFile| file.table == table && file.format == Format::Markdown;
    for file in files.values().filter(is_document).take(MAX_FILES) {
        if let Some(values) = values(file, columns) {
            found.entry(values).or_default().push(file);
        }
    }
    found
}

/// Returns the values of a Markdown file's row in the columns; none if it lacks one.
fn values(file: &DataFile, columns: &[String]) -> Option<Vec<String>> {
    if file.format != Format::Markdown {
        return None;
    }
    let opened = file.open().ok()?;
    let mut values = None;
    let outcome = read(file.format, opened, file.row_name.as_ref(), &mut |row| {
        let value = |column: &String| {
            let column = column.to_lowercase();
            let at = row.names.iter().position(|name| *name == column)?;
            match &row.values[at] {
                FieldValue::Null => None,
                FieldValue::Text(text) | FieldValue::Plain(text) => Some(text.to_string()),
                FieldValue::Integer(number) => Some(number.to_string()),
                other => Some(format!("{other:?}")),
            }
        };
        values = columns.iter().map(value).collect();
        Ok(())
    });
    outcome.ok()?;
    values
}
