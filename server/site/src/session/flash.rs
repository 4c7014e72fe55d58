//! What a visitor typed into a form that was refused, and what is wrong with it, signed into a
//! cookie for the one page to which the visitor is led back (coherence.md, rule 24).
//!
//! `f1.PAYLOAD.TAG`, as a session's token is, so that neither can be taken for the other. It counts
//! at one path, for the session with which the form was sent, and for a few minutes. What is
//! anything else is no flash, never an error.

use std::time::Duration;

use base_clock::Boottime;
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD as BASE64};
use millpond_http::Request;

use super::{CookieExpiry, Sessions, cookie::Cookie, token};

use millpond_site_compile::refusal::flash::Flash;

const VERSION: &str = "f1";

/// How long a visitor may take to come to the page: a redirect takes a moment.
const LIFETIME: Duration = Duration::from_secs(300);

/// The longest token.
const LONGEST: usize = 3_500;

impl Sessions {
    /// The field value that takes a flash to its page; `None` if there is no key to sign with, or
    /// no room for all of it. `request` is the one that the form was sent with.
    ///
    /// Counterexample: over plain http browsers drop a cookie that is `Secure`, and the visitor
    /// would see an empty form without a word.
    pub(crate) fn flash(
        &self,
        flash: &Flash,
        request: &Request<'_>,
        now: Boottime,
    ) -> Option<String> {
        // A form may have megabytes, of which no payload needs to be made.
        if flash.size() > LONGEST {
            return None;
        }
        let expires = base_clock::unix_seconds_at(now).saturating_add(LIFETIME.as_secs());
        let payload = flash.payload(expires, &self.visitor(request));
        // `f1.`, the tag and its dot take 47 bytes.
        if payload.len().div_ceil(3) * 4 + 47 > LONGEST {
            return None;
        }
        let token = token::sign(VERSION, payload.as_bytes(), &self.keys)?;
        let origin = request.fields.get("origin");
        let origin = origin.and_then(|origin| std::str::from_utf8(origin).ok());
        let cookie = match &self.plain_form {
            Some(plain) if origin.is_some_and(|origin| self.is_dropped_at(origin)) => plain,
            _ => &self.form,
        };
        Some(cookie.set(&token, LIFETIME))
    }

    /// The flash that this request brings for the page at `path`, if there is one.
    pub(crate) fn flash_of(&self, request: &Request<'_>, path: &str) -> Option<Flash> {
        // Most requests have none: they are looked through once.
        if self.keys.is_empty() || request.fields.get("cookie").is_none() {
            return None;
        }
        // Browsers send this field over https and to this machine only, where no other host of the
        // domain can set a cookie for this one.
        let is_secure = request.fields.get("sec-fetch-site").is_some();
        let cookies = [
            Some(&self.form),
            self.plain_form.as_ref().filter(|_| !is_secure),
        ];
        cookies.into_iter().flatten().find_map(|cookie| {
            let mut tokens = cookie.values(request);
            tokens.find_map(|token| {
                if token.len() > LONGEST {
                    return None;
                }
                let payload = token::verify(VERSION, token, &self.keys)?;
                let (flash, expires, visitor) = Flash::read(&payload)?;
                let is_good = flash.path == path
                    && !CookieExpiry(expires).is_over(request.received)
                    && visitor == self.visitor(request);
                is_good.then_some(flash)
            })
        })
    }

    /// The field values that take the flash out of the browser that has sent this request.
    pub(crate) fn end_flash(&self, request: &Request<'_>) -> impl Iterator<Item = String> {
        let sent = self
            .form_cookies()
            .filter(|cookie| cookie.values(request).next().is_some());
        sent.map(|cookie| cookie.set("", Duration::ZERO))
    }

    fn form_cookies(&self) -> impl Iterator<Item = &Cookie> {
        [Some(&self.form), self.plain_form.as_ref()]
            .into_iter()
            .flatten()
    }

    /// Tells one session from another, and from none. After a visitor has signed out, the next one
    /// at the same browser does not see what was typed.
    fn visitor(&self, request: &Request<'_>) -> String {
        let token = self.found(request).map(|(token, _)| token);
        let tag = token.and_then(|token| self.keys.sign(&[b"form ", token].concat()));
        tag.map_or_else(String::new, |tag| BASE64.encode(&tag.as_ref()[..16]))
    }
}

