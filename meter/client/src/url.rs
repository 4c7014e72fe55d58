//! The part of a URL that a client needs: where to connect, what to ask for.

use crate::Error;

/// An `http://` or `https://` URL, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// The host without brackets, for the resolver.
    pub host: String,
    /// The given port, or the default port of the scheme.
    pub port: u16,
    /// True if TLS protects it.
    pub secure: bool,
    /// Host and port as they stand in the URL, for the `Host` field.
    pub authority: String,
    /// Path and query, ready for the request line.
    pub target: String,
}

impl Url {
    /// Parses `http://host[:port][/path][?query][#fragment]`, or the same with `https`.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let wrong = |why: &str| Error::Plan(format!("{text:?} {why}"));
        let (scheme, rest) = text
            .split_once("://")
            .ok_or_else(|| wrong("is not a URL: it should begin with http://"))?;
        let secure = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _ => return Err(wrong("has a scheme other than http:// and https://")),
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(end);
        if authority.contains('@') {
            return Err(wrong(
                "carries a user name: send an Authorization header instead",
            ));
        }
        let (host, port) =
            split_port(authority).ok_or_else(|| wrong("has no valid host and port"))?;
        let port = port.unwrap_or(if secure { 443 } else { 80 });
        if host.is_empty() || !authority.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(wrong("has no valid host"));
        }
        Ok(Self {
            host: host.to_owned(),
            port,
            secure,
            authority: authority.to_owned(),
            target: request_target(target)
                .ok_or_else(|| wrong("has a space or control character in its path"))?,
        })
    }

    /// Another target on the same server: a path, or a URL with the same authority.
    pub fn join(&self, text: &str) -> Result<String, Error> {
        if text.starts_with('/') {
            return request_target(text).ok_or_else(|| {
                Error::Plan(format!("{text:?} has a space or control character in it"))
            });
        }
        let other = Self::parse(text)?;
        if (&other.host, other.port, other.secure) != (&self.host, self.port, self.secure) {
            return Err(Error::Plan(format!(
                "{text:?} is on another server than {}",
                self.authority
            )));
        }
        Ok(other.target)
    }
}

/// The two parts of `host:80` or `[::1]:80`; the port must be there.
pub(crate) fn host_and_port(text: &str) -> Result<(String, u16), Error> {
    match split_port(text) {
        Some((host, Some(port)))
            if !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_graphic()) =>
        {
            Ok((host.to_owned(), port))
        }
        _ => Err(Error::Plan(format!(
            "{text:?} is no place to connect to: write HOST:PORT, with an IPv6 address as [::1]:8080"
        ))),
    }
}

/// `host`, `host:80`, `[::1]` or `[::1]:80`.
fn split_port(authority: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) = if let Some(rest) = authority.strip_prefix('[') {
        let (host, port) = rest.split_once(']')?;
        host.parse::<std::net::Ipv6Addr>().ok()?;
        (
            host,
            if port.is_empty() {
                None
            } else {
                Some(port.strip_prefix(':')?)
            },
        )
    } else {
        match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        }
    };
    match port {
        None => Some((host, None)),
        Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
            let port: u16 = port.parse().ok()?;
            (port != 0).then_some((host, Some(port)))
        }
        Some(_) => None,
    }
}

/// Drops the fragment, gives an empty path its slash, percent-encodes what is not ASCII.
fn request_target(text: &str) -> Option<String> {
    let text = text.split('#').next().unwrap_or_default();
    let mut target = String::with_capacity(text.len() + 1);
    if !text.starts_with('/') {
        target.push('/');
    }
    for byte in text.bytes() {
        match byte {
            0x21..=0x7e => target.push(char::from(byte)),
            0x80.. => target.push_str(&format!("%{byte:02X}")),
            _ => return None,
        }
    }
    Some(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, host: &str, port: u16, target: &str) {
        let url = Url::parse(text).unwrap();
        assert_eq!(
            (url.host.as_str(), url.port, url.target.as_str()),
            (host, port, target),
            "{text}"
        );
    }

    #[test]
    fn urls_are_taken_apart() {
        check("http://example.org", "example.org", 80, "/");
        check("HTTP://localhost:8080/a?b=c#d", "localhost", 8080, "/a?b=c");
        check("http://[::1]:81?q", "::1", 81, "/?q");
        check("http://[fe80::1]/", "fe80::1", 80, "/");
        check("http://h/übung", "h", 80, "/%C3%BCbung");
    }

    #[test]
    fn an_invalid_url_is_refused_with_a_reason() {
        for text in [
            "localhost:80",
            "ftp://h/",
            "http://",
            "http:///x",
            "http://h:99999/",
            "http://h:x/",
            "http://h:/",
            "http://h:0/",
            "http://[::1/",
            "http://[zz]/",
            "http://u:p@h/",
            "http://h/a b",
            "http://h/a\r\nX: y",
            "http://h\n/",
        ] {
            assert!(Url::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn https_has_a_port_of_its_own() {
        let (secure, plain) = (
            Url::parse("https://h/").unwrap(),
            Url::parse("http://h:443/").unwrap(),
        );
        assert!(secure.secure && secure.port == 443 && !plain.secure);
        assert!(secure.join("https://h:443/x").is_ok());
        assert!(secure.join("http://h:443/x").is_err());
    }

    #[test]
    fn an_address_to_connect_to_has_a_port() {
        let parse = |text| host_and_port(text).ok();
        assert_eq!(parse("h:81"), Some(("h".to_owned(), 81)));
        assert_eq!(parse("[::1]:81"), Some(("::1".to_owned(), 81)));
        for bad in [
            "", "h", "h:", ":81", "h:0", "::1:81", "[::1]", "h:99999", "a b:1",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn other_targets_stay_on_the_server() {
        let url = Url::parse("http://h:81/").unwrap();
        assert_eq!(url.join("/x").unwrap(), "/x");
        assert_eq!(url.join("http://h:81/y").unwrap(), "/y");
        assert!(url.join("http://other/y").is_err());
        assert!(url.join("y").is_err());
    }
}
