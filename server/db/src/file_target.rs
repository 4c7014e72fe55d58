//! Applies files of rows to a database: what is decided, and in which order it is done, on both
//! databases. A database gives the primitives.

use crate::data_file::{
    AppliedFile, FILE_COLUMN, FileChange, FileDecision, FileOutcome, FileState, GoneFile,
    RowCounts, TableColumn,
};
use crate::file_set::{FileSet, Records, sort};
use crate::{Error, Value};

/// A database as far as it takes files of rows.
pub(crate) trait FileTarget {
    /// True if several nodes apply files: the newest version of a file wins, and a removed file is
    /// remembered, or a node that still has it would bring it back.
    fn is_shared(&self) -> bool;

    /// Begins a transaction in which no other node applies files, and makes the table of records.
    fn begin(&mut self) -> Result<(), Error>;

    /// Ends it; what it has changed stays only if `is_good`.
    fn end(&mut self, is_good: bool) -> Result<(), Error>;

    /// Returns the columns of a table, without generated ones; none if there is no such table.
    fn columns(&mut self, table: &str) -> Result<Vec<TableColumn>, Error>;

    /// Returns what is remembered of these files, or of all.
    fn records(&mut self, names: Option<&[&str]>) -> Result<Vec<AppliedFile>, Error>;

    /// Remembers what was applied, and forgets other files.
    fn remember(&mut self, records: Vec<AppliedFile>, forgotten: &[&str]) -> Result<(), Error>;

