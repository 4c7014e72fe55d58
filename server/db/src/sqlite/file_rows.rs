//! Applies files of rows to SQLite, in a transaction of the writer.

use std::collections::HashMap;
use std::sync::Arc;

use base_clock::Boottime;
use rusqlite::{Connection, OptionalExtension, Statement, params};

use super::session::WriterSession;
use super::writer::Writer;
use crate::data_file::{
    AppliedFile, FILE_COLUMN, FileChange, FileContent, FileDecision, FileOutcome, FileState,
    RowCounts, Statements, TableColumn, TableColumnKind, literal, numbered_key, quoted,
};
use crate::sqlite::database::SqliteShared;
use crate::{Error, Value};

const TABLE: &str = "create table if not exists _millpond_data (\"file\" text primary key, \
    \"table\" text not null, hash text not null, version integer not null, applied_at text not null)";

/// Where the rows of a file are gathered before they are compared.
const STAGE: &str = "temp._millpond_stage";

/// Rows between two looks at the clock.
const ROWS_AT_ONCE: u64 = 256;

/// The number of different hashes that more than one row has. More are refused.
const MAX_REPEATED: usize = 1_000_000;

fn fail(error: &rusqlite::Error, sql: &str) -> Error {
    Error::from_sqlite(error, sql)
}

/// The columns of a table; none if there is no such table.
pub(crate) fn columns(connection: &Connection, table: &str) -> Result<Vec<TableColumn>, Error> {
    // Hidden columns are generated ones.
    let sql = "select name, type, \"notnull\", pk from pragma_table_xinfo(?1) where hidden = 0 \
        and exists (select 1 from sqlite_schema where type = 'table' and name = ?1)";
    let read = || {
        let mut statement = connection.prepare_cached(sql)?;
        let rows = statement.query_map([table], |row| {
            let type_name: String = row.get(1)?;
            Ok(TableColumn {
                name: row.get(0)?,
                kind: kind(&type_name),
                type_name,
                not_null: row.get(2)?,
                is_key: row.get::<_, i64>(3)? > 0,
            })
        })?;
        rows.collect::<rusqlite::Result<Vec<_>>>()
    };
    read().map_err(|error| fail(&error, sql))
}

/// By SQLite's rules of affinity.
fn kind(type_name: &str) -> TableColumnKind {
    let name = type_name.to_ascii_lowercase();
    let has = |part: &str| name.contains(part);
    if has("bool") {
        TableColumnKind::Boolean
    } else if name.starts_with("datetime") || name.starts_with("timestamp") {
        TableColumnKind::Moment
    } else if has("int") {
        TableColumnKind::Integer
    } else if has("char") || has("clob") || has("text") {
        TableColumnKind::Text
    } else if has("json") {
        TableColumnKind::Json
    } else if has("real") || has("floa") || has("doub") {
        TableColumnKind::Real
    } else {
        TableColumnKind::Other
    }
}

/// The files that were applied; of one name, if it is given.
pub(crate) fn applied(
    connection: &Connection,
    file: Option<&str>,
) -> Result<Vec<AppliedFile>, Error> {
    let known = "select 1 from sqlite_schema where name = '_millpond_data'";
    let is_known = connection.query_row(known, [], |_| Ok(())).optional();
    if is_known.map_err(|error| fail(&error, known))?.is_none() {
        return Ok(Vec::new());
    }
    let sql = match file {
        Some(_) => {
            "select \"file\", \"table\", hash, version from _millpond_data where \"file\" = ?1"
        }
        None => "select \"file\", \"table\", hash, version from _millpond_data where ?1 is null",
    };
    let read = || {
        let mut statement = connection.prepare_cached(sql)?;
        let rows = statement.query_map([file], |row| {
            Ok(AppliedFile {
                file: row.get(0)?,
                table: row.get(1)?,
                hash: row.get(2)?,
                version: row.get(3)?,
            })
        })?;
        rows.collect::<rusqlite::Result<Vec<_>>>()
    };
    read().map_err(|error| fail(&error, sql))
}

