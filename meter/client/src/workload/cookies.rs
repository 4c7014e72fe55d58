//! Cookies of one session (RFC 6265), as far as one host needs them.
//!
//! A run requests from one host only. A cookie with a `Domain` of another host is not kept; a
//! cookie for this host or for a parent is sent to this host. `Secure` and `HttpOnly` do not matter
//! to a client without scripts and with a given server.

/// Cookies that a jar keeps at most; RFC 6265, section 6.1 asks for at least 50.
const MOST: usize = 100;
/// Bytes of a name and its value at most.
const LONGEST: usize = 4096;

/// The cookies of one session.
#[derive(Debug, Default)]
pub(crate) struct Jar {
    cookies: Vec<Cookie>,
}

#[derive(Debug)]
struct Cookie {
    name: Vec<u8>,
    value: Vec<u8>,
    path: Vec<u8>,
}

impl Jar {
    /// Stores the cookies that a response sets. `target` is the requested target, `host` the
    /// server's name without a port.
    pub(crate) fn take(&mut self, fields: &[u8], target: &[u8], host: &str) {
        for value in field_values(fields, "set-cookie") {
            self.set(value, target, host);
        }
    }

    /// One `Set-Cookie` value (RFC 6265, section 5.2).
    fn set(&mut self, text: &[u8], target: &[u8], host: &str) {
        let mut parts = text.split(|&byte| byte == b';');
        let Some((name, value)) = parts.next().and_then(|pair| split(pair, b'=')) else {
            return;
        };
        if name.is_empty()
            || name.len() + value.len() > LONGEST
            || has_control(name)
            || has_control(value)
        {
            return;
        }
        let (mut path, mut max_age, mut expired) = (default_path(target), None, false);
        for part in parts {
            let (key, value) = split(part, b'=').unwrap_or((part.trim_ascii(), b""));
            match key.to_ascii_lowercase().as_slice() {
                b"path" if value.starts_with(b"/") => path = value,
                b"path" => path = default_path(target),
                b"max-age" => max_age = is_over(value).or(max_age),
                b"expires" => expired = is_past(value),
                b"domain" if !is_for(value, host) => return,
                _ => {}
            }
        }
        if path.len() > LONGEST || has_control(path) {
            return;
        }
        self.cookies
            .retain(|cookie| cookie.name != name || cookie.path != path);
        // Max-Age overrides Expires (section 5.3, step 3).
        if !max_age.unwrap_or(expired) && self.cookies.len() < MOST {
            self.cookies.push(Cookie {
                name: name.to_vec(),
                value: value.to_vec(),
                path: path.to_vec(),
            });
        }
    }

    /// Appends a `Cookie` field if there is a cookie for `target`; cookies with longer paths first
    /// (section 5.4).
    pub(crate) fn put(&mut self, target: &[u8], out: &mut Vec<u8>) {
        let path = path_of(target);
        self.cookies
            .sort_by_key(|cookie| std::cmp::Reverse(cookie.path.len()));
        let mut before: &[u8] = b"Cookie: ";
        for cookie in self
            .cookies
            .iter()
            .filter(|cookie| is_below(path, &cookie.path))
        {
            out.extend_from_slice(before);
            out.extend_from_slice(&cookie.name);
            out.push(b'=');
            out.extend_from_slice(&cookie.value);
            before = b"; ";
        }
        if before == b"; " {
            out.extend_from_slice(b"\r\n");
        }
    }
}

/// The values of all fields called `name`, in a response's lines with or without the status line.
pub(crate) fn field_values<'f>(fields: &'f [u8], name: &str) -> impl Iterator<Item = &'f [u8]> {
    fields.split(|&byte| byte == b'\n').filter_map(move |line| {
        let at = line.iter().position(|&byte| byte == b':')?;
        let (found, value) = line.split_at(at);
        found
            .eq_ignore_ascii_case(name.as_bytes())
            .then(|| value[1..].trim_ascii())
    })
}

fn split(text: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let at = text.iter().position(|&byte| byte == at)?;
    Some((text[..at].trim_ascii(), text[at + 1..].trim_ascii()))
}

/// True if the text has a control character, which could end a field.
fn has_control(text: &[u8]) -> bool {
    text.iter().any(|&byte| byte < 0x20 || byte == 0x7f)
}

fn path_of(target: &[u8]) -> &[u8] {
    let end = target.iter().position(|&byte| byte == b'?');
    &target[..end.unwrap_or(target.len())]
}

/// The default path (section 5.1.4): up to the last slash, without it.
fn default_path(target: &[u8]) -> &[u8] {
    let path = path_of(target);
    match path.iter().rposition(|&byte| byte == b'/') {
        None | Some(0) => b"/",
        Some(last) => &path[..last],
    }
}

