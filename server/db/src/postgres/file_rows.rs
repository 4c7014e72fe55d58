//! Applies files of rows to PostgreSQL, in a session of its own: nodes notice the change through
//! the feed, as that of any other program.

use super::key_owners::key_owners;
use super::options::PostgresOptions;
use super::refused_row::refused_row;
use super::session::{PostgresSession, TextRow};
use crate::data_file::{
    AppliedFile, FILE_COLUMN, KEY_COLUMN, TableColumn, TableColumnKind, literal, quoted,
};
use crate::file_set::{FileSet, RowsOfFiles};
use crate::file_target::FileTarget;
use crate::{ConstraintKind, Error, Value};

const TABLE: &str = "create table _millpond_data (\"file\" text primary key, \"table\" text not null, \
    hash text not null, version bigint not null, applied_at timestamptz not null default now())";

/// One node at a time applies files: "data" in ASCII.
const LOCK: i64 = 0x6461_7461;

/// Table in which the rows of a file are gathered before they are compared.
const STAGE: &str = "pg_temp._millpond_stage";

/// The rows and the bytes of values that are sent at once, at most.
const ROWS_AT_ONCE: usize = 1_000;
const BYTES_AT_ONCE: usize = 1 << 20;

fn columns(session: &mut PostgresSession, table: &str) -> Result<Vec<TableColumn>, Error> {
    let sql = "select a.attname::text, pg_catalog.format_type(a.atttypid, a.atttypmod), \
        t.typname::text, a.attnotnull::text, \
        coalesce((select a.attnum = any (i.indkey) from pg_catalog.pg_index i \
            where i.indrelid = a.attrelid and i.indisprimary), false)::text, \
        (select pg_catalog.pg_get_expr(d.adbin, d.adrelid) from pg_catalog.pg_attrdef d \
            where d.adrelid = a.attrelid and d.adnum = a.attnum) \
        from pg_catalog.pg_attribute a join pg_catalog.pg_type t on t.oid = a.atttypid \
        join pg_catalog.pg_class c on c.oid = a.attrelid \
        where a.attrelid = pg_catalog.to_regclass(pg_catalog.quote_ident($1)) \
        and c.relkind in ('r', 'p') and a.attnum > 0 and not a.attisdropped \
        and a.attgenerated = '' order by a.attnum";
    let rows = session.query(sql, &[table])?;
    let column = |row: TextRow| {
        let mut values = row.into_iter().map(Option::unwrap_or_default);
        let mut next = || values.next().unwrap_or_default();
        let (name, type_name) = (next(), next());
        TableColumn {
            name,
            type_name,
            kind: kind(&next()),
            not_null: next() == "true",
            is_key: next() == "true",
            default: Some(next()).filter(|default| !default.is_empty()),
        }
    };
    Ok(rows.into_iter().map(column).collect())
}

fn kind(type_name: &str) -> TableColumnKind {
    match type_name {
        "int2" | "int4" | "int8" => TableColumnKind::Integer,
        "float4" | "float8" => TableColumnKind::Real,
        "bool" => TableColumnKind::Boolean,
        "text" | "varchar" | "bpchar" | "citext" => TableColumnKind::Text,
        "json" | "jsonb" => TableColumnKind::Json,
        "timestamptz" | "timestamp" => TableColumnKind::Moment,
        _ => TableColumnKind::Other,
    }
}

fn is_recorded(session: &mut PostgresSession) -> Result<bool, Error> {
    let found = session.query("select pg_catalog.to_regclass('_millpond_data')::text", &[])?;
    Ok(found.first().is_some_and(|row| row[0].is_some()))
}

fn record(row: TextRow) -> AppliedFile {
    let mut values = row.into_iter().map(Option::unwrap_or_default);
    let mut next = || values.next().unwrap_or_default();
    let (file, table, stored) = (next(), next(), next());
    let version = next().parse().unwrap_or(0);
    AppliedFile::read(file, table, &stored, version)
}

pub(crate) fn open(options: &PostgresOptions) -> Result<PostgresSession, Error> {
    let mut session = PostgresSession::open(options)?;
    session.run(
        "set default_transaction_read_only = off; set timezone = 'UTC'; \
         set datestyle = 'ISO, YMD'; set standard_conforming_strings = on",
    )?;
    Ok(session)
}

