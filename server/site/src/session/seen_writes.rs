//! The position of a visitor's last write, signed into a cookie that the other nodes read
//! (coherence.md, rule 19).
//!
//! The response to a form is sent once this node's feed has applied the change. The feed of the
//! node that handles the visitor's next request may be behind. So the cookie carries the position
//! of the write: its source, the position in it, and an expiry a little after `max_staleness`, from
//! which on every node shows the write to every visitor. If the position is unknown, the number of
//! the response is used ([`Position::with_write_number`]). The cookie is signed, because a forged
//! position would make the server render all pages of that visitor again. It does not identify a
//! visitor: it changes no key, and templates do not see it.
//!
//! `w1.PAYLOAD.TAG`, as a session's token is, so that neither can be taken for the other.

use base_clock::Boottime;
use millpond_db::Position;
use millpond_http::Request;

use super::{CookieExpiry, Sessions, keys::Keys, token};

const VERSION: &str = "w1";

/// Writes a position that is to be seen until `expires`, in seconds since 1970; none if there is no
/// key to sign with.
pub(crate) fn seal(position: &Position, expires: u64, keys: &Keys) -> Option<String> {
    let payload = format!(
        "{expires} {} {} {} {}",
        position.at(),
        position.number(),
        position.node(),
        position.source()
    );
    token::sign(VERSION, payload.as_bytes(), keys)
}

/// Reads a position and the second from which on it is over, if one of the keys has signed it.
pub(crate) fn open(token: &[u8], keys: &Keys) -> Option<(Position, u64)> {
    let payload = token::verify(VERSION, token, keys)?;
    let mut parts = std::str::from_utf8(&payload).ok()?.splitn(5, ' ');
    let mut number = || parts.next()?.parse::<u64>().ok();
    let (expires, at, number) = (number()?, number()?, number()?);
    let (node, source) = (parts.next()?, parts.next()?);
    Some((
        Position::new(source, at).with_write_number(node, number),
        expires,
    ))
}

impl Sessions {
    /// The field value that reports the visitor's write in this `request` to the other nodes;
    /// `None` if there is no key to sign with.
    ///
    /// Counterexample: over plain http browsers drop a cookie that is `Secure`, and the visitor
    /// would not see the write on another node.
    pub(crate) fn note_write(
        &self,
        position: &Position,
        request: &Request<'_>,
        now: Boottime,
    ) -> Option<String> {
        let expires = base_clock::unix_seconds_at(now).saturating_add(self.seen_for.as_secs());
        let token = seal(position, expires, &self.keys)?;
        let origin = request.fields.get("origin");
        let origin = origin.and_then(|origin| std::str::from_utf8(origin).ok());
        let cookie = match &self.plain_seen {
            Some(plain) if origin.is_some_and(|origin| self.is_dropped_at(origin)) => plain,
            _ => &self.seen,
        };
        Some(cookie.set(&token, self.seen_for))
    }

    /// Iterates over the visitor's latest writes, through any node that has a key of these: the
    /// last over https, and the last over http.
    pub(crate) fn written(&self, request: &Request<'_>) -> impl Iterator<Item = Position> {
        // Most requests have none: they are looked through once.
        let may_have = !self.keys.is_empty() && request.fields.get("cookie").is_some();
        let cookies = [Some(&self.seen), self.plain_seen.as_ref()];
        let cookies = cookies.into_iter().flatten().filter(move |_| may_have);
        cookies.filter_map(|cookie| {
            let mut tokens = cookie.values(request);
            tokens.find_map(|token| {
                let (position, expires) = open(token, &self.keys)?;
                (!CookieExpiry(expires).is_over(request.received)).then_some(position)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Session;
    use millpond_site_format::access::Claims;

    fn keys() -> Keys {
        Keys::parse(&"k".repeat(32)).unwrap()
    }

    #[test]
    fn what_was_sealed_is_read_and_nothing_else() {
        for position in [
            Position::new("7311, timeline 1", 0x16_b374_d848),
            Position::new("7311, timeline 2", u64::MAX),
            Position::new("7311, timeline 1", 7).with_write_number("0a", u64::MAX),
            Position::new("", 0).with_write_number("0a", 3),
            Position::new("", 0),
        ] {
            let token = seal(&position, 20, &keys()).unwrap();
            assert_eq!(open(token.as_bytes(), &keys()), Some((position, 20)));
            for at in 0..token.len() {
                let mut other = token.clone().into_bytes();
                other[at] ^= 1;
                assert_eq!(open(&other, &keys()), None, "byte {at}");
                assert_eq!(open(&token.as_bytes()[..at], &keys()), None);
            }
            let foreign = Keys::parse(&"f".repeat(32)).unwrap();
            assert_eq!(open(token.as_bytes(), &foreign), None);
            assert_eq!(open(token.as_bytes(), &Keys::default()), None);
        }
        assert_eq!(seal(&Position::new("", 0), 20, &Keys::default()), None);
        for payload in [
            "",
            "20",
            "20 7 1 a",
            "20 7 s",
            "x 7 1 a s",
            "20 -7 1 a s",
            "20 7 x a s",
            "20 18446744073709551616 1 a s",
        ] {
            let token = token::sign(VERSION, payload.as_bytes(), &keys()).unwrap();
            assert_eq!(open(token.as_bytes(), &keys()), None, "{payload:?}");
        }
    }

    #[test]
    fn it_is_no_session_and_a_session_is_none_of_it() {
        let written = seal(&Position::new("s", 7), 20, &keys()).unwrap();
        assert_eq!(token::open(written.as_bytes(), &keys()), None);
        let session = Session {
            issued: 10,
            expires: 20,
            claims: Claims::default(),
        };
        let session = token::seal(&session, &keys()).unwrap();
        assert_eq!(open(session.as_bytes(), &keys()), None);
    }
}
