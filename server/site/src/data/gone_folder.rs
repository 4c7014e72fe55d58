//! Folders of tables that are gone: the rows stay, as a folder may have been moved by mistake, and
//! what refers to its rows would go with them.

use std::path::PathBuf;

use millpond_db::{AppliedFile, Database};

use super::{DataSources, FOLDER, scan::FolderScan};
use millpond_site_format::Problem;

/// Returns the message for a file that was applied and is missing, if its folder is gone, be it
/// `data/` or that of its table. A table that is gone too needs no folder.
pub(super) fn gone_folder(
    scan: &FolderScan,
    sources: &DataSources,
    database: &Database,
    file: &AppliedFile,
) -> Option<Problem> {
    let table = &file.table;
    if sources.is_elsewhere(table) {
        return None;
    }
    let folder = match scan.is_there {
        false => PathBuf::from(FOLDER),
        true if scan.lacks_folder(&file.file, table) => sources.shown(table),
        true => return None,
    };
    let columns = database.table_columns(table);
    if columns.is_ok_and(|columns| columns.is_empty()) {
        return None;
    }
    let message = format!("the folder is gone, and the rows of the table {table} stay");
    let hint = "restore the folder; to remove the rows, make an empty folder";
    Some(Problem::new(folder, message).hint(hint))
}

/// The folders that are gone, for a check.
pub(super) fn gone_folders(
    scan: &FolderScan,
    sources: &DataSources,
    database: &Database,
) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut last = "";
    let applied = database.applied_files().unwrap_or_default();
    for file in &applied {
        let is_missing = !scan.files.contains_key(&file.file) && !scan.holds(&file.file);
        if file.hash.is_empty() || !is_missing || file.table == last {
            continue;
        }
        last = &file.table;
        let problem = gone_folder(scan, sources, database, file);
        problems.extend(problem.filter(|problem| !problems.contains(problem)));
    }
    problems
}
