//! Which parameters of a statement go into which columns, by the text of the statement.
//!
//! This only says where a message about a column belongs. So the text is read with the tokens of
//! both databases, and what is not understood is left out.

use sqlparser::{
    dialect::GenericDialect,
    keywords::Keyword,
    tokenizer::{Token, Tokenizer},
};

use crate::query::strip_sigil;

/// The columns that a statement writes, each with the names of the parameters in what is written.
///
/// `insert into t (a, b) values (:x, trim(:y))`, the same with `select`, `update t set a = :x`, and
/// what stands behind `do update set`.
#[must_use]
pub fn written_columns(sql: &str) -> Vec<(String, Vec<String>)> {
    let Ok(tokens) = Tokenizer::new(&GenericDialect {}, sql).tokenize() else {
        return Vec::new();
    };
    let is_blank = |token: &Token| matches!(token, Token::Whitespace(_));
    let tokens: Vec<Token> = tokens
        .into_iter()
        .filter(|token| !is_blank(token))
        .collect();
    let outer = depths(&tokens);
    let verb = outer.iter().copied().find(|at| {
        let verbs = [Keyword::INSERT, Keyword::REPLACE, Keyword::UPDATE];
        keyword(&tokens[*at]).is_some_and(|word| verbs.contains(&word))
    });
    let Some(verb) = verb else {
        return Vec::new();
    };
    let mut written = Vec::new();
    if keyword(&tokens[verb]) != Some(Keyword::UPDATE) {
        inserted(&tokens, verb, &mut written);
    }
    let set = outer
        .iter()
        .copied()
        .find(|at| *at > verb && keyword(&tokens[*at]) == Some(Keyword::SET));
    if let Some(set) = set {
        let (items, _) = items(&tokens, set + 1, &SET_ENDS);
        items
            .into_iter()
            .for_each(|item| assigned(item, &mut written));
    }
    written
}

/// Words that end the assignments of SET.
const SET_ENDS: [Keyword; 5] = [
    Keyword::WHERE,
    Keyword::FROM,
    Keyword::RETURNING,
    Keyword::ORDER,
    Keyword::LIMIT,
];

/// Words that end the list of SELECT.
const SELECT_ENDS: [Keyword; 7] = [
    Keyword::WHERE,
    Keyword::FROM,
    Keyword::RETURNING,
    Keyword::ORDER,
    Keyword::LIMIT,
    Keyword::ON,
    Keyword::UNION,
];

/// The places of tokens that stand in no parentheses.
fn depths(tokens: &[Token]) -> Vec<usize> {
    let mut depth = 0_usize;
    let mut outer = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ if depth == 0 => outer.push(at),
            _ => {}
        }
    }
    outer
}

fn keyword(token: &Token) -> Option<Keyword> {
    match token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.keyword),
        _ => None,
    }
}

/// The parts between commas from `start` on, up to one of `ends` or a closing parenthesis that was
/// not opened; and where that is.
fn items<'t>(tokens: &'t [Token], start: usize, ends: &[Keyword]) -> (Vec<&'t [Token]>, usize) {
    let (mut depth, mut from, mut found) = (0_usize, start, Vec::new());
    let mut at = start;
    while let Some(token) = tokens.get(at) {
        match token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 0 => break,
            Token::RParen => depth -= 1,
            Token::SemiColon if depth == 0 => break,
            Token::Comma if depth == 0 => {
                found.push(&tokens[from..at]);
                from = at + 1;
            }
            other if depth == 0 && keyword(other).is_some_and(|word| ends.contains(&word)) => break,
            _ => {}
        }
        at += 1;
    }
    found.push(&tokens[from.min(at)..at]);
    (found, at)
}

