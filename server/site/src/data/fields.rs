//! The fields of a file that a table has no column for, and where they are.

use millpond_data::{DataError, FilePlace, field_line};
use millpond_db::{ConstraintKind, Error, FILE_COLUMN, KEY_COLUMN};

use super::{
    columns::{PATH_COLUMN, TargetTable},
    hiding::is_known,
    scan::DataFile,
    survey::problem,
};
use millpond_site_format::Problem;

/// The words of a condition that are held against the fields of a file.
const MAX_WORDS: usize = 32;

/// The place of a field of a row, as closely as it is known.
pub(super) fn place_of_field(file: &DataFile, row: FilePlace, column: &str) -> FilePlace {
    let opened = file.open().ok();
    let line = opened.and_then(|opened| field_line(file.format, opened, column));
    line.map_or(row, FilePlace::line)
}

/// Returns the demand of a table on a row that it refuses: the condition of a `check`, or its name,
/// if that is a sentence.
pub(super) fn checked(error: &Error) -> Option<&str> {
    match error {
        Error::Constraint {
            kind: ConstraintKind::Check,
            violated,
            ..
        } => {
            let condition = violated.constraint.as_deref();
            condition.filter(|condition| condition.contains(' '))
        }
        _ => None,
    }
}

/// The place of the first field that a condition names; else that of the row.
pub(super) fn place_of_condition(file: &DataFile, row: FilePlace, condition: &str) -> FilePlace {
    let words = condition.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    let words = words.filter(|word| !word.is_empty()).take(MAX_WORDS);
    let mut places = words.map(|word| place_of_field(file, row, &word.to_lowercase()));
    places.find(|place| *place != row).unwrap_or(row)
}

/// Fields that are most likely columns of the table, misspelt: the file is not applied, as
/// `darft: true` would publish what is a draft.
pub(super) fn misspelt(file: &DataFile, table: &TargetTable, names: &[String]) -> Vec<Problem> {
    let columns: Vec<String> = table
        .columns
        .iter()
        .map(|column| column.name.to_lowercase())
        .collect();
    let table = &table.name;
    let fault = |(name, meant): (&str, &str)| {
        let place = place_of_field(file, FilePlace::line(1), name);
        let fault = DataError::new(place, format!("the table {table} has no column {name}"));
        let remedy = format!(
            "did you mean `{meant}`? For a column {name} beside it, write a migration: \
             alter table {table} add column {name} …"
        );
        problem(file, &fault.remedy(remedy))
    };
    misspelt_names(file, names, &columns).map(fault).collect()
}

/// The fields of a file that a table lacks, each with the column that was most likely meant. That
/// is one which the file does not give.
pub(super) fn misspelt_names<'a>(
    file: &'a DataFile,
    names: &'a [String],
    columns: &'a [String],
) -> impl Iterator<Item = (&'a str, &'a str)> {
    let unknown = names.iter().filter(move |name| !columns.contains(name));
    let unknown = unknown.filter(move |name| !is_left_out(file, name) && !is_known(name, columns));
    unknown.filter_map(move |name| {
        let free = columns.iter().filter(|column| {
            !names.contains(column) && ![FILE_COLUMN, KEY_COLUMN].contains(&&***column)
        });
        let near = free.filter(|column| is_near(name, column));
        let best = near.min_by_key(|column| strsim::damerau_levenshtein(name, column))?;
        Some((&**name, &**best))
    })
}

/// True for the folder of a file, where it may be the owner's order alone.
pub(super) fn is_left_out(file: &DataFile, name: &str) -> bool {
    name == PATH_COLUMN && file.is_nested()
}

/// True if one name is the other with a slip of a key or two: a letter that is missing, too much
/// or another, or two that have changed places. Names that differ in their digits are not near.
fn is_near(name: &str, column: &str) -> bool {
    let letters =
        |text: &str| -> String { text.chars().filter(|letter| !letter.is_numeric()).collect() };
    let length = name.chars().count().min(column.chars().count());
    let slips = match length {
        0..3 => 0,
        3..8 => 1,
        _ => 2,
    };
    strsim::damerau_levenshtein(name, column) <= slips && letters(name) != letters(column)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_of_a_key_are_near_and_other_words_are_not() {
        for (name, column) in [
            ("darft", "draft"),
            ("titel", "title"),
            ("tag", "tags"),
            ("sumary", "summary"),
            ("desciptoin", "description"),
        ] {
            assert!(is_near(name, column), "{name} {column}");
        }
        for (name, column) in [
            ("c2024", "c2023"),
            ("subtitle", "title"),
            ("updated", "date"),
            ("image", "summary"),
            ("mood", "body"),
            ("q2", "q1"),
            ("a", "b"),
            ("to", "do"),
        ] {
            assert!(!is_near(name, column), "{name} {column}");
        }
    }
}
