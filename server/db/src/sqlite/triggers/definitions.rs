//! The text of the tables and triggers that record changes.

use std::collections::BTreeMap;

use rusqlite::Connection;

use super::columns::RecordedColumn;
use super::keys::{KeyColumn, UniqueKeys};
use super::{CHANGES, FEED, MAX_UNREAD, RecordedValues, VALUES};
use crate::data_file::quoted;
use crate::sqlite::catalog::{Catalog, CatalogTable, TableKind};
use crate::sqlite::interest::ValueLocation;

/// Triggers and tables that a database needs so that the changes of other programs are recorded.
#[derive(Debug, Default)]
pub(crate) struct Definitions {
    /// The two tables, by name.
    pub(crate) tables: BTreeMap<String, String>,
    /// The triggers, by name.
    pub(crate) triggers: BTreeMap<String, TriggerText>,
    /// Values that the triggers of each table record, by lower-case name.
    pub(crate) recorded: BTreeMap<String, RecordedValues>,
    /// The tables of which a change counts as one to all rows, by lower-case name, with the reason.
    pub(crate) whole: BTreeMap<String, &'static str>,
}

/// A trigger and its table.
#[derive(Debug)]
pub(crate) struct TriggerText {
    /// As it was declared.
    pub(crate) table: String,
    pub(crate) sql: String,
}

impl Definitions {
    /// For the schema that `connection` has and `catalog` describes.
    pub(crate) fn of(connection: &Connection, catalog: &Catalog) -> rusqlite::Result<Self> {
        let mut all = Self::without_triggers();
        let mut declared = connection
            .prepare_cached("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")?;
        let declared: Vec<String> = declared
            .query_map([], |row| row.get(0))?
            .collect::<Result<_, _>>()?;
        for name in declared {
            let key = name.to_ascii_lowercase();
            match catalog.table(&key) {
                Some(table) if table.kind == TableKind::Table && !key.starts_with("_millpond_") => {
                    all.add(&RecordedTable::of(connection, name, table)?);
                }
                _ => {}
            }
        }
        Ok(all)
    }

    /// For a schema without tables.
    pub(super) fn without_triggers() -> Self {
        Self {
            tables: tables(),
            ..Self::default()
        }
    }

    fn add(&mut self, table: &RecordedTable) {
        for (kind, sql) in table.triggers() {
            let name = format!("_millpond_{kind}_{}", table.name);
            let text = TriggerText {
                table: table.name.clone(),
                sql: format!("CREATE TRIGGER {} {sql}", quoted(&name)),
            };
            self.triggers.insert(name, text);
        }
        let key = table.name.to_ascii_lowercase();
        let recorded = RecordedValues {
            places: table.values().map(|column| column.at).collect(),
            columns: table.columns.len() - usize::from(table.has_hidden_rowid),
        };
        if let Some(reason) = table.whole {
            self.whole.insert(key.clone(), reason);
        }
        self.recorded.insert(key, recorded);
    }
}

/// The statements that make the two tables.
fn tables() -> BTreeMap<String, String> {
    let values: String = (0..VALUES)
        .flat_map(|index| [format!(", o{index}"), format!(", w{index}")])
        .collect();
    BTreeMap::from([
        (
            CHANGES.to_owned(),
            format!("CREATE TABLE {CHANGES} (n, t, p, same{values})"),
        ),
        (
            FEED.to_owned(),
            format!("CREATE TABLE {FEED} (nonce, n, floor, own)"),
        ),
    ])
}

/// A table whose changes are recorded.
struct RecordedTable {
    name: String,
    /// The rowid comes first, if no column is an alias of it.
    columns: Vec<RecordedColumn>,
    has_hidden_rowid: bool,
    /// A name of the rowid that no column has.
    rowid: Option<String>,
    keys: Vec<Vec<KeyColumn>>,
    /// Why every change counts as one to all rows, if it does.
    whole: Option<&'static str>,
}

