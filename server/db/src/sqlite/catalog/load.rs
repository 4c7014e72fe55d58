//! Reads the schema. It is above the analysis, which reads the texts of views.

use std::collections::HashMap;
use std::ffi::CString;

use rusqlite::Connection;

use super::{Catalog, CatalogColumn, CatalogTable, SchemaKey, TableKind, VirtualTable};
use crate::ValueKind;
use crate::precision::{CaseFold, ValueClass};
use crate::sql::{Dialect, Lexer, Token};
use crate::sqlite::analysis::ViewText;

impl Catalog {
    /// Reads the schema. To be called inside the transaction whose schema is needed.
    pub(crate) fn load(connection: &Connection, key: SchemaKey) -> rusqlite::Result<Self> {
        let encoding: String = connection.query_row("PRAGMA encoding", [], |row| row.get(0))?;
        let utf8 = encoding.eq_ignore_ascii_case("UTF-8");
        let mut listed = connection
            .prepare_cached("SELECT name, type, wr FROM pragma_table_list WHERE schema = 'main'")?;
        let listed: Vec<(String, String, bool)> = listed
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
            .collect::<Result<_, _>>()?;
        let shadows: Vec<String> = listed
            .iter()
            .filter(|(_, kind, _)| kind == "shadow")
            .map(|(name, ..)| name.to_ascii_lowercase())
            .collect();
        let mut tables = HashMap::with_capacity(listed.len());
        for (name, kind, without_rowid) in listed {
            if name.to_ascii_lowercase().starts_with("sqlite_") {
                continue;
            }
            let kind = match kind.as_str() {
                "view" => TableKind::View,
                "virtual" => TableKind::Virtual(virtual_table(connection, &name, &shadows)?),
                "shadow" => TableKind::Shadow,
                _ => TableKind::Table,
            };
            // A view without its table, or a virtual table without its module, has no columns to
            // list. Preparing a statement that uses it fails.
            let Ok(mut table) = table(connection, &name, kind, !without_rowid, utf8) else {
                continue;
            };
            if table.kind == TableKind::View {
                let text = ViewText::of(&view_text(connection, &name)?);
                (table.query, table.names, table.clock) = (text.query, text.names, text.clock);
            }
            tables.insert(name.to_ascii_lowercase(), table);
        }
        Ok(Self { key, tables })
    }
}

fn table(
    connection: &Connection,
    name: &str,
    kind: TableKind,
    has_rowid: bool,
    utf8: bool,
) -> rusqlite::Result<CatalogTable> {
    let stored = matches!(kind, TableKind::Table | TableKind::Shadow);
    let mut info = connection
        .prepare_cached("SELECT name, type, pk, hidden, \"notnull\" FROM pragma_table_xinfo(?1)")?;
    let info: Vec<(String, String, i64, i64, bool)> = info
        .query_map([name], |row| {
            Ok((
                row.get(0)?,
                row.get(1)?,
                row.get(2)?,
                row.get(3)?,
                row.get(4)?,
            ))
        })?
        .collect::<Result<_, _>>()?;
    let generated = info.iter().any(|(.., hidden, _)| matches!(hidden, 2 | 3));
    let key_columns = info.iter().filter(|(_, _, pk, ..)| *pk > 0).count();
    let mut columns = Vec::with_capacity(info.len());
    let mut rowid_column = None;
    for (index, (column, declared, pk, _, not_null)) in info.iter().enumerate() {
        let collation = match stored && utf8 {
            true => collation(connection, name, column)?,
            false => None,
        };
        let is_by = |known: &str| {
            let collation = collation.as_ref();
            collation.is_some_and(|name| name.eq_ignore_ascii_case(known))
        };
        let binary = is_by("BINARY");
        let text = match binary {
            true => Some(ValueClass::Text),
            false => is_by("NOCASE").then_some(ValueClass::Folded(CaseFold::Collation)),
        };
        let affinity = Affinity::of(declared);
        if stored
            && has_rowid
            && *pk > 0
            && key_columns == 1
            && is_rowid_alias(connection, name, declared)?
        {
            rowid_column = Some(index);
        }
        columns.push(CatalogColumn {
            name: column.to_ascii_lowercase(),
            kind: affinity.kind(declared),
            class: affinity.class(text),
            is_never_null: *not_null,
            has_binary_order: binary,
        });
    }
    Ok(CatalogTable {
        kind,
        columns,
        rowid_column,
        has_rowid: has_rowid && stored,
        can_narrow: stored && !generated,
        query: None,
        names: None,
        clock: None,
    })
}

/// `CREATE VIEW …`, as SQLite keeps it.
fn view_text(connection: &Connection, name: &str) -> rusqlite::Result<String> {
    connection
        .prepare_cached("SELECT sql FROM sqlite_schema WHERE type = 'view' AND name = ?1")?
        .query_row([name], |row| row.get(0))
}

/// True if a primary key with the type `declared` is an alias of the rowid. `INTEGER PRIMARY KEY`
/// is one, unless it is declared `DESC`, which makes it an ordinary column with an index.
fn is_rowid_alias(connection: &Connection, table: &str, declared: &str) -> rusqlite::Result<bool> {
    if !declared.eq_ignore_ascii_case("INTEGER") {
        return Ok(false);
    }
    let mut index = connection
        .prepare_cached("SELECT count(*) FROM pragma_index_list(?1) WHERE origin = 'pk'")?;
    Ok(index.query_row([table], |row| row.get::<_, i64>(0))? == 0)
}

