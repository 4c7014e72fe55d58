//! What the feed by triggers needs in the database, as the statements that make and remove it.
//!
//! The function behind the triggers is in [`super::function`]. It runs as its owner, so only its
//! owner and the table owners with EXECUTE may use it: Counterexample: *a role with EXECUTE uses it
//! in a trigger of its own, and fills the table of changes.* PostgreSQL asks for the right when a
//! trigger is made, not when it fires.
//!
//! The triggers are those of statements, with all rows at once: one INSERT … SELECT for a statement
//! costs a fraction of a call for each row. They fire for the table that the statement names, so
//! partitions, their roots, parents and children need their own each.

use super::function;

/// The function behind all triggers.
pub(crate) const FUNCTION: &str = "_millpond_record";
/// The table of changes: one row for each row that came or went, without content for "any row of
/// this table".
pub(crate) const CHANGES: &str = "_millpond_change";
/// The nodes that read it.
pub(crate) const NODES: &str = "_millpond_node";
/// Counts the statements whose changes were not recorded, since the table was too large; a
/// sequence, so a transaction cannot hide it.
pub(crate) const LOST: &str = "_millpond_lost";
/// When a node was last woken, in milliseconds.
pub(super) const WOKEN: &str = "_millpond_woken";
/// Channel on which waiting nodes listen.
pub(crate) const CHANNEL: &str = "millpond";

/// The kinds of triggers that a table needs, as the bits of `pg_trigger.tgtype`.
pub(crate) const ALL_KINDS: i16 = INSERT | DELETE | UPDATE | TRUNCATE;
const INSERT: i16 = 4;
const DELETE: i16 = 8;
const UPDATE: i16 = 16;
const TRUNCATE: i16 = 32;

/// Bytes of the table of changes: past them nothing is recorded but that something was lost, so the
/// disk does not fill while no node runs.
pub(crate) const MAX_BYTES: u64 = 256 << 20;
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

/// Makes the tables and the function, in the schema with this quoted name; harmless where they are
/// there already.
///
/// Unlogged: who reads them begins anew after a crash, and then needs nothing from before (see
/// [`super`]).
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
         set search_path = pg_catalog, pg_temp as $millpond${}$millpond$; \
         revoke execute on function {schema}.{FUNCTION}() from public; \
         revoke all on {schema}.{CHANGES}, {schema}.{NODES}, {schema}.{LOST}, {schema}.{WOKEN} from public; \
         commit",
        function::in_schema(schema)
    )
}

/// Lets a role read what was recorded.
pub(crate) fn grant(schema: &str, role: &str) -> String {
    format!(
        "grant select, delete, truncate on {schema}.{CHANGES} to {role}; grant select, insert, update, delete on {schema}.{NODES} to {role}; \
         grant select, usage on {schema}.{LOST} to {role}; grant usage on schema {schema} to {role}"
    )
}

/// Lets a role that owns tables give them triggers.
pub(crate) fn lend(schema: &str, role: &str) -> String {
    format!(
        "grant usage on schema {schema} to {role}; grant execute on function {schema}.{FUNCTION}() to {role}"
    )
}

/// Gives a table its triggers. ONLY: those of its partitions are theirs.
pub(crate) fn watch(schema: &str, table: &str) -> String {
    let each = TRIGGERS.map(|(name, event)| {
        let event = event.replace("{}", table);
        format!(
            "create or replace trigger {name} after {event} for each statement execute function {schema}.{FUNCTION}(); \
             alter table only {table} enable always trigger {name}"
        )
    });
    format!("begin; {}; commit", each.join("; "))
}

/// Takes the triggers from tables, and everything else with the function. Each table in a
/// transaction of its own, which gives up soon: to drop a trigger shuts out readers too, and later
/// statements wait behind it. It may be run again.
pub(crate) fn remove(schema: &str, tables: &[String]) -> String {
    const BEGIN: &str = "begin; set local lock_timeout = '500ms'";
    let of_table = |table: &String| {
        let drops = TRIGGERS.map(|(name, _)| format!("drop trigger if exists {name} on {table}"));
        format!("{BEGIN}; {}; commit; ", drops.join("; "))
    };
    let tables: String = tables.iter().map(of_table).collect();
    format!(
        "{tables}{BEGIN}; drop function if exists {schema}.{FUNCTION}(); \
         drop table if exists {schema}.{CHANGES}, {schema}.{NODES}; \
         drop sequence if exists {schema}.{LOST}, {schema}.{WOKEN}; commit"
    )
}
