//! What the feed by triggers needs in the database, as the statements that make and remove it.
//!
//! Nothing of it may ever make a statement of the owner's fail or wait. So rows are recorded as JSON whatever columns they have
//! (✗ *a list of columns in the function: once one is renamed, every write fails*), a recording has a limit of rows and of bytes, and who is woken
//! is told at most fifty times in a second: NOTIFY lets the commits of a whole cluster pass one after the other
//! while each waits for its disk. It is not used at all where two-phase commit is possible: ✗ *PostgreSQL refuses
//! PREPARE TRANSACTION after NOTIFY.* Then changes are found when the table is next looked at.
//!
//! The triggers are those of statements, with all rows at once: one INSERT … SELECT for a statement costs a fraction of a call for
//! each row. They fire for the table that the statement names, so partitions, their roots, parents and children need their own each.

/// The function behind all triggers.
pub(crate) const FUNCTION: &str = "_millpond_record";
/// The table of changes: one row for each row that came or went, without content for "any row of this table".
pub(crate) const CHANGES: &str = "_millpond_change";
/// The nodes that read it.
pub(crate) const NODES: &str = "_millpond_node";
/// Counts the statements whose changes were not recorded, since the table was too large; a sequence, so a transaction cannot hide it.
pub(crate) const LOST: &str = "_millpond_lost";
/// When somebody was last woken, in milliseconds.
const WOKEN: &str = "_millpond_woken";
/// Who is woken listens here.
pub(crate) const CHANNEL: &str = "millpond";

/// The kinds of triggers that a table needs, as the bits of `pg_trigger.tgtype`.
pub(crate) const ALL_KINDS: i16 = INSERT | DELETE | UPDATE | TRUNCATE;
const INSERT: i16 = 4;
const DELETE: i16 = 8;
const UPDATE: i16 = 16;
const TRUNCATE: i16 = 32;

/// Rows of one statement; more are recorded as "any row". As many as narrow tags of one family count in one transaction.
const MAX_ROWS: usize = super::super::touched::MAX_NARROW;
/// Bytes of the table of changes: past them nothing is recorded but that something was lost, so nobody's disk fills while no node runs.
pub(crate) const MAX_BYTES: u64 = 256 << 20;
/// Bytes of a row; of a larger one only the short values are kept, and the others count as any value.
const MAX_CONTENT: usize = 1_000;
const MAX_VALUE: usize = 300;
/// The least time between two calls to wake up.
const PAUSE_MS: u32 = 20;

/// Each trigger: its name, what it is after, and what it is given.
const TRIGGERS: [(&str, &str); 4] = [
    (
        "_millpond_insert",
        "insert on {} referencing new table as new_rows",
    ),
    (
        "_millpond_update",
        "update on {} referencing old table as old_rows new table as new_rows",
    ),
    (
        "_millpond_delete",
        "delete on {} referencing old table as old_rows",
    ),
    ("_millpond_truncate", "truncate on {}"),
];

/// The body of the function. Its search path has PostgreSQL's own schema first, and calls name it all the same: it runs with the rights of its
/// owner, and whoever writes may have made functions that fit better.
pub(crate) fn body() -> String {
    let rows = |table: &str| {
        format!(
            "select pg_catalog.pg_current_xact_id(), tg_relid, case when pg_catalog.pg_column_size(r.content) <= {MAX_CONTENT} then r.content \
             else (select pg_catalog.jsonb_object_agg(e.key, e.value) from pg_catalog.jsonb_each(r.content) e \
             where pg_catalog.pg_column_size(e.value) <= {MAX_VALUE}) end \
             from (select pg_catalog.to_jsonb(_millpond_row.*) - coalesce(tg_argv, '{{}}'::text[]) as content \
             from {table} _millpond_row offset 0) r"
        )
    };
    let few = |table: &str| {
        format!("(select pg_catalog.count(*) from (select from {table} limit {MAX_ROWS} + 1) few)")
    };
    let insert = format!("insert into {CHANGES} (transaction, relation, content)");
    let (old, new) = (rows("old_rows"), rows("new_rows"));
    let (few_old, few_new) = (few("old_rows"), few("new_rows"));
    format!(
        "
#variable_conflict use_variable
declare
  changed bigint := {MAX_ROWS} + 1;
  moment bigint;
begin
  if pg_catalog.pg_relation_size('{CHANGES}', 'main') > {MAX_BYTES} then
    perform pg_catalog.nextval('{LOST}');
  else
    if tg_op = 'INSERT' then
      changed := {few_new};
    elsif tg_op = 'UPDATE' or tg_op = 'DELETE' then
      changed := {few_old};
    end if;
    if changed = 0 then
      return null;
    elsif changed > {MAX_ROWS} then
      {insert} values (pg_catalog.pg_current_xact_id(), tg_relid, null);
    elsif tg_op = 'INSERT' then
      {insert} {new};
    elsif tg_op = 'UPDATE' then
      {insert} {old} union all {new};
    else
      {insert} {old};
    end if;
  end if;
  if pg_catalog.current_setting('max_prepared_transactions') = '0' then
    moment := extract(epoch from pg_catalog.clock_timestamp()) * 1000;
    if pg_catalog.abs(moment - (select last_value from {WOKEN})) > {PAUSE_MS} then
      perform pg_catalog.setval('{WOKEN}', moment);
      perform pg_catalog.pg_notify('{CHANNEL}', '');
    end if;
  end if;
  return null;
end
"
    )
}

