//! A text that changes when anything changes that answers depend on and the feed does not report
//! (coherence.md, rule 9).
//!
//! docs/reference/catalogs.md goes through all catalogs, column by column, and says of each why it
//! counts or does not. The tests hold that page against real servers: each column of theirs is
//! named, and a write to it changes the fingerprint exactly if the page says so.

use std::sync::LazyLock;

/// The rows that count, a line for each kind: the catalog by the name `r`, the row's key, what of
/// the row counts, and which rows. Two rows that are equal in key and content would cancel each
/// other. A line without key and content is of a catalog with oids, where a row counts as a whole.
///
/// `xmin` stands for the content of a row wherever only DDL writes rows. It does not do so in
/// `pg_class` and `pg_index`: TRUNCATE writes a new row for a new file, VACUUM resets flags, and a
/// build of an index goes through several states. There the columns themselves count.
///
/// What `initdb` has made can be changed by a superuser: `alter text search configuration english`.
/// Its first step writes rows as transaction 1, all others have another `xmin`, so rows that are as
/// they were then are left out by `r.xmin <> '1'`; of these, none can be dropped. Relations of
/// `initdb` (oids below 16384) are read by no query that is kept.
///
/// Rights on tables are taken as they come out for [`READERS`], so that a grant to others counts
/// for nothing. Of roles only those with unusual attributes count: ordinary roles come and go.
///
/// Temporary tables (`t.own`) belong to one session and are left out. Of triggers only those that
/// record changes count, under any name. Counterexample: *one that was renamed, and is then
/// dropped.* One that is disabled and enabled again is another row. The file of the table that they
/// fill counts. Counterexample: *TRUNCATE empties it before all nodes have looked.*
///
/// `pg_publication_namespace` is younger than PostgreSQL 14, so its rows are looked for in
/// `pg_depend`, under the oid that the catalog has in all later versions.
const ROWS: &str = "
pg_class r | r.oid | r.relname, r.relnamespace, r.relkind, r.relpersistence, r.relreplident, r.relrowsecurity, \
  r.relforcerowsecurity, r.relispartition, r.relnatts, r.relowner, r.reloftype, r.reloptions::text \
  | r.oid >= 16384 and r.relkind in ('r', 'p', 'v', 'm', 'f', 'S', 'c') and r.relpersistence <> 't'
pg_class r, readers | r.oid | readers.role | r.oid >= 16384 and r.relkind in ('r', 'p', 'v') and r.relpersistence <> 't' \
  and pg_catalog.has_table_privilege(readers.role, r.oid, 'select')
pg_class r | r.oid | r.relfilenode | r.relname = '_millpond_change' and r.relkind = 'r'
pg_attribute r join pg_catalog.pg_class c on c.oid = r.attrelid | (r.attrelid::bigint * 2048 + r.attnum) | r.xmin \
  | r.attrelid >= 16384 and r.attnum > 0 and c.relkind in ('r', 'p', 'v', 'm', 'f', 'c') and c.relpersistence <> 't'
pg_index r | r.indexrelid | r.indrelid, r.indisprimary, r.indisreplident, r.indisvalid, r.indkey::text \
  | r.indrelid >= 16384 and r.indisunique and not (r.indrelid = any (t.own)) \
  and exists (select from pg_catalog.pg_class c where c.oid = r.indrelid and c.relkind in ('r', 'p'))
pg_inherits r | r.inhrelid | r.inhparent, r.inhdetachpending | not (r.inhrelid = any (t.own)) \
  and exists (select from pg_catalog.pg_class c where c.oid = r.inhrelid and c.relkind in ('r', 'p', 'f'))
pg_roles r | r.oid | r.rolsuper, r.rolbypassrls, r.rolinherit | r.rolsuper or r.rolbypassrls or not r.rolinherit
pg_roles r | r.oid | r.rolname | r.rolname = current_user
pg_auth_members r | r.roleid | r.xmin, r.member, r.grantor | true
pg_database r | r.oid | r.datdba | r.datname = pg_catalog.current_database()
pg_ts_config_map r | r.mapcfg | r.xmin, r.maptokentype, r.mapseqno | r.xmin <> '1'
pg_seclabel r | r.classoid | r.xmin, r.objoid, r.objsubid, r.provider | true
pg_shseclabel r | r.classoid | r.xmin, r.objoid, r.provider | true
pg_subscription_rel r | r.srsubid | r.xmin, r.srrelid | true
pg_depend r | r.objid | r.xmin, r.refclassid, r.refobjid | r.classid = 6237
pg_attrdef r | not (r.adrelid = any (t.own))
pg_rewrite r | r.oid >= 16384 and not (r.ev_class = any (t.own))
pg_policy r | not (r.polrelid = any (t.own))
pg_proc r | r.xmin <> '1'
pg_type r | r.xmin <> '1' and r.typtype <> 'c' and r.typcategory <> 'A'
pg_constraint r | r.contypid <> 0
pg_enum r | true
pg_operator r | r.xmin <> '1'
pg_opclass r | r.xmin <> '1'
pg_amop r | r.xmin <> '1'
pg_amproc r | r.xmin <> '1'
pg_cast r | r.xmin <> '1'
pg_collation r | r.xmin <> '1'
pg_language r | r.xmin <> '1'
pg_transform r | true
pg_ts_config r | r.xmin <> '1'
pg_ts_dict r | r.xmin <> '1'
pg_ts_parser r | r.xmin <> '1'
pg_ts_template r | r.xmin <> '1'
pg_namespace r | r.nspname !~ '^pg_(toast_)?temp_'
pg_publication r | true
pg_publication_rel r | true
pg_trigger r | r.tgfoid in (select p.oid from pg_catalog.pg_proc p where p.proname = '_millpond_record')";

