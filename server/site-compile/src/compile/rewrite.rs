//! The owner's SQL as the database gets it: lists and orders take the place of their parameters.
//!
//! | written | SQLite | PostgreSQL |
//! |---|---|---|
//! | `in (:ids)` | `in (select value from json_each(:ids))` | `= any (:ids)` |
//! | `not in (:ids)` | `not in (select value from json_each(:ids))` | `<> all (:ids)` |
//! | `:ids is null` | `(json_array_length(:ids) = 0)` | `(cardinality(:ids::bigint[]) = 0)` |
//! | `:ids is not null` | `(json_array_length(:ids) <> 0)` | `(cardinality(:ids::bigint[]) <> 0)` |
//! | `order by :sort` | `order by a.title desc` | the same |
//! | `:name`, whose type PostgreSQL does not find | as written | `:name::text` |

use std::ops::Range;

use millpond_db::sql::{Dialect, Lexer, Token};

/// The text for the database, and how places in it correspond to those in the owner's text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct RewrittenSql {
    pub(super) sql: String,
    /// Replaced parts, in order.
    edits: Vec<Edit>,
}

#[derive(Debug, PartialEq, Eq)]
struct Edit {
    written: Range<usize>,
    given: Range<usize>,
}

impl RewrittenSql {
    /// The place in the owner's text.
    pub(super) fn place(&self, offset: usize) -> usize {
        let before = self
            .edits
            .iter()
            .take_while(|edit| edit.given.start <= offset);
        match before.last() {
            None => offset,
            Some(edit) if offset < edit.given.end => edit.written.start,
            Some(edit) => edit.written.end + (offset - edit.given.end),
        }
    }

    fn replace(&mut self, sql: &str, written: Range<usize>, text: &str) {
        let copied = self.edits.last().map_or(0, |edit| edit.written.end);
        self.sql.push_str(&sql[copied..written.start]);
        let start = self.sql.len();
        self.sql.push_str(text);
        let given = start..self.sql.len();
        self.edits.push(Edit { written, given });
    }
}

/// Declarations of parameters in a site.
pub(super) struct Declared<'d> {
    pub(super) dialect: Dialect,
    /// Function that gives a list its declared type on PostgreSQL; none if a parameter is no list.
    pub(super) list: &'d dyn Fn(&str) -> Option<&'static str>,
    /// The SQL in the place of a parameter that chooses an order.
    pub(super) order: &'d dyn Fn(&str) -> Option<&'d str>,
    /// Text behind a parameter by which it has the declared type, as `::text`; often empty.
    pub(super) cast: &'d dyn Fn(&str) -> &'static str,
}

/// Rewrites one statement.
pub(super) fn rewrite(sql: &str, declared: &Declared<'_>) -> RewrittenSql {
    let tokens = Lexer::new(sql, declared.dialect).significant();
    let mut rewritten = RewrittenSql::default();
    let mut at = 0;
    while let Some(rest) = tokens.get(at..).filter(|rest| !rest.is_empty()) {
        let replaced = declared
            .membership(rest)
            .or_else(|| declared.null_test(rest))
            .or_else(|| declared.parameter(rest[0]));
        let Some((text, count)) = replaced else {
            at += 1;
            continue;
        };
        let last = rest[count - 1];
        rewritten.replace(sql, rest[0].start..last.end(), &text);
        at += count;
    }
    let copied = rewritten.edits.last().map_or(0, |edit| edit.written.end);
    rewritten.sql.push_str(&sql[copied..]);
    rewritten
}

/// The text that takes the place of tokens, and how many these are.
type Replaced = (String, usize);

