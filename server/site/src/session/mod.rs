//! Sessions: what a visitor is known as, signed into a cookie.
//!
//! There is no table of sessions. A cookie holds the claims, the moments at which they were made
//! and end, and a tag that only this site's keys can make. So a request is known without a look at
//! the database, and nothing has to be kept, shared or swept. The price: a session cannot be taken
//! back before it ends, unless a query compares a claim with a column
//! (`docs/reference/site/sessions.md`).
//!
//! Results of a query that uses claims have them in their key. Output of a template that uses
//! claims belongs to this visitor alone (coherence.md, rule 15). An expired session is no session,
//! also for a cached response: see [`CookieExpiry`].

mod attempts;
mod bearer;
mod cookie;
mod flash;
mod keys;
mod passwords;
mod seen_writes;
mod token;

use std::{
    borrow::Cow,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    num::NonZeroU64,
    path::Path,
    sync::Arc,
    time::Duration,
};

use base_clock::Boottime;
use millpond_http::Request;

pub(crate) use attempts::{Attempt, Attempts};
pub(crate) use bearer::TokenFault;
pub(crate) use cookie::Cookie;
pub(crate) use keys::{FILE as KEY_FILE, Keys, hex};
pub(crate) use passwords::{
    LONGEST as LONGEST_PASSWORD, PasswordRefusal, Passwords, SHORTEST as SHORTEST_PASSWORD,
};

use millpond_site_format::{Problem, access::Claims, config::SessionSettings};

/// Claims that were signed for one visitor.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Session {
    /// Seconds since 1970.
    pub(crate) issued: u64,
    /// From this second on it is none.
    pub(crate) expires: u64,
    pub(crate) claims: Claims,
}

impl Session {
    /// Returns the claims alone: who may enter, and what keys hold, follows from them.
    pub(crate) const fn claims(&self) -> &Claims {
        &self.claims
    }

    /// A number that tells this session from others.
    pub(crate) fn mark(&self) -> NonZeroU64 {
        let mut hasher = DefaultHasher::new();
        (self.issued, self.expires).hash(&mut hasher);
        format!("{:?}", self.claims).hash(&mut hasher);
        NonZeroU64::new(hasher.finish()).unwrap_or(NonZeroU64::MIN)
    }

    /// The time at which a response that was made from this session expires.
    pub(crate) const fn expiry(&self) -> CookieExpiry {
        CookieExpiry(self.expires)
    }
}

/// A session that begins.
pub(crate) struct BegunSession {
    /// The value of Set-Cookie.
    pub(crate) cookie: String,
    /// Token that a program sends.
    pub(crate) token: String,
    pub(crate) lifetime: Duration,
}

/// The time at which a signed cookie expires. For a session it is checked each time before a cached
/// response is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CookieExpiry(u64);

impl CookieExpiry {
    /// True if the cookie has expired for a request that was received at `received`.
    pub(crate) fn is_over(self, received: Boottime) -> bool {
        base_clock::unix_seconds_at(received) >= self.0
    }
}

/// The time beyond `max_staleness` for which the cookie reports a visitor's write to other nodes:
/// the clocks of two machines may differ.
const CLOCKS_DIFFER: Duration = Duration::from_secs(60);

/// The sessions of a site, from its `[session]` settings. Loaded again with the folder.
#[derive(Debug)]
pub(crate) struct Sessions {
    keys: Keys,
    cookie: Cookie,
    /// True if a token in Authorization is as good as the cookie.
    bearer: bool,
    lifetime: Duration,
    seen: Cookie,
    /// The cookie of seen writes where browsers keep no secure cookie. At worst the cookie has a
    /// page made anew, so it needs no protection.
    plain_seen: Option<Cookie>,
    form: Cookie,
    /// The cookie of a form where browsers keep no secure cookie. The values came over plain http,
    /// too.
    plain_form: Option<Cookie>,
    seen_for: Duration,
}

/// Purpose for which sessions are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To be served: the key file is made if the site `issues` sessions and has no other key.
    Serve { issues: bool },
    /// To be looked at: nothing is made, and the environment may be another than the server's.
    Check,
}

