//! The function behind all triggers, which records what a statement has changed.
//!
//! Nothing of it may ever make a statement of the owner's fail or wait, and it runs with the rights
//! of its owner, for every writer.
//!
//! *Only columns that a statement can select by are looked at*, and only of types that PostgreSQL
//! brings ([`WANTED`]). Counterexample: *The row as JSON: a value of type `json` may hold `\u0000`,
//! which `jsonb` refuses; a picture of 128 MB has no text; and a type of the writer's own may have
//! a cast to `json`, which is a function of his.* Of a text the length is asked first, which does
//! not read it from where long values are stored. What is left cannot fail for what it contains. So
//! there is no EXCEPTION block: it would take a transaction id for each statement, and past 64 of
//! those in a transaction every snapshot of the server is slower.
//!
//! *The columns are read from the catalog each time*, and the statement is built of them.
//! Counterexample: *A list of columns in the function: once one is renamed, every write fails.* A
//! writer holds a lock on the table, so they stay as they are meanwhile.
//!
//! *Every name says its schema*, and the search path has none but PostgreSQL's own: there,
//! operators of the writer's are not found. Counterexample: *With the schema of the tables in it,
//! an operator there that fits the types exactly is taken before one of PostgreSQL's that needs a
//! conversion.*
//!
//! *There is a limit of rows and of bytes*, and who is woken is told at most fifty times in a
//! second: NOTIFY lets the commits of a whole cluster pass one after the other while each waits for
//! its disk. It is not used at all where two-phase commit is possible. Counterexample: *PostgreSQL
//! refuses PREPARE TRANSACTION after NOTIFY.* Then changes are found when the table is next looked
//! at.

use super::objects::{CHANGES, CHANNEL, LOST, MAX_BYTES, WOKEN};
use crate::postgres::catalog::types::{BOOL, INT2, INT4, INT8, TEXT, UUID, VARCHAR};

/// The types of columns that are recorded: all that have a class (`Catalog::class`), `date`,
/// `timestamp` and `timestamptz`, by which rows are ordered, domains over
/// them, and domains over those. To follow domains however deep they are would take a recursive
/// query for each statement, of which the planner thinks that it pays to compile it.
const WANTED: [u32; 10] = [
    BOOL, INT2, INT4, INT8, TEXT, VARCHAR, UUID, 1082, 1114, 1184,
];

/// Rows of one statement; more are recorded as "any row". As many as narrow tags of one family
/// count in one transaction.
const MAX_ROWS: usize = super::super::touched::MAX_NARROW;
/// Bytes of a text; a longer one counts as any value.
const MAX_VALUE: usize = 300;
/// Bytes of what is recorded of a row; a larger one counts as any row. It fits into a page of the
/// table, so nothing is stored beside it, and only the first file of the table need be measured for
/// each statement.
const MAX_CONTENT: usize = 4_096;
/// The least time between two calls to wake up.
const PAUSE_MS: u32 = 20;

/// In the body, the schema of the feed's tables as SQL writes it, and as it stands within a
/// literal.
const NAME: &str = "@schema@";
const LITERAL: &str = "@literal@";

/// The body, for any schema: for [`in_this_schema`] to fill in.
pub(crate) fn body() -> String {
    format!(
        "
#variable_conflict use_variable
declare
  changed bigint := {MAX_ROWS} + 1;
  content text;
  moment bigint;
begin
  if pg_catalog.pg_relation_size('{LITERAL}.{CHANGES}', 'main') > {MAX_BYTES} then
    perform pg_catalog.nextval('{LITERAL}.{LOST}');
  else
    if tg_op = 'INSERT' then
      changed := {few_new};
    elsif tg_op = 'UPDATE' or tg_op = 'DELETE' then
      changed := {few_old};
    end if;
    if changed = 0 then
      return null;
    elsif changed > {MAX_ROWS} then
      insert into {NAME}.{CHANGES} (transaction, relation, content) values (pg_catalog.pg_current_xact_id(), tg_relid, null);
    else
      content := {content};
      if tg_op = 'INSERT' then
        execute {insert} || {new} using pg_catalog.pg_current_xact_id(), tg_relid;
      elsif tg_op = 'UPDATE' then
        execute {insert} || {old} || ' union all ' || {new} using pg_catalog.pg_current_xact_id(), tg_relid;
      else
        execute {insert} || {old} using pg_catalog.pg_current_xact_id(), tg_relid;
      end if;
    end if;
  end if;
  if pg_catalog.current_setting('max_prepared_transactions') = '0' then
    moment := extract(epoch from pg_catalog.clock_timestamp()) * 1000.0;
    if pg_catalog.abs(moment - (select last_value from {NAME}.{WOKEN})) > {PAUSE_MS} then
      perform pg_catalog.setval('{LITERAL}.{WOKEN}', moment);
      perform pg_catalog.pg_notify('{CHANNEL}', '');
    end if;
  end if;
  return null;
end
",
        few_old = few("old_rows"),
        few_new = few("new_rows"),
        content = content(),
        insert = format_args!("'insert into {LITERAL}.{CHANGES} (transaction, relation, content) '"),
        old = rows("old_rows"),
        new = rows("new_rows"),
    )
}

