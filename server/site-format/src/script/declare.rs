//! `-- param:` and `-- order:` lines.
//!
//! ```sql
//! -- param: page integer = 1
//! -- param: genre integer = null
//! -- param: day date from 2026-01-01
//! -- param: size text in (s, m, l) = m
//! -- param: track integer[]
//! -- param: title text length from 1 to 200
//! -- param: quantity integer[] as sent
//! -- order: sort: title = "a.title, a.id", -title = "a.title desc, a.id"
//! ```

use millpond_db::{
    Value, ValueKind,
    sql::{Dialect, Lexer, TokenKind},
};

use super::{
    Complaint,
    range::{ParamType, formatted, range, type_of},
};
use crate::{
    access::RESERVED, param_value::shown, parameter_names::is_name, suggest::closest,
    value_rules::ValueRules,
};

/// A `-- param:` line.
#[derive(Clone, Debug, PartialEq)]
pub struct Declaration {
    pub name: String,
    pub kind: ValueKind,
    /// True if it takes any number of values.
    pub is_list: bool,
    /// The values that it may have; any if there are none here.
    pub choices: Vec<Value>,
    /// Further rules for the value.
    pub rules: ValueRules,
    pub default: Option<Value>,
    /// From 1; 0 if a folder's file declares it.
    pub line: usize,
}

/// An `-- order:` line: what takes the place of `:name` in a query, for each value.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderLine {
    pub name: String,
    pub choices: Vec<(String, String)>,
    pub line: usize,
}

impl OrderLine {
    /// The parameter that chooses. Without a value, the first order is taken.
    pub fn declaration(&self) -> Declaration {
        let value = |(value, _): &(String, String)| Value::from(value.as_str());
        Declaration {
            name: self.name.clone(),
            kind: ValueKind::Text,
            is_list: false,
            choices: self.choices.iter().map(value).collect(),
            rules: ValueRules::default(),
            default: self.choices.first().map(value),
            line: self.line,
        }
    }
}

pub(super) fn complain<T>(
    message: impl Into<String>,
    hint: impl Into<String>,
) -> Result<T, Complaint> {
    Err((message.into(), Some(hint.into())))
}

/// Reads what stands behind `-- param:`.
pub(super) fn declaration(rest: &str, line: usize) -> Result<Declaration, Complaint> {
    const EXAMPLE: &str =
        "for example: -- param: page integer = 1, or = null if it may be left out";
    let without_type = || complain("a parameter needs a name and a type", EXAMPLE);
    let Some((name, rest)) = rest.split_once(char::is_whitespace) else {
        return without_type();
    };
    name_of_parameter(name, EXAMPLE)?;
    let rest = rest.trim_start();
    let end = rest.find(|c: char| c.is_whitespace() || matches!(c, '=' | '('));
    let (word, rest) = rest.split_at(end.unwrap_or(rest.len()));
    if word.is_empty() {
        return without_type();
    }
    let of = type_of(name, word)?;
    let ParamType { kind, is_list, .. } = of;
    let rest = rest.trim_start();
    let (choices, rest) = match rest.strip_prefix("in").map(str::trim_start) {
        Some(list) if list.starts_with('(') => values(of, &list[1..])?,
        _ => (Vec::new(), rest),
    };
    let (rules, rest) = range(of, rest.trim_start())?;
    if rules.range().is_some() && !choices.is_empty() {
        return complain("a parameter has values or a range", "remove one of them");
    }
    let default = match rest.trim() {
        "" => None,
        rest => match rest.strip_prefix('=') {
            Some(default) => Some(default.trim()),
            None => return complain(format!("`{rest}` stands behind the type"), EXAMPLE),
        },
    };
    if is_list && default.is_some() {
        return complain(
            format!("`{name}` is a list, and a list has no default"),
            "remove the default: without a value the list is empty",
        );
    }
    let default = default
        .map(|text| default_value(of, text, &choices, &rules))
        .transpose()?;
    Ok(Declaration {
        name: name.to_owned(),
        kind,
        is_list,
        choices,
        rules,
        default,
        line,
    })
}

pub(super) fn name_of_parameter(name: &str, example: &str) -> Result<(), Complaint> {
    if !is_name(name) {
        return complain(format!("`{name}` is no name for a parameter"), example);
    }
    if name.starts_with(RESERVED) {
        return complain(
            format!("names that begin with `{RESERVED}` are those of claims"),
            "what a session says is written :claims.name, and needs no declaration",
        );
    }
    Ok(())
}