/// Roles with whose rights tables are read: this role, and the owners of views and of functions
/// that run as their owners. Superusers may read all, and that counts by itself.
const READERS: &str = "select s.oid as role from pg_catalog.pg_roles s where not s.rolsuper and (s.rolname = current_user \
    or s.oid in (select c.relowner from pg_catalog.pg_class c where c.relkind = 'v' and c.oid >= 16384) \
    or s.oid in (select p.proowner from pg_catalog.pg_proc p where p.prosecdef and p.oid >= 16384))";

/// Settings that change what a query answers and that Millpond's sessions do not fix. A server that
/// does not have one says nothing of it.
const SETTINGS: &str = "search_path lc_numeric lc_time default_text_search_config timezone_abbreviations row_security \
  restrict_nonsystem_relation_kind gin_fuzzy_search_limit array_nulls quote_all_identifiers transform_null_equals xmlbinary";

/// Settings that a session takes over when it begins, and keeps when they change. The feed's
/// session reads the settings for the fingerprint, so it begins anew.
const SESSION: &str = "
pg_db_role_setting r | r.setdatabase | r.xmin, r.setrole \
  | r.setdatabase in (0, (select d.oid from pg_catalog.pg_database d where d.datname = pg_catalog.current_database())) \
  and r.setrole in (0, (select s.oid from pg_catalog.pg_roles s where s.rolname = session_user))
pg_conversion r | r.xmin <> '1'
pg_event_trigger r | true";

/// An SQL expression of type text, for a feed to compare at each heartbeat. Its last part, behind
/// the last slash, is the [`session_part`].
pub(crate) fn fingerprint() -> &'static str {
    static SQL: LazyLock<String> = LazyLock::new(|| {
        let settings = SETTINGS.split_whitespace();
        let settings = settings.map(|name| format!("pg_catalog.current_setting('{name}', true), "));
        format!(
            "(with readers as materialized ({READERS}), t as materialized (select coalesce(pg_catalog.array_agg(c.oid), '{{}}') as own \
             from pg_catalog.pg_class c where c.relpersistence = 't') \
             select pg_catalog.concat_ws('/', {}, {}{}) from t)",
            hash(ROWS),
            settings.collect::<String>(),
            hash(SESSION)
        )
    });
    &SQL
}

/// Why a feed ends when its [`session_part`] is another.
pub(crate) const SESSIONS_CHANGED: &str =
    "settings of the role or the database have changed, which sessions take over when they begin";

/// The part of a fingerprint that says what a session takes over when it begins.
pub(crate) fn session_part(fingerprint: &str) -> &str {
    fingerprint.rsplit('/').next().unwrap_or_default()
}

/// More than any key of a row: an oid, and the number of a column.
const KEYS: u64 = 1 << 44;

/// The number of rows and the exclusive-or of their hashes, so nothing is sorted and nothing is
/// put together. Each line has keys of its own, as catalogs share their oids.
fn hash(lines: &str) -> String {
    let selects = lines.trim().lines().enumerate().map(|(place, line)| {
        let cells: Vec<&str> = line.split(" | ").map(str::trim).collect();
        let (from, key, counts, only) = match cells[..] {
            [from, key, counts, only] => (from, key, counts, only),
            _ => (cells[0], "r.oid", "r.xmin", cells[cells.len() - 1]),
        };
        format!(
            "select pg_catalog.hash_record_extended(row({counts}), {key}::bigint + {place} * {KEYS}) from pg_catalog.{from} where {only}"
        )
    });
    let rows = selects.collect::<Vec<_>>().join(" union all ");
    format!(
        "(select pg_catalog.concat(count(*), ':', pg_catalog.bit_xor(x.h)) from ({rows}) as x(h))"
    )
}
