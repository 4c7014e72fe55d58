//! Two files of a table with one key: the message names both.

use std::fs::File;

use millpond_data::{FieldValue, FilePlace, Format, read};
use millpond_db::{ConstraintKind, Error};

use super::{
    DataSources,
    fields::place_of_field,
    scan::{DataFile, scan},
    survey::problem,
};
use crate::Problem;

/// Files among which the other one is looked for, at most.
const MAX_FILES: usize = 2_000;

/// What is wrong with a file that is one row, and was refused as another one has its key.
pub(super) fn same_key(sources: &DataSources, file: &DataFile, error: &Error) -> Option<Problem> {
    let Error::Constraint { kind, violated, .. } = error else {
        return None;
    };
    let columns = &violated.columns;
    let is_key = matches!(kind, ConstraintKind::Unique | ConstraintKind::PrimaryKey);
    if !is_key || columns.is_empty() {
        return None;
    }
    let own = values(file, columns)?;
    let found = scan(sources);
    let mut others = found.files.values().filter(|other| {
        other.table == file.table && other.name != file.name && other.format == Format::Markdown
    });
    let is_same = |other: &&DataFile| values(other, columns).as_ref() == Some(&own);
    let twin = others.by_ref().take(MAX_FILES).find(is_same)?;
    let names = columns.join(" and ");
    let place = place_of_field(file, FilePlace::line(1), &columns[0]);
    let message = format!(
        "the rows stay as they were: {} is a row with the same {names}",
        twin.shown.display()
    );
    let remedy = format!("give one of both another {names}");
    let fault = millpond_data::DataError::new(place, message);
    Some(problem(file, &fault.remedy(remedy)))
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
            let at = row.names.iter().position(|name| name == column)?;
            match &row.values[at] {
                FieldValue::Null => None,
                FieldValue::Text(text) | FieldValue::Plain(text) => Some(text.to_string()),
                other => Some(format!("{other:?}")),
            }
        };
        values = columns.iter().map(value).collect();
        Ok(())
    });
    outcome.ok()?;
    values
}