impl Writer {
    /// The columns of a table.
    pub(crate) fn table_columns(&mut self, table: &str) -> Result<Vec<TableColumn>, Error> {
        self.run_transaction(|session, _| columns(session.connection(), table))
    }

    /// The files that were applied.
    pub(crate) fn applied_files(&mut self) -> Result<Vec<AppliedFile>, Error> {
        self.run_transaction(|session, _| applied(session.connection(), None))
    }

    /// Applies one file in a transaction.
    pub(crate) fn apply_file(&mut self, change: &mut FileChange) -> Result<FileOutcome, Error> {
        self.run_transaction(|session, shared| session.apply_file(shared, change))
    }
}

impl WriterSession {
    fn apply_file(
        &mut self,
        shared: &SqliteShared,
        change: &mut FileChange,
    ) -> Result<FileOutcome, Error> {
        run(self.connection(), TABLE)?;
        // Rows of one file may refer to each other.
        run(self.connection(), "pragma defer_foreign_keys = on")?;
        let known = applied(self.connection(), Some(&change.file))?;
        let version = match change.decision(known.first(), true) {
            FileDecision::Same => return Ok(FileOutcome::Same),
            FileDecision::Older => return Ok(FileOutcome::Older),
            FileDecision::Apply(version) => version,
        };
        let FileChange {
            file,
            table,
            hash,
            state,
            ..
        } = change;
        let counts = match state {
            FileState::Gone | FileState::Known => RowCounts {
                deleted: delete_all(self.connection(), table, file)?,
                ..RowCounts::default()
            },
            // A file without rows may have no columns.
            FileState::Rows(content) if content.columns.is_empty() => RowCounts {
                deleted: delete_all(self.connection(), table, file)?,
                ..RowCounts::default()
            },
            FileState::Rows(content) => self.replace_rows(shared, table, file, content)?,
        };
        match state {
            FileState::Rows(_) => record(self.connection(), file, table, hash, version)?,
            FileState::Gone | FileState::Known => forget(self.connection(), file)?,
        }
        Ok(FileOutcome::Applied(counts))
    }

    /// Rows of a new file go straight in; others are gathered beside the table and compared.
    fn replace_rows(
        &mut self,
        shared: &SqliteShared,
        table: &str,
        file: &str,
        content: &mut FileContent,
    ) -> Result<RowCounts, Error> {
        let sql = format!(
            "select 1 from {} where {} = ?1 limit 1",
            quoted(table),
            quoted(FILE_COLUMN)
        );
        let has_rows = self
            .connection()
            .query_row(&sql, [file], |_| Ok(()))
            .optional()
            .map_err(|error| fail(&error, &sql))?;
        if has_rows.is_none() {
            return Ok(RowCounts {
                inserted: self.fill(shared, &quoted(table), Some(file), content)?,
                ..RowCounts::default()
            });
        }
        let names = name_list(content);
        run(self.connection(), &format!("drop table if exists {STAGE}"))?;
        let table_name = quoted(table);
        run(
            self.connection(),
            &format!("create table {STAGE} as select {names} from main.{table_name} limit 0"),
        )?;
        let collations = key_collations(self.connection(), table)?;
        let keys: Vec<String> = content
            .columns
            .iter()
            .filter(|column| column.is_key)
            .map(|column| match collations.get(&column.name) {
                Some(collation) => {
                    format!("{} collate {}", quoted(&column.name), quoted(collation))
                }
                None => quoted(&column.name),
            })
            .collect();
        let index = format!(
            "create unique index temp._millpond_stage_key on _millpond_stage ({})",
            keys.join(", ")
        );
        run(self.connection(), &index)?;
        self.fill(shared, STAGE, None, content)?;
        let exact = |_: &TableColumn, name: &str| format!("{name} collate binary");
        let statements = content.statements(table, STAGE, &literal(file), exact);
        let counts = exchange(self.connection(), &statements);
        let counts = counts.map_err(|error| {
            let is_refused = matches!(error, Error::Constraint { .. });
            let row = is_refused.then(|| self.refused_row(shared, table, file, content));
            row.flatten().unwrap_or(error)
        })?;
        run(self.connection(), &format!("drop table {STAGE}"))?;
        Ok(counts)
    }

