//! Who is the developer: a client of this machine that has opened the address which `serve` prints.
//!
//! The server listens on loopback only, and yet others may reach it: through a proxy on this
//! machine, which need not leave a trace in what it passes on, or by a name that leads to 127.0.0.1
//! (DNS rebinding). So that address has a secret, which its first visit puts into a cookie.

use std::{
    env,
    fs::DirBuilder,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use aws_lc_rs::constant_time::verify_slices_are_equal;
use millpond_http::{Request, Response, Version};

use crate::session::{Cookie, Keys, hex};
use millpond_site_format::Problem;

/// The address that lets the developer in, without its secret.
pub const DEV_ENTRY: &str = "/_millpond/dev/enter/";
/// Seconds for which a browser keeps the cookie.
const MAX_AGE: u32 = 30 * 24 * 60 * 60;
/// Digits of the hash of a folder in the name of its cookie: browsers send the cookies of one port
/// to all ports of a host.
const NAME_DIGITS: usize = 8;

/// Fields that proxies add.
const OF_PROXIES: [&str; 6] = [
    "forwarded",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-real-ip",
];

/// The secret of a folder under development.
pub(crate) struct DevDoor {
    name: String,
    secret: String,
    /// True once a browser without the cookie has been reported.
    is_told: AtomicBool,
    log: fn(&str),
}

impl DevDoor {
    /// Returns the door of the site in `dir`. Its secret is derived from a key of this user, so it
    /// stays the same after a restart, and differs from the secrets of other folders.
    pub(crate) fn new(dir: &Path, log: fn(&str)) -> Result<Self, Problem> {
        let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
        let keys = Keys::read_or_random(&key_file(), &format!("development {}", dir.display()))?;
        let tag = keys.sign(b"development").map(|tag| hex(tag.as_ref()));
        let tag = tag.ok_or_else(|| Problem::new(dir, "there is no key for its development"))?;
        let (name, secret) = tag.split_at(NAME_DIGITS);
        Ok(Self {
            name: format!("millpond-dev-{name}"),
            secret: secret.to_owned(),
            is_told: AtomicBool::new(false),
            log,
        })
    }

    /// Returns the path that lets the developer in.
    pub(crate) fn path(&self) -> String {
        format!("{DEV_ENTRY}{}", self.secret)
    }

    /// Returns the response that gives the cookie to a client of this machine that knows the
    /// secret, and leads it on to an address without the secret.
    pub(super) fn enter(&self, request: &Request<'_>) -> Option<Response> {
        let given = request.path.strip_prefix(DEV_ENTRY)?;
        if request.method != "GET" || !is_of_this_machine(request) || !self.is_secret(given) {
            return None;
        }
        let secure = if request.is_secure { "; Secure" } else { "" };
        let cookie = format!(
            "{}={given}; Path=/; Max-Age={MAX_AGE}; HttpOnly; SameSite=Strict{secure}",
            self.name
        );
        let response = Response::builder(303)
            .field("Location", "/")
            .field("Set-Cookie", &cookie)
            .field("Cache-Control", "no-store")
            .field("Referrer-Policy", "no-referrer");
        Some(response.empty())
    }

    /// Returns true if the developer has sent the request. The first browser on this machine
    /// without the cookie is reported: its person may expect to see errors.
    pub(super) fn admits(&self, request: &Request<'_>) -> bool {
        if !is_of_this_machine(request) {
            return false;
        }
        let cookie = Cookie::new(&self.name, false);
        let is_admitted = cookie
            .values(request)
            .any(|value| std::str::from_utf8(value).is_ok_and(|value| self.is_secret(value)));
        let is_stranger = !is_admitted && asks_for_page(request);
        if is_stranger && !self.is_told.swap(true, Ordering::Relaxed) {
            (self.log)(
                "a browser on this machine gets what visitors get; to see errors, open the address of the \
                 note above in that browser, once for each host name",
            );
        }
        is_admitted
    }

    fn is_secret(&self, given: &str) -> bool {
        verify_slices_are_equal(given.as_bytes(), self.secret.as_bytes()).is_ok()
    }
}

/// Returns the file of this user's key. Its folder is made; if that fails, the key cannot be kept
/// either.
fn key_file() -> PathBuf {
    let state = env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let home = || env::var_os("HOME").map(|home| Path::new(&home).join(".local/state"));
    let folder = state.filter(|path| path.is_absolute()).or_else(home);
    // Without a home there is no such file, and each start has another key.
    let Some(folder) = folder.filter(|path| path.is_absolute()) else {
        return PathBuf::new();
    };
    let folder = folder.join("millpond");
    let _ = DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&folder);
    folder.join("dev.key")
}

