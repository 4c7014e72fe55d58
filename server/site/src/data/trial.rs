//! Whether the tables take the rows of the files, tried on a database that a check throws away.

use std::sync::Arc;

use millpond_db::{ConstraintKind, Database, Error, FileChange, FileContent, FileState};
use parking_lot::Mutex;

use super::{
    DataSources, Inbox,
    columns::TargetTable,
    rows::FileRows,
    scan::{DataFile, scan},
    survey::{Survey, survey},
    sync::refused,
};
use crate::{Problem, time_zone::SiteZone};

/// Files of more bytes in all are not tried.
const MAX_BYTES: u64 = 64 << 20;

/// Applies the files to the database, and says which rows it refuses by themselves. The database
/// may lack the rows that the files do not give, so a reference to a row is not judged.
pub(crate) fn refused_rows(
    sources: &DataSources,
    database: &Database,
    zone: SiteZone,
) -> Vec<Problem> {
    let scan = scan(sources);
    let mut waiting: Vec<&DataFile> = scan.files.values().collect();
    if waiting.iter().map(|file| file.stamp.size()).sum::<u64>() > MAX_BYTES {
        return Vec::new();
    }
    // A row may have been another file's, so what is refused is tried again after others.
    loop {
        let count = waiting.len();
        let mut problems = Vec::new();
        waiting.retain(|file| {
            let problem = apply(file, database, zone);
            let is_refused = problem.is_some();
            problems.extend(problem);
            is_refused
        });
        if waiting.is_empty() || waiting.len() == count {
            return problems;
        }
    }
}

/// Applies a file; gives what is wrong with its rows.
fn apply(file: &DataFile, database: &Database, zone: SiteZone) -> Option<Problem> {
    let columns = database.table_columns(&file.table).ok()?;
    if columns.is_empty() {
        return None;
    }
    let name = file.table.clone();
    let table = TargetTable {
        name,
        columns,
        zone,
    };
    let surveyed = match survey(file, &table, &|| false) {
        Survey::Good(surveyed) if table.fault().is_none() => surveyed,
        // That is said without a trial.
        _ => return None,
    };
    let end = Arc::new(Mutex::new(None));
    let content = FileContent {
        columns: surveyed.filled.columns.clone(),
        source: Box::new(FileRows {
            file: file.clone(),
            filled: surveyed.filled,
            hash: surveyed.hash,
            inbox: Arc::new(Inbox::default()),
            end: Arc::clone(&end),
        }),
    };
    let change = FileChange {
        file: file.name.clone(),
        table: file.table.clone(),
        hash: format!("{:032x}", surveyed.hash),
        version: file.stamp.version(),
        is_news: true,
        state: FileState::Rows(content),
    };
    let error = database.apply_file(change).err()?;
    let end = *end.lock();
    is_of_the_rows(&error).then(|| refused(file, &error, end))
}

/// True if other rows of the database have no part in the error.
const fn is_of_the_rows(error: &Error) -> bool {
    use ConstraintKind as Kind;
    match error {
        Error::Constraint { kind, .. } => matches!(
            kind,
            Kind::Check | Kind::NotNull | Kind::Unique | Kind::PrimaryKey
        ),
        Error::Usage { .. } => true,
        _ => false,
    }
}
