//! Rows of files that are gone which are kept for another file: it could not be applied yet, as it
//! has a fault, is being written, or the database did not take it, and may be one of them with
//! another name. Else a fault in a renamed file would take its row, and what refers to the row.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use millpond_data::{Stop, read};
use millpond_db::{Error, GoneFile, Value};

use super::{apply::Look, columns::TargetTable, convert, scan::DataFile, sync::FolderSync};

/// The keys that are read of a file, at most.
const MAX_KEYS: usize = 10_000;

/// Files whose rows are kept, each with the file for which they are.
pub(super) type HeldFiles = BTreeMap<String, PathBuf>;

impl FolderSync {
    /// Lists the files that are gone and whose rows are kept.
    pub(super) fn held(&self, look: &Look<'_>, gone: &[&GoneFile]) -> Result<HeldFiles, Error> {
        let mut held = HeldFiles::new();
        let tables: BTreeSet<&str> = gone.iter().map(|file| &*file.table).collect();
        for name in tables {
            let is_waiting = |file: &&DataFile| file.table == name && !self.is_applied(file);
            let waiting: Vec<&DataFile> = look.scan.files.values().filter(is_waiting).collect();
            if waiting.is_empty() {
                continue;
            }
            if let Some(table) = self.table(name)? {
                let gone = gone.iter().filter(|file| file.table == name);
                let gone = gone.map(|file| &*file.file).collect();
                self.hold(look, &table, &waiting, &gone, &mut held)?;
            }
        }
        Ok(held)
    }

    /// Finds those of one table.
    fn hold(
        &self,
        look: &Look<'_>,
        table: &TargetTable,
        waiting: &[&DataFile],
        gone: &BTreeSet<&str>,
        held: &mut HeldFiles,
    ) -> Result<(), Error> {
        let Some(columns) = table.own_key() else {
            return Ok(());
        };
        let (mut shown, mut keys, mut unreadable) = (Vec::new(), Vec::new(), None);
        for file in waiting {
            match self.keys_of(file, table) {
                Some(own) => {
                    shown.extend(vec![&file.shown; own.len()]);
                    keys.extend(own);
                }
                // A file that has rows is there for long: it keeps those, and no others.
                None if look.has_rows(file) => {}
                None => unreadable = Some(&file.shown),
            }
        }
        if let Some(file) = unreadable {
            let all = gone.iter().map(|name| ((*name).to_owned(), file.clone()));
            held.extend(all);
        }
        let owners = self.database.key_owners(&table.name, &columns, keys)?;
        for (file, owner) in shown.into_iter().zip(owners) {
            if let Some(owner) = owner.filter(|owner| gone.contains(&**owner)) {
                held.insert(owner, file.clone());
            }
        }
        Ok(())
    }

    /// The keys of all rows of a file; none if they cannot be read.
    fn keys_of(&self, file: &DataFile, table: &TargetTable) -> Option<Vec<Vec<Value>>> {
        // It is being written.
        if self.differs(file) {
            return None;
        }
        let opened = file.open().ok()?;
        let mut keys = Vec::new();
        let outcome = read(file.format, opened, file.row_name.as_ref(), &mut |row| {
            let filled = table.filled(&file.name, row.names);
            let key = convert::key(&filled, row.values).ok_or(Stop)?;
            keys.push(key);
            (keys.len() <= MAX_KEYS).then_some(()).ok_or(Stop)
        });
        outcome.ok().map(|_| keys)
    }
}