/// The values of `in (…)`, and what stands behind them.
fn values(of: ParamType, text: &str) -> Result<(Vec<Value>, &str), Complaint> {
    const EXAMPLE: &str = "for example: -- param: size text in (s, m, 'extra large') = m";
    let mut values = Vec::new();
    let mut rest = text;
    loop {
        let end = end_of(rest, &[',', ')']);
        let Some(end) = end else {
            return complain("the values in `in (…)` have no end", EXAMPLE);
        };
        let text = rest[..end].trim();
        let value = match (of.kind, of.format) {
            (_, Some(format)) => formatted(format, text)?,
            (ValueKind::Text, None) if !text.starts_with(['\'', '"']) => Value::from(text),
            (kind, None) => literal(kind, text).or_else(|message| complain(message, EXAMPLE))?,
        };
        if text.is_empty() || value == Value::Null {
            return complain(format!("`{text}` is no value to choose"), EXAMPLE);
        }
        if values.contains(&value) {
            return complain(format!("`{text}` is given twice"), "keep one of them");
        }
        values.push(value);
        let is_last = rest[end..].starts_with(')');
        rest = &rest[end + 1..];
        if is_last {
            return Ok((values, rest));
        }
    }
}

/// Finds one of the signs outside of quotes.
fn end_of(text: &str, signs: &[char]) -> Option<usize> {
    let mut quoted = false;
    let found = text.char_indices().find(|(_, c)| {
        quoted ^= *c == '\'';
        !quoted && signs.contains(c)
    });
    found.map(|(at, _)| at)
}

fn default_value(
    of: ParamType,
    text: &str,
    choices: &[Value],
    rules: &ValueRules,
) -> Result<Value, Complaint> {
    let bare = Value::from(text);
    if choices.contains(&bare) {
        return Ok(bare);
    }
    let is_bare = !text.starts_with(['\'', '"']) && !text.eq_ignore_ascii_case("null");
    let value = match of.format {
        Some(format) => formatted(format, text)?,
        // As in the list, a text needs no quotes.
        None if of.kind == ValueKind::Text && is_bare && !choices.is_empty() => bare,
        None => literal(of.kind, text).map_err(|message| (message, None))?,
    };
    if let Some(range) = rules.range()
        && !rules.is_in_range(&value)
    {
        return complain(
            format!("the default `{text}` is not {range}"),
            "take one of these, or `= null`",
        );
    }
    if value != Value::Null && !choices.is_empty() && !choices.contains(&value) {
        let choices = choices.iter().map(shown);
        let choices: Vec<String> = choices.collect();
        let near = closest(text.trim_matches('\''), choices.iter().map(String::as_str));
        return complain(
            format!(
                "the default `{text}` is none of the values {}",
                choices.join(", ")
            ),
            match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => "add it to them, or take `= null`".to_owned(),
            },
        );
    }
    Ok(value)
}

pub(super) fn literal(kind: ValueKind, text: &str) -> Result<Value, String> {
    if text.eq_ignore_ascii_case("null") {
        return Ok(Value::Null);
    }
    match kind {
        ValueKind::Integer => text
            .parse()
            .map(Value::Integer)
            .map_err(|_| format!("`{text}` is no integer")),
        ValueKind::Real => match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(Value::Real(number)),
            _ => Err(format!("`{text}` is no number")),
        },
        ValueKind::Boolean => match text.to_ascii_lowercase().as_str() {
            "true" => Ok(Value::Boolean(true)),
            "false" => Ok(Value::Boolean(false)),
            _ => Err(format!("`{text}` is neither true nor false")),
        },
        ValueKind::Text | ValueKind::Blob | ValueKind::Other => text
            .strip_prefix('\'')
            .and_then(|text| text.strip_suffix('\''))
            .map(|text| Value::Text(text.replace("''", "'").into()))
            .ok_or_else(|| match text.strip_prefix('"') {
                Some(inner) => {
                    let inner = inner.strip_suffix('"').unwrap_or(inner);
                    format!("a text stands in single quotes, as in '{inner}'")
                }
                None => format!("a text default stands in quotes, as in '{text}'"),
            }),
    }
}

const ORDER: &str =
    "for example: -- order: sort: title = \"a.title, a.id\", -title = \"a.title desc, a.id\"";