impl RecordedTable {
    fn of(connection: &Connection, name: String, table: &CatalogTable) -> rusqlite::Result<Self> {
        let unique = UniqueKeys::of(connection, &name)?;
        let declared: Vec<String> = connection
            .prepare_cached("SELECT name FROM pragma_table_xinfo(?1) ORDER BY cid")?
            .query_map([&name], |row| row.get(0))?
            .collect::<Result<_, _>>()?;
        let whole = if !table.can_narrow || declared.len() != table.columns.len() {
            Some("has a generated column")
        } else if !unique.are_plain {
            Some("has a unique index that is partial or on an expression")
        } else if has_trigger_that_hides_changes(connection, &name)? {
            Some("has a trigger that says raise(ignore)")
        } else {
            None
        };
        let rowid = rowid_name(table);
        let hidden = rowid.as_deref().filter(|_| table.rowid_column.is_none());
        let has_hidden_rowid = hidden.is_some();
        let mut columns: Vec<_> = hidden.map(RecordedColumn::rowid).into_iter().collect();
        for (index, (declared, column)) in declared.iter().zip(&table.columns).enumerate() {
            let is_rowid = table.rowid_column == Some(index);
            columns.push(RecordedColumn::of(index, declared, column, is_rowid));
        }
        Ok(Self {
            name,
            columns,
            has_hidden_rowid,
            rowid,
            keys: unique.keys,
            whole,
        })
    }

    fn values(&self) -> impl Iterator<Item = &RecordedColumn> {
        self.columns.iter().filter(|column| column.has_values())
    }

    /// The triggers, each with its kind and what follows its name.
    fn triggers(&self) -> Vec<(&'static str, String)> {
        if self.whole.is_some() {
            // Before the change, as a trigger of the owner's may keep later triggers from running
            // once the row is changed.
            let any = format!("{}; {COUNT}", self.any_row("1"));
            return [("bi", "INSERT"), ("bu", "UPDATE"), ("bd", "DELETE")]
                .map(|(kind, event)| (kind, self.trigger("BEFORE", event, RECORDS, &any)))
                .into();
        }
        let mut all = vec![
            ("ai", self.after("INSERT", &["new"])),
            ("ad", self.after("DELETE", &["old"])),
            ("au", self.after("UPDATE", &["old", "new"])),
        ];
        if self.rowid.is_some() || !self.keys.is_empty() {
            all.push(("bi", self.before_insert()));
            all.push(("bu", self.before_update()));
        }
        all
    }

    fn trigger(&self, time: &str, event: &str, when: &str, body: &str) -> String {
        let table = quoted(&self.name);
        format!("{time} {event} ON {table} WHEN {when} BEGIN {body}; END")
    }

    /// Records the row as it was and as it is.
    fn after(&self, event: &str, rows: &[&str]) -> String {
        let from = format!("FROM {FEED} WHERE {}", has_room());
        let body = format!("{}; {COUNT}", self.records(rows, &from));
        self.trigger("AFTER", event, RECORDS, &body)
    }

    /// Records the rows that OR REPLACE would remove for a new row: no trigger fires for them.
    fn before_insert(&self) -> String {
        let body = self.conflicts("");
        self.trigger("BEFORE", "INSERT", RECORDS, &body)
    }

    /// Records the rows that OR REPLACE would remove for a row with a new key. SQLite compares the
    /// columns after OF with the names that the statement sets, and does not ask whether they
    /// exist. Counterexample: `of id` alone; `set rowid = 5` sets the column by another name.
    fn before_update(&self) -> String {
        let mut is_other = String::new();
        let mut changed: Vec<String> = Vec::new();
        let mut names: Vec<String> = Vec::new();
        if let Some(rowid) = &self.rowid {
            is_other = format!(" AND _t.{rowid} IS NOT old.{rowid}");
            changed.push(format!("new.{rowid} IS NOT old.{rowid}"));
            names.extend(ROWID_NAMES.map(str::to_owned));
            names.push(rowid.clone());
        }
        for column in self.keys.iter().flatten() {
            let name = quoted(&column.name);
            changed.push(format!("new.{name} IS NOT old.{name} COLLATE binary"));
            if column.has_default_for_null {
                changed.push(format!("new.{name} IS NULL"));
            }
            names.push(name);
        }
        let event = format!("UPDATE OF {}", names.join(", "));
        let when = format!("({}) AND {RECORDS}", changed.join(" OR "));
        self.trigger("BEFORE", &event, &when, &self.conflicts(&is_other))
    }