/// The columns of `insert into t (…)`, with what VALUES or SELECT gives for each.
fn inserted(tokens: &[Token], verb: usize, written: &mut Vec<(String, Vec<String>)>) {
    let Some(open) = tokens[verb..]
        .iter()
        .position(|token| *token == Token::LParen)
    else {
        return;
    };
    let (columns, close) = items(tokens, verb + open + 1, &[]);
    let columns: Option<Vec<String>> = columns.into_iter().map(name).collect();
    let Some(columns) = columns else {
        return;
    };
    let mut add = |values: Vec<&[Token]>| {
        let pairs = columns.iter().zip(values);
        written.extend(pairs.map(|(column, value)| (column.clone(), params(value))));
    };
    let mut at = close + 1;
    // `overriding user value`, of PostgreSQL.
    while tokens.get(at).is_some_and(|token| {
        !matches!(
            keyword(token),
            Some(Keyword::VALUES | Keyword::SELECT) | None
        )
    }) {
        at += 1;
    }
    match tokens.get(at).and_then(keyword) {
        Some(Keyword::SELECT) => add(items(tokens, at + 1, &SELECT_ENDS).0),
        Some(Keyword::VALUES) => {
            while tokens.get(at + 1) == Some(&Token::LParen) {
                let (values, close) = items(tokens, at + 2, &[]);
                add(values);
                // Behind the parenthesis stands a comma, if there are more rows.
                at = close + 1;
                if tokens.get(at) != Some(&Token::Comma) {
                    break;
                }
            }
        }
        _ => {}
    }
}

/// `column = value`, or `(a, b) = (x, y)`.
fn assigned(item: &[Token], written: &mut Vec<(String, Vec<String>)>) {
    let Some(equals) = item.iter().position(|token| *token == Token::Eq) else {
        return;
    };
    let (left, right) = (&item[..equals], &item[equals + 1..]);
    if left.first() != Some(&Token::LParen) {
        written.extend(name(left).map(|column| (column, params(right))));
        return;
    }
    let columns = items(left, 1, &[]).0;
    let is_row = right.first() == Some(&Token::LParen);
    let values = if is_row {
        items(right, 1, &[]).0
    } else {
        vec![right]
    };
    for (at, column) in columns.into_iter().enumerate() {
        let value = values.get(at).or_else(|| values.last());
        let value = value.map_or_else(Vec::new, |value| params(value));
        written.extend(name(column).map(|column| (column, value)));
    }
}

/// A single name.
fn name(tokens: &[Token]) -> Option<String> {
    match tokens {
        [Token::Word(word)] => Some(word.value.clone()),
        [Token::DoubleQuotedString(name)] => Some(name.clone()),
        _ => None,
    }
}

/// The names of the parameters in an expression.
fn params(tokens: &[Token]) -> Vec<String> {
    let mut names = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let name = match (token, tokens.get(at + 1)) {
            (Token::Colon | Token::AtSign, Some(Token::Word(word))) => word.value.as_str(),
            (Token::Placeholder(name), _) => strip_sigil(name),
            (Token::Word(word), _) if word.value.starts_with('@') => &word.value[1..],
            _ => continue,
        };
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(sql: &str) -> String {
        let written = written_columns(sql).into_iter();
        let written = written.map(|(column, names)| format!("{column}={}", names.join("+")));
        written.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn parameters_are_found_in_what_is_written() {
        for (sql, expected) in [
            (
                "insert into a (title, year) values (trim(:title), :year) returning id",
                "title=title year=year",
            ),
            (
                "INSERT INTO s.a (\"Title\", b, c) VALUES (:t || :u, 7, coalesce(:v, :v)), (:w, :x::int, 'a:b')",
                "Title=t+u b= c=v Title=w b=x c=",
            ),
            (
                "insert into a (x, y) select value, :y from json_each(:list) where :z",
                "x= y=y",
            ),
            (
                "update a set title = trim(:title), year = case when :y > 1 then :y else year end where id = :id",
                "title=title year=y",
            ),
            (
                "update a set (x, y) = (:x, lower(:y)) from b where b.id = :id",
                "x=x y=y",
            ),
            (
                "with n as (select :q as q, 'update set z = :z') insert or replace into a (x) values (:x) on conflict (x) do update set y = excluded.y, z = :z",
                "x=x y= z=z",
            ),
            ("insert into a values (:x)", ""),
            ("insert into a select :x", ""),
            ("delete from a where id = :id", ""),
            ("select :x", ""),
            ("insert into a (x) values (@x, $y)", "x=x"),
            ("insert into a (x", ""),
            ("update a set", ""),
            ("'", ""),
            ("", ""),
        ] {
            assert_eq!(shown(sql), expected, "{sql}");
        }
    }
}