impl Declared<'_> {
    /// Rewrites `in (:ids)` and `not in (:ids)`.
    fn membership(&self, tokens: &[Token<'_>]) -> Option<Replaced> {
        let is_negated = tokens[0].is_word("not");
        let [word, open, name, close, ..] = &tokens[usize::from(is_negated)..] else {
            return None;
        };
        let is_list = word.is_word("in") && open.is_sign("(") && close.is_sign(")");
        let name = name.parameter().filter(|_| is_list)?;
        (self.list)(name)?;
        let list = format!(":{name}{}", (self.cast)(name));
        let text = membership(&list, is_negated, self.dialect);
        Some((text, 4 + usize::from(is_negated)))
    }

    /// Rewrites `:ids is null` and `:ids is not null`: no value of a request is the same as none at
    /// all.
    fn null_test(&self, tokens: &[Token<'_>]) -> Option<Replaced> {
        let name = tokens[0].parameter()?;
        let of_type = (self.list)(name)?;
        let is = |at: usize, word: &str| tokens.get(at).is_some_and(|token| token.is_word(word));
        let is_negated = is(2, "not");
        let last = 2 + usize::from(is_negated);
        let sign = if is_negated { "<>" } else { "=" };
        let text = match self.dialect {
            Dialect::Postgres => format!("(cardinality(:{name}{of_type}) {sign} 0)"),
            Dialect::Sqlite => format!("(json_array_length(:{name}) {sign} 0)"),
        };
        (is(1, "is") && is(last, "null")).then_some((text, last + 1))
    }

    /// Rewrites an order, and a parameter whose type follows it.
    fn parameter(&self, token: Token<'_>) -> Option<Replaced> {
        let name = token.parameter()?;
        if let Some(order) = (self.order)(name) {
            return Some((order.to_owned(), 1));
        }
        let cast = (self.cast)(name);
        (!cast.is_empty()).then(|| (format!(":{name}{cast}"), 1))
    }
}

fn membership(list: &str, is_negated: bool, dialect: Dialect) -> String {
    match (dialect, is_negated) {
        (Dialect::Postgres, false) => format!("= any ({list})"),
        (Dialect::Postgres, true) => format!("<> all ({list})"),
        (Dialect::Sqlite, false) => format!("in (select value from json_each({list}))"),
        (Dialect::Sqlite, true) => format!("not in (select value from json_each({list}))"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(sql: &str, dialect: Dialect) -> RewrittenSql {
        let declared = Declared {
            dialect,
            list: &|name| (name == "ids").then_some("::bigint[]"),
            order: &|name| (name == "sort").then_some("a.title desc"),
            cast: &|_| "",
        };
        rewrite(sql, &declared)
    }

    #[test]
    fn a_type_follows_each_place_of_its_parameter() {
        let declared = Declared {
            dialect: Dialect::Postgres,
            list: &|name| (name == "ids").then_some("::bigint[]"),
            order: &|_| None,
            cast: &|name| match name {
                "ids" => "::bigint[]",
                "a" => "::text",
                _ => "",
            },
        };
        let sql = "select ':a', x::a where :a is null or b = :a and id in (:ids) and :ab, :b";
        let typed = rewrite(sql, &declared);
        assert_eq!(
            typed.sql,
            "select ':a', x::a where :a::text is null or b = :a::text and id = any (:ids::bigint[]) and :ab, :b"
        );
        let at = typed.sql.find(":ab").unwrap();
        assert_eq!(typed.place(at), sql.find(":ab").unwrap());
    }

    #[test]
    fn lists_and_orders_take_the_place_of_their_parameters() {
        for (sql, sqlite, postgres) in [
            (
                "where id in (:ids) and a = :b",
                "where id in (select value from json_each(:ids)) and a = :b",
                "where id = any (:ids) and a = :b",
            ),
            (
                "where id NOT /* in */ In\n( :ids ) order by :sort, id",
                "where id not in (select value from json_each(:ids)) order by a.title desc, id",
                "where id <> all (:ids) order by a.title desc, id",
            ),
            (
                "where :ids is null or id in (:ids) and :ids IS /* x */ Not\nnull",
                "where (json_array_length(:ids) = 0) or id in (select value from json_each(:ids)) and (json_array_length(:ids) <> 0)",
                "where (cardinality(:ids::bigint[]) = 0) or id = any (:ids) and (cardinality(:ids::bigint[]) <> 0)",
            ),
            (
                ":ids is nulls, :id is null, :ids is",
                ":ids is nulls, :id is null, :ids is",
                ":ids is nulls, :id is null, :ids is",
            ),
            ("id in (:id)", "id in (:id)", "id in (:id)"),
            ("id in (:ids, 1)", "id in (:ids, 1)", "id in (:ids, 1)"),
            ("id in (:idss)", "id in (:idss)", "id in (:idss)"),
            ("x::sort, :a::ids", "x::sort, :a::ids", "x::sort, :a::ids"),
            (
                "'in (:ids)' -- in (:ids) :sort\n\"in (:ids)\" within (:ids)",
                "'in (:ids)' -- in (:ids) :sort\n\"in (:ids)\" within (:ids)",
                "'in (:ids)' -- in (:ids) :sort\n\"in (:ids)\" within (:ids)",
            ),
            (
                "not exists (:ids)",
                "not exists (:ids)",
                "not exists (:ids)",
            ),
            ("é in (:é) :", "é in (:é) :", "é in (:é) :"),
            ("in (:ids", "in (:ids", "in (:ids"),
            ("", "", ""),
        ] {
            assert_eq!(rewritten(sql, Dialect::Sqlite).sql, sqlite);
            assert_eq!(rewritten(sql, Dialect::Postgres).sql, postgres);
        }
    }

    #[test]
    fn a_place_is_that_in_the_owners_text() {
        let sql = "select a in (:ids), wrong from t order by :sort, bad";
        for dialect in [Dialect::Sqlite, Dialect::Postgres] {
            let rewritten = rewritten(sql, dialect);
            for word in ["select a", "wrong", " t ", "bad"] {
                let given = rewritten.sql.find(word).unwrap();
                assert_eq!(rewritten.place(given), sql.find(word).unwrap(), "{word}");
            }
            let inside = rewritten.sql.find("title").unwrap();
            assert_eq!(rewritten.place(inside), sql.find(":sort").unwrap());
        }
    }
}
