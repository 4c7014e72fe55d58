//! Files that have another name: their rows stay, and what refers to them.

use std::collections::{BTreeMap, HashSet};

use millpond_db::{AppliedFile, KEY_COLUMN, MovedRows, Value};

use super::{
    columns::TargetTable,
    rows::RowsInMemory,
    scan::{DataFile, FolderScan},
    survey::{Survey, survey},
    sync::{LookOutcome, Sync},
};

impl Sync {
    /// Gives the rows of files that are gone to new files of their table with the same keys. Large
    /// files take none over.
    pub(super) fn keep_moved(
        &mut self,
        scan: &FolderScan,
        gone: &[&AppliedFile],
        applied: &[AppliedFile],
        outcome: &mut LookOutcome,
    ) {
        let mut from: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        // Of several nodes, one that starts may have an older folder: then the rows stay.
        let is_newer = |file: &AppliedFile| {
            self.has_looked || !self.database.is_postgres() || scan.version > file.version
        };
        for file in gone.iter().filter(|file| is_newer(file)) {
            from.entry(&file.table).or_default().push(file.file.clone());
        }
        if from.is_empty() {
            return;
        }
        let known = applied.iter().filter(|file| !file.hash.is_empty());
        let known: HashSet<&str> = known.map(|file| &*file.file).collect();
        let mut tables: BTreeMap<&str, Option<TargetTable>> = BTreeMap::new();
        for file in scan.files.values() {
            let Some(from) = from.get(&*file.table) else {
                continue;
            };
            if known.contains(&*file.name) || self.inbox.is_stopped() {
                continue;
            }
            let table = tables.entry(&file.table);
            let table = table.or_insert_with(|| self.table(&file.table).ok().flatten());
            let Some(moved) = table.as_ref().and_then(|table| keys(file, table)) else {
                continue;
            };
            let moved = MovedRows {
                from: from.clone(),
                ..moved
            };
            // An error is said once the file is applied.
            if self.database.move_rows(moved).is_ok_and(|count| count > 0) {
                self.changes += 1;
                outcome.has_changed = true;
            }
        }
    }
}

/// The keys of a file's rows, if they are its own and not hashes of its values.
fn keys(file: &DataFile, table: &TargetTable) -> Option<MovedRows> {
    if table.fault().is_some() {
        return None;
    }
    let Survey::Good(surveyed) = survey(file, table, &|| false) else {
        return None;
    };
    let RowsInMemory { rows, .. } = surveyed.rows?;
    let columns = surveyed.filled.columns.iter().enumerate();
    let keys: Vec<(usize, String)> = columns
        .filter(|(_, column)| column.is_key)
        .map(|(at, column)| (at, column.name.clone()))
        .collect();
    if keys.is_empty() || keys.iter().any(|(_, name)| name == KEY_COLUMN) {
        return None;
    }
    let key = |values: &[Value]| -> Vec<Value> {
        let values = keys.iter().map(|(at, _)| values[*at].clone());
        values.collect()
    };
    Some(MovedRows {
        table: table.name.clone(),
        file: file.name.clone(),
        from: Vec::new(),
        rows: rows.iter().map(|(_, values)| key(values)).collect(),
        keys: keys.iter().map(|(_, name)| name.clone()).collect(),
    })
}
