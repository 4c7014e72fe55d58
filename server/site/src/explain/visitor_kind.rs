//! The visitor for whom an address is explained.
//!
//! The owner asks, so claims are not verified. They make no session: they sign nothing and read
//! nothing; they only decide which key is looked up.

use millpond_db::Value;
use millpond_http::Request;

use crate::session::{Session, Sessions};
use millpond_site_format::access::Claims;

/// A visitor whose answer is explained.
#[derive(Clone, Copy, Default)]
pub enum ExplainedVisitor<'r> {
    /// One without a session.
    #[default]
    Anonymous,
    /// A visitor with these claims: `user=7,role=editor`, names and values with commas between. A
    /// whole number, a number with a dot, `true` and `false` keep their type, and everything else
    /// is text; a value in single quotes is text too.
    Claims(&'r str),
    /// The visitor of the session cookie of this request.
    Cookie(&'r Request<'r>),
}

impl std::fmt::Debug for ExplainedVisitor<'_> {
    /// Without the cookie, which is a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Anonymous => f.write_str("Anonymous"),
            Self::Claims(text) => f.debug_tuple("Claims").field(text).finish(),
            Self::Cookie(_) => f.write_str("Cookie"),
        }
    }
}

impl ExplainedVisitor<'_> {
    /// The session that a request of theirs would have.
    ///
    /// # Errors
    /// A sentence, if the claims are not written as they should be, or the cookie is no session.
    pub(super) fn session(self, sessions: &Sessions) -> Result<Option<Session>, String> {
        match self {
            Self::Anonymous => Ok(None),
            Self::Claims(text) => Ok(Some(Session {
                claims: read(text)?,
                ..Session::default()
            })),
            Self::Cookie(request) => match sessions.of(request) {
                Some(session) => Ok(Some(session)),
                None => Err(format!(
                    "the cookie is no session of this site, or it is over; the cookie of a session is {}",
                    sessions.cookie_name()
                )),
            },
        }
    }
}

fn read(text: &str) -> Result<Claims, String> {
    let mut claims: Vec<(String, Value)> = Vec::new();
    let mut rest = text;
    loop {
        let (name, after) = rest
            .split_once('=')
            .filter(|(name, _)| !name.trim().is_empty() && !name.contains(['\'', ',']))
            .ok_or_else(|| format!("{rest:?} is no claim; write for example user=7,role=editor"))?;
        let name = name.trim();
        let (value, next) =
            value(after.trim_start()).map_err(|wrong| format!("{name}: {wrong}"))?;
        if claims.iter().any(|(other, _)| other == name) {
            return Err(format!("{name} stands there twice"));
        }
        claims.push((name.to_owned(), value));
        match next {
            Some(next) => rest = next,
            None => return Ok(Claims::new(claims)),
        }
    }
}

/// The value at the beginning of a text, and what follows behind the comma.
fn value(text: &str) -> Result<(Value, Option<&str>), &'static str> {
    let Some(quoted) = text.strip_prefix('\'') else {
        return Ok(match text.split_once(',') {
            Some((word, next)) => (plain(word.trim()), Some(next)),
            None => (plain(text.trim()), None),
        });
    };
    let mut inside = String::new();
    let mut rest = quoted;
    loop {
        let (part, tail) = rest.split_once('\'').ok_or("its quote does not end")?;
        inside += part;
        match tail.strip_prefix('\'') {
            // A quote within quotes is written twice.
            Some(more) => {
                inside.push('\'');
                rest = more;
            }
            None => {
                let value = Value::from(inside.as_str());
                let tail = tail.trim_start();
                return match tail.strip_prefix(',') {
                    None if tail.is_empty() => Ok((value, None)),
                    None => Err("behind its quotes a comma is wanted"),
                    next => Ok((value, next)),
                };
            }
        }
    }
}

fn plain(word: &str) -> Value {
    match word {
        "true" => Value::Boolean(true),
        "false" => Value::Boolean(false),
        _ => match (word.parse(), word.parse::<f64>()) {
            (Ok(integer), _) => Value::Integer(integer),
            (_, Ok(real)) if word.contains('.') && real.is_finite() => Value::Real(real),
            _ => word.into(),
        },
    }
}

#[cfg(test)]
mod tests {
    use millpond_db::Value;

    use super::read;

    #[test]
    fn claims_are_what_they_look_like() {
        let claims =
            read("user=7, role=editor,name='O''Brien, Pat', id='7' ,admin=true,share=0.5,none=")
                .unwrap();
        let found: Vec<_> = claims
            .iter()
            .map(|(name, value)| (name, value.clone()))
            .collect();
        let expected = [
            ("user", Value::Integer(7)),
            ("role", "editor".into()),
            ("name", "O'Brien, Pat".into()),
            ("id", "7".into()),
            ("admin", Value::Boolean(true)),
            ("share", Value::Real(0.5)),
            ("none", "".into()),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_no_claim_is_said() {
        for (text, reason) in [
            ("", "no claim"),
            ("user", "no claim"),
            ("=7", "no claim"),
            ("user=7,", "no claim"),
            ("a='b", "a: its quote does not end"),
            ("a='b'c=1", "a: behind its quotes"),
            ("a=1,a=2", "a stands there twice"),
        ] {
            let said = read(text).unwrap_err();
            assert!(said.contains(reason), "{text}: {said}");
        }
    }
}