/// Returns true if a browser or a program on this machine has sent the request, and no proxy left a
/// trace in it. No browser uses HTTP/1.0, which nginx does where nothing else is set.
fn is_of_this_machine(request: &Request<'_>) -> bool {
    request.client().is_local()
        && request.version > Version::Http10
        && request.host().is_some_and(is_local_host)
        && OF_PROXIES
            .iter()
            .all(|name| request.fields.get(name).is_none())
}

/// Returns true if a host is an address of this machine or a name that no public server can have
/// (RFC 6761 section 6).
fn is_local_host(host: &str) -> bool {
    let host = crate::hosts::without_port(host);
    let literal = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = literal.parse::<std::net::IpAddr>() {
        return address.to_canonical().is_loopback();
    }
    let last = host.rsplit('.').next().unwrap_or_default();
    last.eq_ignore_ascii_case("localhost") || last.eq_ignore_ascii_case("test")
}

/// True if a browser asks for a page to be shown, and not for a part of one.
pub(super) fn asks_for_page(request: &Request<'_>) -> bool {
    let is_part = request
        .fields
        .get("sec-fetch-dest")
        .is_some_and(|to| !matches!(to, b"document" | b"iframe" | b"frame"));
    !is_part && accepts(request, "text/html")
}

fn accepts(request: &Request<'_>, media_type: &str) -> bool {
    let mut values = request.fields.get_all("accept");
    values.any(|value| {
        String::from_utf8_lossy(value)
            .to_ascii_lowercase()
            .contains(media_type)
    })
}

#[cfg(test)]
mod tests {
    use millpond_http::OwnedRequest;

    use super::*;

    fn door() -> DevDoor {
        DevDoor {
            name: "millpond-dev-0".to_owned(),
            secret: "s3cret".to_owned(),
            is_told: AtomicBool::new(true),
            log: |_| {},
        }
    }

    #[test]
    fn only_a_client_of_this_machine_with_the_secret_is_the_developer() {
        let without = |host: &str| OwnedRequest::new("GET", "/").field("Host", host);
        let of = |host: &str| without(host).field("Cookie", "a=b; millpond-dev-0=s3cret");
        let is_of_developer = |request: &OwnedRequest| door().admits(&request.as_request());
        for host in [
            "127.0.0.1:8080",
            "127.1.2.3",
            "localhost:8080",
            "LOCALHOST",
            "shop.localhost:8080",
            "shop.test",
            "[::1]:8080",
            "[::ffff:127.0.0.1]",
        ] {
            assert!(is_of_developer(&of(host)), "{host}");
            assert!(!is_of_developer(&without(host)), "{host}");
        }
        for host in [
            "example.org",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.nip.io",
            "10.0.0.1",
            "[::2]",
            "0.0.0.0",
            "",
        ] {
            assert!(!is_of_developer(&of(host)), "{host}");
        }
        for field in OF_PROXIES {
            assert!(
                !is_of_developer(&of("localhost").field(field, "10.0.0.1")),
                "{field}"
            );
        }
        let elsewhere = of("localhost").from_peer(([10, 0, 0, 1], 1).into(), Default::default());
        assert!(!is_of_developer(&elsewhere));
        for cookie in ["millpond-dev-0=s3cre", "millpond-dev-1=s3cret", "s3cret"] {
            let other = without("localhost").field("Cookie", cookie);
            assert!(!is_of_developer(&other), "{cookie}");
        }
    }

    #[test]
    fn the_secret_opens_for_a_client_of_this_machine_alone() {
        let enter = |method: &str, path: &str, host: &str| {
            let request = OwnedRequest::new(method, path).field("Host", host);
            door().enter(&request.as_request())
        };
        let path = door().path();
        let entered = enter("GET", &path, "localhost:8080").unwrap();
        assert_eq!(entered.field("location"), Some("/"));
        let cookie = entered.field("set-cookie").unwrap();
        assert!(cookie.contains("; HttpOnly; SameSite=Strict"), "{cookie}");
        for (method, path, host) in [
            ("GET", path.as_str(), "example.org"),
            ("POST", &path, "localhost"),
            ("GET", DEV_ENTRY, "localhost"),
            ("GET", "/_millpond/dev/enter/s3creT", "localhost"),
            ("GET", "/_millpond/dev/enter/s3cret/", "localhost"),
        ] {
            assert!(enter(method, path, host).is_none(), "{method} {path}");
        }
    }

    #[test]
    fn folders_have_secrets_of_their_own() {
        let [one, two] = [lab_testkit::fast_dir(), lab_testkit::fast_dir()];
        let key = one.path().join("dev.key");
        let of = |dir: &Path| {
            let keys = Keys::read_or_random(&key, &dir.display().to_string()).unwrap();
            hex(keys.sign(b"development").unwrap().as_ref())
        };
        assert_eq!(of(one.path()), of(one.path()));
        assert_ne!(of(one.path()), of(two.path()));
    }
}