impl Sessions {
    /// Reads the keys; the file of keys is in the folder `key_folder`. Databases of several sites
    /// may be in that folder: `site` is the name of this site's database, so that a session of one
    /// site is not valid on another. `bound` is the site's `max_staleness`.
    ///
    /// # Errors
    /// The keys are missing or not usable.
    pub(crate) fn load(
        settings: &SessionSettings,
        key_folder: &Path,
        site: &str,
        bound: Duration,
        purpose: Purpose,
    ) -> Result<Arc<Self>, Problem> {
        let file = key_folder.join(KEY_FILE);
        let keys = match (settings.secret.text(), purpose) {
            (Some(secret), Purpose::Check) if secret.starts_with("env:") => Keys::default(),
            (Some(secret), _) => Keys::of_secret(secret)?,
            (None, Purpose::Serve { issues: true }) => Keys::read_or_make(&file, site)?,
            (None, _) => Keys::read(&file, site)?.unwrap_or_default(),
        };
        let seen = format!("{}-seen", settings.cookie);
        let form = format!("{}-form", settings.cookie);
        Ok(Arc::new(Self {
            keys,
            cookie: Cookie::new(&settings.cookie, settings.secure),
            bearer: settings.bearer,
            lifetime: settings.lifetime,
            seen: Cookie::new(&seen, settings.secure),
            plain_seen: settings.secure.then(|| Cookie::new(&seen, false)),
            form: Cookie::new(&form, settings.secure),
            plain_form: settings.secure.then(|| Cookie::new(&form, false)),
            seen_for: bound.saturating_add(CLOCKS_DIFFER),
        }))
    }

    /// The session of a request, if it has a cookie or a token that was signed here and is not
    /// over.
    pub(crate) fn of(&self, request: &Request<'_>) -> Option<Session> {
        self.found(request).map(|(_, session)| session)
    }

    /// Begins a session with these claims; none if they are too long for a cookie, or of a kind
    /// that is no claim.
    pub(crate) fn begin(&self, claims: Claims, now: Boottime) -> Option<BegunSession> {
        let issued = base_clock::unix_seconds_at(now);
        let session = Session {
            issued,
            expires: issued.saturating_add(self.lifetime.as_secs()),
            claims,
        };
        let token = token::seal(&session, &self.keys)?;
        Some(BegunSession {
            cookie: self.cookie.set(&token, self.lifetime),
            token,
            lifetime: self.lifetime,
        })
    }

    pub(crate) fn cookie_name(&self) -> &str {
        self.cookie.name()
    }

    /// The field value that ends the session in the browser.
    pub(crate) fn end(&self) -> String {
        self.cookie.set("", Duration::ZERO)
    }

    /// The value of a request field, for templates and keys, without the cookies that are for
    /// the servers of this site alone: what was written, and what a form is shown with again.
    pub(crate) fn field<'r>(&self, request: &Request<'r>, name: &str) -> Option<Cow<'r, [u8]>> {
        let mut lines = request.fields.get_all(name);
        if name.eq_ignore_ascii_case("cookie") {
            lines.find_map(|line| self.without_own(line))
        } else {
            lines.next().map(Cow::Borrowed)
        }
    }

    /// The Cookie field without those cookies; `None` if no other cookie is left.
    fn without_own<'r>(&self, line: &'r [u8]) -> Option<Cow<'r, [u8]>> {
        let plain = [&self.plain_seen, &self.plain_form];
        let own = [&self.seen, &self.form].into_iter();
        let mut own = own.chain(plain.into_iter().flatten());
        own.try_fold(Cow::Borrowed(line), |rest, cookie| match rest {
            Cow::Borrowed(rest) => cookie.without(rest),
            Cow::Owned(rest) => cookie.without(&rest).map(Cow::into_owned).map(Cow::Owned),
        })
    }

    /// True if a browser at this origin drops the cookie: one over plain http, on another machine.
    pub(crate) fn is_dropped_at(&self, origin: &str) -> bool {
        self.cookie.is_secure() && cookie::is_plain(origin)
    }
}

