//! Reads the catalogs in one statement, so in one snapshot.

use std::collections::HashMap;

use tokio_postgres::Client;

use super::recording::triggers;
use super::{Catalog, CatalogColumn, Identity, Publication, Recording, Relation};
use crate::postgres::families::Families;
use crate::postgres::feed::triggers::function;
use crate::postgres::server_error::refused;
use crate::precision::CaseFold;
use crate::{FeedKind, SqlError};

/// Each row is a word that says what it is, and its fields. The rows of `pg_publication_rel` are
/// taken as JSON, because their columns for filters are younger than PostgreSQL 14.
const EVERYTHING: &str = "\
select 'relation' as what, array[c.oid::text, n.nspname, c.relname, c.relkind::text, c.relpersistence::text, c.relreplident::text, \
  c.relrowsecurity::text, c.relispartition::text, pg_catalog.pg_table_is_visible(c.oid)::text, \
  pg_catalog.has_table_privilege(c.oid, 'select')::text, \
  (c.relkind = 'r' and c.reltuples <= 1024 and pg_catalog.pg_relation_size(c.oid) <= 1048576)::text]::text[] as fields \
  from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace \
  where c.oid >= 16384 and c.relkind in ('r', 'p', 'v', 'm', 'f', 'S') \
union all \
select 'column', array[a.attrelid::text, a.attnum::text, a.attname, a.atttypid::text, a.attcollation::text, a.attgenerated::text, \
  (a.attnum = any (i.indkey))::text]::text[] \
  from pg_catalog.pg_attribute a join pg_catalog.pg_class c on c.oid = a.attrelid \
  left join pg_catalog.pg_index i on i.indrelid = c.oid and i.indisvalid \
    and ((c.relreplident = 'd' and i.indisprimary) or (c.relreplident = 'i' and i.indisreplident)) \
  where a.attrelid >= 16384 and a.attnum > 0 and not a.attisdropped and c.relkind in ('r', 'p') \
union all \
select 'indexed', array[i.indrelid::text, i.indkey[0]::text, (i.indisunique and i.indimmediate and i.indnkeyatts = 1 and a.attnotnull \
    and not exists (select from pg_catalog.pg_constraint k where k.conrelid = i.indrelid and k.contype = 'n' and not k.convalidated \
      and a.attnum = any (k.conkey)))::text] \
  from pg_catalog.pg_index i join pg_catalog.pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0] \
  where i.indrelid >= 16384 and i.indisvalid and i.indpred is null and i.indkey[0] > 0 \
union all \
select 'folded', array[i.indrelid::text, a.attnum::text, f.name]::text[] \
  from pg_catalog.pg_index i join pg_catalog.pg_attribute a on a.attrelid = i.indrelid and a.attnum > 0 and not a.attisdropped \
  cross join (values ('lower'), ('upper')) f (name) \
  where i.indrelid >= 16384 and i.indisvalid and i.indpred is null and i.indkey[0] = 0 \
    and pg_catalog.pg_get_indexdef(i.indexrelid, 1, false) in \
      (pg_catalog.format('%s(%I)', f.name, a.attname), pg_catalog.format('%s((%I)::text)', f.name, a.attname)) \
union all \
select 'check', array[k.conrelid::text, k.conname]::text[] || array(select a.attname::text from pg_catalog.pg_attribute a \
    where a.attrelid = k.conrelid and a.attnum = any (k.conkey) order by a.attnum) \
  from pg_catalog.pg_constraint k where k.conrelid >= 16384 and k.contype = 'c' \
union all \
select 'constraint', array[k.conrelid::text, k.conname]::text[] from pg_catalog.pg_constraint k \
  where k.conrelid >= 16384 and k.contype in ('p', 'u', 'x', 'f') \
union all \
select 'constraint', array[i.indrelid::text, c.relname]::text[] from pg_catalog.pg_index i \
  join pg_catalog.pg_class c on c.oid = i.indexrelid where i.indrelid >= 16384 and i.indisunique \
union all \
select 'inherits', array[inhrelid::text, inhparent::text] from pg_catalog.pg_inherits i \
  join pg_catalog.pg_class c on c.oid = i.inhrelid where c.relkind in ('r', 'p', 'f') \
union all \
select 'domain', array[oid::text, typbasetype::text] from pg_catalog.pg_type where typtype = 'd' \
union all \
select 'collation', array[oid::text] from pg_catalog.pg_collation where not collisdeterministic \
union all \
select 'publication', array[(pubinsert and pubupdate and pubdelete and pubtruncate)::text] \
  from pg_catalog.pg_publication where pubname = $1 \
union all \
select 'ungenerated', '{}'::text[] where pg_catalog.current_setting('server_version_num')::integer >= 180000 \
  and not exists (select from pg_catalog.pg_publication p where p.pubname = $1 and pg_catalog.to_jsonb(p) ->> 'pubgencols' = 's') \
union all \
select 'published', array[c.oid::text] from pg_catalog.pg_publication_tables t \
  join pg_catalog.pg_namespace n on n.nspname = t.schemaname \
  join pg_catalog.pg_class c on c.relnamespace = n.oid and c.relname = t.tablename \
  where t.pubname = $1 \
union all \
select 'partial', array[c.oid::text] from pg_catalog.pg_class c where c.relispartition \
  and exists (select from pg_catalog.pg_publication p where p.pubname = $1 and p.pubviaroot) \
union all \
select 'partial', array[r.prrelid::text] from pg_catalog.pg_publication_rel r \
  join pg_catalog.pg_publication p on p.oid = r.prpubid \
  where p.pubname = $1 and (pg_catalog.to_jsonb(r) ->> 'prqual' is not null or pg_catalog.to_jsonb(r) ->> 'prattrs' is not null)";

