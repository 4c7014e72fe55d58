//! One text that is another one whenever something has changed on which the answer of a query
//! depends and which the feed does not report (coherence.md, rule 9).
//!
//! docs/reference/catalogs.md goes through all catalogs, column by column, and says of each why it
//! counts or does not. The tests hold that page against real servers: each column of theirs is
//! named, and a write to it changes the fingerprint exactly if the page says so.

use std::fmt::Write as _;
use std::sync::LazyLock;

/// Rows of a catalog that count.
struct CountedRows {
    /// The catalog, by the name `r`, and what is joined to it.
    from: &'static str,
    /// Tells the row from the others, or begins to; a whole number. Two rows with the same key and
    /// the same content would cancel each other.
    key: &'static str,
    /// What of a row counts, and the rest of its key.
    counts: &'static str,
    /// Which rows count.
    only: &'static str,
}

const fn rows(
    from: &'static str,
    key: &'static str,
    counts: &'static str,
    only: &'static str,
) -> CountedRows {
    CountedRows {
        from,
        key,
        counts,
        only,
    }
}

/// `xmin` stands for the content of a row wherever only DDL writes rows. It does not do so in
/// `pg_class` and `pg_index`: TRUNCATE writes a new row for a new file, VACUUM resets flags, and a
/// build of an index goes through several states. There the columns themselves count.
///
/// What `initdb` has made can be changed by a superuser: `alter text search configuration english`.
/// Its first step writes rows as transaction 1, all others have another `xmin`, so rows that are as
/// they were then are left out by `r.xmin <> '1'`; of these, none can be dropped. Relations of
/// `initdb` (oids below 16384) are read by no query that is kept.
///
/// Temporary tables (`t.own`) belong to one session and are left out. Of triggers only those that
/// record changes count, under any name. Counterexample: *one that was renamed, and is then
/// dropped.* One that is disabled and enabled again is another row. The file of the table that they
/// fill counts. Counterexample: *TRUNCATE empties it before all nodes have looked.*
///
/// `pg_publication_namespace` is younger than PostgreSQL 14, so its rows are looked for in
/// `pg_depend`, under the oid that the catalog has in all later versions.
const ROWS: &[CountedRows] = &[
    rows(
        "pg_class r",
        "r.oid",
        "r.relname, r.relnamespace, r.relkind, r.relpersistence, r.relreplident, r.relrowsecurity, r.relforcerowsecurity, r.relispartition, r.relnatts, r.relowner, r.reloftype, r.reloptions::text",
        "r.oid >= 16384 and r.relkind in ('r', 'p', 'v', 'm', 'f', 'S') and r.relpersistence <> 't'",
    ),
    // Rights as they come out for those who are asked, so that a grant to others counts for nothing.
    rows(
        "pg_class r, readers",
        "r.oid",
        "readers.role",
        "r.oid >= 16384 and r.relkind in ('r', 'p', 'v') and r.relpersistence <> 't' \
         and pg_catalog.has_table_privilege(readers.role, r.oid, 'select')",
    ),
    rows(
        "pg_class r",
        "r.oid",
        "r.relfilenode",
        "r.relname = '_millpond_change' and r.relkind = 'r'",
    ),
    rows(
        "pg_attribute r join pg_catalog.pg_class c on c.oid = r.attrelid",
        "(r.attrelid::bigint * 2048 + r.attnum)",
        "r.xmin",
        "r.attrelid >= 16384 and r.attnum > 0 and c.relkind in ('r', 'p', 'v', 'm', 'f', 'c') and c.relpersistence <> 't'",
    ),
    rows(
        "pg_index r",
        "r.indexrelid",
        "r.indrelid, r.indisprimary, r.indisreplident, r.indisvalid, r.indkey::text",
        "r.indrelid >= 16384 and r.indisunique and not (r.indrelid = any (t.own)) \
         and exists (select from pg_catalog.pg_class c where c.oid = r.indrelid and c.relkind in ('r', 'p'))",
    ),
    rows(
        "pg_inherits r",
        "r.inhrelid",
        "r.inhparent, r.inhdetachpending",
        "not (r.inhrelid = any (t.own)) \
         and exists (select from pg_catalog.pg_class c where c.oid = r.inhrelid and c.relkind in ('r', 'p', 'f'))",
    ),
    rows(
        "pg_attrdef r",
        "r.oid",
        "r.xmin",
        "not (r.adrelid = any (t.own))",
    ),
    rows(
        "pg_rewrite r",
        "r.oid",
        "r.xmin",
        "r.oid >= 16384 and not (r.ev_class = any (t.own))",
    ),
    rows(
        "pg_policy r",
        "r.oid",
        "r.xmin",
        "not (r.polrelid = any (t.own))",
    ),
    rows("pg_proc r", "r.oid", "r.xmin", "r.xmin <> '1'"),
    rows(
        "pg_type r",
        "r.oid",
        "r.xmin",
        "r.xmin <> '1' and r.typtype <> 'c' and r.typcategory <> 'A'",
    ),
    rows("pg_constraint r", "r.oid", "r.xmin", "r.contypid <> 0"),
    rows("pg_enum r", "r.oid", "r.xmin", "true"),
    rows("pg_operator r", "r.oid", "r.xmin", "r.xmin <> '1'"),
    rows("pg_opclass r", "r.oid", "r.xmin", "r.xmin <> '1'"),
    rows("pg_amop r", "r.oid", "r.xmin", "r.xmin <> '1'"),
    rows("pg_amproc r", "r.oid", "r.xmin", "r.xmin <> '1'"),
    rows("pg_cast r", "r.oid", "r.xmin", "r.xmin <> '1'"),
    rows("pg_collation r", "r.oid", "r.xmin", "r.xmin <> '1'"),
    rows("pg_language r", "r.oid", "r.xmin", "r.xmin <> '1'"),
    rows("pg_transform r", "r.oid", "r.xmin", "true"),
    rows("pg_ts_config r", "r.oid", "r.xmin", "r.xmin <> '1'"),
    rows(
        "pg_ts_config_map r",
        "r.mapcfg",
        "r.xmin, r.maptokentype, r.mapseqno",
        "r.xmin <> '1'",
    ),
    rows("pg_ts_dict r", "r.oid", "r.xmin", "r.xmin <> '1'"),
    rows("pg_ts_parser r", "r.oid", "r.xmin", "r.xmin <> '1'"),
    rows("pg_ts_template r", "r.oid", "r.xmin", "r.xmin <> '1'"),
    rows(
        "pg_namespace r",
        "r.oid",
        "r.xmin",
        "r.nspname !~ '^pg_(toast_)?temp_'",
    ),
    rows(
        "pg_seclabel r",
        "r.classoid",
        "r.xmin, r.objoid, r.objsubid, r.provider",
        "true",
    ),
    rows(
        "pg_shseclabel r",
        "r.classoid",
        "r.xmin, r.objoid, r.provider",
        "true",
    ),
    rows("pg_publication r", "r.oid", "r.xmin", "true"),
    rows("pg_publication_rel r", "r.oid", "r.xmin", "true"),
    rows(
        "pg_depend r",
        "r.objid",
        "r.xmin, r.refclassid, r.refobjid",
        "r.classid = 6237",
    ),
    rows(
        "pg_trigger r",
        "r.oid",
        "r.xmin",
        "r.tgfoid in (select p.oid from pg_catalog.pg_proc p where p.proname = '_millpond_record')",
    ),
    rows(
        "pg_subscription_rel r",
        "r.srsubid",
        "r.xmin, r.srrelid",
        "true",
    ),
    rows(
        "pg_auth_members r",
        "r.roleid",
        "r.xmin, r.member, r.grantor",
        "true",
    ),
    // Ordinary roles come and go; what counts of them is whom they are granted to.
    rows(
        "pg_roles r",
        "r.oid",
        "r.rolsuper, r.rolbypassrls, r.rolinherit",
        "r.rolsuper or r.rolbypassrls or not r.rolinherit",
    ),
    rows(
        "pg_roles r",
        "r.oid",
        "r.rolname",
        "r.rolname = current_user",
    ),
    rows(
        "pg_database r",
        "r.oid",
        "r.datdba",
        "r.datname = pg_catalog.current_database()",
    ),
];