/// Parsers of tokens for the fuzz targets.
#[cfg(test)]
pub(crate) mod parts {
    pub(crate) use super::{
        keys::Keys,
        seen_writes::{open as open_seen, seal as seal_seen},
        token::{LONGEST, open, read, seal},
    };
}

#[cfg(test)]
mod tests {
    use millpond_db::Position;
    use millpond_http::OwnedRequest;

    use super::*;
    use millpond_site_format::config::Secret;

    fn sessions(secret: &str, lifetime: u64) -> Arc<Sessions> {
        let settings = SessionSettings {
            secret: Secret::new(secret),
            lifetime: Duration::from_secs(lifetime),
            cookie: "session".to_owned(),
            secure: true,
            bearer: false,
        };
        let bound = Duration::from_secs(600);
        Sessions::load(&settings, Path::new("/nowhere"), "", bound, Purpose::Check).unwrap()
    }

    fn claims() -> Claims {
        Claims::new(vec![("user".to_owned(), 7.into())])
    }

    /// The `name=value` of a field that sets a cookie.
    fn pair(field: &str) -> &str {
        field.split(';').next().unwrap()
    }

    #[test]
    fn a_session_ends_when_its_time_is_over() {
        let sessions = sessions(&"k".repeat(32), 3600);
        let now = Boottime::now();
        let field = sessions.begin(claims(), now).unwrap().cookie;
        let at = |seconds: u64| {
            let received = now.plus(Duration::from_secs(seconds));
            let request = OwnedRequest::new("GET", "/")
                .field("Cookie", pair(&field))
                .from_peer(([127, 0, 0, 1], 1).into(), received);
            sessions.of(&request.as_request())
        };
        let first = at(0).unwrap();
        assert_eq!(first.claims, claims());
        assert!(at(3500).is_some());
        assert!(at(3602).is_none());
        assert!(!first.expiry().is_over(now));
        assert!(first.expiry().is_over(now.plus(Duration::from_secs(3602))));
    }

    #[test]
    fn any_other_value_is_no_session() {
        let ours = sessions(&"k".repeat(32), 3600);
        let rotated = sessions(&format!("{},{}", "n".repeat(32), "k".repeat(32)), 3600);
        let foreign = sessions(&"f".repeat(32), 3600);
        let field = ours.begin(claims(), Boottime::now()).unwrap().cookie;
        let cookie = pair(&field);
        let of = |sessions: &Sessions, cookies: &[&str]| {
            let request = cookies
                .iter()
                .fold(OwnedRequest::new("GET", "/"), |request, cookie| {
                    request.field("Cookie", cookie)
                });
            sessions.of(&request.as_request()).is_some()
        };
        assert!(of(&ours, &[cookie]));
        assert!(
            of(&ours, &["a=b", &format!("x=y; {cookie};z")]),
            "among others"
        );
        assert!(
            of(&ours, &["__Host-session=1.x.y", cookie]),
            "behind a bad one"
        );
        assert!(of(&rotated, &[cookie]), "signed with the key before");
        assert!(!of(&foreign, &[cookie]));
        assert!(!of(&ours, &[]));
        assert!(!of(&ours, &[&cookie.replace("__Host-", "")]));
        assert!(!of(&ours, &[&cookie[..cookie.len() - 1]]));
        assert!(!of(
            &ours,
            &[&format!("__Host-session={}", "x".repeat(100_000))]
        ));
        let none = Sessions::load(
            &SessionSettings::default(),
            Path::new("/nowhere"),
            "",
            Duration::ZERO,
            Purpose::Serve { issues: false },
        );
        assert!(!of(&none.unwrap(), &[cookie]));
    }