/// True if a request's path matches a cookie's (section 5.1.4).
fn is_below(path: &[u8], cookie: &[u8]) -> bool {
    path.strip_prefix(cookie)
        .is_some_and(|rest| rest.is_empty() || cookie.ends_with(b"/") || rest.starts_with(b"/"))
}

/// True if this `Max-Age` is over at once; `None` if it is no number (section 5.2.2).
fn is_over(value: &[u8]) -> Option<bool> {
    let digits = value.strip_prefix(b"-").unwrap_or(value);
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    is_number.then(|| value != digits || digits.iter().all(|&digit| digit == b'0'))
}

/// True if `Expires` is a past date. An invalid date is ignored (section 5.2.1).
fn is_past(value: &[u8]) -> bool {
    let text = std::str::from_utf8(value)
        .unwrap_or_default()
        .replace('-', " ");
    // Netscape's form has dashes in an otherwise modern date.
    httpdate::parse_http_date(&text).is_ok_and(|date| date <= base_clock::wall())
}

/// True if `Domain` covers the host (section 5.1.3); an empty one says nothing.
fn is_for(domain: &[u8], host: &str) -> bool {
    let domain = domain
        .strip_prefix(b".")
        .unwrap_or(domain)
        .to_ascii_lowercase();
    let host = host.to_ascii_lowercase();
    domain.is_empty()
        || host
            .as_bytes()
            .strip_suffix(domain.as_slice())
            .is_some_and(|rest| {
                rest.is_empty() || rest.ends_with(b".") && host.parse::<std::net::IpAddr>().is_err()
            })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(jar: &mut Jar, target: &str) -> String {
        let mut out = Vec::new();
        jar.put(target.as_bytes(), &mut out);
        String::from_utf8(out).unwrap()
    }

    fn jar(fields: &str) -> Jar {
        let mut jar = Jar::default();
        jar.take(fields.as_bytes(), b"/a/b?c=/d/", "www.example.org");
        jar
    }

    #[test]
    fn cookies_come_back_below_their_path() {
        let mut jar = jar(
            "HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nset-cookie: b=2; Path=/; HttpOnly\r\nX: y\r\n",
        );
        assert_eq!(sent(&mut jar, "/a/x"), "Cookie: a=1; b=2\r\n");
        assert_eq!(sent(&mut jar, "/ab"), "Cookie: b=2\r\n");
        assert_eq!(sent(&mut jar, "/a?q"), "Cookie: a=1; b=2\r\n");
    }

    #[test]
    fn a_cookie_is_replaced_and_deleted() {
        let mut jar = jar("Set-Cookie: a=1; Path=/\r\nSet-Cookie: a=2; Path=/\r\n");
        assert_eq!(sent(&mut jar, "/"), "Cookie: a=2\r\n");
        for gone in [
            "Max-Age=0",
            "Max-Age=-5",
            "Expires=Thu, 01-Jan-1970 00:00:00 GMT",
        ] {
            let mut jar = Jar::default();
            jar.take(b"Set-Cookie: a=1\r\n", b"/", "h");
            jar.take(format!("Set-Cookie: a=; {gone}\r\n").as_bytes(), b"/", "h");
            assert_eq!(sent(&mut jar, "/"), "", "{gone}");
        }
        let mut jar = Jar::default();
        jar.take(
            b"Set-Cookie: a=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Max-Age=9\r\n",
            b"/",
            "h",
        );
        assert_eq!(
            sent(&mut jar, "/"),
            "Cookie: a=1\r\n",
            "Max-Age has the last word"
        );
    }

    #[test]
    fn other_hosts_and_smuggled_lines_are_not_kept() {
        for bad in [
            "a=1; Domain=other.org",
            "a=1; Domain=ww.example.org",
            "a\rX: y=1",
            "=1",
            "nothing",
        ] {
            assert_eq!(
                sent(&mut jar(&format!("Set-Cookie: {bad}\r\n")), "/a/b"),
                "",
                "{bad}"
            );
        }
        for good in [
            "a=1; Domain=example.org",
            "a=1; domain=.WWW.example.org",
            "a=1; Domain=",
        ] {
            assert_eq!(
                sent(&mut jar(&format!("Set-Cookie: {good}\r\n")), "/a/b"),
                "Cookie: a=1\r\n"
            );
        }
    }

    #[test]
    fn a_jar_is_bounded() {
        let many: String = (0..1000)
            .map(|n| format!("Set-Cookie: a{n}=1\r\n"))
            .collect();
        assert_eq!(jar(&many).cookies.len(), MOST);
        assert!(
            jar(&format!("Set-Cookie: a={}\r\n", "x".repeat(LONGEST)))
                .cookies
                .is_empty()
        );
    }
}
