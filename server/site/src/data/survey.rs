//! The first reading of a file: is it whole, and does each value fit its column? The rows of a
//! small file are held.

use std::{
    fs::{self, File},
    io,
};

use millpond_data::{DataError, FilePlace, ReadError, Stop, read};

use super::{
    batch::{MAX_BYTES, MAX_ROWS},
    columns::{FilledColumns, TargetTable},
    convert,
    fields::{misspelt, place_of_field},
    rows::RowsInMemory,
    scan::{DataFile, FileStamp},
};
use millpond_site_format::Problem;

/// What became of a reading.
pub(super) enum Survey {
    /// Each row fits.
    Good(SurveyedFile),
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
    /// Its rows, if it is small and each row has the same columns.
    pub(super) rows: Option<RowsInMemory>,
}

/// A file as a problem names it, with the place in it.
pub(super) fn problem(file: &DataFile, error: &DataError) -> Problem {
    let FilePlace { line, column, row } = error.place;
    let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let problem = match (line, row) {
        (Some(line), _) => Problem::new(&file.shown, error.message.clone())
            .at(number(line), number(column.unwrap_or(1))),
        (None, Some(row)) => Problem::new(&file.shown, format!("row {row}: {}", error.message)),
        (None, None) => Problem::new(&file.shown, error.message.clone()),
    };
    match &error.remedy {
        Some(remedy) => problem.hint(remedy.clone()),
        None => problem,
    }
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
    let stamp = FileStamp::of(&opened.metadata()?);
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
    opened.is_ok_and(|it| FileStamp::of(&it) == file.stamp) && is_as_found(file)
}

/// True if the file at the path is still the one that was found.
pub(super) fn is_as_found(file: &DataFile) -> bool {
    fs::metadata(&file.path).is_ok_and(|it| FileStamp::of(&it) == file.stamp)
}

/// Reads a file whole, unless `is_stopped` says that the site stops.
pub(super) fn survey(
    file: &DataFile,
    table: &TargetTable,
    is_stopped: &dyn Fn() -> bool,
) -> Survey {
    let opened = match open(file) {
        Ok(Some(opened)) => opened,
        Ok(None) => return Survey::Changed,
        Err(error) => return Survey::Unreadable(unreadable(file, &error)),
    };
    let mut names: Vec<String> = Vec::new();
    let mut filled = table.filled(&file.name, &names);
    let mut faults = Vec::new();
    let mut values = Vec::new();
    let mut held = Some(RowsInMemory::default());
    let outcome = read(file.format, &opened, file.row_path.as_deref(), &mut |row| {
        if is_stopped() {
            return Err(Stop);
        }
        if row.names.len() != names.len() {
            names = row.names.to_vec();
            filled = table.filled(&file.name, &names);
            // Rows before this one were without these columns.
            held.take_if(|held| !held.rows.is_empty());
        }
        match convert::row(&filled, row.values, &mut values) {
            Ok(()) => {
                if let Some(rows) = &mut held {
                    rows.push(row.place, &values);
                }
                held.take_if(|held| held.rows.len() > MAX_ROWS || held.bytes > MAX_BYTES);
                Ok(())
            }
            Err(_) => {
                held = None;
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
    let digest = match outcome {
        Ok(digest) => {
            faults.extend(misspelt(file, table, &names));
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
    Survey::Good(SurveyedFile {
        hash: digest.hash,
        filled,
        rows: held,
    })
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

/// What is wrong with a file that lacks a part of the table's key.
fn missing_key(file: &DataFile, table: &TargetTable, filled: &FilledColumns) -> Option<Problem> {
    let key = filled.missing_key.as_ref()?;
    let message = format!(
        "{key} is the key of the table {}, and the file has no column of that name",
        table.name
    );
    let hint = "add the column to the file, or change the key in a migration";
    Some(Problem::new(&file.shown, message).hint(hint))
}
