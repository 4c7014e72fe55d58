//! The unique keys of a table, by which OR REPLACE removes rows.

use rusqlite::Connection;

/// A column of a unique key.
pub(super) struct KeyColumn {
    pub(super) name: String,
    pub(super) collation: String,
    /// OR REPLACE stores the default where such a column is given a null.
    pub(super) has_default_for_null: bool,
}

/// The unique indexes of a table.
pub(super) struct UniqueKeys {
    pub(super) keys: Vec<Vec<KeyColumn>>,
    /// False if a unique index is partial or on an expression.
    pub(super) are_plain: bool,
}

impl UniqueKeys {
    pub(super) fn of(connection: &Connection, table: &str) -> rusqlite::Result<Self> {
        let mut list = connection.prepare_cached(
            "SELECT name, partial FROM pragma_index_list(?1) WHERE \"unique\" ORDER BY name",
        )?;
        let indexes: Vec<(String, bool)> = list
            .query_map([table], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<Result<_, _>>()?;
        let mut found = Self {
            keys: Vec::new(),
            are_plain: true,
        };
        for (index, is_partial) in indexes {
            let columns = columns(connection, table, &index)?;
            match columns.filter(|_| !is_partial) {
                Some(key) => found.keys.push(key),
                None => found.are_plain = false,
            }
        }
        Ok(found)
    }
}

/// The columns of an index; `None` if one of them is an expression.
fn columns(
    connection: &Connection,
    table: &str,
    index: &str,
) -> rusqlite::Result<Option<Vec<KeyColumn>>> {
    let mut info = connection.prepare_cached(
        "SELECT x.name, x.coll, coalesce(t.\"notnull\" AND t.dflt_value IS NOT NULL, 0)
         FROM pragma_index_xinfo(?1) x LEFT JOIN pragma_table_xinfo(?2) t ON t.cid = x.cid
         WHERE x.key ORDER BY x.seqno",
    )?;
    let columns = info.query_map([index, table], |row| {
        let name: Option<String> = row.get(0)?;
        let collation = row.get(1)?;
        let has_default_for_null = row.get(2)?;
        Ok(name.map(|name| KeyColumn {
            name,
            collation,
            has_default_for_null,
        }))
    })?;
    columns.collect()
}