/// How many rows there are; of very many, only that they are too many.
fn few(table: &str) -> String {
    format!("(select pg_catalog.count(*) from (select from {table} limit {MAX_ROWS} + 1) few)")
}

/// The part of a statement, as an expression, that gives what is to be recorded of a transition
/// table.
fn rows(table: &str) -> String {
    format!(
        "'select $1, $2, case when pg_catalog.pg_column_size(c.content) <= {MAX_CONTENT} then c.content end from (select ' || content || \
         ' as content from {table} r offset 0) c'"
    )
}

/// The expression for one row's content, as an expression: an object of the values as their types
/// write them, without those that are too long. JSON is only ever made of texts, so no cast is
/// looked for.
fn content() -> String {
    let wanted = WANTED.map(|oid| oid.to_string()).join(", ");
    format!(
        "(select 'pg_catalog.jsonb_object(array[' || coalesce(pg_catalog.string_agg(pg_catalog.quote_literal(k.name), ', '), '') \
         || ']::pg_catalog.text[], array[' || coalesce(pg_catalog.string_agg(case \
         when k.base = {BOOL} then pg_catalog.format('pg_catalog.\"left\"(r.%I::pg_catalog.text, 1)', k.name) \
         when k.base in ({TEXT}, {VARCHAR}) then pg_catalog.format('case when pg_catalog.octet_length(r.%1$I::pg_catalog.text) <= {MAX_VALUE} \
         then r.%1$I::pg_catalog.text end', k.name) \
         else pg_catalog.format('r.%I::pg_catalog.text', k.name) end, ', '), '') \
         || ']::pg_catalog.text[]) - array[' || coalesce(pg_catalog.string_agg(pg_catalog.format('case when \
         pg_catalog.octet_length(r.%I::pg_catalog.text) > {MAX_VALUE} then %L end', k.name, k.name), ', ') \
         filter (where k.base in ({TEXT}, {VARCHAR})), '') || ']::pg_catalog.text[]' \
         from (select a.attname::pg_catalog.text as name, coalesce(e.oid, d.oid, t.oid) as base \
         from pg_catalog.pg_attribute a join pg_catalog.pg_type t on t.oid = a.atttypid \
         left join pg_catalog.pg_type d on d.oid = t.typbasetype left join pg_catalog.pg_type e on e.oid = d.typbasetype \
         where a.attrelid = tg_relid and a.attnum > 0 and not a.attisdropped offset 0) k where k.base in ({wanted}))"
    )
}

/// The body for the schema with this quoted name.
pub(super) fn in_schema(schema: &str) -> String {
    body()
        .replace(NAME, schema)
        .replace(LITERAL, &schema.replace('\'', "''"))
}

/// In SQL, the body for the first schema of the search path, from [`body`] as the parameter `$n`.
pub(crate) fn in_this_schema(parameter: &str) -> String {
    let name = "pg_catalog.quote_ident(pg_catalog.current_schema())";
    format!(
        "pg_catalog.replace(pg_catalog.replace({parameter}, '{NAME}', {name}), '{LITERAL}', pg_catalog.replace({name}, '''', ''''''))"
    )
}

/// In SQL, whether a function `p` of `pg_proc` runs as its owner and finds nothing but what
/// PostgreSQL brings.
pub(crate) const IS_GUARDED: &str = "(p.prosecdef \
    and pg_catalog.array_to_string(p.proconfig, ';') = 'search_path=pg_catalog, pg_temp')";
