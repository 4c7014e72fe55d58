//! Applies files of rows to SQLite, in a transaction of the writer.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Statement, params, params_from_iter};

use super::session::WriterSession;
use crate::data_file::{
    AppliedFile, FILE_COLUMN, RowSource, TableColumn, TableColumnKind, literal, numbered_key,
    quoted,
};
use crate::file_set::{EmptyFiles, FileSet, RowsOfFiles};
use crate::file_target::FileTarget;
use crate::{Error, Value};

const TABLE: &str = "create table if not exists _millpond_data (\"file\" text primary key, \
    \"table\" text not null, hash text not null, version integer not null, applied_at text not null)";

/// Table in which the rows of a file are gathered before they are compared.
const STAGE: &str = "temp._millpond_stage";

/// Rows between two questions whether a heartbeat is due.
const ROWS_AT_ONCE: u64 = 256;

/// The number of different hashes that more than one row has. More are refused.
const MAX_REPEATED: usize = 1_000_000;

fn fail(error: &rusqlite::Error, sql: &str) -> Error {
    Error::from_sqlite(error, sql)
}

fn columns(connection: &Connection, table: &str) -> Result<Vec<TableColumn>, Error> {
    // Hidden columns are generated ones.
    let sql = "select name, type, \"notnull\", pk, dflt_value from pragma_table_xinfo(?1) where hidden = 0 \
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
                default: row.get(4)?,
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

impl FileTarget for WriterSession {
    fn is_shared(&self) -> bool {
        false
    }

    fn begin(&mut self) -> Result<(), Error> {
        run(self.connection(), TABLE)?;
        // Rows of the files may refer to each other.
        run(self.connection(), "pragma defer_foreign_keys = on").map(drop)
    }

    /// The writer ends its transaction itself.
    fn end(&mut self, _: bool) -> Result<(), Error> {
        Ok(())
    }

    fn columns(&mut self, table: &str) -> Result<Vec<TableColumn>, Error> {
        columns(self.connection(), table)
    }

    fn records(&mut self, names: Option<&[&str]>) -> Result<Vec<AppliedFile>, Error> {
        let connection = self.connection();
        let known = "select 1 from sqlite_schema where name = '_millpond_data'";
        let is_known = connection.query_row(known, [], |_| Ok(())).optional();
        if is_known.map_err(|error| fail(&error, known))?.is_none() {
            return Ok(Vec::new());
        }
        let names = names.map(|names| serde_json::Value::from(names).to_string());
        let sql = "select \"file\", \"table\", hash, version from _millpond_data \
            where ?1 is null or \"file\" in (select value from json_each(?1))";
        let read = || {
            let mut statement = connection.prepare_cached(sql)?;
            let rows = statement.query_map([names], |row| {
                let stored: String = row.get(2)?;
                let (file, table) = (row.get(0)?, row.get(1)?);
                Ok(AppliedFile::read(file, table, &stored, row.get(3)?))
            })?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(|error| fail(&error, sql))
    }

    fn remember(&mut self, records: Vec<AppliedFile>, forgotten: &[&str]) -> Result<(), Error> {
        let write =
            "insert or replace into _millpond_data values (?1, ?2, ?3, ?4, datetime('now'))";
        let forget = "delete from _millpond_data where \"file\" = ?1";
        let connection = self.connection();
        let put = |record: AppliedFile| {
            let stored = record.stored();
            let params = params![record.file, record.table, stored, record.version];
            connection.prepare_cached(write)?.execute(params)
        };
        let remove = |file: &&str| connection.prepare_cached(forget)?.execute([*file]);
        let mut written = records.into_iter().map(put);
        let mut removed = forgotten.iter().map(remove);
        let done = written.try_for_each(|it| it.map(drop));
        done.map_err(|error| fail(&error, write))?;
        let done = removed.try_for_each(|it| it.map(drop));
        done.map_err(|error| fail(&error, forget))
    }

    fn insert_new(&mut self, set: &mut FileSet<'_>) -> Result<Option<Vec<u64>>, Error> {
        let table = quoted(set.table);
        let sql = format!(
            "select 1 from {table} as t where {} limit 1",
            set.is_owner()
        );
        let has_rows = self.connection().query_row(&sql, [], |_| Ok(()));
        let has_rows = has_rows.optional().map_err(|error| fail(&error, &sql))?;
        match has_rows {
            None => self.fill(&table, true, set).map(Some),
            Some(()) => Ok(None),
        }
    }

    fn stage(&mut self, set: &mut FileSet<'_>) -> Result<&'static str, Error> {
        self.create_stage(set)?;
        self.fill(STAGE, set.is_several(), set)?;
        Ok(STAGE)
    }

    fn exact(&self, _: &TableColumn, name: &str) -> String {
        format!("{name} collate binary")
    }

    fn names(&mut self, sql: &str) -> Result<Vec<String>, Error> {
        let read = || {
            let mut statement = self.connection().prepare(sql)?;
            let rows = statement.query_map([], |row| row.get(0))?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(|error| fail(&error, sql))
    }

    fn change(&mut self, sql: &str, files: &[&str]) -> Result<Vec<u64>, Error> {
        let connection = self.connection();
        // What a statement returns is held in memory, and one file may have any number of rows.
        if files.len() == 1 {
            return Ok(vec![run(connection, sql)?]);
        }
        let sql = format!("{sql} returning {}", quoted(FILE_COLUMN));
        let mut found = RowsOfFiles::new(files);
        let mut run = || {
            let mut statement = connection.prepare(&sql)?;
            let mut rows = statement.raw_query();
            while let Some(row) = rows.next()? {
                found.add(row.get_ref(0)?.as_str()?, 1);
            }
            Ok(())
        };
        run().map_err(|error: rusqlite::Error| fail(&error, &sql))?;
        Ok(found.counts)
    }

    /// Rows that were put in one by one are told apart already. Others are put in one by one now.
    fn refused_row(
        &mut self,
        set: &mut FileSet<'_>,
        error: &Error,
        is_gathered: bool,
    ) -> Option<Error> {
        // `on conflict rollback` has ended the transaction.
        let is_refused = is_gathered && matches!(error, Error::Constraint { .. });
        if !is_refused || self.connection().is_autocommit() {
            return None;
        }
        let names = set.files.iter().map(|file| file.name).chain(set.leaving());
        let empty = EmptyFiles {
            table: set.table,
            files: names.map(|name| (0, name)).collect(),
        };
        run(self.connection(), &empty.delete()).ok()?;
        self.fill(&quoted(set.table), true, set).err()
    }

    fn key_owners(
        &mut self,
        table: &str,
        columns: &[TableColumn],
        keys: &[Vec<Value>],
    ) -> Result<Vec<Option<String>>, Error> {
        let equal = columns.iter().enumerate();
        let equal = equal.map(|(at, column)| format!("{} = ?{}", quoted(&column.name), at + 1));
        let sql = format!(
            "select {} from {} where {}",
            quoted(FILE_COLUMN),
            quoted(table),
            equal.collect::<Vec<_>>().join(" and ")
        );
        let find = || -> rusqlite::Result<Vec<Option<String>>> {
            let mut statement = self.connection().prepare(&sql)?;
            let mut owner = |key: &Vec<Value>| {
                let found = statement.query_row(params_from_iter(key), |row| row.get(0));
                found.optional().map(Option::flatten)
            };
            keys.iter().map(&mut owner).collect()
        };
        find().map_err(|error| fail(&error, &sql))
    }
}

impl WriterSession {
    /// Makes the table where the rows are gathered. It tells rows apart as their own table does.
    fn create_stage(&self, set: &FileSet<'_>) -> Result<(), Error> {
        let connection = self.connection();
        let own = quoted(FILE_COLUMN);
        let mut names = set.column_list();
        let collations = key_collations(connection, set.table)?;
        let keys = set.columns.iter().filter(|column| column.is_key);
        let mut keys: Vec<String> = keys
            .map(|column| match collations.get(&column.name) {
                Some(collation) => {
                    format!("{} collate {}", quoted(&column.name), quoted(collation))
                }
                None => quoted(&column.name),
            })
            .collect();
        if set.is_several() {
            names = format!("{names}, {own}");
            keys.push(own);
        }
        run(connection, &format!("drop table if exists {STAGE}"))?;
        let table = quoted(set.table);
        let create = format!("create table {STAGE} as select {names} from main.{table} limit 0");
        run(connection, &create)?;
        let index = format!(
            "create unique index temp._millpond_stage_key on _millpond_stage ({})",
            keys.join(", ")
        );
        run(connection, &index).map(drop)
    }

    /// Inserts the rows of the files, with their files' names if they are `named`; gives the number
    /// of rows of each.
    fn fill(&self, into: &str, named: bool, set: &mut FileSet<'_>) -> Result<Vec<u64>, Error> {
        let key = set.content_key();
        let names = set.column_list();
        let marks = vec!["?"; set.columns.len()].join(", ");
        let conflict = match key {
            Some(_) => " on conflict do nothing",
            None => "",
        };
        let own = quoted(FILE_COLUMN);
        let mut counts = Vec::with_capacity(set.files.len());
        for file in &mut set.files {
            let sql = match named {
                true => format!(
                    "insert into {into} ({names}, {own}) values ({marks}, {}){conflict}",
                    literal(file.name)
                ),
                false => format!("insert into {into} ({names}) values ({marks}){conflict}"),
            };
            counts.push(self.insert_rows(&sql, key, file.source)?);
        }
        Ok(counts)
    }

    /// Inserts rows by the statement; gives their number.
    fn insert_rows(
        &self,
        sql: &str,
        key: Option<usize>,
        source: &mut dyn RowSource,
    ) -> Result<u64, Error> {
        let mut repeated = Repeated {
            key,
            known: HashMap::new(),
        };
        let mut rows = 0;
        let connection = self.observed.connection();
        let statement = connection.prepare(sql);
        let mut statement = statement.map_err(|error| fail(&error, sql))?;
        source.rows(&mut |values| {
            rows += 1;
            repeated.insert(&mut statement, values, sql)?;
            // To read a row may take longer than to insert it.
            match rows % ROWS_AT_ONCE {
                0 => self.heartbeats.send_if_due(),
                _ => Ok(()),
            }
        })?;
        Ok(rows)
    }
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