    /// The error of the row that the table refuses: rows that are put in all at once are not told
    /// apart. They are put in one by one, in the transaction that has failed in any case.
    fn refused_row(
        &mut self,
        shared: &SqliteShared,
        table: &str,
        file: &str,
        content: &mut FileContent,
    ) -> Option<Error> {
        // `on conflict rollback` has ended the transaction.
        if self.connection().is_autocommit() {
            return None;
        }
        delete_all(self.connection(), table, file).ok()?;
        self.fill(shared, &quoted(table), Some(file), content).err()
    }

    /// Inserts the rows of a file; gives their number.
    fn fill(
        &mut self,
        shared: &SqliteShared,
        into: &str,
        file: Option<&str>,
        content: &mut FileContent,
    ) -> Result<u64, Error> {
        let marks = vec!["?"; content.columns.len()].join(", ");
        let (own, value) = match file {
            Some(file) => (
                format!(", {}", quoted(FILE_COLUMN)),
                format!(", {}", literal(file)),
            ),
            None => (String::new(), String::new()),
        };
        let key = content.content_key();
        let conflict = match key {
            Some(_) => " on conflict do nothing",
            None => "",
        };
        let sql = format!(
            "insert into {into} ({}{own}) values ({marks}{value}){conflict}",
            name_list(content)
        );
        let mut repeated = Repeated {
            key,
            known: HashMap::new(),
        };
        let poll = shared.options.poll;
        let (mut rows, mut due) = (0, Boottime::now().plus(poll));
        let Self {
            observed,
            vouched_tick,
            file,
            ..
        } = self;
        let mut statement = observed
            .connection()
            .prepare(&sql)
            .map_err(|error| fail(&error, &sql))?;
        content.source.rows(&mut |values| {
            rows += 1;
            repeated.insert(&mut statement, values, &sql)?;
            if rows % ROWS_AT_ONCE == 0 && Boottime::now() >= due {
                vouch(shared, file, vouched_tick)?;
                due = Boottime::now().plus(poll);
            }
            Ok(())
        })?;
        Ok(rows)
    }
}

/// Brings the table to what was gathered.
fn exchange(connection: &Connection, statements: &Statements) -> Result<RowCounts, Error> {
    let update = statements.update.as_ref();
    Ok(RowCounts {
        deleted: run(connection, &statements.delete)?,
        updated: update.map_or(Ok(0), |update| run(connection, update))?,
        inserted: run(connection, &statements.insert)?,
    })
}

/// Says that nothing is missing, in the middle of a transaction of ours: as this connection holds
/// the write lock, no other program can have committed. The event that is open passes, and another
/// begins, which is the commit's (coherence.md, rule 17).
fn vouch(
    shared: &SqliteShared,
    file: &super::file::OpenFile,
    tick: &mut Option<u64>,
) -> Result<(), Error> {
    let sent = Boottime::now();
    if !file.is_at(&shared.options.path) {
        return Err(Error::unavailable(
            "the database file was replaced during the transaction",
        ));
    }
    if let Some(open) = *tick {
        shared.pass(open, sent);
        *tick = Some(shared.ticks.begin());
    }
    Ok(())
}

/// Rows with the same hash get numbers.
struct Repeated {
    /// The place of the hash among the values.
    key: Option<usize>,
    /// The number of rows with each hash, where there are several.
    known: HashMap<Arc<str>, u64>,
}

