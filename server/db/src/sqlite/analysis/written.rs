//! The constraints of the tables that a statement writes, for messages about them.

use rusqlite::Connection;

use crate::named_constraints::NamedConstraints;
use crate::written_schema::NamedKey;
use crate::{ConstraintKind, WrittenSchema};

/// The constraints of tables: what cannot be read is left out.
pub(super) fn schema<'t>(
    connection: &Connection,
    tables: impl Iterator<Item = &'t String>,
) -> WrittenSchema {
    let mut schema = WrittenSchema::default();
    for table in tables {
        // An error ends the reading of this table only.
        let _ = add(connection, table, &mut schema);
    }
    schema
}

fn add(connection: &Connection, table: &str, schema: &mut WrittenSchema) -> rusqlite::Result<()> {
    let texts = |sql: &str| -> rusqlite::Result<Vec<String>> {
        let mut statement = connection.prepare_cached(sql)?;
        let rows = statement.query_map([table], |row| row.get(0))?;
        rows.collect()
    };
    let keys = "select \"from\" from pragma_foreign_key_list(?1)";
    schema.references.extend(texts(keys)?);
    let create = "select sql from sqlite_schema where type = 'table' and lower(name) = ?1";
    for text in texts(create)? {
        let named = NamedConstraints::read(&text);
        schema.checks.extend(named.checks);
        schema.keys.extend(named.keys);
    }
    let unique = "select name from pragma_index_list(?1) where \"unique\" and origin = 'c'";
    for name in texts(unique)? {
        let mut statement =
            connection.prepare_cached("select name from pragma_index_info(?1) order by seqno")?;
        let columns = statement.query_map([&name], |row| row.get(0))?;
        let columns: Vec<Option<String>> = columns.collect::<rusqlite::Result<_>>()?;
        match columns.into_iter().collect() {
            Some(columns) => schema.keys.push(NamedKey {
                name,
                kind: ConstraintKind::Unique,
                columns,
            }),
            // An index on expressions: SQLite says its name.
            None => schema.names.push(name),
        }
    }
    Ok(())
}