/// True if a row may be to blame, without other tables.
const fn is_refusal(error: &Error) -> bool {
    use ConstraintKind as Kind;
    match error {
        Error::Constraint { kind, .. } => !matches!(
            kind,
            Kind::ForeignKey | Kind::StillReferenced | Kind::EitherReference
        ),
        Error::Value { .. } | Error::Sql { .. } | Error::Usage { .. } => true,
        _ => false,
    }
}

impl FileTarget for PostgresSession {
    fn is_shared(&self) -> bool {
        true
    }

    fn begin(&mut self) -> Result<(), Error> {
        self.run("begin isolation level read committed read write")?;
        self.run(&format!("select pg_catalog.pg_advisory_xact_lock({LOCK})"))?;
        match is_recorded(self)? {
            true => Ok(()),
            false => self.run(TABLE),
        }
    }

    fn end(&mut self, is_good: bool) -> Result<(), Error> {
        self.run(if is_good { "commit" } else { "rollback" })
    }

    fn columns(&mut self, table: &str) -> Result<Vec<TableColumn>, Error> {
        columns(self, table)
    }

    fn records(&mut self, names: Option<&[&str]>) -> Result<Vec<AppliedFile>, Error> {
        if !is_recorded(self)? {
            return Ok(Vec::new());
        }
        let all = "select \"file\", \"table\", hash, version::text from _millpond_data";
        let rows = match names {
            None => self.query(all, &[])?,
            Some(names) => {
                let names = serde_json::Value::from(names).to_string();
                let of = "(select pg_catalog.json_array_elements_text($1::json))";
                self.query(&format!("{all} where \"file\" in {of}"), &[&names])?
            }
        };
        Ok(rows.into_iter().map(record).collect())
    }

    /// No file is forgotten here.
    fn remember(&mut self, records: Vec<AppliedFile>, _: &[&str]) -> Result<(), Error> {
        if records.is_empty() {
            return Ok(());
        }
        let mut lists: [Vec<Option<String>>; 4] = Default::default();
        for record in records {
            let (stored, version) = (record.stored(), record.version.to_string());
            let values = [record.file, record.table, stored, version];
            for (list, value) in lists.iter_mut().zip(values) {
                list.push(Some(value));
            }
        }
        fill(
            self,
            "insert into _millpond_data (\"file\", \"table\", hash, version) \
             select * from unnest($1::text[], $2::text[], $3::text[], $4::text[]::bigint[]) \
             on conflict (\"file\") do update set \"table\" = excluded.\"table\", \
             hash = excluded.hash, version = excluded.version, applied_at = case \
             when _millpond_data.hash = excluded.hash then _millpond_data.applied_at else now() end",
            &lists,
        )
    }

    fn insert_new(&mut self, _: &mut FileSet<'_>) -> Result<Option<Vec<u64>>, Error> {
        Ok(None)
    }

    fn stage(&mut self, set: &mut FileSet<'_>) -> Result<&'static str, Error> {
        let types = unbounded_types(self, set)?;
        create_stage(self, set, &types)?;
        let sql = insertion(STAGE, set, &types, stage_file(set));
        gather(self, &sql, set, ROWS_AT_ONCE, u64::MAX)?;
        refuse_cut(self, &types, set)?;
        number_or_refuse_equal(self, set)?;
        let keys = stage_key(set);
        self.run(&format!(
            "create unique index on {STAGE} ({keys}); analyze {STAGE}"
        ))?;
        Ok(STAGE)
    }

    /// Equality of a type may be coarser (`citext`), or there may be none (`json`). A value is
    /// compared as the column keeps it: `1.5` is `1.50` in a column of two decimals.
    fn exact(&self, column: &TableColumn, name: &str) -> String {
        match column.kind {
            TableColumnKind::Integer
            | TableColumnKind::Real
            | TableColumnKind::Boolean
            | TableColumnKind::Moment => name.to_owned(),
            TableColumnKind::Text | TableColumnKind::Json | TableColumnKind::Other => {
                let kept = &column.type_name;
                format!("{name}::{kept}::text collate \"C\"")
            }
        }
    }

    fn names(&mut self, sql: &str) -> Result<Vec<String>, Error> {
        let rows = self.query(sql, &[])?;
        Ok(rows.into_iter().flatten().flatten().collect())
    }

    fn change(&mut self, sql: &str, files: &[&str]) -> Result<Vec<u64>, Error> {
        if files.len() == 1 {
            return Ok(vec![self.fill(sql, &[])?]);
        }
        let own = quoted(FILE_COLUMN);
        let sql = format!(
            "with changed as ({sql} returning t.{own}) \
             select {own}::text, count(*)::text from changed group by {own}"
        );
        let mut found = RowsOfFiles::new(files);
        for row in self.query(&sql, &[])? {
            if let [Some(name), Some(rows)] = &*row {
                found.add(name, rows.parse().unwrap_or(0));
            }
        }
        Ok(found.counts)
    }

    fn refused_row(&mut self, set: &mut FileSet<'_>, error: &Error, _: bool) -> Option<Error> {
        if !is_refusal(error) {
            return None;
        }
        self.run("rollback").ok()?;
        refused_row(self, set)
    }

    fn key_owners(
        &mut self,
        table: &str,
        columns: &[TableColumn],
        keys: &[Vec<Value>],
    ) -> Result<Vec<Option<String>>, Error> {
        key_owners(self, table, columns, keys)
    }
}

/// The file of a row that is gathered: only where there are several.
fn stage_file<'a>(set: &FileSet<'_>) -> RowFile<'a> {
    match set.is_several() {
        true => RowFile::Given,
        false => RowFile::None,
    }
}

