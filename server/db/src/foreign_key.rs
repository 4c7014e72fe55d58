//! Which end of a foreign key a statement has violated, where the database does not say.

use sqlparser::dialect::GenericDialect;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, Tokenizer};

use crate::ConstraintKind;

/// By what the statement does: a row that is inserted refers to others, and others refer to a row
/// that is deleted. An update may do either, and so may an insert that replaces or updates.
pub(crate) fn violated_by(sql: &str) -> ConstraintKind {
    let Ok(tokens) = Tokenizer::new(&GenericDialect {}, sql).tokenize() else {
        return ConstraintKind::EitherReference;
    };
    let (mut depth, mut verb, mut is_both) = (0_u32, None, false);
    for token in &tokens {
        match token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            // What stands in parentheses reads, or is a table of its own.
            Token::Word(word) if depth == 0 && word.quote_style.is_none() => match word.keyword {
                Keyword::INSERT | Keyword::DELETE if verb.is_none() => verb = Some(word.keyword),
                Keyword::UPDATE | Keyword::REPLACE => is_both = true,
                _ => {}
            },
            _ => {}
        }
    }
    match verb {
        Some(Keyword::INSERT) if !is_both => ConstraintKind::ForeignKey,
        Some(Keyword::DELETE) if !is_both => ConstraintKind::StillReferenced,
        _ => ConstraintKind::EitherReference,
    }
}

/// PostgreSQL says which, in the language of its messages.
pub(crate) fn violated(message: &str, sql: &str) -> ConstraintKind {
    if message.starts_with("insert or update on table") {
        ConstraintKind::ForeignKey
    } else if message.starts_with("update or delete on table") {
        ConstraintKind::StillReferenced
    } else {
        violated_by(sql)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_statement_says_which_end() {
        use ConstraintKind::{EitherReference, ForeignKey, StillReferenced};
        for (sql, kind) in [
            ("insert into a values (1)", ForeignKey),
            (
                "-- delete\n INSERT INTO a SELECT 'update' /* update */ FROM b",
                ForeignKey,
            ),
            (
                "insert into a values (1) on conflict do nothing",
                ForeignKey,
            ),
            (
                "with x as (delete from b returning id) insert into a select id from x",
                ForeignKey,
            ),
            (
                "delete from a where id in (select id from b)",
                StillReferenced,
            ),
            ("with x as (select 1) delete from a", StillReferenced),
            ("delete from \"update\" where id = 1", StillReferenced),
            ("update a set b = 1", EitherReference),
            ("insert or replace into a values (1)", EitherReference),
            ("replace into a values (1)", EitherReference),
            (
                "insert into a values (1) on conflict (id) do update set b = 2",
                EitherReference,
            ),
            ("COMMIT", EitherReference),
            ("'", EitherReference),
        ] {
            assert_eq!(violated_by(sql), kind, "{sql}");
        }
        let said = "update or delete on table \"a\" violates foreign key constraint";
        assert_eq!(violated(said, "update a set id = 2"), StillReferenced);
        assert_eq!(
            violated("in anderer Sprache", "delete from a"),
            StillReferenced
        );
    }
}
