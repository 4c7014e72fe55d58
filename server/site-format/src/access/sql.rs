//! Claims in the text of a query: `:claims.user` becomes the parameter `:claims_user`, which no
//! request can give.
//!
//! The names have the same length, so that a fault that the database finds stays in its place.

use millpond_db::sql::{Dialect, Lexer, TokenKind};

/// How the names of such parameters begin. They are the claims' alone: a site cannot write them, so
/// no form or query string fills one.
pub const PREFIX: &str = "claims_";
const CLAIMS: &str = ":claims";

/// The statement with its claims as parameters.
///
/// # Errors
/// The offset of a parameter whose name is reserved.
pub fn with_claims(sql: &str, dialect: Dialect) -> Result<String, usize> {
    let mut out = sql.to_owned();
    let parameters = Lexer::new(sql, dialect).filter(|it| it.kind == TokenKind::Parameter);
    for token in parameters {
        let behind = sql[token.end()..].strip_prefix('.').unwrap_or_default();
        if token.text == CLAIMS && behind.starts_with(is_name) {
            out.replace_range(token.end()..=token.end(), "_");
        } else if starts_with_prefix(&token.text[1..]) {
            return Err(token.start);
        }
    }
    Ok(out)
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn starts_with_prefix(name: &str) -> bool {
    name.get(..PREFIX.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(PREFIX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_become_parameters_that_only_a_session_fills() {
        for (sql, expected) in [
            ("select :claims.user", "select :claims_user"),
            (
                "select :claims.a, :claims.b_2, :id",
                "select :claims_a, :claims_b_2, :id",
            ),
            (
                "select ':claims.a', \":claims.a\" -- :claims.a\n, :claims.a",
                "select ':claims.a', \":claims.a\" -- :claims.a\n, :claims_a",
            ),
            (
                "select 'it''s :claims.a' /* :claims.a */",
                "select 'it''s :claims.a' /* :claims.a */",
            ),
            ("select x::claims.kind", "select x::claims.kind"),
            (
                "select claims.user from claims",
                "select claims.user from claims",
            ),
            ("select ':claims_a'", "select ':claims_a'"),
            ("select 'é' || :claims.a", "select 'é' || :claims_a"),
            ("select 'open :claims.a", "select 'open :claims.a"),
            ("select :claims.", "select :claims."),
            ("", ""),
        ] {
            for dialect in [Dialect::Sqlite, Dialect::Postgres] {
                let written = with_claims(sql, dialect);
                assert_eq!(written.as_deref(), Ok(expected), "{sql}");
            }
        }
        for (sql, at) in [
            ("select :claims_user", 7),
            ("select @claims_user", 7),
            ("select $claims_user", 7),
            ("select :CLAIMS_user", 7),
            ("select :claims.a, :claims_a", 18),
        ] {
            assert_eq!(with_claims(sql, Dialect::Sqlite), Err(at), "{sql}");
        }
        // There `@` and `$` begin no parameter, and these are strings.
        for sql in [
            "select @claims_user",
            "select $$ :claims.a $$, E'\\' :claims.a', /* /* */ :claims_a */ 1",
        ] {
            assert_eq!(with_claims(sql, Dialect::Postgres).as_deref(), Ok(sql));
        }
    }
}