/// Reads what stands behind `-- order:`.
pub(super) fn order(rest: &str, line: usize) -> Result<OrderLine, Complaint> {
    let Some((name, mut rest)) = rest.split_once(':') else {
        return complain("an order needs a name, a colon and its values", ORDER);
    };
    let name = name.trim();
    name_of_parameter(name, ORDER)?;
    let mut choices: Vec<(String, String)> = Vec::new();
    loop {
        let (value, sql, behind) = order_choice(rest)?;
        if choices.iter().any(|(other, _)| *other == value) {
            return complain(format!("`{value}` is given twice"), "keep one of them");
        }
        choices.push((value, sql));
        match behind.trim_start().strip_prefix(',') {
            Some(next) => rest = next,
            None if behind.trim().is_empty() => break,
            None => return complain(format!("`{}` is no order", behind.trim()), ORDER),
        }
    }
    Ok(OrderLine {
        name: name.to_owned(),
        choices,
        line,
    })
}

/// One `value = "sql"`, and what stands behind it.
fn order_choice(text: &str) -> Result<(String, String, &str), Complaint> {
    let Some((value, rest)) = text.split_once('=') else {
        return complain(format!("`{}` is no order", text.trim()), ORDER);
    };
    let value = value.trim();
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    if value.is_empty() || !value.chars().all(is_plain) {
        return complain(format!("`{value}` is no value for an address"), ORDER);
    }
    let Some(mut inside) = rest.trim_start().strip_prefix('"') else {
        return complain(
            format!("the SQL for `{value}` stands in double quotes"),
            ORDER,
        );
    };
    let mut sql = String::new();
    loop {
        let Some((part, behind)) = inside.split_once('"') else {
            return complain(format!("the SQL for `{value}` has no end"), ORDER);
        };
        sql.push_str(part);
        match behind.strip_prefix('"') {
            Some(further) => {
                sql.push('"');
                inside = further;
            }
            None => {
                inside = behind;
                break;
            }
        }
    }
    if sql.trim().is_empty() || ends_early(&sql) {
        return complain(format!("`{sql}` is nothing to order by"), ORDER);
    }
    Ok((value.to_owned(), sql, inside))
}

