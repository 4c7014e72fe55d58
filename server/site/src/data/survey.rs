//! The reading of a file: is it whole, and does each value fit its column? Its rows are kept until
//! they are applied.

use std::{
    fs::{self, File},
    io,
    sync::{Arc, atomic::AtomicBool, atomic::Ordering},
};

use millpond_data::{DataError, FilePlace, ReadError, Stop, read};
use millpond_db::{Error, RowSource as _, StoredLimits, StoredRows};
use millpond_http::nameless_file;

use super::{
    batch::{MAX_BYTES, MAX_ROWS},
    columns::{FilledColumns, TargetTable},
    convert,
    fields::{misspelt, place_of_field},
    hiding::unheeded,
    scan::DataFile,
};
use crate::statics::Stamp;
use millpond_site_format::Problem;

/// Result of a reading.
pub(super) enum Survey {
    /// Each row fits.
    Good(Box<SurveyedFile>),
    /// Something is wrong with it: all that is, up to a number.
    Bad(Vec<Problem>),
    /// The file cannot be read, for a reason outside of it.
    Unreadable(Problem),
    /// The file was changed meanwhile, or is gone, or the site stops.
    Changed,
}

/// The faults of one file that are told at once.
const MAX_FAULTS: usize = 20;

/// A file that fits its table.
pub(super) struct SurveyedFile {
    /// The hash of its content.
    pub(super) hash: u128,
    pub(super) filled: FilledColumns,
    pub(super) rows: StoredRows,
}

/// A file as a problem names it, with the place in it.
pub(super) fn problem(file: &DataFile, error: &DataError) -> Problem {
    Problem::unread(&file.shown, error.clone())
}

/// Opens a file; none if it is not the one that was found any more.
///
/// # Errors
/// It is there, and cannot be opened.
pub(super) fn open(file: &DataFile) -> io::Result<Option<File>> {
    let opened = match file.open() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let stamp = Stamp::of(&opened.metadata()?);
    Ok((stamp == file.stamp).then_some(opened))
}

/// A file that cannot be opened.
pub(super) fn unreadable(file: &DataFile, error: &io::Error) -> Problem {
    Problem::new(&file.shown, format!("the file cannot be read: {error}"))
        .hint("the user that runs millpond must be able to read it")
}

/// True if the file at the path is still the one that was opened, and unchanged.
pub(super) fn is_unchanged(file: &DataFile, opened: &File) -> bool {
    let opened = opened.metadata();
    opened.is_ok_and(|it| Stamp::of(&it) == file.stamp) && is_as_found(file)
}

/// True if the file at the path is still the one that was found.
pub(super) fn is_as_found(file: &DataFile) -> bool {
    fs::metadata(&file.path).is_ok_and(|it| Stamp::of(&it) == file.stamp)
}

/// The place of a row of a file, by its number from 1, if the file can still be read.
pub(super) fn place_of_row(file: &DataFile, number: u64) -> FilePlace {
    let mut place = FilePlace::default();
    let mut count = 0;
    if let Ok(Some(opened)) = open(file) {
        // It ends at the row.
        let _ = read(file.format, &opened, file.row_name.as_ref(), &mut |row| {
            count += 1;
            if count == number {
                place = row.place;
                return Err(Stop);
            }
            Ok(())
        });
    }
    place
}

/// Reads a file whole, unless the site stops.
pub(super) fn survey(file: &DataFile, table: &TargetTable, stopped: &Arc<AtomicBool>) -> Survey {
    let opened = match open(file) {
        Ok(Some(opened)) => opened,
        Ok(None) => return Survey::Changed,
        Err(error) => return Survey::Unreadable(unreadable(file, &error)),
    };
    let mut names: Vec<String> = Vec::new();
    let mut filled = table.filled(&file.name, &names);
    let mut faults = Vec::new();
    let mut values = Vec::new();
    let mut rows = stored(stopped);
    // The columns of the rows up to a number, where later rows have more of them.
    let mut narrower: Vec<(u64, FilledColumns)> = Vec::new();
    let mut lost = None;
    let outcome = read(file.format, &opened, file.row_name.as_ref(), &mut |row| {
        if stopped.load(Ordering::Relaxed) {
            return Err(Stop);
        }
        if row.names.len() != names.len() {
            names = row.names.to_vec();
            let wider = table.filled(&file.name, &names);
            narrower.push((rows.count(), std::mem::replace(&mut filled, wider)));
        }
        match convert::row(&filled, row.values, &mut values) {
            // What has a fault is not applied.
            Ok(()) if !faults.is_empty() => Ok(()),
            Ok(()) => rows.push(&values).map_err(|error| {
                lost = Some(error);
                Stop
            }),
            Err(_) => {
                let misfits = convert::misfits(&filled, row.values).into_iter();
                let room = MAX_FAULTS - faults.len();
                faults.extend(
                    misfits
                        .take(room)
                        .map(|misfit| unfit(file, row.place, misfit)),
                );
                match faults.len() < MAX_FAULTS {
                    true => Ok(()),
                    false => Err(Stop),
                }
            }
        }
    });
    if !is_unchanged(file, &opened) {
        return Survey::Changed;
    }
    if let Some(error) = lost {
        return Survey::Unreadable(unkept(file, &error));
    }
    let digest = match outcome {
        Ok(digest) => {
            faults.extend(misspelt(file, table, &names));
            faults.extend(unheeded(file, table, &names));
            faults.extend(missing_key(file, table, &filled).filter(|_| digest.rows > 0));
            digest
        }
        Err(ReadError::Stopped) if faults.is_empty() => return Survey::Changed,
        Err(ReadError::Stopped) => return Survey::Bad(with_rest(file, faults)),
        Err(ReadError::Data(error)) => {
            faults.push(problem(file, &error));
            return Survey::Bad(faults);
        }
    };
    if !faults.is_empty() {
        faults.sort_by_key(|fault| fault.at);
        return Survey::Bad(match faults.len() {
            ..=MAX_FAULTS => faults,
            _ => with_rest(file, faults),
        });
    }
    narrower.retain(|(count, _)| *count > 0);
    if !narrower.is_empty() {
        rows = match widened(rows, &narrower, &filled, stopped) {
            Ok(rows) => rows,
            Err(error) => return Survey::Unreadable(unkept(file, &error)),
        };
    }
    Survey::Good(Box::new(SurveyedFile {
        hash: digest.hash,
        filled,
        rows,
    }))
}

