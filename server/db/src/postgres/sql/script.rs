//! Scripts of several statements, as migrations are.

use super::lexer::{Token, token};

/// One statement of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScriptStatement<'a> {
    /// The byte at which it begins, without the white space and comments before it.
    pub(crate) start: usize,
    /// Its text, with its semicolon.
    pub(crate) text: &'a str,
}

/// Splits a script at its semicolons, except those in strings, names, comments, brackets, and in
/// the body of a function between BEGIN ATOMIC and END.
pub(crate) fn statements(sql: &str) -> Vec<ScriptStatement<'_>> {
    let mut pieces = Vec::new();
    let mut open: Option<Open> = None;
    let mut at = 0;
    while at < sql.len() {
        let (kind, end) = token(sql, at);
        if kind != Token::Blank {
            if kind == Token::Semicolon && open.as_ref().is_none_or(Open::is_complete) {
                let piece = open.take().map(|open| open.start);
                pieces.extend(piece.map(|start| ScriptStatement {
                    start,
                    text: &sql[start..end],
                }));
            } else {
                open.get_or_insert(Open::at(at)).take(kind, &sql[at..end]);
            }
        }
        at = end;
    }
    pieces.extend(open.map(|Open { start, .. }| ScriptStatement {
        start,
        text: &sql[start..],
    }));
    pieces
}

/// A statement whose end has not come.
struct Open {
    start: usize,
    brackets: usize,
    /// BEGIN ATOMIC and, within it, CASE; each ends with END.
    blocks: usize,
    after_begin: bool,
}

impl Open {
    fn at(start: usize) -> Self {
        Self {
            start,
            brackets: 0,
            blocks: 0,
            after_begin: false,
        }
    }

    fn is_complete(&self) -> bool {
        self.brackets == 0 && self.blocks == 0
    }

    fn take(&mut self, kind: Token, text: &str) {
        let is = |word: &str| kind == Token::Word && text.eq_ignore_ascii_case(word);
        match text {
            "(" | "[" => self.brackets += 1,
            ")" | "]" => self.brackets = self.brackets.saturating_sub(1),
            _ if is("atomic") && self.after_begin => self.blocks += 1,
            _ if is("case") && self.blocks > 0 => self.blocks += 1,
            _ if is("end") => self.blocks = self.blocks.saturating_sub(1),
            _ => {}
        }
        self.after_begin = is("begin");
    }
}

/// Whether the statement begins or ends a transaction.
pub(crate) fn ends_transaction(statement: &str) -> bool {
    const WORDS: [&str; 6] = ["abort", "begin", "commit", "end", "rollback", "start"];
    let mut words = words(statement);
    let Some(first) = words.next() else {
        return false;
    };
    let is = |known: &str| first.eq_ignore_ascii_case(known);
    // ROLLBACK TO a savepoint stays inside.
    WORDS.iter().any(|word| is(word))
        && !(is("rollback") && words.any(|word| word.eq_ignore_ascii_case("to")))
}

fn words(statement: &str) -> impl Iterator<Item = &str> {
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < statement.len() {
            let (kind, end) = token(statement, at);
            let text = &statement[at..end];
            at = end;
            if kind == Token::Word {
                return Some(text);
            }
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(sql: &str) -> Vec<&str> {
        statements(sql)
            .into_iter()
            .map(|piece| piece.text)
            .collect()
    }

    #[test]
    fn splits_at_semicolons_outside_strings_comments_and_bodies() {
        assert_eq!(
            split("a 'x;''y'; b \"q;\" -- no; end\n; /* ; /* ; */ */ c $$ ; $$"),
            ["a 'x;''y';", "b \"q;\" -- no; end\n;", "c $$ ; $$"]
        );
        let rule = "create rule r as on insert to t do (delete from a; delete from b);";
        let body = "create function f() returns int language sql begin atomic select case when true then 1 end; select 2; end;";
        assert_eq!(split(&format!("{rule} {body} x")), [rule, body, "x"]);
        assert_eq!(
            split("begin; select case 1 when 1 then 2 end; end"),
            ["begin;", "select case 1 when 1 then 2 end;", "end"]
        );
        assert_eq!(statements("  é; -- x\n b")[1].start, 12);
        assert!(split(" ;; -- nothing").is_empty());
    }

    #[test]
    fn a_statement_that_ends_the_transaction_is_known() {
        for sql in [
            "commit",
            "/* x */ BEGIN;",
            "end work",
            "rollback;",
            "start transaction",
        ] {
            assert!(ends_transaction(sql), "{sql}");
        }
        for sql in [
            "rollback to savepoint a",
            "select 1",
            "savepoint a",
            "",
            "create table end_",
        ] {
            assert!(!ends_transaction(sql), "{sql}");
        }
    }
}