/// Returns the columns that tell apart the rows that are gathered.
fn stage_key(set: &FileSet<'_>) -> String {
    let keys = set.columns.iter().filter(|column| column.is_key);
    let keys = keys.map(|column| quoted(&column.name));
    let own = set.is_several().then(|| quoted(FILE_COLUMN));
    keys.chain(own).collect::<Vec<_>>().join(", ")
}

fn create_stage(
    session: &mut PostgresSession,
    set: &FileSet<'_>,
    types: &[String],
) -> Result<(), Error> {
    let columns = set.columns.iter().map(|column| quoted(&column.name));
    let columns = columns
        .zip(types)
        .map(|(name, wide)| format!("{name}::{wide} as {name}"));
    let own = set.is_several().then(|| quoted(FILE_COLUMN));
    let columns: Vec<String> = columns.chain(own).collect();
    session.run(&format!(
        "create temporary table _millpond_stage on commit drop as select {} from {} limit 0",
        columns.join(", "),
        quoted(set.table)
    ))
}

/// Gives equal rows without a key of their own numbers; other rows must have different keys.
fn number_or_refuse_equal(session: &mut PostgresSession, set: &FileSet<'_>) -> Result<(), Error> {
    if set.content_key().is_some() {
        let key = quoted(KEY_COLUMN);
        return session.run(&format!(
            "update {STAGE} as s set {key} = s.{key} || '-' || d.n from (select ctid as place, \
             row_number() over (partition by {key}) as n from {STAGE}) as d \
             where d.place = s.ctid and d.n > 1"
        ));
    }
    let keys = stage_key(set);
    let twice =
        format!("select ({keys})::text from {STAGE} group by {keys} having count(*) > 1 limit 1");
    match session.query(&twice, &[])?.first() {
        None => Ok(()),
        Some(row) => {
            let key = row[0].as_deref().unwrap_or_default();
            Err(Error::usage(format!(
                "two rows have the same {keys}: {key}"
            )))
        }
    }
}

/// The type of each column without a bound on lengths and digits, and below its domains: a cast to
/// the type itself would cut without a word.
pub(super) fn unbounded_types(
    session: &mut PostgresSession,
    set: &FileSet<'_>,
) -> Result<Vec<String>, Error> {
    let sql = "with recursive below (name, type) as ( \
            select attname, atttypid from pg_catalog.pg_attribute where attnum > 0 \
            and attrelid = pg_catalog.to_regclass(pg_catalog.quote_ident($1)) \
            union all select name, typbasetype from below join pg_catalog.pg_type on oid = type \
            where typtype = 'd') \
        select name::text, pg_catalog.format_type(type, -1) from below \
        join pg_catalog.pg_type on oid = type where typtype <> 'd'";
    let rows = session.query(sql, &[set.table])?;
    let column = |column: &TableColumn| {
        let row = rows
            .iter()
            .find(|row| row[0].as_deref() == Some(&*column.name));
        let found = row.and_then(|row| row[1].clone());
        found.unwrap_or_else(|| column.type_name.clone())
    };
    Ok(set.columns.iter().map(column).collect())
}

