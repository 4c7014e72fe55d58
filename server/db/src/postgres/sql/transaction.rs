//! Statements that begin or end a transaction.

use crate::sql::{Dialect, Lexer, TokenKind};

/// True if the statement begins or ends a transaction.
pub(crate) fn ends_transaction(statement: &str) -> bool {
    const WORDS: [&str; 6] = ["abort", "begin", "commit", "end", "rollback", "start"];
    let mut words =
        Lexer::new(statement, Dialect::Postgres).filter(|token| token.kind == TokenKind::Word);
    let Some(first) = words.next() else {
        return false;
    };
    // ROLLBACK TO a savepoint stays inside.
    WORDS.iter().any(|word| first.is_word(word))
        && !(first.is_word("rollback") && words.any(|word| word.is_word("to")))
}

#[cfg(test)]
mod tests {
    use super::*;

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
