//! What a constraint that was violated is about, as far as the database says it.

/// The columns and the name of a violated constraint.
///
/// SQLite names the columns of UNIQUE and NOT NULL, the name or the condition of CHECK, and nothing
/// of FOREIGN KEY. PostgreSQL names the constraint, the column of NOT NULL, and the columns of a
/// key in the detail of its message. That detail also has the values of the row, which are not
/// kept: they must not appear in a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Violated {
    /// The columns, without their table.
    pub columns: Vec<String>,
    /// The name of the constraint, or on SQLite the condition of a CHECK without a name.
    pub constraint: Option<String>,
}

impl Violated {
    /// Reads SQLite's message: `UNIQUE constraint failed: album.title, album.year`.
    pub(crate) fn of_sqlite(message: &str) -> Self {
        let Some((kind, about)) = message.split_once(" constraint failed: ") else {
            // Of a STRICT table: `cannot store TEXT value in INTEGER column album.year`.
            let column = message.split_once(" column ");
            let column = column.filter(|_| message.starts_with("cannot store "));
            return Self {
                columns: column.map(|(_, name)| bare(name)).into_iter().collect(),
                constraint: None,
            };
        };
        if let Some(index) = about.strip_prefix("index '") {
            return Self {
                columns: Vec::new(),
                constraint: Some(index.trim_end_matches('\'').to_owned()),
            };
        }
        match kind {
            "UNIQUE" | "NOT NULL" => Self {
                columns: about.split(", ").map(bare).collect(),
                constraint: None,
            },
            _ => Self {
                columns: Vec::new(),
                constraint: Some(about.to_owned()),
            },
        }
    }

    /// Reads the fields of PostgreSQL's message. The detail begins with `Key (title, year)=(`, in
    /// the language of the server.
    pub(crate) fn of_postgres(
        column: Option<&str>,
        constraint: Option<&str>,
        detail: Option<&str>,
    ) -> Self {
        let key = detail.and_then(|detail| {
            let (_, rest) = detail.split_once('(')?;
            rest.split_once(")=(").map(|(key, _)| key)
        });
        let key = key.into_iter().flat_map(|key| key.split(", "));
        Self {
            columns: column.into_iter().chain(key).map(bare).collect(),
            constraint: constraint.map(str::to_owned),
        }
    }
}

/// A column without its table and its quotes.
fn bare(name: &str) -> String {
    let name = name.trim();
    match name
        .strip_prefix('"')
        .and_then(|name| name.strip_suffix('"'))
    {
        Some(quoted) => quoted.replace("\"\"", "\""),
        None => name.rsplit('.').next().unwrap_or(name).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sqlite_names_columns_or_a_condition() {
        for (message, columns, constraint) in [
            ("UNIQUE constraint failed: a.title", &["title"][..], None),
            (
                "UNIQUE constraint failed: a.title, a.year",
                &["title", "year"],
                None,
            ),
            ("NOT NULL constraint failed: a.title", &["title"], None),
            (
                "CHECK constraint failed: length(title) < 40",
                &[],
                Some("length(title) < 40"),
            ),
            (
                "UNIQUE constraint failed: index 'by_lower'",
                &[],
                Some("by_lower"),
            ),
            ("FOREIGN KEY constraint failed", &[], None),
            (
                "cannot store TEXT value in INTEGER column a.year",
                &["year"],
                None,
            ),
            ("what a trigger says in column x", &[], None),
        ] {
            let found = Violated::of_sqlite(message);
            assert_eq!(found.columns, columns, "{message}");
            assert_eq!(found.constraint.as_deref(), constraint, "{message}");
        }
    }

    #[test]
    fn postgresql_names_them_in_fields_and_in_the_detail() {
        let of = |column, constraint, detail| Violated::of_postgres(column, constraint, detail);
        let unique = of(
            None,
            Some("album_title_key"),
            Some("Key (title, \"Year\")=(a (b)=(, 2) already exists."),
        );
        assert_eq!(unique.columns, ["title", "Year"]);
        assert_eq!(unique.constraint.as_deref(), Some("album_title_key"));
        let null = of(
            Some("title"),
            None,
            Some("Failing row contains (1, null, secret)."),
        );
        assert_eq!(null.columns, ["title"]);
        assert_eq!(of(None, None, Some("(")).columns, [""; 0]);
    }
}
