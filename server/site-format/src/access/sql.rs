//! Claims in the text of a query: `:claims.user` becomes the parameter `:claims_user`, which no
//! request can give.
//!
//! The names have the same length, so that a fault that the database finds stays in its place.

/// How the names of such parameters begin. They are the claims' alone: a site cannot write them, so
/// no form or query string fills one.
pub const PREFIX: &str = "claims_";
const WRITTEN: &str = ":claims.";

/// The statement with its claims as parameters.
///
/// # Errors
/// The offset of a parameter whose name is reserved.
pub fn with_claims(sql: &str) -> Result<String, usize> {
    let mut out = sql.to_owned().into_bytes();
    let bytes = sql.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &sql.as_bytes()[at..];
        if let Some(length) = passive(rest) {
            at += length;
            continue;
        }
        // A cast such as `x::claims.kind` is none.
        let is_cast = at > 0 && bytes[at - 1] == b':';
        if is_sign(bytes[at]) && !is_cast {
            let name = &rest[1..];
            let is_ours = bytes[at] == b':' && rest.starts_with(WRITTEN.as_bytes());
            if is_ours && rest.get(WRITTEN.len()).is_some_and(|byte| is_name(*byte)) {
                out[at + WRITTEN.len() - 1] = b'_';
                at += WRITTEN.len();
                continue;
            }
            if starts_with_prefix(name) {
                return Err(at);
            }
        }
        at += 1;
    }
    // One ASCII byte took the place of another.
    Ok(String::from_utf8(out).unwrap_or_else(|_| sql.to_owned()))
}

/// What may begin a parameter's name, in whichever database.
const fn is_sign(byte: u8) -> bool {
    matches!(byte, b':' | b'@' | b'$')
}

const fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn starts_with_prefix(name: &[u8]) -> bool {
    name.get(..PREFIX.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(PREFIX.as_bytes()))
}

/// The length of a text, a quoted name or a comment with which `rest` begins: nothing in it is a
/// parameter.
pub fn passive(rest: &[u8]) -> Option<usize> {
    let until = |end: &[u8], from: usize| {
        let found = rest[from..].windows(end.len()).position(|part| part == end);
        Some(found.map_or(rest.len(), |at| from + at + end.len()))
    };
    match rest {
        // A doubled quote within is the end of one text and the beginning of the next.
        [quote @ (b'\'' | b'"' | b'`'), ..] => until(&[*quote], 1),
        [b'-', b'-', ..] => until(b"\n", 2),
        [b'/', b'*', ..] => until(b"*/", 2),
        _ => None,
    }
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
            assert_eq!(with_claims(sql).as_deref(), Ok(expected), "{sql}");
        }
        for (sql, at) in [
            ("select :claims_user", 7),
            ("select @claims_user", 7),
            ("select $claims_user", 7),
            ("select :CLAIMS_user", 7),
            ("select :claims.a, :claims_a", 18),
        ] {
            assert_eq!(with_claims(sql), Err(at), "{sql}");
        }
    }
}
