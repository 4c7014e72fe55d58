//! Files that have another name: their rows stay, and what refers to them.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use millpond_db::{AppliedFile, KEY_COLUMN, MovedRows, Value};

use super::{
    applied_hash,
    columns::TargetTable,
    rows::RowsInMemory,
    scan::{DataFile, FolderScan},
    survey::{Survey, survey},
    sync::{LookOutcome, Sync},
};

impl Sync {
    /// Gives the rows of files that are gone to new files of their table with the same keys. Large
    /// files take none over. Gives what is remembered of those files.
    pub(super) fn keep_moved(
        &mut self,
        scan: &FolderScan,
        gone: &[&AppliedFile],
        applied: &[AppliedFile],
        outcome: &mut LookOutcome,
    ) -> Vec<AppliedFile> {
        let mut from: BTreeMap<&str, Vec<&AppliedFile>> = BTreeMap::new();
        let mut records = Vec::new();
        // Of several nodes, one that starts may have an older folder: then the rows stay.
        let is_newer = |file: &AppliedFile| {
            self.has_looked || !self.database.is_postgres() || scan.version > file.version
        };
        for file in gone.iter().filter(|file| is_newer(file)) {
            from.entry(&file.table).or_default().push(*file);
        }
        if from.is_empty() {
            return records;
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
            let moved = table
                .as_ref()
                .and_then(|table| moved_rows(file, table, from));
            // An error is said once the file is applied.
            let record = moved.and_then(|moved| self.database.move_rows(moved).ok().flatten());
            if let Some(record) = record {
                self.changes += 1;
                outcome.has_changed = true;
                records.push(record);
            }
        }
        records
    }
}

/// The rows that a file is to take over, if their keys are its own and not hashes of its values.
fn moved_rows(file: &DataFile, table: &TargetTable, from: &[&AppliedFile]) -> Option<MovedRows> {
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
    let former: Vec<AppliedFile> = from.iter().copied().cloned().collect();
    let hash = move |owners: &BTreeSet<String>| {
        let owners = former.iter().filter(|former| owners.contains(&former.file));
        applied_hash::moved(owners)
    };
    Some(MovedRows {
        table: table.name.clone(),
        file: file.name.clone(),
        from: from.iter().map(|former| former.file.clone()).collect(),
        hash: Box::new(hash),
        rows: rows.iter().map(|(_, values)| key(values)).collect(),
        keys: keys.iter().map(|(_, name)| name.clone()).collect(),
    })
}
