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

use millpond_site_format::access::passive;

/// The text for the database, and how places in it correspond to those in the owner's text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct RewrittenSql {
    pub(super) sql: String,
    /// What was replaced, in order.
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

/// What a site declares of its parameters.
pub(super) struct Declared<'d> {
    pub(super) is_postgres: bool,
    /// What gives a list its declared type on PostgreSQL; none if a parameter is no list.
    pub(super) list: &'d dyn Fn(&str) -> Option<&'static str>,
    /// The SQL in the place of a parameter that chooses an order.
    pub(super) order: &'d dyn Fn(&str) -> Option<&'d str>,
    /// What follows a parameter so that it has the declared type, as `::text`; often nothing.
    pub(super) cast: &'d dyn Fn(&str) -> &'static str,
}

/// Rewrites one statement.
pub(super) fn rewrite(sql: &str, declared: &Declared<'_>) -> RewrittenSql {
    let mut rewritten = RewrittenSql::default();
    // The beginning of a `not` with nothing behind it but blanks.
    let mut negation = None;
    let mut at = 0;
    while at < sql.len() {
        let length = match token(&sql[at..]) {
            SqlToken::Blank(length) => {
                at += length;
                continue;
            }
            SqlToken::Word(word) => {
                let list = list(&sql[at + word.len()..]).filter(|(name, _)| {
                    word.eq_ignore_ascii_case("in") && (declared.list)(name).is_some()
                });
                if let Some((name, length)) = list {
                    let start = negation.unwrap_or(at);
                    let end = at + word.len() + length;
                    let list = format!(":{name}{}", (declared.cast)(name));
                    let text = membership(&list, negation.is_some(), declared.is_postgres);
                    rewritten.replace(sql, start..end, &text);
                    at = end;
                    negation = None;
                    continue;
                }
                negation = word.eq_ignore_ascii_case("not").then_some(at);
                at += word.len();
                continue;
            }
            SqlToken::Parameter(name) => {
                let length = 1 + name.len();
                let list = (declared.list)(name);
                if let Some((of_type, (is_empty, more))) = list.zip(null_test(&sql[at + length..]))
                {
                    let test = emptiness(name, of_type, is_empty, declared.is_postgres);
                    rewritten.replace(sql, at..at + length + more, &test);
                    at += length + more;
                    negation = None;
                    continue;
                }
                let cast = (declared.cast)(name);
                if let Some(order) = (declared.order)(name) {
                    rewritten.replace(sql, at..at + length, order);
                } else if !cast.is_empty() {
                    let typed = format!(":{name}{cast}");
                    rewritten.replace(sql, at..at + length, &typed);
                }
                length
            }
            SqlToken::Other(length) => length,
        };
        at += length;
        negation = None;
    }
    let copied = rewritten.edits.last().map_or(0, |edit| edit.written.end);
    rewritten.sql.push_str(&sql[copied..]);
    rewritten
}

/// The parameters that stand in a statement, each with its place.
pub(super) fn parameters(sql: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < sql.len() {
        at += match token(&sql[at..]) {
            SqlToken::Blank(length) | SqlToken::Other(length) => length,
            SqlToken::Word(word) => word.len(),
            SqlToken::Parameter(name) => {
                found.push((at, name));
                1 + name.len()
            }
        };
    }
    found
}

enum SqlToken<'s> {
    /// Blanks and comments.
    Blank(usize),
    /// A keyword, a name or a number.
    Word(&'s str),
    /// Without its colon.
    Parameter(&'s str),
    Other(usize),
}

/// The first token of a text that is not empty.
fn token(text: &str) -> SqlToken<'_> {
    let bytes = text.as_bytes();
    if let Some(length) = passive(bytes) {
        return match bytes[0] {
            b'-' | b'/' => SqlToken::Blank(length),
            _ => SqlToken::Other(length),
        };
    }
    let blank = text.len() - text.trim_start().len();
    if blank > 0 {
        return SqlToken::Blank(blank);
    }
    match word(text) {
        "" => {}
        word => return SqlToken::Word(word),
    }
    match text.strip_prefix(':') {
        // A cast, as in `x::text`.
        Some(rest) if rest.starts_with(':') => SqlToken::Other(2 + word(&rest[1..]).len()),
        Some(rest) if !word(rest).is_empty() => SqlToken::Parameter(word(rest)),
        _ => SqlToken::Other(text.chars().next().map_or(1, char::len_utf8)),
    }
}

