//! Collects what one transaction touches, row by row.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use millpond_store::Tag;
use parking_lot::Mutex;

use super::interest::{At, Watch, Watched};
use super::preupdate::{Observer, RowChange};
use crate::sqlite::tags::{self, Stored, Touches};

/// Distinct narrow tags of one table in one transaction; beyond it the change counts as one to all rows.
pub(crate) const MAX_NARROW: usize = 4_096;

/// What a transaction has touched in one table.
#[derive(Debug)]
struct Touched {
    /// Lower-case.
    name: String,
    watched: Vec<Watched>,
    narrow: HashSet<Tag>,
    all_rows: bool,
}

/// What the running transaction has touched. What a rolled back statement or savepoint touched stays in: too much, never too little.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    watch: Arc<Watch>,
    /// By the name as it was declared.
    touched: HashMap<Vec<u8>, Touched>,
    /// The hook failed: nothing is known.
    pub(crate) broken: bool,
}

impl Collected {
    /// Begins a transaction.
    pub(crate) fn begin(&mut self, watch: Arc<Watch>) {
        self.watch = watch;
        self.touched.clear();
        self.broken = false;
    }

    /// Adds tables that the statements could write by their own word, the authorizer's.
    pub(crate) fn add_table(&mut self, name: &str, all_rows: bool) {
        if let Some(touched) = self
            .touched
            .values_mut()
            .find(|touched| touched.name == name)
        {
            touched.all_rows |= all_rows;
            return;
        }
        self.entry(name.as_bytes()).all_rows |= all_rows;
    }

    /// Makes every touched table count as touched in all rows.
    pub(crate) fn widen(&mut self) {
        for touched in self.touched.values_mut() {
            touched.all_rows = true;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.touched.is_empty()
    }

    /// Ends the transaction.
    pub(crate) fn take_tags(&mut self) -> Vec<Tag> {
        let mut all = Vec::new();
        for (_, touched) in self.touched.drain() {
            all.push(tags::broad(&touched.name));
            if touched.all_rows {
                all.push(tags::bulk(&touched.name));
            } else {
                all.extend(touched.narrow);
            }
        }
        all
    }

    fn row(&mut self, change: &RowChange<'_>) {
        if change.database() != b"main" {
            return;
        }
        self.entry(change.table()).row(change);
    }

    fn entry(&mut self, table: &[u8]) -> &mut Touched {
        // Not `entry` of the map, which would want an owned name for each row.
        if !self.touched.contains_key(table) {
            let name = String::from_utf8_lossy(table).to_ascii_lowercase();
            let watched = self.watch.columns.get(&name).cloned().unwrap_or_default();
            let all_rows = !self.watch.known.contains(&name);
            self.touched.insert(
                table.to_vec(),
                Touched {
                    name,
                    watched,
                    narrow: HashSet::new(),
                    all_rows,
                },
            );
        }
        self.touched
            .get_mut(table)
            .expect("it was inserted if it was not there")
    }
}

impl Touched {
    fn row(&mut self, change: &RowChange<'_>) {
        if self.all_rows {
            return;
        }
        self.all_rows = change.is_blob_write();
        for index in 0..self.watched.len() {
            let Watched { at, name } = self.watched[index];
            let touches = |value: Stored<'_>| name.touched_by(value);
            let (old, new) = match at {
                At::Rowid => {
                    let (old, new) = change.rowids();
                    (
                        Ok(old.map(|rowid| touches(Stored::Integer(rowid)))),
                        Ok(new.map(|rowid| touches(Stored::Integer(rowid)))),
                    )
                }
                At::Column(column) => (
                    change.old_value(column, touches),
                    change.new_value(column, touches),
                ),
            };
            for touches in [old, new] {
                match touches {
                    Ok(None | Some(Touches::Nothing)) => {}
                    Ok(Some(Touches::One(tag))) => {
                        self.narrow.insert(tag);
                    }
                    Ok(Some(Touches::All)) | Err(()) => self.all_rows = true,
                }
            }
        }
        self.all_rows |= self.narrow.len() > MAX_NARROW;
        if self.all_rows {
            self.narrow = HashSet::new();
        }
    }
}

/// The writer and its hook share what is collected; they are on one thread, so the lock is always free.
#[derive(Clone, Default)]
pub(crate) struct Collector(pub(crate) Arc<Mutex<Collected>>);

impl Observer for Collector {
    fn row(&mut self, change: &RowChange<'_>) {
        self.0.lock().row(change);
    }

    fn panicked(&mut self) {
        self.0.lock().broken = true;
    }
}