/// Those with whose rights tables are read: this role, and the owners of views and of functions
/// that run as their owners. Superusers may read all, and that they are superusers counts by itself.
const READERS: &str = "select s.oid as role from pg_catalog.pg_roles s where not s.rolsuper and (s.rolname = current_user \
    or s.oid in (select c.relowner from pg_catalog.pg_class c where c.relkind = 'v' and c.oid >= 16384) \
    or s.oid in (select p.proowner from pg_catalog.pg_proc p where p.prosecdef and p.oid >= 16384))";

/// Settings that change what a query answers and that Millpond's sessions do not fix. A server that
/// does not have one says nothing of it.
const SETTINGS: &[&str] = &[
    "search_path",
    "lc_monetary",
    "lc_numeric",
    "lc_time",
    "default_text_search_config",
    "timezone_abbreviations",
    "row_security",
    "restrict_nonsystem_relation_kind",
    "gin_fuzzy_search_limit",
    "array_nulls",
    "quote_all_identifiers",
    "transform_null_equals",
    "xmlbinary",
    "xmloption",
];

/// What a session takes over when it begins, and keeps when it changes: a session with another text
/// than the newest is closed, and its successor has the new values.
const SESSION: &[CountedRows] = &[
    rows(
        "pg_db_role_setting r",
        "r.setdatabase",
        "r.xmin, r.setrole",
        "r.setdatabase in (0, (select d.oid from pg_catalog.pg_database d where d.datname = pg_catalog.current_database())) \
         and r.setrole in (0, (select s.oid from pg_catalog.pg_roles s where s.rolname = session_user))",
    ),
    rows("pg_conversion r", "r.oid", "r.xmin", "r.xmin <> '1'"),
    rows("pg_event_trigger r", "r.oid", "r.xmin", "true"),
];