#[cfg(test)]
mod tests {
    use std::{path::Path, sync::Arc};

    use millpond_http::OwnedRequest;

    use super::*;
    use crate::session::Purpose;
    use millpond_site_compile::refusal::flash::FlashError;
    use millpond_site_format::{
        access::Claims,
        config::{Secret, SessionSettings},
    };

    fn sessions(secret: &str) -> Arc<Sessions> {
        let settings = SessionSettings {
            secret: Secret::new(secret),
            lifetime: Duration::from_secs(3600),
            cookie: "session".to_owned(),
            secure: true,
            bearer: false,
        };
        let nowhere = Path::new("/nowhere");
        Sessions::load(&settings, nowhere, "", Duration::ZERO, Purpose::Check).unwrap()
    }

    fn flash() -> Flash {
        Flash {
            path: "/albums/new".to_owned(),
            action: "/albums/new".to_owned(),
            values: vec![
                ("title".to_owned(), vec!["<b> \"é\"".to_owned()]),
                ("track".to_owned(), vec!["6".to_owned(), "1".to_owned()]),
            ],
            errors: vec![FlashError {
                field: "title".to_owned(),
                kind: "unique".to_owned(),
                sentence: "Title exists already.".to_owned(),
            }],
        }
    }

    fn pair(field: &str) -> &str {
        field.split(';').next().unwrap()
    }

    fn post() -> OwnedRequest {
        OwnedRequest::new("POST", "/albums/new").field("Origin", "https://site.test")
    }

    fn found(sessions: &Sessions, cookies: &[&str], path: &str, seconds: u64) -> Option<Flash> {
        let received = Boottime::now().plus(Duration::from_secs(seconds));
        let request =
            OwnedRequest::new("GET", path).from_peer(([127, 0, 0, 1], 1).into(), received);
        let request = cookies
            .iter()
            .fold(request, |request, cookie| request.field("Cookie", cookie));
        sessions.flash_of(&request.as_request(), path)
    }

    #[test]
    fn it_counts_at_its_path_for_a_while() {
        let ours = sessions(&"k".repeat(32));
        let foreign = sessions(&"f".repeat(32));
        let form = post();
        let field = ours.flash(&flash(), &form.as_request(), Boottime::now());
        let field = field.unwrap();
        assert!(
            field.starts_with("__Host-session-form=f1.")
                && field.ends_with("; Path=/; Max-Age=300; HttpOnly; SameSite=Lax; Secure"),
            "{field}"
        );
        let cookie = pair(&field);
        let path = "/albums/new";
        assert_eq!(found(&ours, &[cookie], path, 0), Some(flash()));
        assert_eq!(found(&ours, &["a=b", cookie], path, 290), Some(flash()));
        assert_eq!(found(&ours, &[cookie], path, 302), None, "it is over");
        assert_eq!(found(&ours, &[cookie], "/albums", 0), None);
        assert_eq!(found(&ours, &[cookie], "/", 0), None);
        assert_eq!(found(&foreign, &[cookie], path, 0), None);
        assert_eq!(found(&ours, &[&cookie.replace("-form", "")], path, 0), None);
        assert_eq!(
            found(&ours, &[&cookie.replace("-form", "-seen")], path, 0),
            None
        );
        let token = cookie.split_once('=').unwrap().1.to_owned();
        for at in 0..token.len() {
            let mut other = token.clone().into_bytes();
            other[at] ^= 1;
            let other = format!("__Host-session-form={}", String::from_utf8_lossy(&other));
            assert_eq!(found(&ours, &[&other], path, 0), None, "byte {at}");
        }
        let long = format!("__Host-session-form={}", "x".repeat(100_000));
        assert_eq!(found(&ours, &[&long], path, 0), None);
        assert_eq!(found(&ours, &[&long, cookie], path, 0), Some(flash()));
    }

