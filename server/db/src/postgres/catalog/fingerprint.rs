//! One text that is another one whenever something has changed that the feed does not report
//! (coherence.md, rule 9).

/// An SQL expression of type text, for a feed to compare at each heartbeat.
///
/// Each part is the number of a catalog's rows and the exclusive-or of their hashes, so nothing is
/// sorted and nothing is put together. `xmin` stands for the content of a row wherever only DDL
/// writes rows. It does not do so in `pg_class`: TRUNCATE writes a new row for a new file, and
/// VACUUM resets flags. There the columns themselves count. Temporary tables belong to one session
/// and are left out, as are settings that Millpond's sessions fix. What is made by `initdb` cannot
/// change (oids below 16384), but for what a database's owner may do to the schema `public`.
///
/// Of triggers only those that record changes count, under any name. Counterexample: *one that was
/// renamed, and is then dropped.* One that is disabled and enabled again is another row. The file
/// of the table that they fill counts. Counterexample: *TRUNCATE empties it before all nodes have
/// looked.*
///
/// `pg_publication_namespace` is younger than PostgreSQL 14, so its rows are looked for in
/// `pg_depend`, under the oid that the catalog has in all later versions.
pub(crate) const FINGERPRINT: &str = "(select pg_catalog.concat_ws('/', \
 (select pg_catalog.concat(count(*), ':', pg_catalog.bit_xor(pg_catalog.hash_record_extended(row(c.oid, c.relname, c.relnamespace, \
   c.relkind, c.relpersistence, c.relreplident, c.relrowsecurity, c.relforcerowsecurity, c.relispartition, c.relnatts, c.relowner, \
   c.reloftype, c.reloptions::text), 0))) \
   from pg_catalog.pg_class c where c.oid >= 16384 and c.relkind in ('r', 'p', 'v', 'm', 'f', 'S') and c.relpersistence <> 't'), \
 (select pg_catalog.bit_xor(pg_catalog.hash_record_extended(row(c.oid, c.relfilenode), 0)) \
   from pg_catalog.pg_class c where c.relname = '_millpond_change' and c.relkind = 'r'), \
 (select pg_catalog.concat(count(*), ':', pg_catalog.bit_xor(pg_catalog.hash_record_extended(row(a.xmin), a.attrelid::bigint * 2048 + a.attnum))) \
   from pg_catalog.pg_attribute a join pg_catalog.pg_class c on c.oid = a.attrelid where a.attrelid >= 16384 and a.attnum > 0 \
   and c.relkind in ('r', 'p', 'v', 'm', 'f', 'c') and c.relpersistence <> 't'), \
 (select pg_catalog.concat(count(*), ':', pg_catalog.bit_xor(pg_catalog.hash_record_extended(row(d.oid, d.xmin), 0))) \
   from pg_catalog.pg_attrdef d where d.oid >= 16384 and not (d.adrelid = any (t.own))), \
 (select pg_catalog.concat(count(*), ':', pg_catalog.bit_xor(pg_catalog.hash_record_extended(row(i.indexrelid, i.indrelid, \
   i.indisprimary, i.indisreplident, i.indisvalid, i.indkey::text), 0))) \
   from pg_catalog.pg_index i where i.indrelid >= 16384 and i.indisunique and not (i.indrelid = any (t.own)) \
   and exists (select from pg_catalog.pg_class c where c.oid = i.indrelid and c.relkind in ('r', 'p'))), \
 (select pg_catalog.concat(count(*), ':', pg_catalog.bit_xor(pg_catalog.hash_record_extended(row(i.inhrelid, i.inhparent), 0))) \
   from pg_catalog.pg_inherits i where not (i.inhrelid = any (t.own)) \
   and exists (select from pg_catalog.pg_class c where c.oid = i.inhrelid and c.relkind in ('r', 'p', 'f'))), \
 (select pg_catalog.concat(count(*), ':', pg_catalog.bit_xor(pg_catalog.hash_record_extended(row(r.oid, r.xmin), 0))) \
   from pg_catalog.pg_rewrite r where r.oid >= 16384 and not (r.ev_class = any (t.own))), \
 (select pg_catalog.concat(count(*), ':', pg_catalog.bit_xor(pg_catalog.hash_record_extended(row(p.oid, p.xmin), 0))) \
   from pg_catalog.pg_policy p where not (p.polrelid = any (t.own))), \
 (select pg_catalog.concat(count(*), ':', pg_catalog.bit_xor(pg_catalog.hash_record_extended(row(p.oid, p.xmin), 0))) \
   from pg_catalog.pg_proc p where p.oid >= 16384), \
 (select pg_catalog.concat(count(*), ':', pg_catalog.bit_xor(pg_catalog.hash_record_extended(row(x.oid, x.xmin), 0))) \
   from (select oid, xmin from pg_catalog.pg_type where oid >= 16384 and typtype <> 'c' and typcategory <> 'A' \
     union all select oid, xmin from pg_catalog.pg_constraint where contypid <> 0 \
     union all select oid, xmin from pg_catalog.pg_enum \
     union all select oid, xmin from pg_catalog.pg_operator where oid >= 16384 \
     union all select oid, xmin from pg_catalog.pg_cast where oid >= 16384 \
     union all select oid, xmin from pg_catalog.pg_collation where oid >= 16384 \
     union all select oid, xmin from pg_catalog.pg_ts_config where oid >= 16384 \
     union all select oid, xmin from pg_catalog.pg_ts_dict where oid >= 16384 \
     union all select mapcfg, xmin from pg_catalog.pg_ts_config_map where mapcfg >= 16384 \
     union all select oid, xmin from pg_catalog.pg_publication \
     union all select oid, xmin from pg_catalog.pg_publication_rel \
     union all select objid, xmin from pg_catalog.pg_depend where classid = 6237 \
     union all select oid, xmin from pg_catalog.pg_trigger where tgfoid in \
       (select oid from pg_catalog.pg_proc where proname = '_millpond_record') \
     union all select srrelid, xmin from pg_catalog.pg_subscription_rel \
     union all select oid, xmin from pg_catalog.pg_namespace where nspname !~ '^pg_(toast_)?temp_' \
     union all select setrole, xmin from pg_catalog.pg_db_role_setting where setdatabase in (0, \
       (select oid from pg_catalog.pg_database where datname = pg_catalog.current_database())) \
     union all select roleid, xmin from pg_catalog.pg_auth_members) x), \
 (select pg_catalog.bit_xor(pg_catalog.hash_record_extended(row(r.rolname, r.rolsuper, r.rolbypassrls), 0)) \
   from pg_catalog.pg_roles r where r.rolname = current_user), \
 pg_catalog.current_setting('search_path'), \
 pg_catalog.current_setting('lc_monetary'), \
 pg_catalog.current_setting('lc_numeric'), \
 pg_catalog.current_setting('lc_time'), \
 pg_catalog.current_setting('default_text_search_config'), \
 pg_catalog.current_setting('row_security'), \
 pg_catalog.current_setting('xmlbinary'), \
 pg_catalog.current_setting('xmloption')) \
 from (select coalesce(pg_catalog.array_agg(c.oid), '{}') as own from pg_catalog.pg_class c where c.relpersistence = 't') t)";
