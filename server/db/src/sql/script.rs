//! Scripts of several statements, as migrations are.

use super::{Dialect, Lexer, Token, TokenKind};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScriptStatement<'a> {
    /// The byte at which it begins, without the white space and comments before it.
    pub(crate) start: usize,
    /// Its text, with its semicolon.
    pub(crate) text: &'a str,
}

/// Splits a script at its semicolons, except those in strings, names and comments; on SQLite those
/// in the body of CREATE TRIGGER, which ends with `; END`; on PostgreSQL those in brackets, and in
/// the body of a function between BEGIN ATOMIC and END.
pub(crate) fn statements(sql: &str, dialect: Dialect) -> Vec<ScriptStatement<'_>> {
    let mut pieces = Vec::new();
    let mut open: Option<Open> = None;
    for token in Lexer::new(sql, dialect).filter(|token| !token.is_blank()) {
        let is_end = token.kind == TokenKind::Semicolon;
        if is_end && open.as_ref().is_none_or(|open| open.is_complete(dialect)) {
            let start = open.take().map(|open| open.tokens[0].start);
            pieces.extend(start.map(|start| ScriptStatement {
                start,
                text: &sql[start..token.end()],
            }));
        } else {
            open.get_or_insert_default().take(token);
        }
    }
    pieces.extend(open.map(|open| {
        let start = open.tokens[0].start;
        ScriptStatement {
            start,
            text: &sql[start..],
        }
    }));
    pieces
}

/// A statement whose end has not come.
#[derive(Default)]
struct Open<'s> {
    tokens: Vec<Token<'s>>,
    brackets: usize,
    /// BEGIN ATOMIC and, within it, CASE; each ends with END.
    blocks: usize,
}

impl<'s> Open<'s> {
    fn is_complete(&self, dialect: Dialect) -> bool {
        match dialect {
            Dialect::Postgres => self.brackets == 0 && self.blocks == 0,
            // Another END than that behind a semicolon is the end of a CASE, or a column's name.
            Dialect::Sqlite => {
                let is_ended = matches!(&*self.tokens, [.., before, end]
                    if before.kind == TokenKind::Semicolon && end.is_word("end"));
                is_ended || !self.is_trigger()
            }
        }
    }

    /// True if the statement begins `CREATE [TEMP|TEMPORARY] TRIGGER`.
    fn is_trigger(&self) -> bool {
        let is = |at: usize, word: &str| self.tokens.get(at).is_some_and(|it| it.is_word(word));
        let is_temporary = is(1, "temp") || is(1, "temporary");
        is(0, "create") && is(1 + usize::from(is_temporary), "trigger")
    }

    fn take(&mut self, token: Token<'s>) {
        let is_after_begin = self.tokens.last().is_some_and(|last| last.is_word("begin"));
        let opens_block = is_after_begin && token.is_word("atomic");
        if opens_block || (self.blocks > 0 && token.is_word("case")) {
            self.blocks += 1;
        } else if token.is_word("end") {
            self.blocks = self.blocks.saturating_sub(1);
        } else if token.is_sign("(") || token.is_sign("[") {
            self.brackets += 1;
        } else if token.is_sign(")") || token.is_sign("]") {
            self.brackets = self.brackets.saturating_sub(1);
        }
        self.tokens.push(token);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(sql: &str, dialect: Dialect) -> Vec<&str> {
        let pieces = statements(sql, dialect).into_iter();
        pieces.map(|piece| piece.text).collect()
    }

    #[test]
    fn splits_at_semicolons_outside_strings_and_comments() {
        let sql = "a 'x;''y'; b \"q;\" -- no; end\n; /* ; */ c";
        for dialect in [Dialect::Sqlite, Dialect::Postgres] {
            let pieces = ["a 'x;''y';", "b \"q;\" -- no; end\n;", "c"];
            assert_eq!(split(sql, dialect), pieces);
            assert_eq!(split("  ;; -- nothing\n", dialect), Vec::<&str>::new());
            assert_eq!(split("select 'open", dialect), ["select 'open"]);
            assert_eq!(split("é; ü", dialect), ["é;", "ü"]);
            assert_eq!(statements("  é; -- x\n b", dialect)[1].start, 12);
        }
    }

    #[test]
    fn keeps_triggers_together() {
        let trigger = "create trigger t after insert on a begin update b set x = case when 1 then 2 end; delete from c; end;";
        let script = format!("{trigger} create temp trigger u begin select 1; END ; drop table a;");
        assert_eq!(
            split(&script, Dialect::Sqlite),
            [
                trigger,
                "create temp trigger u begin select 1; END ;",
                "drop table a;"
            ]
        );
    }

    #[test]
    fn keeps_brackets_bodies_and_dollar_quotes_together() {
        let nested = "/* ; /* ; */ */ c $$ ; $$";
        assert_eq!(split(nested, Dialect::Postgres), ["c $$ ; $$"]);
        let rule = "create rule r as on insert to t do (delete from a; delete from b);";
        let body = "create function f() returns int language sql begin atomic select case when true then 1 end; select 2; end;";
        let script = format!("{rule} {body} x");
        assert_eq!(split(&script, Dialect::Postgres), [rule, body, "x"]);
        assert_eq!(
            split(
                "begin; select case 1 when 1 then 2 end; end",
                Dialect::Postgres
            ),
            ["begin;", "select case 1 when 1 then 2 end;", "end"]
        );
    }
}