/// Makes the tables and the function, in the schema with this quoted name; harmless where they are there already.
///
/// Unlogged: who reads them begins anew after a crash, and then needs nothing from before (see [`super`]).
pub(crate) fn install(schema: &str) -> String {
    format!(
        "begin; \
         create unlogged table if not exists {schema}.{CHANGES} (transaction xid8 not null, relation oid not null, content jsonb) \
         with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000); \
         alter table {schema}.{CHANGES} alter column content set storage main; \
         create index if not exists {CHANGES}_transaction on {schema}.{CHANGES} (transaction); \
         create unlogged table if not exists {schema}.{NODES} (node text primary key, life bigint not null, oldest xid8 not null, \
         seen_at timestamptz not null); \
         create sequence if not exists {schema}.{LOST}; create sequence if not exists {schema}.{WOKEN}; \
         create or replace function {schema}.{FUNCTION}() returns trigger language plpgsql security definer \
         set search_path = pg_catalog, {schema}, pg_temp as $millpond${}$millpond$; \
         commit",
        body()
    )
}

/// Lets a role read what was recorded.
pub(crate) fn grant(schema: &str, role: &str) -> String {
    format!(
        "grant select, delete, truncate on {schema}.{CHANGES} to {role}; grant select, insert, update, delete on {schema}.{NODES} to {role}; \
         grant select, usage on {schema}.{LOST} to {role}; grant usage on schema {schema} to {role}"
    )
}

/// Gives a table its triggers. `left_out` are the columns that nobody can select by, as no equality of theirs has one form.
///
/// ONLY: the triggers of its partitions are theirs.
pub(crate) fn watch(schema: &str, table: &str, left_out: &[&str]) -> String {
    let columns: Vec<String> = left_out
        .iter()
        .map(|column| {
            super::super::replication::literal(column)
                .trim_start()
                .to_owned()
        })
        .collect();
    let columns = columns.join(", ");
    let each = TRIGGERS.map(|(name, event)| {
        let event = event.replace("{}", table);
        format!(
            "create or replace trigger {name} after {event} for each statement execute function {schema}.{FUNCTION}({columns}); \
             alter table only {table} enable always trigger {name}"
        )
    });
    format!("begin; {}; commit", each.join("; "))
}

/// Takes the triggers from tables, and everything else with the function.
pub(crate) fn remove(schema: &str, tables: &[String]) -> String {
    let mut statements = vec!["begin".to_owned()];
    for table in tables {
        for (name, _) in TRIGGERS {
            statements.push(format!("drop trigger if exists {name} on {table}"));
        }
    }
    statements.push(format!("drop function if exists {schema}.{FUNCTION}()"));
    statements.push(format!(
        "drop table if exists {schema}.{CHANGES}, {schema}.{NODES}"
    ));
    statements.push(format!(
        "drop sequence if exists {schema}.{LOST}, {schema}.{WOKEN}"
    ));
    statements.push("commit".to_owned());
    statements.join("; ")
}
