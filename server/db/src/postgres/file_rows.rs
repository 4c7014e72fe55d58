//! Applies files of rows to PostgreSQL, in a session of its own: nodes notice the change through
//! the feed, as that of any other program.

use super::options::PostgresOptions;
use super::refused_row::refused_row;
use super::session::{PostgresSession, TextRow};
use crate::data_file::{
    AppliedFile, FILE_COLUMN, FileChange, FileContent, FileDecision, FileOutcome, FileState,
    KEY_COLUMN, RowCounts, TableColumn, TableColumnKind, literal, quoted,
};
use crate::{ConstraintKind, Error, Value};

const TABLE: &str = "create table _millpond_data (\"file\" text primary key, \"table\" text not null, \
    hash text not null, version bigint not null, applied_at timestamptz not null default now())";

/// Nodes apply one file at a time: "data" in ASCII.
const LOCK: i64 = 0x6461_7461;

/// Where the rows of a file are gathered before they are compared.
const STAGE: &str = "pg_temp._millpond_stage";

/// The rows and the bytes of values that are sent at once, at most.
const ROWS_AT_ONCE: usize = 1_000;
const BYTES_AT_ONCE: usize = 1 << 20;

/// The columns of a table; none if there is no such table.
pub(crate) fn columns(
    session: &mut PostgresSession,
    table: &str,
) -> Result<Vec<TableColumn>, Error> {
    let sql = "select a.attname::text, pg_catalog.format_type(a.atttypid, a.atttypmod), \
        t.typname::text, a.attnotnull::text, \
        coalesce((select a.attnum = any (i.indkey) from pg_catalog.pg_index i \
            where i.indrelid = a.attrelid and i.indisprimary), false)::text \
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

/// The files that were applied.
pub(crate) fn applied(session: &mut PostgresSession) -> Result<Vec<AppliedFile>, Error> {
    if !is_recorded(session)? {
        return Ok(Vec::new());
    }
    let rows = session.query(
        "select \"file\", \"table\", hash, version::text from _millpond_data order by \"file\"",
        &[],
    )?;
    Ok(rows.into_iter().map(record).collect())
}

fn is_recorded(session: &mut PostgresSession) -> Result<bool, Error> {
    let found = session.query("select pg_catalog.to_regclass('_millpond_data')::text", &[])?;
    Ok(found.first().is_some_and(|row| row[0].is_some()))
}

fn record(row: TextRow) -> AppliedFile {
    let mut values = row.into_iter().map(Option::unwrap_or_default);
    let mut next = || values.next().unwrap_or_default();
    AppliedFile {
        file: next(),
        table: next(),
        hash: next(),
        version: next().parse().unwrap_or(0),
    }
}

/// A session that writes.
pub(crate) fn open(options: &PostgresOptions) -> Result<PostgresSession, Error> {
    let mut session = PostgresSession::open(options)?;
    session.run(
        "set default_transaction_read_only = off; set timezone = 'UTC'; \
         set datestyle = 'ISO, YMD'; set standard_conforming_strings = on",
    )?;
    Ok(session)
}

/// Applies one file in a transaction.
pub(crate) fn apply(
    session: &mut PostgresSession,
    change: &mut FileChange,
) -> Result<FileOutcome, Error> {
    session.run("begin isolation level read committed read write")?;
    let outcome = in_transaction(session, change);
    match &outcome {
        Ok(_) => session.run("commit")?,
        // Without a connection there is nothing to roll back.
        Err(_) => drop(session.run("rollback")),
    }
    outcome.map_err(|error| match &mut change.state {
        FileState::Rows(content) if is_refusal(&error) => {
            let found = refused_row(session, &change.table, &change.file, content);
            found.unwrap_or(error)
        }
        _ => error,
    })
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

fn in_transaction(
    session: &mut PostgresSession,
    change: &mut FileChange,
) -> Result<FileOutcome, Error> {
    session.run(&format!("select pg_catalog.pg_advisory_xact_lock({LOCK})"))?;
    if !is_recorded(session)? {
        session.run(TABLE)?;
    }
    let known = session.query(
        "select \"file\", \"table\", hash, version::text from _millpond_data where \"file\" = $1",
        &[&change.file],
    )?;
    let known = known.into_iter().next().map(record);
    let version = match change.decision(known.as_ref(), false) {
        FileDecision::Same => {
            raise(session, change, known.as_ref())?;
            return Ok(FileOutcome::Same);
        }
        FileDecision::Older => return Ok(FileOutcome::Older),
        FileDecision::Apply(version) => version,
    };
    let counts = match &mut change.state {
        FileState::Gone | FileState::Known => RowCounts {
            deleted: delete_all(session, &change.table, &change.file)?,
            ..RowCounts::default()
        },
        // A file without rows may have no columns.
        FileState::Rows(content) if content.columns.is_empty() => RowCounts {
            deleted: delete_all(session, &change.table, &change.file)?,
            ..RowCounts::default()
        },
        FileState::Rows(content) => replace_rows(session, &change.table, &change.file, content)?,
    };
    // What is removed is remembered, or a node that still has the file would bring it back.
    session.query(
        "insert into _millpond_data (\"file\", \"table\", hash, version) \
         values ($1, $2, $3, $4::text::bigint) on conflict (\"file\") do update \
         set \"table\" = excluded.\"table\", hash = excluded.hash, version = excluded.version, \
         applied_at = now()",
        &[
            &change.file,
            &change.table,
            &change.hash,
            &version.to_string(),
        ],
    )?;
    Ok(FileOutcome::Applied(counts))
}

/// The content is the same, and this node's file is younger: the record becomes as young, so that
/// a node with an older content stays behind.
fn raise(
    session: &mut PostgresSession,
    change: &FileChange,
    known: Option<&AppliedFile>,
) -> Result<(), Error> {
    if known.is_none_or(|known| known.version >= change.version) {
        return Ok(());
    }
    session.query(
        "update _millpond_data set version = $2::text::bigint where \"file\" = $1",
        &[&change.file, &change.version.to_string()],
    )?;
    Ok(())
}

fn replace_rows(
    session: &mut PostgresSession,
    table: &str,
    file: &str,
    content: &mut FileContent,
) -> Result<RowCounts, Error> {
    let types = unbounded_types(session, table, content)?;
    let columns = content.columns.iter().map(|column| quoted(&column.name));
    let wide: Vec<String> = columns
        .zip(&types)
        .map(|(name, wide)| format!("{name}::{wide} as {name}"))
        .collect();
    session.run(&format!(
        "create temporary table _millpond_stage on commit drop as select {} from {} limit 0",
        wide.join(", "),
        quoted(table)
    ))?;
    let sql = insertion(STAGE, content, &types, None);
    gather(session, &sql, content, ROWS_AT_ONCE, u64::MAX)?;
    refuse_cut(session, &types, content)?;
    let keys: Vec<String> = content
        .columns
        .iter()
        .filter(|column| column.is_key)
        .map(|column| quoted(&column.name))
        .collect();
    let keys = keys.join(", ");
    if content.content_key().is_some() {
        let key = quoted(KEY_COLUMN);
        session.run(&format!(
            "update {STAGE} as s set {key} = s.{key} || '-' || d.n from (select ctid as place, \
             row_number() over (partition by {key}) as n from {STAGE}) as d \
             where d.place = s.ctid and d.n > 1"
        ))?;
    } else {
        let twice = format!(
            "select ({keys})::text from {STAGE} group by {keys} having count(*) > 1 limit 1"
        );
        if let Some(row) = session.query(&twice, &[])?.first() {
            let key = row[0].as_deref().unwrap_or_default();
            return Err(Error::usage(format!(
                "two rows have the same {keys}: {key}"
            )));
        }
    }
    session.run(&format!(
        "create unique index on {STAGE} ({keys}); analyze {STAGE}"
    ))?;
    let statements = content.statements(table, STAGE, &literal(file), exact);
    Ok(RowCounts {
        deleted: count(session, &statements.delete)?,
        updated: statements
            .update
            .as_ref()
            .map_or(Ok(0), |update| count(session, update))?,
        inserted: count(session, &statements.insert)?,
    })
}

/// The type of each column without a bound on lengths and digits, and below its domains: a cast to
/// the type itself would cut without a word.
pub(super) fn unbounded_types(
    session: &mut PostgresSession,
    table: &str,
    content: &FileContent,
) -> Result<Vec<String>, Error> {
    let sql = "with recursive below (name, type) as ( \
            select attname, atttypid from pg_catalog.pg_attribute where attnum > 0 \
            and attrelid = pg_catalog.to_regclass(pg_catalog.quote_ident($1)) \
            union all select name, typbasetype from below join pg_catalog.pg_type on oid = type \
            where typtype = 'd') \
        select name::text, pg_catalog.format_type(type, -1) from below \
        join pg_catalog.pg_type on oid = type where typtype <> 'd'";
    let rows = session.query(sql, &[table])?;
    let column = |column: &TableColumn| {
        let row = rows
            .iter()
            .find(|row| row[0].as_deref() == Some(&*column.name));
        let found = row.and_then(|row| row[1].clone());
        found.unwrap_or_else(|| column.type_name.clone())
    };
    Ok(content.columns.iter().map(column).collect())
}

/// Refuses a value that the type of its column would cut, pad or round.
fn refuse_cut(
    session: &mut PostgresSession,
    types: &[String],
    content: &FileContent,
) -> Result<(), Error> {
    for (column, wide) in content.columns.iter().zip(types) {
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

/// A column as something that differs where its text does. Equality of a type may be coarser
/// (`citext`), or there may be none (`json`). It is compared as the column keeps it: `1.5` is
/// `1.50` in a column of two decimals.
fn exact(column: &TableColumn, name: &str) -> String {
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

/// The statement that puts rows into a table; of a file, if it is given.
pub(super) fn insertion(
    into: &str,
    content: &FileContent,
    types: &[String],
    file: Option<&str>,
) -> String {
    let columns = content.columns.iter().map(|column| quoted(&column.name));
    let names = columns.collect::<Vec<_>>().join(", ");
    let (own, value) = match file {
        Some(file) => (
            format!(", {}", quoted(FILE_COLUMN)),
            format!(", {}", literal(file)),
        ),
        None => (String::new(), String::new()),
    };
    let types = types.iter().enumerate();
    let values: Vec<String> = types
        .map(|(index, type_name)| format!("u.c{index}::{type_name}"))
        .collect();
    let lists: Vec<String> = (1..=content.columns.len())
        .map(|number| format!("${number}::text[]"))
        .collect();
    let aliases: Vec<String> = (0..content.columns.len())
        .map(|index| format!("c{index}"))
        .collect();
    format!(
        "insert into {into} ({names}{own}) select {}{value} from unnest({}) as u({})",
        values.join(", "),
        lists.join(", "),
        aliases.join(", ")
    )
}

/// Puts the rows in by the statement, `at_once` of them in one step, and not more than `limit`.
pub(super) fn gather(
    session: &mut PostgresSession,
    sql: &str,
    content: &mut FileContent,
    at_once: usize,
    limit: u64,
) -> Result<(), Error> {
    let mut batch: Vec<Vec<Option<String>>> = vec![Vec::new(); content.columns.len()];
    let (mut bytes, mut rows) = (0, 0);
    content.source.rows(&mut |row| {
        rows += 1;
        if rows > limit {
            return Ok(());
        }
        for (list, value) in batch.iter_mut().zip(row) {
            let text = text(value);
            bytes += text.as_ref().map_or(0, String::len);
            list.push(text);
        }
        if batch[0].len() >= at_once || bytes >= BYTES_AT_ONCE {
            send(session, sql, &mut batch)?;
            bytes = 0;
        }
        Ok(())
    })?;
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
    let lists: Vec<Vec<Option<&str>>> = batch
        .iter()
        .map(|list| list.iter().map(Option::as_deref).collect())
        .collect();
    session.fill(sql, &lists)?;
    batch.iter_mut().for_each(Vec::clear);
    Ok(())
}

/// A value as PostgreSQL reads it.
fn text(value: &Value) -> Option<String> {
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

fn delete_all(session: &mut PostgresSession, table: &str, file: &str) -> Result<u64, Error> {
    let is_its_table = columns(session, table)?
        .iter()
        .any(|column| column.name == FILE_COLUMN);
    if !is_its_table {
        return Ok(0);
    }
    count(
        session,
        &format!(
            "delete from {} where {} = {}",
            quoted(table),
            quoted(FILE_COLUMN),
            literal(file)
        ),
    )
}

/// Runs a statement; gives the number of changed rows.
fn count(session: &mut PostgresSession, sql: &str) -> Result<u64, Error> {
    session.fill(sql, &[])
}