impl Catalog {
    /// Reads the catalogs, for a feed of this kind; `publication` is the one that it reads, if it
    /// reads one.
    pub(crate) async fn load(
        client: &Client,
        feed: FeedKind,
        publication: &str,
    ) -> Result<Self, SqlError> {
        let text = tokio_postgres::types::Type::TEXT;
        let everything = format!("{EVERYTHING} union all {}", triggers());
        let statement = client
            .prepare_typed(&everything, &[text.clone(), text])
            .await
            .map_err(|error| refused(&error))?;
        let rows = client
            .query(&statement, &[&publication, &function::body()])
            .await
            .map_err(|error| refused(&error))?;
        let mut draft = CatalogBuilder {
            catalog: Catalog {
                recording: Recording::new(feed),
                publication: Publication {
                    name: publication.to_owned(),
                    ..Publication::default()
                },
                ..Catalog::default()
            },
            columns: HashMap::new(),
        };
        for row in &rows {
            let (what, fields): (&str, Vec<Option<&str>>) = (row.get(0), row.get(1));
            draft.take(what, &CatalogRow(fields)).ok_or_else(|| {
                let message = "that Millpond cannot read";
                SqlError::new(format!("PostgreSQL's catalogs have a {what} {message}"))
                    .with_hint("use PostgreSQL 14 or later, and tell Millpond's developers")
            })?;
        }
        Ok(draft.finish())
    }
}

struct CatalogRow<'a>(Vec<Option<&'a str>>);

impl<'a> CatalogRow<'a> {
    fn text(&self, index: usize) -> Option<&'a str> {
        self.0.get(index).copied().flatten()
    }

    fn number<T: std::str::FromStr>(&self, index: usize) -> Option<T> {
        self.text(index)?.parse().ok()
    }

    /// NULL is false: an outer join found nothing.
    fn flag(&self, index: usize) -> bool {
        self.text(index) == Some("true")
    }

    fn letter(&self, index: usize) -> Option<char> {
        self.text(index)?.chars().next()
    }
}

struct CatalogBuilder {
    catalog: Catalog,
    columns: HashMap<u32, Vec<CatalogColumn>>,
}

