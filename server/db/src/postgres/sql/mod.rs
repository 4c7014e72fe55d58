//! From the owner's text, with parameters by name, to PostgreSQL's, with parameters by number; and
//! back for places.

mod transaction;

pub(crate) use transaction::ends_transaction;

use crate::SqlError;
use crate::sql::{Dialect, Lexer, Token, TokenKind};

/// One statement as PostgreSQL takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rewritten {
    /// With `$1`, `$2`, …; without a semicolon at the end.
    pub(crate) text: String,
    /// The name of each number, from `$1`.
    pub(crate) names: Vec<String>,
    /// Bytes of `text`, and the bytes of the owner's text that stand there, where the distance
    /// between them changes.
    places: Vec<(usize, usize)>,
}

impl Rewritten {
    /// The byte of the owner's text at the `character` (from 1) of `text` at which PostgreSQL says
    /// that something is wrong.
    pub(crate) fn place(&self, character: u32) -> usize {
        self.byte(byte_at(&self.text, character))
    }

    /// The byte of the owner's text at this byte of `text`.
    pub(crate) fn byte(&self, byte: usize) -> usize {
        let (here, there) = self.places[self.places.partition_point(|(here, _)| *here <= byte) - 1];
        there + (byte - here)
    }
}

/// The byte at which the character with this number, from 1, begins.
pub(crate) fn byte_at(text: &str, character: u32) -> usize {
    let number = usize::try_from(character).unwrap_or(usize::MAX);
    text.char_indices()
        .nth(number.saturating_sub(1))
        .map_or(text.len(), |(byte, _)| byte)
}

/// Numbers the parameters; equal names share a number.
pub(crate) fn rewrite(sql: &str) -> Result<Rewritten, SqlError> {
    let mut scan = Scan {
        text: String::with_capacity(sql.len()),
        names: Vec::new(),
        places: vec![(0, 0)],
        brackets: Vec::new(),
        after_operand: false,
        semicolon: None,
        empty: true,
    };
    let mut tokens = Lexer::new(sql, Dialect::Postgres);
    while let Some(token) = tokens.next() {
        let end = scan.step(token)?;
        tokens.go_to(end);
    }
    if scan.empty {
        return Err(refusal(
            "there is no statement here",
            None,
            "write one SELECT, INSERT, UPDATE or DELETE",
        ));
    }
    Ok(Rewritten {
        text: scan.text,
        names: scan.names,
        places: scan.places,
    })
}

fn refusal(message: &str, offset: Option<usize>, hint: &str) -> SqlError {
    SqlError {
        message: message.to_owned(),
        offset,
        hint: Some(hint.to_owned()),
    }
}

struct Scan {
    text: String,
    names: Vec<String>,
    places: Vec<(usize, usize)>,
    /// Open brackets: `(` and `[`.
    brackets: Vec<u8>,
    /// True if a value has just ended. Within `[…]` a colon after one is that of a slice, `[1:n]`.
    after_operand: bool,
    semicolon: Option<usize>,
    empty: bool,
}

/// Words after which a value begins, so that a colon after them is a parameter's.
const BEFORE_VALUE: [&str; 12] = [
    "and", "between", "case", "else", "ilike", "in", "is", "like", "not", "or", "then", "when",
];

impl Scan {
    /// Takes a token; gives the byte at which the next one begins.
    fn step(&mut self, token: Token<'_>) -> Result<usize, SqlError> {
        let Token {
            start: at, text, ..
        } = token;
        if !token.is_blank() && token.kind != TokenKind::Semicolon {
            if self.semicolon.is_some() {
                return Err(refusal(
                    "more than one statement",
                    Some(at),
                    "each query is one statement; give each a name of its own",
                ));
            }
            self.empty = false;
        }
        match token.kind {
            TokenKind::Blank | TokenKind::Comment => self.text.push_str(text),
            TokenKind::Semicolon => {
                // PostgreSQL would take it; but the text may be put in brackets.
                self.semicolon.get_or_insert(at);
                self.text.push(' ');
            }
            TokenKind::Positional => {
                return Err(refusal(
                    "a parameter without a name",
                    Some(at),
                    "name it, as in :id",
                ));
            }
            TokenKind::Parameter if self.is_slice() => {
                self.text.push(':');
                self.after_operand = false;
                return Ok(at + 1);
            }
            TokenKind::Parameter => self.parameter(token),
            TokenKind::Word => {
                self.text.push_str(text);
                self.after_operand = !BEFORE_VALUE
                    .iter()
                    .any(|word| text.eq_ignore_ascii_case(word));
            }
            TokenKind::Name | TokenKind::Text | TokenKind::Number => {
                self.text.push_str(text);
                self.after_operand = true;
            }
            TokenKind::Sign => {
                match text.as_bytes() {
                    [open @ (b'(' | b'[')] => self.brackets.push(*open),
                    b")" | b"]" => {
                        self.brackets.pop();
                    }
                    _ => {}
                }
                self.text.push_str(text);
                self.after_operand = matches!(text, ")" | "]");
            }
        }
        Ok(token.end())
    }

