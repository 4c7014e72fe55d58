//! The cookie itself: its name and attributes, and finding it again (RFC 6265).

use std::{borrow::Cow, time::Duration};

use millpond_http::Request;

/// The number of cookies with the session's name that are checked in a request; a browser sends
/// one.
const TRIED: usize = 8;

/// How the cookie of a site is called and sent.
#[derive(Debug)]
pub(crate) struct Cookie {
    name: String,
    is_secure: bool,
}

impl Cookie {
    /// A secure one has the prefix `__Host-`: browsers take it over https only, and from no other
    /// host, so that a page of a sister domain or of a network in between cannot put a session of
    /// its own in its place.
    pub(crate) fn new(name: &str, is_secure: bool) -> Self {
        let prefix = if is_secure { "__Host-" } else { "" };
        Self {
            name: format!("{prefix}{name}"),
            is_secure,
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) const fn is_secure(&self) -> bool {
        self.is_secure
    }

    /// The field value that sets it for `age`; an age of zero deletes it.
    pub(crate) fn set(&self, value: &str, age: Duration) -> String {
        let secure = if self.is_secure { "; Secure" } else { "" };
        format!(
            "{}={value}; Path=/; Max-Age={}; HttpOnly; SameSite=Lax{secure}",
            self.name,
            age.as_secs()
        )
    }

    /// The values that a request has for it, the first few. A client may send the field in several
    /// lines.
    pub(crate) fn values<'r>(&self, request: &Request<'r>) -> impl Iterator<Item = &'r [u8]> {
        let lines = request.fields.get_all("cookie");
        let cookies = lines.flat_map(|line| line.split(|byte| *byte == b';'));
        let values = cookies.filter_map(|cookie| self.value_in(cookie));
        values.take(TRIED)
    }

    /// The value of a field of cookies without this one; none if there is no other in it.
    pub(crate) fn without<'r>(&self, line: &'r [u8]) -> Option<Cow<'r, [u8]>> {
        let cookies = || line.split(|byte| *byte == b';');
        if !cookies().any(|cookie| self.value_in(cookie).is_some()) {
            return Some(Cow::Borrowed(line));
        }
        let others = cookies().filter(|cookie| self.value_in(cookie).is_none());
        let others: Vec<_> = others.map(<[u8]>::trim_ascii).collect();
        (!others.is_empty()).then(|| Cow::Owned(others.join(&b"; "[..])))
    }

    /// The value in one `name=value`, if it is this one's.
    fn value_in<'r>(&self, cookie: &'r [u8]) -> Option<&'r [u8]> {
        let value = cookie.trim_ascii().strip_prefix(self.name.as_bytes())?;
        value.strip_prefix(b"=")
    }
}

/// True if an origin is one where browsers keep no secure cookie: http, and not this machine.
pub(crate) fn is_plain(origin: &str) -> bool {
    let Some(host) = origin.strip_prefix("http://") else {
        return false;
    };
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let is_here = name == "localhost"
        || name.ends_with(".localhost")
        || name
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback());
    !is_here
}

#[cfg(test)]
mod tests {
    use millpond_http::OwnedRequest;

    use super::*;

    #[test]
    fn attributes() {
        let hour = Duration::from_secs(3600);
        assert_eq!(
            Cookie::new("session", true).set("a", hour),
            "__Host-session=a; Path=/; Max-Age=3600; HttpOnly; SameSite=Lax; Secure"
        );
        assert_eq!(
            Cookie::new("who", false).set("", Duration::ZERO),
            "who=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax"
        );
    }

    #[test]
    fn only_cookies_of_the_very_name_are_found() {
        let cookie = Cookie::new("s", false);
        let found = |lines: &[&str]| {
            let request = lines
                .iter()
                .fold(OwnedRequest::new("GET", "/"), |request, line| {
                    request.field("cookie", line)
                });
            let request = request.as_request();
            let values = cookie
                .values(&request)
                .map(|value| String::from_utf8_lossy(value).into_owned());
            values.collect::<Vec<_>>()
        };
        assert_eq!(
            found(&["s=1; ss=2;s=3 ; xs=4; S=5", "a=b; s=6"]),
            ["1", "3", "6"]
        );
        assert_eq!(found(&["s", "=s", ";;", "s =7", "t=s=1"]), [""; 0]);
        assert_eq!(found(&[&"s=1;".repeat(50)]).len(), TRIED);
    }

    #[test]
    fn one_is_taken_out_and_the_others_stay_as_they_are() {
        let cookie = Cookie::new("s", false);
        let others = |line: &'static str| cookie.without(line.as_bytes()).map(Cow::into_owned);
        for (line, rest) in [
            ("a=1;b=2", Some("a=1;b=2")),
            ("ss=1; as=2; s", Some("ss=1; as=2; s")),
            ("a=1; s=2;b=3", Some("a=1; b=3")),
            ("s=1; a=2; s=3", Some("a=2")),
            ("s=1", None),
        ] {
            assert_eq!(
                others(line),
                rest.map(|rest| rest.as_bytes().to_vec()),
                "{line}"
            );
        }
    }

    #[test]
    fn where_browsers_keep_no_secure_cookie() {
        for (origin, plain) in [
            ("http://example.org", true),
            ("http://192.168.1.7:8080", true),
            ("https://example.org", false),
            ("http://127.0.0.1:8080", false),
            ("http://[::1]:8080", false),
            ("http://localhost", false),
            ("http://app.localhost:3000", false),
            ("null", false),
        ] {
            assert_eq!(is_plain(origin), plain, "{origin}");
        }
    }
}