/// The letters, digits and `_` at the beginning.
fn word(text: &str) -> &str {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    &text[..end]
}

/// `(:name)` at the beginning: the name, and the length.
fn list(text: &str) -> Option<(&str, usize)> {
    let rest = skip_blanks(text).strip_prefix('(')?;
    let SqlToken::Parameter(name) = token(skip_blanks(rest)) else {
        return None;
    };
    let rest = skip_blanks(&skip_blanks(rest)[1 + name.len()..]).strip_prefix(')')?;
    Some((name, text.len() - rest.len()))
}

/// `is null` or `is not null` at the beginning: whether it is the first, and the length.
fn null_test(text: &str) -> Option<(bool, usize)> {
    let behind = |text: &'_ str, wanted: &str| -> Option<usize> {
        let rest = skip_blanks(text);
        let found = word(rest);
        let end = text.len() - rest.len() + found.len();
        found.eq_ignore_ascii_case(wanted).then_some(end)
    };
    let is = behind(text, "is")?;
    let not = behind(&text[is..], "not");
    let start = is + not.unwrap_or_default();
    let null = behind(&text[start..], "null")?;
    Some((not.is_none(), start + null))
}

/// Whether a list is empty: no value of a request is the same as none at all.
fn emptiness(name: &str, of_type: &str, is_empty: bool, is_postgres: bool) -> String {
    let sign = if is_empty { "=" } else { "<>" };
    match is_postgres {
        true => format!("(cardinality(:{name}{of_type}) {sign} 0)"),
        false => format!("(json_array_length(:{name}) {sign} 0)"),
    }
}

fn skip_blanks(mut text: &str) -> &str {
    while !text.is_empty()
        && let SqlToken::Blank(length) = token(text)
    {
        text = &text[length..];
    }
    text
}

fn membership(list: &str, is_negated: bool, is_postgres: bool) -> String {
    match (is_postgres, is_negated) {
        (true, false) => format!("= any ({list})"),
        (true, true) => format!("<> all ({list})"),
        (false, false) => format!("in (select value from json_each({list}))"),
        (false, true) => format!("not in (select value from json_each({list}))"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(sql: &str, is_postgres: bool) -> RewrittenSql {
        let declared = Declared {
            is_postgres,
            list: &|name| (name == "ids").then_some("::bigint[]"),
            order: &|name| (name == "sort").then_some("a.title desc"),
            cast: &|_| "",
        };
        rewrite(sql, &declared)
    }

    #[test]
    fn a_type_follows_each_place_of_its_parameter() {
        let declared = Declared {
            is_postgres: true,
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
            assert_eq!(rewritten(sql, false).sql, sqlite);
            assert_eq!(rewritten(sql, true).sql, postgres);
        }
    }

    #[test]
    fn a_place_is_that_in_the_owners_text() {
        let sql = "select a in (:ids), wrong from t order by :sort, bad";
        for is_postgres in [false, true] {
            let rewritten = rewritten(sql, is_postgres);
            for word in ["select a", "wrong", " t ", "bad"] {
                let given = rewritten.sql.find(word).unwrap();
                assert_eq!(rewritten.place(given), sql.find(word).unwrap(), "{word}");
            }
            let inside = rewritten.sql.find("title").unwrap();
            assert_eq!(rewritten.place(inside), sql.find(":sort").unwrap());
        }
        assert_eq!(parameters(sql), [(13, "ids"), (42, "sort")]);
    }
}