/// An empty list of rows.
pub(super) fn stored(stopped: &Arc<AtomicBool>) -> StoredRows {
    let limits = StoredLimits {
        rows: MAX_ROWS,
        bytes: MAX_BYTES,
        file: nameless_file,
    };
    StoredRows::new(limits, Arc::clone(stopped))
}

/// The rows with the columns of all of them: the first had fewer.
fn widened(
    mut rows: StoredRows,
    narrower: &[(u64, FilledColumns)],
    filled: &FilledColumns,
    stopped: &Arc<AtomicBool>,
) -> io::Result<StoredRows> {
    let (mut wide, mut number, mut values) = (stored(stopped), 0, Vec::new());
    let done = rows.rows(&mut |row| {
        let own = narrower.iter().find(|(count, _)| number < *count);
        convert::widen(own.map_or(filled, |(_, own)| own), filled, row, &mut values);
        number += 1;
        wide.push(&values).map_err(|error| Error::Unavailable {
            message: error.to_string(),
        })
    });
    done.map(|()| wide).map_err(io::Error::other)
}

/// A file for whose rows there is no room.
fn unkept(file: &DataFile, error: &io::Error) -> Problem {
    let message = format!("the rows cannot be kept until they are applied: {error}");
    Problem::new(&file.shown, message)
        .hint("make room in /var/tmp, or set TMPDIR to another folder")
}

/// A value that does not fit its column.
fn unfit(file: &DataFile, row: FilePlace, misfit: convert::Misfit) -> Problem {
    let place = place_of_field(file, row, &misfit.column);
    let fault = DataError::new(place, misfit.message);
    let remedy = "correct the file, or change the column's type in a new migration";
    problem(file, &fault.remedy(remedy))
}

/// The first faults of a file that may have more of them.
fn with_rest(file: &DataFile, mut faults: Vec<Problem>) -> Vec<Problem> {
    faults.truncate(MAX_FAULTS);
    let rest = Problem::new(&file.shown, "there may be more faults in the file");
    faults.push(rest.hint("correct what was found to see more"));
    faults
}

/// Returns the fault of a file that lacks a part of the table's key.
fn missing_key(file: &DataFile, table: &TargetTable, filled: &FilledColumns) -> Option<Problem> {
    let key = filled.missing_key.as_ref()?;
    let message = format!(
        "{key} is the key of the table {}, and the file has no column of that name",
        table.name
    );
    let hint = "add the column to the file, or change the key in a migration";
    Some(Problem::new(&file.shown, message).hint(hint))
}

#[cfg(test)]
mod tests {
    use millpond_db::{KEY_COLUMN, TableColumn, TableColumnKind, Value};
    use millpond_site_format::time_zone::SiteZone;

    use super::*;
    use crate::data::{DataSources, columns::RowSettings, scan::scan};

    /// The rows of `data/t.ndjson`.
    fn rows(text: &str) -> Vec<Vec<Value>> {
        let dir = lab_testkit::fast_dir();
        fs::create_dir(dir.path().join("data")).unwrap();
        fs::write(dir.path().join("data/t.ndjson"), text).unwrap();
        let sources = DataSources {
            dir: dir.path().to_owned(),
            folders: Vec::new(),
        };
        let column = |name: &str, not_null| TableColumn {
            name: name.to_owned(),
            type_name: "text".to_owned(),
            kind: TableColumnKind::Text,
            is_key: name == KEY_COLUMN,
            not_null,
            default: None,
        };
        let table = TargetTable {
            name: "t".to_owned(),
            columns: vec![
                column("b", true),
                column(KEY_COLUMN, true),
                column("a", false),
                column("c", false),
            ],
            zone: SiteZone::default(),
            names: RowSettings::default(),
        };
        let file = scan(&sources).files["t.ndjson"].clone();
        let Survey::Good(mut surveyed) = survey(&file, &table, &Arc::default()) else {
            panic!("it is good");
        };
        let mut rows = Vec::new();
        let done = surveyed.rows.rows(&mut |values| {
            rows.push(values.to_vec());
            Ok(())
        });
        done.unwrap();
        rows
    }

    #[test]
    fn a_column_that_comes_late_is_null_in_the_rows_before() {
        let (mut late, mut given) = (String::new(), String::new());
        for number in 0..1_500 {
            let a = format!("{{\"a\": \"{number}\"");
            given.push_str(&format!("{a}, \"c\": null, \"b\": null}}\n"));
            match number {
                1_000 => late.push_str(&format!("{a}, \"c\": null}}\n")),
                1_200 => late.push_str(&format!("{a}, \"b\": null}}\n")),
                _ => late.push_str(&format!("{a}}}\n")),
            }
        }
        let (late, given) = (rows(&late), rows(&given));
        assert_eq!(given.len(), 1_500);
        assert_eq!(given[7][0], "".into());
        assert_eq!(late, given);
    }
}
