//! Rows of files that are gone which stay for another file: it has their keys, and could not be
//! applied yet, as it has a fault, is being written, or the database did not take it. Else an error
//! in a file that has another name would take its row, and with it what refers to the row.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    path::{Path, PathBuf},
};

use millpond_data::{FieldValue, Stop, read};
use millpond_db::{Error, GoneFile, Value};

use super::{
    columns::TargetTable,
    convert,
    scan::{DataFile, FolderScan},
    sync::Sync,
};

/// The rows of a file whose keys are asked for, at most: of a larger file the first ones.
const MAX_ROWS: usize = 512;

impl Sync {
    /// The files that are gone whose rows stay, each with the file that has a key of them.
    pub(super) fn held(
        &self,
        scan: &FolderScan,
        gone: &[GoneFile],
    ) -> Result<BTreeMap<String, PathBuf>, Error> {
        let mut held = BTreeMap::new();
        let tables: BTreeSet<&str> = gone.iter().map(|file| &*file.table).collect();
        if !scan
            .files
            .values()
            .any(|file| tables.contains(&*file.table))
        {
            return Ok(held);
        }
        let names: BTreeSet<&str> = gone.iter().map(|file| &*file.file).collect();
        let applied = self.database.applied_files()?;
        let applied = applied.iter().filter(|file| !file.hash.is_empty());
        let applied: BTreeSet<&str> = applied.map(|file| &*file.file).collect();
        for name in tables {
            let is_waiting =
                |file: &&DataFile| file.table == name && !applied.contains(&*file.name);
            let waiting: Vec<&DataFile> = scan.files.values().filter(is_waiting).collect();
            if waiting.is_empty() {
                continue;
            }
            let Some(table) = self.table(name)? else {
                continue;
            };
            for (file, owner) in self.owners(&waiting, &table)? {
                if names.contains(&*owner) {
                    held.entry(owner).or_insert_with(|| file.to_owned());
                }
            }
        }
        Ok(held)
    }

    /// The files whose rows have a key of one of these files, each with that file.
    fn owners<'a>(
        &self,
        files: &[&'a DataFile],
        table: &TargetTable,
    ) -> Result<Vec<(&'a Path, String)>, Error> {
        let Some(columns) = table.own_key() else {
            return Ok(Vec::new());
        };
        let (mut shown, mut keys) = (Vec::new(), Vec::new());
        for file in files {
            for key in keys_of(file, table) {
                shown.push(&*file.shown);
                keys.push(key);
            }
        }
        let owners = self.database.key_owners(&table.name, &columns, keys)?;
        let owners = shown.into_iter().zip(owners);
        let known = owners.filter_map(|(file, owner)| Some((file, owner?)));
        Ok(known.collect())
    }
}

/// The keys of the rows of a file as far as it can be read. A file that is one row and cannot be
/// read has those that its path says.
fn keys_of(file: &DataFile, table: &TargetTable) -> Vec<Vec<Value>> {
    let mut keys = Vec::new();
    if let Ok(opened) = File::open(&file.path) {
        // The fault is said where the file is applied.
        drop(read(
            file.format,
            opened,
            file.row_path.as_deref(),
            &mut |row| {
                let filled = table.filled(&file.name, row.names);
                keys.extend(convert::key(&filled, row.values));
                if keys.len() < MAX_ROWS {
                    Ok(())
                } else {
                    Err(Stop)
                }
            },
        ));
    }
    if let (true, Some(path)) = (keys.is_empty(), file.row_path.as_deref()) {
        keys.extend(key_of_path(file, path, table));
    }
    keys
}

fn key_of_path(file: &DataFile, path: &str, table: &TargetTable) -> Option<Vec<Value>> {
    let (folder, slug) = path.rsplit_once('/').unwrap_or(("", path));
    let names = ["folder".to_owned(), "slug".to_owned()];
    let values = [
        FieldValue::Text(folder.into()),
        FieldValue::Text(slug.into()),
    ];
    convert::key(&table.filled(&file.name, &names), &values)
}