    /// Puts the rows of files straight into their table if it has none of theirs, and that costs
    /// less; gives their numbers.
    fn insert_new(&mut self, set: &mut FileSet<'_>) -> Result<Option<Vec<u64>>, Error>;

    /// Gathers the rows of files beside their table; gives the name of where they are.
    fn stage(&mut self, set: &mut FileSet<'_>) -> Result<&'static str, Error>;

    /// Makes of a column something that differs where its text does.
    fn exact(&self, column: &TableColumn, name: &str) -> String;

    /// Runs a query that gives names.
    fn names(&mut self, sql: &str) -> Result<Vec<String>, Error>;

    /// Runs a statement that changes rows `t` of these files; gives their number for each file.
    fn change(&mut self, sql: &str, files: &[&str]) -> Result<Vec<u64>, Error>;

    /// Returns the error of the row that the table refuses, where `error` is that of many rows.
    /// `is_gathered`: they are beside their table. The transaction has failed in any case.
    fn refused_row(
        &mut self,
        set: &mut FileSet<'_>,
        error: &Error,
        is_gathered: bool,
    ) -> Option<Error>;

    /// Returns, for each key of a table, the file whose row has it.
    fn key_owners(
        &mut self,
        table: &str,
        columns: &[TableColumn],
        keys: &[Vec<Value>],
    ) -> Result<Vec<Option<String>>, Error>;
}

/// Applies files in one transaction.
pub(crate) fn apply_files(
    target: &mut dyn FileTarget,
    changes: &mut [FileChange],
    gone: &[GoneFile],
) -> Result<Vec<FileOutcome>, Error> {
    let begun = target.begin();
    let outcomes = begun.and_then(|()| apply_in_transaction(target, changes, gone));
    let ended = target.end(outcomes.is_ok());
    // Without a connection there is nothing to roll back.
    let outcomes = outcomes?;
    ended.map(|()| outcomes)
}

fn apply_in_transaction(
    target: &mut dyn FileTarget,
    changes: &mut [FileChange],
    gone: &[GoneFile],
) -> Result<Vec<FileOutcome>, Error> {
    let names = changes.iter().map(|change| &*change.file);
    let names = names.chain(gone.iter().map(|gone| &*gone.file));
    let known = target.records(Some(&names.collect::<Vec<_>>()))?;
    let known = known
        .into_iter()
        .map(|record| (record.file.clone(), record));
    let known: Records = known.collect();
    let alone = !target.is_shared();
    let decide = |change: &FileChange| change.decision(known.get(&change.file), alone);
    let decisions: Vec<FileDecision> = changes.iter().map(decide).collect();
    let is_only = changes.len() == 1;
    let mut counts = vec![RowCounts::default(); changes.len()];
    let mut noted = Records::new();
    let (empty, sets) = sort(changes, &decisions, gone, &known, alone);
    for files in empty {
        // The table may be gone.
        let columns = target.columns(files.table)?;
        if columns.iter().any(|column| column.name == FILE_COLUMN) {
            let deleted = target.change(&files.delete(), &files.names())?;
            for ((place, _), deleted) in files.files.iter().zip(deleted) {
                counts[*place].deleted = deleted;
            }
        }
    }
    for mut set in sets {
        for (file, replaced) in replace_rows(target, &mut set, is_only)?
            .into_iter()
            .enumerate()
        {
            counts[set.files[file].place] = replaced;
        }
        let owners = set.leaving().into_iter();
        let owners = owners.filter_map(|owner| known.get(owner));
        noted.extend(owners.map(|owner| (owner.file.clone(), owner.without_rows())));
    }
    note(target, changes, &decisions, &known, noted)?;
    let outcome = |(decision, counts): (FileDecision, RowCounts)| match decision {
        FileDecision::Same => FileOutcome::Same,
        FileDecision::Older => FileOutcome::Older,
        FileDecision::Raced => FileOutcome::Raced,
        FileDecision::Apply(_) => FileOutcome::Applied(counts),
    };
    Ok(decisions.into_iter().zip(counts).map(outcome).collect())
}

/// Remembers what was applied, beside what was `noted` of files whose rows were taken over. Among
/// several nodes, where the content is the same, and this node's file is younger, the record
/// becomes as young, so that a node with an older content stays behind.
fn note(
    target: &mut dyn FileTarget,
    changes: &[FileChange],
    decisions: &[FileDecision],
    known: &Records,
    mut noted: Records,
) -> Result<(), Error> {
    let mut forgotten = Vec::new();
    let is_shared = target.is_shared();
    for (change, decision) in changes.iter().zip(decisions) {
        let has_rows = matches!(change.state, FileState::Rows(_));
        let record = match (decision, known.get(&change.file)) {
            (FileDecision::Apply(_), _) if !has_rows && !is_shared => {
                forgotten.push(&*change.file);
                continue;
            }
            (FileDecision::Apply(version), _) => change.record(*version),
            (FileDecision::Same, Some(before)) if is_shared && before.version < change.version => {
                AppliedFile {
                    version: change.version,
                    ..before.clone()
                }
            }
            (FileDecision::Same | FileDecision::Older | FileDecision::Raced, _) => continue,
        };
        noted.insert(record.file.clone(), record);
    }
    target.remember(noted.into_values().collect(), &forgotten)
}

/// Brings the table to the rows of the files. `is_only`: they are all that is applied.
fn replace_rows(
    target: &mut dyn FileTarget,
    set: &mut FileSet<'_>,
    is_only: bool,
) -> Result<Vec<RowCounts>, Error> {
    if set.leaving().is_empty()
        && let Some(inserted) = target.insert_new(set)?
    {
        let counts = |inserted| RowCounts {
            inserted,
            ..RowCounts::default()
        };
        return Ok(inserted.into_iter().map(counts).collect());
    }
    let refused = |target: &mut dyn FileTarget, set: &mut FileSet<'_>, error, is_gathered| {
        let row = is_only.then(|| target.refused_row(set, &error, is_gathered));
        row.flatten().unwrap_or(error)
    };
    let stage = match target.stage(set) {
        Ok(stage) => stage,
        Err(error) => return Err(refused(target, set, error, false)),
    };
    if !set.leaving().is_empty() {
        let owners = target.names(&set.owners(stage))?;
        set.retain_owners(&owners);
    }
    let names = set.names();
    let exact = |column: &TableColumn, name: &str| target.exact(column, name);
    let statements = set.statements(stage, exact);
    match statements.run(|sql| target.change(sql, &names)) {
        Ok(counts) => target
            .change(&format!("drop table {stage}"), &[""])
            .map(|_| counts),
        Err(error) => Err(refused(target, set, error, true)),
    }
}