/// Refuses a value that the type of its column would cut, pad or round.
fn refuse_cut(
    session: &mut PostgresSession,
    types: &[String],
    set: &FileSet<'_>,
) -> Result<(), Error> {
    for (column, wide) in set.columns.iter().zip(types) {
        let (name, narrow) = (quoted(&column.name), &column.type_name);
        if narrow == wide {
            continue;
        }
        let sql = format!(
            "select {name}::text from {STAGE} where {name} is distinct from {name}::{narrow} limit 1"
        );
        if let Some(row) = session.query(&sql, &[])?.first() {
            let value: String = row[0]
                .as_deref()
                .unwrap_or_default()
                .chars()
                .take(60)
                .collect();
            return Err(Error::usage(format!(
                "{} is {value:?}, which {narrow} does not keep as it is",
                column.name
            )));
        }
    }
    Ok(())
}

/// Value for the column of its file that a row is put in with.
#[derive(Clone, Copy)]
pub(super) enum RowFile<'a> {
    /// Nothing: there is no such column.
    None,
    /// This name.
    One(&'a str),
    /// The name that comes with its values.
    Given,
}

/// The statement that puts rows into a table.
pub(super) fn insertion(
    into: &str,
    set: &FileSet<'_>,
    types: &[String],
    file: RowFile<'_>,
) -> String {
    let width = set.columns.len();
    let own = match file {
        RowFile::None => None,
        RowFile::One(name) => Some(literal(name)),
        RowFile::Given => Some(format!("u.c{width}")),
    };
    let lists = width + usize::from(matches!(file, RowFile::Given));
    let names = set.columns.iter().map(|column| quoted(&column.name));
    let names = names.chain(own.is_some().then(|| quoted(FILE_COLUMN)));
    let types = types.iter().enumerate();
    let values = types.map(|(index, type_name)| format!("u.c{index}::{type_name}"));
    let joined = |parts: Vec<String>| parts.join(", ");
    format!(
        "insert into {into} ({}) select {} from unnest({}) as u({})",
        joined(names.collect()),
        joined(values.chain(own).collect()),
        joined((1..=lists).map(|list| format!("${list}::text[]")).collect()),
        joined((0..lists).map(|list| format!("c{list}")).collect()),
    )
}

/// Puts the rows in by the statement, `at_once` of them in one step, and not more than `limit`.
pub(super) fn gather(
    session: &mut PostgresSession,
    sql: &str,
    set: &mut FileSet<'_>,
    at_once: usize,
    limit: u64,
) -> Result<(), Error> {
    let names = usize::from(set.is_several());
    let mut batch: Vec<Vec<Option<String>>> = vec![Vec::new(); set.columns.len() + names];
    let (mut bytes, mut rows) = (0, 0);
    for file in &mut set.files {
        let name = (names > 0).then(|| Some(file.name.to_owned()));
        file.source.rows(&mut |row| {
            rows += 1;
            if rows > limit {
                return Ok(());
            }
            let values = row.iter().map(text).chain(name.clone());
            for (list, value) in batch.iter_mut().zip(values) {
                bytes += value.as_ref().map_or(0, String::len);
                list.push(value);
            }
            if batch[0].len() >= at_once || bytes >= BYTES_AT_ONCE {
                send(session, sql, &mut batch)?;
                bytes = 0;
            }
            Ok(())
        })?;
    }
    send(session, sql, &mut batch)
}

fn send(
    session: &mut PostgresSession,
    sql: &str,
    batch: &mut [Vec<Option<String>>],
) -> Result<(), Error> {
    if batch[0].is_empty() {
        return Ok(());
    }
    fill(session, sql, batch)?;
    batch.iter_mut().for_each(Vec::clear);
    Ok(())
}

/// Runs a statement whose parameters are lists of texts.
fn fill(
    session: &mut PostgresSession,
    sql: &str,
    lists: &[Vec<Option<String>>],
) -> Result<(), Error> {
    let lists: Vec<Vec<Option<&str>>> = lists
        .iter()
        .map(|list| list.iter().map(Option::as_deref).collect())
        .collect();
    session.fill(sql, &lists).map(drop)
}

/// A value as PostgreSQL reads it.
pub(super) fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Integer(integer) => Some(integer.to_string()),
        Value::Real(real) => Some(real.to_string()),
        Value::Text(text) => Some(text.as_ref().to_owned()),
        Value::Boolean(truth) => Some(truth.to_string()),
        Value::Json(json) => Some(json.to_string()),
        // No file gives bytes.
        Value::Blob(_) => None,
    }
}