    /// The conditions under which a stored row `_t` has a key of the new row.
    fn conflict_conditions(&self) -> Vec<String> {
        let by_rowid = self
            .rowid
            .iter()
            .map(|rowid| format!("_t.{rowid} = new.{rowid}"));
        let by_key = self.keys.iter().map(|key| {
            let equal = key.iter().map(|column| {
                let (name, collation) = (quoted(&column.name), quoted(&column.collation));
                format!("_t.{name} = new.{name} COLLATE {collation}")
            });
            equal.collect::<Vec<_>>().join(" AND ")
        });
        by_rowid.chain(by_key).collect()
    }

    /// Records the stored rows that have a key of the new row and for which `condition` holds, and
    /// counts if there were any. Each key has a statement of its own, which its index answers.
    /// Counterexample: the keys are joined by OR, and SQLite reads the whole table.
    fn conflicts(&self, condition: &str) -> String {
        let (table, room) = (quoted(&self.name), has_room());
        let by_key = self.conflict_conditions().into_iter().map(|has_key| {
            let from = format!(
                "FROM {FEED} CROSS JOIN {table} AS _t WHERE {room} AND {has_key}{condition}"
            );
            let records = self.records(&["_t"], &from);
            format!("{records}; {COUNT} WHERE changes() > 0")
        });
        let mut body = by_key.collect::<Vec<_>>().join("; ");
        let defaults = self
            .keys
            .iter()
            .flatten()
            .filter(|column| column.has_default_for_null);
        let nulls: Vec<String> = defaults
            .map(|column| format!("new.{} IS NULL", quoted(&column.name)))
            .collect();
        if !nulls.is_empty() {
            let nulls = nulls.join(" OR ");
            body += &format!("; {}; {COUNT} WHERE {nulls}", self.any_row(&nulls));
        }
        body
    }

    /// Records a change to all rows, under a condition.
    fn any_row(&self, condition: &str) -> String {
        let name = text(&self.name.to_ascii_lowercase());
        format!(
            "INSERT INTO {CHANGES} (n, t, p) SELECT {FEED}.n + 1, {name}, -1 FROM {FEED} WHERE {} AND ({condition})",
            has_room()
        )
    }

    /// Statements that record the values of one row, or of the old and the new row of an update;
    /// `from` follows the columns.
    fn records(&self, rows: &[&str], from: &str) -> String {
        let name = text(&self.name.to_ascii_lowercase());
        let is_update = rows.len() == 2;
        let values: Vec<&RecordedColumn> = self.values().collect();
        let parts = values.len().div_ceil(VALUES).max(1);
        let statements = (0..parts).map(|part| {
            let recorded = values.iter().skip(part * VALUES).take(VALUES);
            let (mut columns, mut expressions) = (String::new(), String::new());
            if is_update && part == 0 {
                columns += ", same";
                expressions += &format!(", {}", self.same_columns());
            }
            for row in rows {
                let kind = if *row == "new" { 'w' } else { 'o' };
                for (index, column) in recorded.clone().enumerate() {
                    columns += &format!(", {kind}{index}");
                    let value = match is_update && *row == "new" {
                        true => column.new_value(),
                        false => column.value(row),
                    };
                    expressions += &format!(", {value}");
                }
            }
            format!(
                "INSERT INTO {CHANGES} (n, t, p{columns}) SELECT {FEED}.n + 1, {name}, {part}{expressions} {from}"
            )
        });
        statements.collect::<Vec<_>>().join("; ")
    }

