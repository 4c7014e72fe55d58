//! Files of a table with one key, such as the same slug: which of them has the row is decided by
//! their names alone, and not by which was applied first.

use std::{
    collections::{BTreeMap, HashMap},
    fs::File,
};

use millpond_data::{DataError, FieldValue, FilePlace, Format, read};
use millpond_db::{ConstraintKind, Error, MovedRows};

use super::{
    fields::place_of_field,
    scan::DataFile,
    survey::{SurveyedFile, problem},
};
use crate::Problem;

/// Files of a table among which those with one key are looked for, at most.
const MAX_FILES: usize = 10_000;

/// The characters of a value that a message shows.
const SHOWN_CHARS: usize = 60;

/// Columns of a table, in which no two rows may have the same values.
type UniqueColumns = (String, Vec<String>);
/// The files with each values of them, in the order of their names.
type FilesByKey<'a> = HashMap<Vec<String>, Vec<&'a DataFile>>;

/// Files that are one row each, by what they have in columns that a refusal has named.
pub(super) struct Twins<'a> {
    files: &'a BTreeMap<String, DataFile>,
    known: HashMap<UniqueColumns, FilesByKey<'a>>,
}

/// Files with the same values in columns where the table permits them once.
#[derive(Clone)]
pub(super) struct SameKey<'a> {
    columns: Vec<String>,
    values: Vec<String>,
    /// In the order of their names, two or more. The first one counts.
    files: Vec<&'a DataFile>,
}

impl<'a> Twins<'a> {
    pub(super) fn new(files: &'a BTreeMap<String, DataFile>) -> Self {
        Self {
            files,
            known: HashMap::new(),
        }
    }

    /// The files with the key of one that was refused, if that is why.
    pub(super) fn of(&mut self, file: &DataFile, error: &Error) -> Option<SameKey<'a>> {
        let Error::Constraint { kind, violated, .. } = error else {
            return None;
        };
        let is_key = matches!(kind, ConstraintKind::Unique | ConstraintKind::PrimaryKey);
        if !is_key || violated.columns.is_empty() {
            return None;
        }
        let columns = &violated.columns;
        let values = values(file, columns)?;
        let unique = (file.table.clone(), columns.clone());
        let files = self.files;
        let known = self.known.entry(unique);
        let known = known.or_insert_with(|| by_key(files, &file.table, columns));
        let files = known.get(&values)?.clone();
        (files.len() > 1).then(|| SameKey {
            columns: columns.clone(),
            values,
            files,
        })
    }
}

impl<'a> SameKey<'a> {
    /// True if another one is of the same columns.
    pub(super) fn is_of(&self, other: &Self) -> bool {
        self.columns == other.columns
    }

    /// The files that come after this one, and so count only without it.
    pub(super) fn after(&self, file: &DataFile) -> Vec<&'a DataFile> {
        let files = self.files.iter().copied();
        files.filter(|other| other.name > file.name).collect()
    }

    /// The rows of those files that a file of this content takes over; none if its row does not say
    /// what is in the columns.
    pub(super) fn taken(&self, file: &DataFile, surveyed: &SurveyedFile) -> Option<MovedRows> {
        let held = surveyed.rows.as_ref()?;
        let filled = &surveyed.filled.columns;
        let place = |name: &String| filled.iter().position(|column| column.name == *name);
        let places: Vec<usize> = self.columns.iter().map(place).collect::<Option<_>>()?;
        let rows = held.rows.iter();
        let rows = rows.map(|(_, values)| places.iter().map(|at| values[*at].clone()).collect());
        Some(MovedRows {
            table: file.table.clone(),
            file: file.name.clone(),
            from: self.after(file).iter().map(|it| it.name.clone()).collect(),
            keys: self.columns.clone(),
            rows: rows.collect(),
        })
    }

    /// The faults of all files but the first.
    pub(super) fn faults(&self) -> impl Iterator<Item = Problem> {
        self.files[1..].iter().map(|file| self.fault(file))
    }

    /// What is wrong with one of the files, which is left out.
    pub(super) fn fault(&self, file: &DataFile) -> Problem {
        let names = self.columns.join(" and ");
        let shown = |value: &String| {
            let clipped: String = value.chars().take(SHOWN_CHARS).collect();
            format!("{clipped:?}")
        };
        let values: Vec<String> = self.values.iter().map(shown).collect();
        let values = values.join(" and ");
        let (first, second) = (self.files[0], self.files[1]);
        let (other, counts) = match first.name == file.name {
            true => (second, "has the row"),
            false => (first, "comes first by name, so its row counts"),
        };
        let other = other.shown.display();
        let message = format!("{other} has the same {names}, {values}, and {counts}");
        let place = place_of_field(file, FilePlace::line(1), &self.columns[0]);
        let remedy = format!("give one of both another {names}");
        problem(file, &DataError::new(place, message).remedy(remedy))
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

/// What the row of a Markdown file has in the columns; none if it lacks one.
fn values(file: &DataFile, columns: &[String]) -> Option<Vec<String>> {
    if file.format != Format::Markdown {
        return None;
    }
    let opened = File::open(&file.path).ok()?;
    let mut values = None;
    let outcome = read(file.format, opened, file.row_path.as_deref(), &mut |row| {
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