    fn is_slice(&self) -> bool {
        self.after_operand && self.brackets.last() == Some(&b'[')
    }

    fn parameter(&mut self, token: Token<'_>) {
        let name = token.parameter().unwrap_or_default();
        let index = self.names.iter().position(|known| known == name);
        let index = index.unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
        self.places.push((self.text.len(), token.start));
        self.text.push('$');
        self.text.push_str(&(index + 1).to_string());
        self.places.push((self.text.len(), token.end()));
        self.after_operand = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(sql: &str) -> String {
        rewrite(sql).unwrap().text
    }

    #[test]
    fn names_become_numbers_and_equal_ones_share_one() {
        let r = rewrite("select :a, :b::int, x.:a from t where c=:été_1").unwrap();
        assert_eq!(r.text, "select $1, $2::int, x.$1 from t where c=$3");
        assert_eq!(r.names, ["a", "b", "été_1"]);
    }

    #[test]
    fn colons_that_mark_no_parameter_stay() {
        for sql in [
            "select ':a', 'it''s :b', '\\', 1::int, now() :: date",
            "select E'\\':a', e'\\\\' , ':b'",
            "select $$ :a $$, $f$ :a $$ :b $f$",
            "select \"x:a\", \"y\"\":b\" from t -- :c",
            "select /* :a /* :b */ :c */ 1",
            "select f(a := 1, b => 2)",
            "select x[1:2], x[a:b], x[(1):n], x[f(1):n], x[1:], x[:2], x['1':n]",
            "select a$1, b$c$ :: text",
            "select U&'\\0061:b'",
            "select '08:30'::time, x ?| array['a:b']",
        ] {
            assert_eq!(rewritten(sql), sql);
            assert!(rewrite(sql).unwrap().names.is_empty(), "{sql}");
        }
    }

    #[test]
    fn parameters_stand_within_brackets_too() {
        assert_eq!(
            rewritten("select x[:a:2], x[1:n], x[1 : :b], array[1, :c], x[(select 1 limit :d)]"),
            "select x[$1:2], x[1:n], x[1 : $2], array[1, $3], x[(select 1 limit $4)]"
        );
        assert_eq!(
            rewritten("select array[case when :a then :b else :c end]"),
            "select array[case when $1 then $2 else $3 end]"
        );
    }

    #[test]
    fn one_statement_and_no_more() {
        assert_eq!(rewritten("select 1 ; -- done\n"), "select 1   -- done\n");
        assert_eq!(rewritten("select ';';;"), "select ';'  ");
        let offset = |sql| rewrite(sql).unwrap_err().offset;
        assert_eq!(offset("select 1; select 2"), Some(10));
        assert_eq!(offset("select $1"), Some(7));
        assert_eq!(offset(" -- nothing\n ; "), None);
    }

    #[test]
    fn places_lead_back_to_the_owners_text() {
        let sql = "select 'é', :first, :x from wrong where a = :first and b";
        let r = rewrite(sql).unwrap();
        for word in ["select", "'é'", "from", "wrong", "where", "and", "b"] {
            let byte = r.text.rfind(word).unwrap();
            let character = r.text[..byte].chars().count() + 1;
            let place = r.place(u32::try_from(character).unwrap());
            assert_eq!(place, sql.rfind(word).unwrap(), "{word}");
        }
        let number = r.text.find("$2").unwrap();
        let character = r.text[..number].chars().count() + 1;
        assert_eq!(
            r.place(u32::try_from(character).unwrap()),
            sql.find(":x").unwrap()
        );
        assert_eq!(r.place(10_000), sql.len());
    }

    #[test]
    fn what_is_left_open_ends_with_the_text() {
        for sql in [
            "select 'a",
            "select \"a",
            "select $$a",
            "select /* a",
            "select E'\\",
            "e'",
            "$",
            ":",
        ] {
            assert_eq!(rewritten(sql), sql);
        }
    }
}