    /// The columns that an update leaves as they are, of those without values in the first part of
    /// the record: the column at place `n` is bit `n`. Null if the rowid is another one.
    fn same_columns(&self) -> String {
        let compared: Vec<ValueLocation> =
            self.values().take(VALUES).map(|column| column.at).collect();
        let bits = self.columns.iter().filter_map(|column| match column.at {
            ValueLocation::Column(place) if place < 63 && !compared.contains(&column.at) => {
                let bit = 1_i64 << place;
                // As a condition it is left at the first part that decides; as a value it is not.
                Some(format!(
                    "CASE WHEN {} THEN {bit} ELSE 0 END",
                    column.is_same()
                ))
            }
            _ => None,
        });
        let mut same = bits.collect::<Vec<_>>().join(" + ");
        if same.is_empty() {
            same = "0".to_owned();
        }
        match &self.rowid {
            Some(rowid) => format!("CASE WHEN new.{rowid} IS old.{rowid} THEN {same} ELSE -1 END"),
            None => same,
        }
    }
}

/// No transaction of a server runs: the hook of its connection sees what it changes.
const RECORDS: &str = "(SELECT own FROM _millpond_feed) IS NULL";

/// Counts a change, whether it was recorded or not.
const COUNT: &str = "UPDATE _millpond_feed SET n = n + 1";

/// The condition under which the table of changes is not full.
fn has_room() -> String {
    format!("{FEED}.n - {FEED}.floor < {MAX_UNREAD}")
}

/// The names that a rowid has, unless a column has them.
const ROWID_NAMES: [&str; 3] = ["rowid", "_rowid_", "oid"];

/// A name by which the rowid can be read and written.
fn rowid_name(table: &CatalogTable) -> Option<String> {
    if !table.has_rowid {
        return None;
    }
    if let Some(index) = table.rowid_column {
        return Some(quoted(&table.columns[index].name));
    }
    let is_free = |name: &&str| table.columns.iter().all(|column| column.name != **name);
    ROWID_NAMES
        .iter()
        .find(|name| is_free(name))
        .map(|name| (*name).to_owned())
}

/// True if a trigger of the owner's may hide changes from other triggers.
///
/// `raise(ignore)` after a change keeps the change and skips the triggers that follow. A trigger
/// before a change that writes may change the keys that were compared already.
fn has_trigger_that_hides_changes(connection: &Connection, table: &str) -> rusqlite::Result<bool> {
    let mut triggers = connection.prepare_cached(
        "SELECT sql FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = ?1 COLLATE nocase
         AND name NOT LIKE '\\_millpond\\_%' ESCAPE '\\'",
    )?;
    let triggers: Vec<String> = triggers
        .query_map([table], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    Ok(triggers.iter().any(|sql| hides_changes(sql)))
}

fn hides_changes(sql: &str) -> bool {
    let lower = sql.to_ascii_lowercase();
    let words: Vec<&str> = lower
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .collect();
    let body = words.iter().position(|word| *word == "begin").unwrap_or(0);
    let writes = words[body..]
        .iter()
        .any(|word| matches!(*word, "insert" | "update" | "delete" | "replace"));
    // A quoted name or a comment may contain the word, so only a plain text is read.
    let mut declared = lower.split_ascii_whitespace().skip(2);
    let is_plain = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let is_after = declared.next().is_some_and(is_plain) && declared.next() == Some("after");
    words.contains(&"ignore") || (writes && !is_after)
}

fn text(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triggers_that_may_hide_changes_are_found() {
        for harmless in [
            "CREATE TRIGGER a AFTER INSERT ON t BEGIN update u set x = 1; END",
            "CREATE TRIGGER a BEFORE INSERT ON t BEGIN select raise(abort, 'no'); END",
        ] {
            assert!(!hides_changes(harmless), "{harmless}");
        }
        for harmful in [
            "CREATE TRIGGER a AFTER INSERT ON t BEGIN select raise(ignore); END",
            "CREATE TRIGGER a BEFORE UPDATE ON t BEGIN update t set x = 1; END",
            "CREATE TRIGGER a UPDATE ON t BEGIN update t set x = 1; END",
            "CREATE TRIGGER \"after\" UPDATE ON t BEGIN update t set x = 1; END",
            "CREATE TRIGGER \"x after\" UPDATE ON t BEGIN update t set x = 1; END",
        ] {
            assert!(hides_changes(harmful), "{harmful}");
        }
    }
}