/// True if the text hides what stands behind it in a statement, in either database.
fn ends_early(sql: &str) -> bool {
    [Dialect::Sqlite, Dialect::Postgres].iter().any(|dialect| {
        let mut tokens = Lexer::new(sql, *dialect);
        tokens.any(|token| {
            let is_end = token.kind == TokenKind::Semicolon || token.text.starts_with("--");
            is_end || !token.is_closed
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_has_a_type_and_perhaps_values_and_a_default() {
        let read = |text| declaration(text, 1).unwrap();
        let optional = read("genre integer = null");
        assert_eq!(
            (optional.kind, optional.default),
            (ValueKind::Integer, Some(Value::Null))
        );
        let size = read("size text in (s, 'a, (b)', it''s) = s");
        assert_eq!(size.choices, ["s".into(), "a, (b)".into(), "it''s".into()]);
        assert_eq!(size.default, Some("s".into()));
        let count = read("n integer in(10,20)= 20");
        assert_eq!((count.choices.len(), count.default), (2, Some(20.into())));
        let list = read("track integer[]");
        assert!(list.is_list && list.default.is_none());
        assert_eq!(read("q text='a = b'").default, Some("a = b".into()));
        assert_eq!(read("index integer").name, "index");
        let page = read("page integer from 1 to 100 = 1");
        assert_eq!(page.rules.range().as_deref(), Some("from 1 to 100"));
        assert_eq!(page.default, Some(1.into()));
        let share = read("share real[] to 0.5");
        assert_eq!(share.rules.range().as_deref(), Some("at most 0.5"));
        let day = read("day date from 2026-01-01=2026-03-01");
        assert_eq!(day.rules.range().as_deref(), Some("at least 2026-01-01"));
        assert_eq!(day.default, Some("2026-03-01".into()));
        assert_eq!(
            read("at datetime = '2026-03-01T10:00+01:00'").default,
            Some("2026-03-01 09:00:00".into())
        );
        let title = read("title text length from 1 to 200");
        assert_eq!(title.kind, ValueKind::Text);
        assert!(title.rules.is_length && title.rules.allow(&" ä ".into()));
        assert!(!title.rules.allow(&"  ".into()) && !title.rules.allow(&"x".repeat(201).into()));
        assert_eq!(
            title.rules.range().as_deref(),
            Some("from 1 to 200 characters long")
        );
        let notes = read("note text[] as sent length to 3");
        assert!(notes.is_list && notes.rules.is_as_sent && notes.rules.is_length);
        let price = read("price decimal from 9.5 to 10 = 9.50");
        assert_eq!(price.default, Some("9.5".into()));
        assert!(price.rules.allow(&"10".into()) && !price.rules.allow(&"9.49".into()));
        assert_eq!(read("mail email = ''").default, Some("".into()));
        assert_eq!(
            read("day date in (2026-01-01, '2026-01-02')").choices.len(),
            2
        );
        for (text, expected) in [
            ("a", "a parameter needs"),
            ("a = 1", "a parameter needs"),
            ("a-b text", "`a-b` is no name"),
            ("a integer?", "parameter `a` has the unknown type"),
            ("a integer 1", "`1` stands behind the type"),
            ("a text in (b", "the values in"),
            ("a text in ()", "`` is no value"),
            ("a text in (b,, c)", "`` is no value"),
            ("a integer in (1, x)", "`x` is no integer"),
            ("a integer in (1, null)", "`null` is no value"),
            ("a text in (b, b)", "`b` is given twice"),
            ("a text in (b, c) = 'd'", "the default `'d'` is none"),
            (
                "a text in (b, c) = d",
                "the default `d` is none of the values b, c",
            ),
            (
                "a text in (\"b\", c) = b",
                "a text stands in single quotes, as in 'b'",
            ),
            (
                "a text in (b, c) = \"b\"",
                "a text stands in single quotes, as in 'b'",
            ),
            ("a text = b", "a text default stands in quotes, as in 'b'"),
            ("a real = inf", "`inf` is no number"),
            ("a integer[] = 1", "`a` is a list"),
            ("a integer from 1 to x", "`x` is no integer"),
            ("a integer from 9 to 1", "no value is from 9 to 1"),
            (
                "a integer from 1 to 9 = 10",
                "the default `10` is not from 1 to 9",
            ),
            ("a integer to 1 from 9", "`from 9` stands behind"),
            ("a integer from", "`from` stands behind"),
            (
                "a integer in (1, 2) from 1",
                "a parameter has values or a range",
            ),
            (
                "a text as sent",
                "`as sent` stands behind a type that is no list",
            ),
            (
                "a date length to 9",
                "`length` stands behind a type that is no plain",
            ),
            ("a text length", "a length needs `from` or `to`"),
            (
                "a text length from 9 to 1",
                "no value is from 9 to 1 characters",
            ),
            ("a decimal from 10 to 9", "no value is from 10 to 9"),
            ("a text to 9", "`to` stands behind a type that has no range"),
            (
                "a email from b@c",
                "`from` stands behind a type that has no range",
            ),
            ("a date from 2026-02-30", "`2026-02-30` is not a date"),
            ("a date = soon", "`soon` is not a date"),
            ("a date = ''", "`''` is not a date"),
            (
                "a date from 2026-01-01 = 2025-12-31",
                "the default `2025-12-31` is not at least",
            ),
        ] {
            let found = declaration(text, 1).unwrap_err().0;
            assert!(found.starts_with(expected), "{text}: {found}");
        }
        let hint = |text| declaration(text, 1).unwrap_err().1.unwrap();
        assert_eq!(hint("a text in (all, open) = alle"), "did you mean `all`?");
        assert!(hint("a integer?").ends_with("-- param: a integer = null"));
        assert_eq!(
            hint("a string"),
            "one of integer, real, text, boolean, date, time, datetime, month, email, url, uuid, slug, decimal; with `[]` behind it, a list"
        );
        assert_eq!(hint("a int"), "did you mean `integer`?");
    }

    #[test]
    fn an_order_has_sql_for_each_value() {
        let read = order(
            "sort: title = \"a.title\", -title = \"a.\"\"Title\"\" desc\"",
            3,
        )
        .unwrap();
        assert_eq!(read.name, "sort");
        let expected = [("title", "a.title"), ("-title", "a.\"Title\" desc")];
        assert_eq!(
            read.choices,
            expected.map(|(a, b)| (a.to_owned(), b.to_owned()))
        );
        assert_eq!(read.declaration().default, Some("title".into()));
        for (text, expected) in [
            ("sort", "an order needs"),
            ("a b: c = \"d\"", "`a b` is no name"),
            ("s: ", "`` is no order"),
            ("s: a", "`a` is no order"),
            ("s: a b = \"c\"", "`a b` is no value"),
            ("s: a = b", "the SQL for `a` stands"),
            ("s: a = \"b", "the SQL for `a` has no end"),
            ("s: a = \"\"", "`` is nothing"),
            ("s: a = \" \"", "` ` is nothing"),
            ("s: a = \"b; drop\"", "`b; drop` is nothing"),
            ("s: a = \"b\" c", "`c` is no order"),
            ("s: a = \"b\", a = \"c\"", "`a` is given twice"),
        ] {
            let found = order(text, 1).unwrap_err().0;
            assert!(found.starts_with(expected), "{text}: {found}");
        }
    }
}