impl CatalogBuilder {
    fn take(&mut self, what: &str, fields: &CatalogRow<'_>) -> Option<()> {
        let catalog = &mut self.catalog;
        match what {
            "relation" => {
                let relation = relation(fields)?;
                catalog.relations.insert(relation.oid, relation);
            }
            "column" => self
                .columns
                .entry(fields.number(0)?)
                .or_default()
                .push(CatalogColumn {
                    number: fields.number(1)?,
                    name: fields.text(2)?.to_owned(),
                    type_oid: fields.number(3)?,
                    collation: fields.number(4)?,
                    is_generated: !fields.text(5)?.is_empty(),
                    is_virtual: fields.text(5)? == "v",
                    in_identity: fields.flag(6),
                }),
            "indexed" => {
                let (table, column) = (fields.number(0)?, fields.number(1)?);
                catalog.indexed.insert((table, column, None));
                if fields.flag(2) {
                    catalog.unique.insert((table, column));
                }
            }
            "folded" => {
                let folds = [CaseFold::Lower, CaseFold::Upper].into_iter();
                let mut functions = folds.filter_map(CaseFold::function);
                let function = functions.rfind(|name| fields.text(2) == Some(*name));
                let key = (fields.number(0)?, fields.number(1)?, function);
                catalog.indexed.insert(key);
            }
            "check" => {
                let columns = fields.0.iter().skip(2).flatten();
                let columns = columns.map(|column| (*column).to_owned()).collect();
                let check = (fields.text(1)?.to_owned(), columns);
                catalog
                    .checks
                    .entry(fields.number(0)?)
                    .or_default()
                    .push(check);
            }
            "constraint" => {
                let names = catalog.constraints.entry(fields.number(0)?).or_default();
                names.insert(fields.text(1)?.to_owned());
            }
            "inherits" => {
                let (child, parent) = (fields.number(0)?, fields.number(1)?);
                catalog.children.entry(parent).or_default().push(child);
                catalog.parents.entry(child).or_default().push(parent);
            }
            "domain" => {
                catalog.domains.insert(fields.number(0)?, fields.number(1)?);
            }
            "collation" => {
                catalog.nondeterministic.insert(fields.number(0)?);
            }
            "publication" => {
                catalog.publication.exists = true;
                catalog.publication.complete = fields.flag(0);
            }
            "ungenerated" => catalog.publication.lacks_generated = true,
            "published" => {
                catalog.publication.tables.insert(fields.number(0)?);
            }
            "partial" => {
                catalog.publication.partial.insert(fields.number(0)?);
            }
            "trigger" => {
                let (table, kind) = (fields.number(0)?, fields.number(1)?);
                catalog.recording.trigger(table, kind, fields.flag(2));
            }
            "subscribed" => catalog.recording.subscribed(fields.number(0)?),
            _ => return None,
        }
        Some(())
    }

    fn finish(self) -> Catalog {
        let mut catalog = self.catalog;
        for (table, mut columns) in self.columns {
            if let Some(relation) = catalog.relations.get_mut(&table) {
                columns.sort_by_key(|column| column.number);
                let has_identity_column = columns.iter().any(|column| column.in_identity);
                if relation.identity == Identity::Columns && !has_identity_column {
                    relation.identity = Identity::None;
                }
                relation.columns = columns;
            }
        }
        let has_rows = |table: &u32| {
            catalog
                .relations
                .get(table)
                .is_some_and(|relation| matches!(relation.kind, 'r' | 'p'))
        };
        let alone = catalog
            .relations
            .keys()
            .filter(|table| has_rows(table))
            .map(|table| (*table, 0));
        let with_parent = catalog
            .parents
            .iter()
            .filter(|(table, _)| has_rows(table))
            .flat_map(|(table, parents)| parents.iter().map(|parent| (*table, *parent)));
        let families = Families::new(alone.chain(with_parent));
        Catalog {
            families,
            ..catalog
        }
    }
}

fn relation(fields: &CatalogRow<'_>) -> Option<Relation> {
    Some(Relation {
        oid: fields.number(0)?,
        schema: fields.text(1)?.to_owned(),
        name: fields.text(2)?.to_owned(),
        kind: fields.letter(3)?,
        persistence: fields.letter(4)?,
        identity: match fields.text(5)? {
            "f" => Identity::Full,
            "n" => Identity::None,
            _ => Identity::Columns,
        },
        row_security: fields.flag(6),
        is_partition: fields.flag(7),
        is_visible: fields.flag(8),
        may_select: fields.flag(9),
        is_small: fields.flag(10),
        columns: Vec::new(),
    })
}
