//! Whether the tables take the rows of the files, tried on a database that a check throws away.

use std::{collections::BTreeMap, sync::Arc};

use millpond_db::{ConstraintKind, Database, Error};

use super::{
    DataSources,
    batch::{Applier, ReadyFile, apply_all},
    columns::{RowSettings, TargetTable},
    messages::refused,
    scan::{DataFile, scan},
    survey::{Survey, survey},
    twins::Twins,
};
use millpond_site_format::{Problem, time_zone::SiteZone};

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
    if waiting.iter().map(|file| file.stamp.size).sum::<u64>() > MAX_BYTES {
        return Vec::new();
    }
    // A row may have been another file's, so what is refused is tried again after others.
    loop {
        let mut trial = RowTrial {
            twins: Twins::new(&scan.files),
            database,
            zone,
            tables: BTreeMap::new(),
            refused: Vec::new(),
        };
        let count = waiting.len();
        apply_all(waiting, &mut trial);
        let refused = trial.refused;
        if refused.is_empty() || refused.len() == count {
            return refused.into_iter().filter_map(|(_, it)| it).collect();
        }
        waiting = refused.into_iter().map(|(file, _)| file).collect();
    }
}

struct RowTrial<'a> {
    twins: Twins<'a>,
    database: &'a Database,
    zone: SiteZone,
    /// The tables that were asked for; none for one that takes no files.
    tables: BTreeMap<&'a str, Option<TargetTable>>,
    /// Files that were refused, and what is wrong with their own rows.
    refused: Vec<(&'a DataFile, Option<Problem>)>,
}

impl<'a> RowTrial<'a> {
    fn table(&mut self, name: &'a str) -> Option<&TargetTable> {
        let (database, zone) = (self.database, self.zone);
        let table = || {
            let columns = database.table_columns(name).ok()?;
            let name = name.to_owned();
            let table = TargetTable {
                name,
                columns,
                zone,
                names: RowSettings::default(),
            };
            // A fault is said without a trial.
            (!table.columns.is_empty() && table.fault().is_none()).then_some(table)
        };
        self.tables.entry(name).or_insert_with(table).as_ref()
    }
}

impl<'a> Applier<'a> for RowTrial<'a> {
    fn prepare(&mut self, file: &'a DataFile) -> Option<ReadyFile<'a>> {
        let table = self.table(&file.table)?;
        // What is wrong with a file is said without a trial.
        let Survey::Good(surveyed) = survey(file, table, &Arc::default()) else {
            return None;
        };
        // They go into an empty table, once.
        let (hash, others) = (format!("{:032x}", surveyed.hash), Vec::new());
        Some(ReadyFile::surveyed(file, *surveyed, hash, others, true))
    }

    fn apply(&mut self, batch: Vec<ReadyFile<'a>>) -> bool {
        let is_single = batch.len() == 1;
        let rows: Vec<_> = batch
            .iter()
            .map(|ready| (ready.file, ready.refused.clone()))
            .collect();
        let changes = batch.into_iter().map(|ready| ready.change).collect();
        let Err(error) = self.database.apply_files(changes, Arc::default()) else {
            return false;
        };
        if is_single {
            for (file, row) in rows {
                let problem = is_of_the_rows(&error).then(|| {
                    let twin = self.twins.same_key(file, &error);
                    twin.unwrap_or_else(|| refused(file, &error, &row))
                });
                self.refused.push((file, problem));
            }
        }
        !is_single
    }
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
