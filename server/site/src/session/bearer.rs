//! Tokens of programs: the value that a browser has in the session's cookie, in `Authorization:
//! Bearer` (RFC 6750).
//!
//! A token is never silently ignored. If it is no session of this site, or its time is over, the
//! request is refused at every address: else a program would take the answer for strangers for its
//! own. A response to a request with a token ends with the token, as one to a request with a
//! cookie does.

use millpond_http::Request;

use super::{CookieExpiry, Session, Sessions, token};

const FIELD: &str = "authorization";

/// Why a token is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenFault {
    /// 400: the request has two tokens, or a cookie of another session beside its token.
    Ambiguous(&'static str),
    /// 401: the token was not signed here, or its time is over.
    Invalid,
}

/// The scheme and the credentials of an Authorization field (RFC 9110 section 11.6.2).
fn credentials(line: &[u8]) -> (&[u8], &[u8]) {
    let line = line.trim_ascii();
    let end = line.iter().position(|byte| *byte == b' ');
    let (scheme, rest) = line.split_at(end.unwrap_or(line.len()));
    (scheme, rest.trim_ascii())
}

impl Sessions {
    /// True if a request may have a token (`session.bearer`).
    pub(crate) const fn take_tokens(&self) -> bool {
        self.bearer
    }

    /// The end of the token of a request, if it has one.
    ///
    /// # Errors
    /// The request is not to be answered.
    pub(crate) fn token_end(
        &self,
        request: &Request<'_>,
    ) -> Result<Option<CookieExpiry>, TokenFault> {
        let Some(token) = self.sent_token(request) else {
            return Ok(None);
        };
        if request.fields.get_all(FIELD).count() > 1 {
            return Err(TokenFault::Ambiguous(
                "The request has more than one Authorization field.",
            ));
        }
        let mut cookies = self.cookie.values(request);
        if cookies.any(|cookie| !cookie.is_empty() && cookie != token) {
            return Err(TokenFault::Ambiguous(
                "The request has a token, and the cookie of another session.",
            ));
        }
        let session = self.valid(token, request).ok_or(TokenFault::Invalid)?;
        Ok(Some(session.expiry()))
    }

