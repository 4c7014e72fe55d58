//! What the catalog says, in one text: it changes whenever something changes of which the stream does not tell (COHERENCE, rule 9).

/// One row, one column.
pub(crate) const FINGERPRINT: &str = "select pg_catalog.md5(pg_catalog.concat_ws('/', \
    (select string_agg(concat(oid, xmin, relname, relkind, relreplident, relrowsecurity), ',' order by oid) \
       from pg_catalog.pg_class where oid >= 16384 and relkind in ('r', 'p', 'v') and relpersistence <> 't'), \
    (select string_agg(concat(attrelid, xmin), ',' order by attrelid, attnum) from pg_catalog.pg_attribute where attrelid >= 16384 and attnum > 0), \
    (select string_agg(concat(oid, xmin), ',' order by oid) from pg_catalog.pg_rewrite where oid >= 16384), \
    (select string_agg(concat(oid, xmin), ',' order by oid) from pg_catalog.pg_proc where oid >= 16384), \
    (select string_agg(concat(oid, xmin), ',' order by oid) from pg_catalog.pg_policy), \
    (select string_agg(concat(inhrelid, inhparent), ',' order by inhrelid, inhparent) from pg_catalog.pg_inherits), \
    (select string_agg(concat(oid, xmin), ',' order by oid) from pg_catalog.pg_publication), \
    (select string_agg(concat(oid, xmin), ',' order by oid) from pg_catalog.pg_publication_rel)))";