/// An SQL expression of type text, for a feed to compare at each heartbeat. Its last part, behind
/// the last slash, is that of [`session_fingerprint`].
pub(crate) fn fingerprint() -> &'static str {
    static SQL: LazyLock<String> = LazyLock::new(|| {
        let settings = SETTINGS.iter().fold(String::new(), |mut settings, name| {
            // A String takes all that is written.
            let _ = write!(settings, "pg_catalog.current_setting('{name}', true), ");
            settings
        });
        format!(
            "(with readers as materialized ({READERS}), t as materialized (select coalesce(pg_catalog.array_agg(c.oid), '{{}}') as own \
             from pg_catalog.pg_class c where c.relpersistence = 't') \
             select pg_catalog.concat_ws('/', {}, {settings}{}) from t)",
            hash(ROWS),
            session_fingerprint()
        )
    });
    &SQL
}

/// An SQL expression of type text: what a session that begins now takes over.
pub(crate) fn session_fingerprint() -> &'static str {
    static SQL: LazyLock<String> = LazyLock::new(|| hash(SESSION));
    &SQL
}

/// The part of a fingerprint that says what a session takes over when it begins.
pub(crate) fn session_part(fingerprint: &str) -> &str {
    fingerprint.rsplit('/').next().unwrap_or_default()
}

/// More than any key of a row: an oid, and the number of a column.
const KEYS: u64 = 1 << 44;

/// The number of rows and the exclusive-or of their hashes, so nothing is sorted and nothing is put
/// together. Each row has the number of its place in the list, as catalogs share their oids.
fn hash(all: &[CountedRows]) -> String {
    let mut parts = String::new();
    for (place, rows) in all.iter().enumerate() {
        let CountedRows {
            from,
            key,
            counts,
            only,
        } = rows;
        let union = if place > 0 { " union all " } else { "" };
        // A String takes all that is written.
        let _ = write!(
            parts,
            "{union}select pg_catalog.hash_record_extended(row({counts}), {key}::bigint + {place} * {KEYS}) from pg_catalog.{from} where {only}"
        );
    }
    format!(
        "(select pg_catalog.concat(count(*), ':', pg_catalog.bit_xor(x.h)) from ({parts}) as x(h))"
    )
}
