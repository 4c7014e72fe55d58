//! What a visitor has written, signed into a cookie that the other nodes read (COHERENCE, rule 19).
//!
//! The answer to a form goes out when this node's feed has applied the change; that of the node which answers the visitor's next request may
//! be behind. So the cookie says how far that one must have come: whose history it is, the place in it, and when it is over, a
//! little after `max_staleness`: from then on every node shows the write to everybody. It is signed, for whoever could
//! make up a place would have all his pages made anew. It is nothing that a visitor is known by: it changes no key, and
//! templates do not see it.
//!
//! `w1.PAYLOAD.TAG`, as a session's token is, so that neither can be taken for the other.

use millpond_db::Position;

use super::{keys::Keys, token};

const VERSION: &str = "w1";

/// Writes a position that is to be seen until `expires`, in seconds since 1970; none if there is no key to sign with.
pub(crate) fn seal(position: &Position, expires: u64, keys: &Keys) -> Option<String> {
    let payload = format!("{expires} {} {}", position.at(), position.source());
    token::sign(VERSION, payload.as_bytes(), keys)
}

/// Reads a position and the second from which on it is over, if one of the keys has signed it.
pub(crate) fn open(token: &[u8], keys: &Keys) -> Option<(Position, u64)> {
    let payload = token::verify(VERSION, token, keys)?;
    let mut parts = std::str::from_utf8(&payload).ok()?.splitn(3, ' ');
    let mut number = || parts.next()?.parse::<u64>().ok();
    let (expires, at) = (number()?, number()?);
    Some((Position::new(parts.next()?, at), expires))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{Claims, Session};

    fn keys() -> Keys {
        Keys::parse(&"k".repeat(32)).unwrap()
    }

    #[test]
    fn what_was_sealed_is_read_and_nothing_else() {
        for position in [
            Position::new("7311, timeline 1", 0x16_b374_d848),
            Position::new("7311, timeline 2", u64::MAX),
            Position::unknown(),
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
        assert_eq!(seal(&Position::unknown(), 20, &Keys::default()), None);
        for payload in [
            "",
            "20",
            "20 7",
            "x 7 s",
            "20 -7 s",
            "20 18446744073709551616 s",
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
