//! Types that lines declare and PostgreSQL takes for others: in `:amount * 100` it takes `:amount`
//! for a whole number, also if the line says `real`.

use millpond_db::{
    Param, ValueKind,
    sql::{Dialect, Lexer, TokenKind},
};

use millpond_site_format::{script::Declaration, text_format::TextFormat};

/// The first declared parameter whose type PostgreSQL has found out otherwise, so that values of
/// the declared type would not fit. One whose value goes into a column as it stands has the
/// column's type.
pub(super) fn overruled<'d>(
    found: &[Param],
    declared: &'d [Declaration],
    sql: &str,
) -> Option<&'d Declaration> {
    declared.iter().find(|declared| {
        let mut found = found.iter().filter(|found| found.name == declared.name);
        found.any(|found| found.kind.is_some_and(|kind| differs(declared, kind)))
            && !stands_alone(sql, &declared.name)
    })
}

fn differs(declared: &Declaration, found: ValueKind) -> bool {
    match (declared.kind, declared.rules.format) {
        _ if declared.is_list => false,
        (ValueKind::Real, _) | (_, Some(TextFormat::Decimal)) => found == ValueKind::Integer,
        (_, Some(TextFormat::Date | TextFormat::Time | TextFormat::DateTime)) => {
            matches!(
                found,
                ValueKind::Integer | ValueKind::Real | ValueKind::Boolean
            )
        }
        _ => false,
    }
}

/// True if a parameter is somewhere all of a value: `values (:n, …)`, `set n = :n`.
fn stands_alone(sql: &str, name: &str) -> bool {
    let tokens = Lexer::new(sql, Dialect::Postgres).significant();
    let mut places = tokens.iter().enumerate();
    places.any(|(at, token)| {
        let before = at.checked_sub(1).map(|before| &tokens[before]);
        let begins = before.is_none_or(|it| matches!(it.text, "(" | "," | "="));
        let ends = tokens
            .get(at + 1)
            .is_none_or(|it| it.kind == TokenKind::Word || matches!(it.text, ")" | "," | ";"));
        token.parameter() == Some(name) && begins && ends
    })
}

/// The type as the line says it.
pub(super) fn name(declared: &Declaration) -> &'static str {
    match (declared.rules.format, declared.kind) {
        (Some(format), _) => format.name(),
        (None, ValueKind::Real) => "real",
        (None, ValueKind::Integer) => "integer",
        (None, ValueKind::Boolean) => "boolean",
        _ => "text",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_value_has_the_type_of_its_column() {
        for sql in [
            "insert into a (n) values (:n)",
            "insert into a (n, m) values (:n , 1)",
            "update a set n = :n where id = 1",
            "select id from a where n = :n;",
            "select round(:n)",
        ] {
            assert!(stands_alone(sql, "n"), "{sql}");
        }
        for sql in [
            "insert into a (n) values (:n * 100)",
            "update a set n = n + :n where id = 1",
            "select :m, 2 * :n",
        ] {
            assert!(!stands_alone(sql, "n"), "{sql}");
        }
    }
}