fn collation(
    connection: &Connection,
    table: &str,
    column: &str,
) -> rusqlite::Result<Option<String>> {
    let (table, column) = (CString::new(table)?, CString::new(column)?);
    let (_, collation, ..) =
        connection.column_metadata(Some(c"main"), table.as_c_str(), column.as_c_str())?;
    Ok(collation
        .and_then(|name| name.to_str().ok())
        .map(str::to_owned))
}

/// SQLite's column affinities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Affinity {
    Integer,
    Text,
    Blob,
    Real,
    Numeric,
}

impl Affinity {
    /// The rules of <https://www.sqlite.org/datatype3.html>, section 3.1, in their order.
    fn of(declared: &str) -> Self {
        let declared = declared.to_ascii_uppercase();
        let has = |part| declared.contains(part);
        if has("INT") {
            Self::Integer
        } else if has("CHAR") || has("CLOB") || has("TEXT") {
            Self::Text
        } else if has("BLOB") || declared.is_empty() {
            Self::Blob
        } else if has("REAL") || has("FLOA") || has("DOUB") {
            Self::Real
        } else {
            Self::Numeric
        }
    }

    fn kind(self, declared: &str) -> Option<ValueKind> {
        match self {
            Self::Blob if !declared.is_empty() => Some(ValueKind::Blob),
            Self::Integer => Some(ValueKind::Integer),
            Self::Text => Some(ValueKind::Text),
            Self::Real => Some(ValueKind::Real),
            Self::Blob | Self::Numeric => None,
        }
    }

    /// The class of a column, whose texts have that class.
    fn class(self, text: Option<ValueClass>) -> Option<ValueClass> {
        match self {
            Self::Integer => Some(ValueClass::Integer),
            Self::Text => text,
            _ => None,
        }
    }
}

fn virtual_table(
    connection: &Connection,
    name: &str,
    shadows: &[String],
) -> rusqlite::Result<VirtualTable> {
    let sql: String = connection
        .prepare_cached("SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?1")?
        .query_row([name], |row| row.get(0))?;
    let (module, arguments) = module(&sql);
    let prefix = format!("{}_", name.to_ascii_lowercase());
    let shadows = shadows
        .iter()
        .filter(|shadow| shadow.starts_with(&prefix))
        .cloned()
        .collect();
    let content = arguments
        .iter()
        .find_map(|argument| option(argument, "content"))
        .filter(|content| !content.is_empty());
    Ok(VirtualTable {
        module,
        shadows,
        content: content.map(|name| name.to_ascii_lowercase()),
    })
}

/// The module of `CREATE VIRTUAL TABLE name USING module(arguments)`, and its arguments.
///
/// SQLite stores the statement as it was written, so the name before USING may be quoted and
/// contain any text, including `using`.
fn module(sql: &str) -> (String, Vec<Vec<Token<'_>>>) {
    let tokens = Lexer::new(sql, Dialect::Sqlite).significant();
    let using = tokens.iter().position(|token| token.is_word("using"));
    let rest = using.map_or(&[][..], |at| &tokens[at + 1..]);
    let Some((name, arguments)) = rest.split_first() else {
        return (String::new(), Vec::new());
    };
    let inner = arguments.iter().skip(1).copied().collect::<Vec<_>>();
    let arguments = inner.split(|token| token.is_sign(",") || token.is_sign(")"));
    (
        name.content().to_ascii_lowercase(),
        arguments.map(<[_]>::to_vec).collect(),
    )
}

/// The value of the argument `name = value`, if `argument` has that name. FTS5 accepts any
/// abbreviation of a name.
fn option(argument: &[Token<'_>], name: &str) -> Option<String> {
    let [key, equals, value, ..] = argument else {
        return None;
    };
    let is_key = name.starts_with(&key.text.to_ascii_lowercase());
    (is_key && equals.is_sign("=")).then(|| value.content())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_virtual_table_statement() {
        let check = |sql: &str| {
            let (module, arguments) = module(sql);
            (
                module,
                arguments
                    .iter()
                    .find_map(|argument| option(argument, "content")),
            )
        };
        assert_eq!(
            check("CREATE VIRTUAL TABLE f USING fts5(title, body)"),
            ("fts5".into(), None)
        );
        assert_eq!(
            check(
                "create virtual table \"using x\" using FTS5 (title,\n content = 'an article', content_rowid=id)"
            ),
            ("fts5".into(), Some("an article".into()))
        );
        assert_eq!(
            check("CREATE VIRTUAL TABLE f USING fts5(a, content='')"),
            ("fts5".into(), Some(String::new()))
        );
        assert_eq!(
            check("CREATE VIRTUAL TABLE f USING fts5(a, content=\"b\"\"c\")"),
            ("fts5".into(), Some("b\"c".into()))
        );
        assert_eq!(
            check("CREATE VIRTUAL TABLE s USING dbstat"),
            ("dbstat".into(), None)
        );
    }

    #[test]
    fn affinity_follows_the_declared_type() {
        let check = |declared| Affinity::of(declared);
        assert_eq!(check("BIGINT"), Affinity::Integer);
        assert_eq!(check("CHARINT"), Affinity::Integer);
        assert_eq!(check("varchar(20)"), Affinity::Text);
        assert_eq!(check(""), Affinity::Blob);
        assert_eq!(check("DOUBLE PRECISION"), Affinity::Real);
        assert_eq!(check("BOOLEAN"), Affinity::Numeric);
        assert_eq!(check("FLOATING POINT"), Affinity::Integer);
    }
}