    /// The token of a request as it was sent; none where tokens are not taken.
    fn sent_token<'r>(&self, request: &Request<'r>) -> Option<&'r [u8]> {
        if !self.bearer {
            return None;
        }
        let mut lines = request.fields.get_all(FIELD).map(credentials);
        let found = lines.find(|(scheme, _)| scheme.eq_ignore_ascii_case(b"bearer"));
        found.map(|(_, token)| token)
    }

    pub(crate) fn has_token(&self, request: &Request<'_>) -> bool {
        self.sent_token(request).is_some()
    }

    /// True if the request has a good token, and no cookie of a session. No page of another site
    /// can have sent it: a browser adds a cookie by itself, but never a token.
    pub(crate) fn has_token_alone(&self, request: &Request<'_>) -> bool {
        let token = self.sent_token(request);
        token.is_some_and(|token| self.valid(token, request).is_some())
            && self.cookie.values(request).all(<[u8]>::is_empty)
    }

    /// The session of a request with its value: that of its token, else that of its cookie.
    pub(super) fn found<'r>(&self, request: &Request<'r>) -> Option<(&'r [u8], Session)> {
        if self.keys.is_empty() {
            return None;
        }
        if let Some(token) = self.sent_token(request) {
            return Some((token, self.valid(token, request)?));
        }
        let mut tokens = self.cookie.values(request);
        tokens.find_map(|token| Some((token, self.valid(token, request)?)))
    }

    fn valid(&self, token: &[u8], request: &Request<'_>) -> Option<Session> {
        let session = token::open(token, &self.keys)?;
        (!session.expiry().is_over(request.received)).then_some(session)
    }

    /// Returns the challenge for a client without a session (RFC 9110 section 11.6.1). There is no
    /// registered scheme for cookies.
    pub(crate) fn challenge(&self) -> String {
        match self.bearer {
            true => "Bearer".to_owned(),
            false => format!("Cookie cookie-name=\"{}\"", self.cookie.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{path::Path, sync::Arc, time::Duration};

    use base_clock::Boottime;
    use millpond_http::OwnedRequest;

    use super::*;
    use crate::session::Purpose;
    use millpond_site_format::{
        access::Claims,
        config::{Secret, SessionSettings},
    };

    fn sessions(bearer: bool) -> Arc<Sessions> {
        let settings = SessionSettings {
            secret: Secret::new(&"k".repeat(32)),
            lifetime: Duration::from_secs(3600),
            cookie: "session".to_owned(),
            secure: true,
            bearer,
        };
        let nowhere = Path::new("/nowhere");
        Sessions::load(&settings, nowhere, "", Duration::ZERO, Purpose::Check).unwrap()
    }

    fn token(user: i64) -> String {
        let claims = Claims::new(vec![("user".to_owned(), user.into())]);
        sessions(true).begin(claims, Boottime::now()).unwrap().token
    }

    fn request(fields: &[(&str, &str)]) -> OwnedRequest {
        let request = OwnedRequest::new("GET", "/");
        let mut fields = fields.iter();
        fields
            .try_fold(request, |request, (name, value)| {
                Some(request.field(name, value))
            })
            .unwrap()
    }

    #[test]
    fn a_token_is_read_in_one_way_or_refused() {
        let sessions = sessions(true);
        let (ours, other) = (token(1), token(2));
        let cookie = |token: &str| format!("__Host-session={token}");
        let bearer = |token: &str| format!("Bearer {token}");
        let end = |fields: &[(&str, &str)]| {
            let end = sessions.token_end(&request(fields).as_request());
            end.map(|end| end.is_some())
        };
        let ambiguous =
            |found: Result<bool, TokenFault>| matches!(found, Err(TokenFault::Ambiguous(_)));
        assert_eq!(end(&[]), Ok(false));
        assert_eq!(end(&[("Cookie", &cookie(&ours))]), Ok(false));
        assert_eq!(end(&[("Authorization", "Basic YTpi")]), Ok(false));
        for line in [bearer(&ours), format!("bEARER   {ours} ")] {
            assert_eq!(end(&[("Authorization", &line)]), Ok(true), "{line}");
        }
        for bad in [
            "Bearer".to_owned(),
            "Bearer ".to_owned(),
            "Bearer x".to_owned(),
            format!("{}x", bearer(&ours)),
            format!("{} x", bearer(&ours)),
            bearer(&"x".repeat(100_000)),
        ] {
            assert_eq!(
                end(&[("Authorization", &bad)]),
                Err(TokenFault::Invalid),
                "{bad}"
            );
        }
        let same = [
            ("Authorization", &*bearer(&ours)),
            ("Cookie", &*cookie(&ours)),
        ];
        assert_eq!(end(&same), Ok(true));
        assert!(!sessions.has_token_alone(&request(&same).as_request()));
        assert!(sessions.has_token_alone(&request(&same[..1]).as_request()));
        let differ = [
            ("Authorization", &*bearer(&ours)),
            ("Cookie", &*cookie(&other)),
        ];
        assert!(ambiguous(end(&differ)));
        let damaged = [
            ("Authorization", &*bearer(&ours)),
            ("Cookie", "__Host-session=x"),
        ];
        assert!(ambiguous(end(&damaged)));
        let signed_out = [
            ("Authorization", &*bearer(&ours)),
            ("Cookie", "__Host-session="),
        ];
        assert_eq!(end(&signed_out), Ok(true));
        let twice = [
            ("Authorization", &*bearer(&ours)),
            ("Authorization", "Basic YTpi"),
        ];
        assert!(ambiguous(end(&twice)));
    }

    #[test]
    fn without_the_setting_it_is_nothing() {
        let sessions = sessions(false);
        let owned = request(&[("Authorization", &format!("Bearer {}", token(1)))]);
        let request = owned.as_request();
        assert_eq!(sessions.token_end(&request), Ok(None));
        assert!(sessions.of(&request).is_none() && !sessions.has_token_alone(&request));
    }
}