impl Repeated {
    fn insert(
        &mut self,
        statement: &mut Statement<'_>,
        values: &[Value],
        sql: &str,
    ) -> Result<(), Error> {
        let inserted = insert(statement, values, sql)?;
        let Some(key) = self.key.filter(|_| inserted == 0) else {
            return Ok(());
        };
        let Value::Text(hash) = &values[key] else {
            return Ok(());
        };
        if self.known.len() == MAX_REPEATED && !self.known.contains_key(hash) {
            return Err(Error::usage(format!(
                "more than {MAX_REPEATED} rows are there more than once: give the rows a column id"
            )));
        }
        let number = self.known.entry(hash.clone()).or_insert(1);
        *number += 1;
        let mut values = values.to_vec();
        values[key] = numbered_key(&values[key], *number);
        match insert(statement, &values, sql)? {
            0 => Err(Error::usage(
                "two rows are equal where the table permits one",
            )),
            _ => Ok(()),
        }
    }
}

fn insert(statement: &mut Statement<'_>, values: &[Value], sql: &str) -> Result<usize, Error> {
    let mut run = || {
        for (index, value) in values.iter().enumerate() {
            statement.raw_bind_parameter(index + 1, value)?;
        }
        statement.raw_execute()
    };
    run().map_err(|error| fail(&error, sql))
}

/// How each text of the primary key is compared; nothing for a key that is an integer.
fn key_collations(connection: &Connection, table: &str) -> Result<HashMap<String, String>, Error> {
    let sql = "select part.name, part.coll from pragma_index_list(?1) as list \
        join pragma_index_xinfo(list.name) as part \
        where list.origin = 'pk' and part.key = 1 and part.name is not null";
    let read = || {
        let mut statement = connection.prepare_cached(sql)?;
        let rows = statement.query_map([table], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect::<rusqlite::Result<HashMap<_, _>>>()
    };
    read().map_err(|error| fail(&error, sql))
}

fn name_list(content: &FileContent) -> String {
    let names = content.columns.iter().map(|column| quoted(&column.name));
    names.collect::<Vec<_>>().join(", ")
}

/// Removes the rows of a file that is gone, if its table is still there.
fn delete_all(connection: &Connection, table: &str, file: &str) -> Result<u64, Error> {
    let is_its_table = columns(connection, table)?
        .iter()
        .any(|column| column.name == FILE_COLUMN);
    if !is_its_table {
        return Ok(0);
    }
    run(
        connection,
        &format!(
            "delete from {} where {} = {}",
            quoted(table),
            quoted(FILE_COLUMN),
            literal(file)
        ),
    )
}

/// Remembers a file as applied.
fn record(
    connection: &Connection,
    file: &str,
    table: &str,
    hash: &str,
    version: i64,
) -> Result<(), Error> {
    let sql = "insert or replace into _millpond_data values (?1, ?2, ?3, ?4, datetime('now'))";
    let recorded = connection
        .prepare_cached(sql)
        .and_then(|mut record| record.execute(params![file, table, hash, version]));
    recorded.map(drop).map_err(|error| fail(&error, sql))
}

/// Forgets a file that has no rows any more.
fn forget(connection: &Connection, file: &str) -> Result<(), Error> {
    let sql = "delete from _millpond_data where \"file\" = ?1";
    let forgotten = connection
        .prepare_cached(sql)
        .and_then(|mut forget| forget.execute([file]));
    forgotten.map(drop).map_err(|error| fail(&error, sql))
}

/// Runs a statement that gives no rows that matter; gives the number of changed rows.
fn run(connection: &Connection, sql: &str) -> Result<u64, Error> {
    let run = || {
        let mut statement = connection.prepare(sql)?;
        let mut rows = statement.raw_query();
        while rows.next()?.is_some() {}
        drop(rows);
        Ok(connection.changes())
    };
    run().map_err(|error: rusqlite::Error| fail(&error, sql))
}