    #[test]
    fn a_write_is_shared_for_a_while_with_servers_that_have_the_key() {
        let ours = sessions(&"k".repeat(32), 3600);
        let foreign = sessions(&"f".repeat(32), 3600);
        let position = Position::new("7, timeline 1", 8);
        let now = Boottime::now();
        let form = OwnedRequest::new("POST", "/say").field("Origin", "https://site.test");
        let field = ours.note_write(&position, &form.as_request(), now);
        let field = field.unwrap();
        assert!(
            field.starts_with("__Host-session-seen=w1.")
                && field.ends_with("; Path=/; Max-Age=660; HttpOnly; SameSite=Lax; Secure"),
            "{field}"
        );
        let of = |sessions: &Sessions, cookie: &str, seconds: u64| {
            let received = now.plus(Duration::from_secs(seconds));
            let request = OwnedRequest::new("GET", "/")
                .field("Cookie", cookie)
                .from_peer(([127, 0, 0, 1], 1).into(), received);
            sessions.written(&request.as_request()).next()
        };
        let cookie = pair(&field);
        assert_eq!(of(&ours, cookie, 0), Some(position.clone()));
        assert_eq!(of(&ours, &format!("a=b; {cookie}"), 600), Some(position));
        assert_eq!(of(&ours, cookie, 662), None, "it is over");
        assert_eq!(of(&foreign, cookie, 0), None);
        assert_eq!(of(&ours, &cookie.replace("-seen", ""), 0), None);
        assert_eq!(of(&ours, &cookie[..cookie.len() - 1], 0), None);
    }

    #[test]
    fn over_plain_http_a_write_is_in_a_cookie_that_browsers_keep() {
        let sessions = sessions(&"k".repeat(32), 3600);
        let (first, second) = (Position::new("s", 1), Position::new("s", 2));
        let cookie_for = |position: &Position, origin: &str| {
            let form = OwnedRequest::new("POST", "/say").field("Origin", origin);
            let field = sessions.note_write(position, &form.as_request(), Boottime::now());
            field.unwrap()
        };
        let plain = cookie_for(&first, "http://site.test");
        assert!(plain.starts_with("session-seen=w1."), "{plain}");
        assert!(plain.ends_with("; HttpOnly; SameSite=Lax"), "{plain}");
        // Of both kinds neither hides the other.
        let secure = cookie_for(&second, "https://site.test");
        assert!(secure.starts_with("__Host-session-seen=w1."), "{secure}");
        let cookies = format!("{}; {}", pair(&plain), pair(&secure));
        let request = OwnedRequest::new("GET", "/").field("Cookie", &cookies);
        let written: Vec<Position> = sessions.written(&request.as_request()).collect();
        assert_eq!(written, [second, first]);
    }

    #[test]
    fn a_template_sees_browser_cookies_but_not_cookies_between_servers() {
        let sessions = sessions(&"k".repeat(32), 3600);
        let said = |origin: &str| {
            let form = OwnedRequest::new("POST", "/say").field("Origin", origin);
            let position = Position::new("", 0);
            let field = sessions.note_write(&position, &form.as_request(), Boottime::now());
            pair(&field.unwrap()).to_owned()
        };
        let (cookie, plain) = (&*said("https://site.test"), &*said("http://site.test"));
        let seen = |lines: &[&str]| {
            let request = lines
                .iter()
                .fold(OwnedRequest::new("GET", "/"), |request, line| {
                    request.field("Cookie", line)
                });
            let found = sessions.field(&request.as_request(), "cookie");
            found.map(|found| String::from_utf8_lossy(&found).into_owned())
        };
        assert_eq!(seen(&[cookie]), None);
        assert_eq!(seen(&[plain]), None);
        assert_eq!(seen(&[&format!("{plain}; {cookie}")]), None);
        assert_eq!(seen(&[&format!("{plain}; a=1; {cookie}")]).unwrap(), "a=1");
        assert_eq!(seen(&[&format!("a=1; {cookie}; b=2")]).unwrap(), "a=1; b=2");
        assert_eq!(seen(&[cookie, "a=1"]).unwrap(), "a=1");
        assert_eq!(seen(&["a=1;b=2"]).unwrap(), "a=1;b=2");
    }
}
