//! What the owner is told about files.

use std::{
    collections::{BTreeMap, HashMap},
    path::{Path, PathBuf},
};

use millpond_data::{DataError, FilePlace};
use millpond_db::{Error, RefusedRow, RowCounts};

use super::{
    columns::TargetTable,
    fields::{checked, is_left_out, place_of_condition, place_of_field},
    scan::DataFile,
    survey::{place_of_row, problem},
};
use millpond_site_format::Problem;

/// True if trying again may help, without a change of the file.
pub(super) fn is_passing(error: &Error) -> bool {
    matches!(
        error,
        Error::Unavailable { .. }
            | Error::Overloaded
            | Error::Timeout { .. }
            | Error::Locked { .. }
            | Error::Login { .. }
    )
}

/// A file that the database could not take.
pub(super) fn unapplied(shown: &Path, error: &Error) -> Problem {
    Problem::new(shown, format!("the rows stay as they were: {error}"))
        .hint("it is tried again by itself")
}

/// A file whose rows the database refused.
pub(super) fn refused(file: &DataFile, error: &Error, row: &RefusedRow) -> Problem {
    if is_passing(error) {
        return unapplied(&file.shown, error);
    }
    let place = row.number().map(|number| place_of_row(file, number));
    let place = place.unwrap_or_default();
    let (place, reason) = match checked(error) {
        Some(condition) => (
            place_of_condition(file, place, condition),
            format!("the table checks that {condition}"),
        ),
        None => (place, error.to_string()),
    };
    let message = format!("the rows stay as they were: {reason}");
    let fault = DataError::new(place, message)
        .remedy("correct the file, or what the table demands in a new migration");
    problem(file, &fault)
}

/// Columns of the file for which the table has none.
pub(super) fn unknown_columns(
    file: &DataFile,
    table: &TargetTable,
    unknown: &[String],
) -> Option<Problem> {
    let unknown: Vec<String> = unknown
        .iter()
        .filter(|name| !is_left_out(file, name))
        .cloned()
        .collect();
    let (first, rest) = unknown.split_first()?;
    let mut sorted = unknown.clone();
    sorted.sort();
    let names = match rest {
        [] => format!("column {first}"),
        _ => format!("columns {}", sorted.join(", ")),
    };
    let message = format!(
        "the table {} has no {names}, so that is left out",
        table.name
    );
    let place = place_of_field(file, FilePlace::default(), first);
    let note = DataError::new(place, message).remedy(
        "`millpond check --fix` writes a migration for it; it is applied at the next start",
    );
    Some(problem(file, &note))
}

/// Problems of the same words in more files of a folder than this are one.
const MAX_ALIKE: usize = 3;
/// Problems of one folder in the log at once.
const MAX_TOLD: usize = 20;

/// Problems for the log: those that many files of a folder have in common are one, and the rest of
/// a folder is counted.
pub(super) fn brief<'p>(problems: impl IntoIterator<Item = &'p Problem>) -> Vec<Problem> {
    let mut folders: BTreeMap<PathBuf, Vec<Vec<&Problem>>> = BTreeMap::new();
    let mut places = HashMap::new();
    for problem in problems {
        let folder: PathBuf = problem.file.iter().take(2).collect();
        let alike = folders.entry(folder.clone()).or_default();
        let key = (folder, &problem.message, &problem.hint);
        let place = *places.entry(key).or_insert(alike.len());
        match alike.get_mut(place) {
            Some(alike) => alike.push(problem),
            None => alike.push(vec![problem]),
        }
    }
    let mut brief = Vec::new();
    for (folder, mut groups) in folders {
        // What many have in common comes first.
        groups.sort_by_key(|alike| alike.len() <= MAX_ALIKE);
        let (mut told, mut rest) = (0, 0);
        for alike in groups {
            let problems = match alike.len() > MAX_ALIKE {
                true => vec![shared(&folder, &alike)],
                false => alike.into_iter().cloned().collect(),
            };
            let room = MAX_TOLD - told;
            rest += problems.len().saturating_sub(room);
            told += problems.len().min(room);
            brief.extend(problems.into_iter().take(room));
        }
        if rest > 0 {
            let message = format!("and {rest} more remarks on its files");
            brief.push(Problem::new(folder, message).hint("`millpond check` lists more of them"));
        }
    }
    brief
}

/// One problem for many files.
fn shared(folder: &Path, alike: &[&Problem]) -> Problem {
    let (first, more) = (alike[0], alike.len() - 1);
    let folder = folder.display();
    let message = format!("{} (also in {more} more files of {folder}/)", first.message);
    Problem {
        message,
        ..first.clone()
    }
}

/// Describes the changes of rows, for the log.
pub(super) fn rows(counts: RowCounts) -> String {
    let RowCounts {
        inserted,
        updated,
        deleted,
        taken,
    } = counts;
    let parts = [
        (taken, "taken over"),
        (inserted, "new"),
        (updated, "changed"),
        (deleted, "removed"),
    ];
    let parts: Vec<String> = parts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    match parts.is_empty() {
        true => "no row has changed".to_owned(),
        false => format!("rows: {}", parts.join(", ")),
    }
}