    #[test]
    fn it_is_of_the_session_with_which_the_form_was_sent() {
        let sessions = sessions(&"k".repeat(32));
        let session = |user: i64| {
            let claims = Claims::new(vec![("user".to_owned(), user.into())]);
            sessions.begin(claims, Boottime::now()).unwrap().cookie
        };
        let (ann, bob) = (session(1), session(2));
        let form = post().field("Cookie", pair(&ann));
        let field = sessions.flash(&flash(), &form.as_request(), Boottime::now());
        let field = field.unwrap();
        let path = "/albums/new";
        let seen = |who: &[&str]| {
            let cookies = who.iter().copied().chain([pair(&field)]);
            found(&sessions, &cookies.collect::<Vec<_>>(), path, 0).is_some()
        };
        assert!(seen(&[pair(&ann)]));
        assert!(!seen(&[pair(&bob)]));
        assert!(!seen(&[]), "signed out");
        let field = sessions.flash(&flash(), &post().as_request(), Boottime::now());
        let unsigned = field.unwrap();
        assert!(found(&sessions, &[pair(&unsigned)], path, 0).is_some());
        assert!(found(&sessions, &[pair(&unsigned), pair(&ann)], path, 0).is_none());
    }

    #[test]
    fn it_is_taken_whole_or_not_at_all() {
        let sessions = sessions(&"k".repeat(32));
        let with = |size: usize| Flash {
            values: vec![("body".to_owned(), vec!["x".repeat(size)])],
            ..flash()
        };
        let sent = |flash: &Flash| sessions.flash(flash, &post().as_request(), Boottime::now());
        let mut longest = 0;
        for size in (0..4_000).step_by(7) {
            let Some(field) = sent(&with(size)) else {
                continue;
            };
            longest = size;
            let token = pair(&field).split_once('=').unwrap().1;
            assert!(token.len() <= LONGEST, "{size}");
            let shown = found(&sessions, &[pair(&field)], "/albums/new", 0);
            assert_eq!(shown, Some(with(size)));
        }
        assert!((2_200..2_500).contains(&longest), "{longest}");
        for size in [longest + 7, 1 << 20] {
            assert_eq!(sent(&with(size)), None, "{size}");
        }
        let endless = Flash {
            path: "/x".repeat(3_000),
            ..Flash::default()
        };
        assert_eq!(sent(&endless), None);
    }

    #[test]
    fn a_payload_is_read_whole_or_not_at_all() {
        let payload = flash().payload(7, "ann");
        assert_eq!(
            Flash::read(payload.as_bytes()),
            Some((flash(), 7, "ann".to_owned()))
        );
        for end in 0..payload.len() {
            assert_eq!(Flash::read(&payload.as_bytes()[..end]), None);
        }
        for (part, other) in [
            ("\"e\":7", "\"e\":-7"),
            ("[\"6\",\"1\"]", "[6,1]"),
            ("[\"6\",\"1\"]", "\"6\""),
            ("\"unique\",", ""),
            ("\"s\"", "\"x\""),
            ("\"a\":", "\"b\":"),
        ] {
            let other = payload.replacen(part, other, 1);
            assert_ne!(other, payload);
            assert_eq!(Flash::read(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn without_a_key_there_is_none() {
        let none = Sessions::load(
            &SessionSettings::default(),
            Path::new("/nowhere"),
            "",
            Duration::ZERO,
            Purpose::Serve { issues: false },
        );
        let none = none.unwrap();
        assert_eq!(
            none.flash(&flash(), &post().as_request(), Boottime::now()),
            None
        );
    }

    #[test]
    fn over_plain_http_it_is_in_a_cookie_that_browsers_keep_and_each_kind_is_ended() {
        let sessions = sessions(&"k".repeat(32));
        let form = OwnedRequest::new("POST", "/albums/new").field("Origin", "http://site.test");
        let field = sessions.flash(&flash(), &form.as_request(), Boottime::now());
        let field = field.unwrap();
        assert!(field.starts_with("session-form=f1."), "{field}");
        assert!(found(&sessions, &[pair(&field)], "/albums/new", 0).is_some());
        let request = OwnedRequest::new("GET", "/albums/new").field("Cookie", pair(&field));
        let ends: Vec<String> = sessions.end_flash(&request.as_request()).collect();
        assert_eq!(
            ends,
            ["session-form=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax"]
        );
        // No template sees it, and no key has it.
        assert_eq!(sessions.field(&request.as_request(), "cookie"), None);
    }
}
