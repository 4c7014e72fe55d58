//! The other end of a connection, and the client for which a proxy at that end speaks.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::Rc;

use crate::client::{Client, NamedBy, Network, is_in};
use crate::limits::Proxies;
use crate::request::Fields;
use crate::syntax::is_token;

/// The other end of a connection: its address, and the proxies that are believed if it is one.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    named_by: NamedBy,
    forwarding: Forwarding,
}

/// The fields of a peer that name its client.
#[derive(Clone, Debug)]
enum Forwarding {
    /// None is believed.
    Ignored,
    /// `Forwarded`.
    Standard(Rc<Proxies>),
    /// `X-Forwarded-For` and `X-Forwarded-Proto`.
    Customary(Rc<Proxies>),
}

/// A client, and true if it is known to have sent its request by https.
type Hop = (Option<IpAddr>, bool);

impl From<SocketAddr> for Peer {
    /// A peer whose fields are not believed.
    fn from(address: SocketAddr) -> Self {
        Self {
            address,
            named_by: NamedBy::Peer,
            forwarding: Forwarding::Ignored,
        }
    }
}

impl Peer {
    /// The peer with this address, before which `proxies` may stand; `named_by` a header or not.
    pub(crate) fn new(address: SocketAddr, named_by: NamedBy, proxies: &Rc<Proxies>) -> Self {
        let forwarding = if is_in(&proxies.forwarded, address.ip()) {
            Forwarding::Standard(Rc::clone(proxies))
        } else if is_in(&proxies.x_forwarded, address.ip()) {
            Forwarding::Customary(Rc::clone(proxies))
        } else {
            Forwarding::Ignored
        };
        Self {
            address,
            named_by,
            forwarding,
        }
    }

    /// The client of the connection, whom fields of a request may change.
    pub(crate) const fn own_client(&self) -> Client {
        Client::named(self.address.ip(), self.named_by)
    }

    /// The client of a request with these fields, and true if a proxy says that it came by https.
    #[inline]
    pub(crate) fn client(&self, fields: Fields<'_>) -> (Client, bool) {
        match self.forwarding {
            Forwarding::Ignored => (self.own_client(), false),
            Forwarding::Standard(_) | Forwarding::Customary(_) => self.forwarded_client(fields),
        }
    }

    #[cold]
    fn forwarded_client(&self, fields: Fields<'_>) -> (Client, bool) {
        let (named, is_secure) = match &self.forwarding {
            Forwarding::Ignored => (None, false),
            Forwarding::Standard(proxies) => {
                // From the right: what the nearest proxy has added is read before anything that a
                // client has sent, however malformed that is.
                let lines = fields.get_all("forwarded").rev();
                let elements = lines
                    .flat_map(elements)
                    .filter(|element| !element.is_empty());
                let hops = elements.map(|it| element(it).unwrap_or((None, false)));
                last_untrusted(hops, &proxies.forwarded)
            }
            Forwarding::Customary(proxies) => {
                let lines = fields.get_all("x-forwarded-for").rev();
                let hops = lines.flat_map(|line| line.rsplit(|&byte| byte == b','));
                let hops = hops.map(|hop| (customary_node(hop.trim_ascii()), false));
                let scheme = fields.get_all("x-forwarded-proto").next_back();
                let scheme = scheme.and_then(|line| line.rsplit(|&byte| byte == b',').next());
                let is_https = scheme.is_some_and(is_https);
                (last_untrusted(hops, &proxies.x_forwarded).0, is_https)
            }
        };
        let named = named.map(|address| Client::named(address, NamedBy::Field));
        (named.unwrap_or(self.own_client()), is_secure)
    }
}

/// The client among `hops`, the nearest first: the first that is no trusted proxy, and the farthest
/// if all are. A hop without an address, such as one that hides, ends the search at the proxy that
/// names it.
fn last_untrusted(hops: impl Iterator<Item = Hop>, trusted: &[Network]) -> Hop {
    let mut found = (None, false);
    for (hop, is_secure) in hops {
        let Some(address) = hop else {
            break;
        };
        found = (Some(address), is_secure);
        if !is_in(trusted, address) {
            break;
        }
    }
    found
}

fn is_https(scheme: &[u8]) -> bool {
    scheme.trim_ascii().eq_ignore_ascii_case(b"https")
}

/// The elements of a line of `Forwarded`, the nearest first (RFC 7239 section 4). Quotes are
/// counted from the right too, so one that a client has left open ends in what the client has sent.
fn elements(line: &[u8]) -> Vec<&[u8]> {
    let (mut elements, mut end, mut is_quoted) = (Vec::new(), line.len(), false);
    for at in (0..line.len()).rev() {
        let before = line[..at].iter().rev();
        match line[at] {
            b'"' if before.take_while(|&&byte| byte == b'\\').count() % 2 == 0 => {
                is_quoted = !is_quoted;
            }
            b',' if !is_quoted => {
                elements.push(line[at + 1..end].trim_ascii());
                end = at;
            }
            _ => {}
        }
    }
    elements.push(line[..end].trim_ascii());
    elements
}

/// The hop of an element; none if it is malformed.
fn element(element: &[u8]) -> Option<Hop> {
    let (mut node, mut scheme) = (None, None);
    for pair in unquoted(element, b';').filter(|pair| !pair.is_empty()) {
        let equals = pair.iter().position(|&byte| byte == b'=')?;
        let (name, value) = (&pair[..equals], &pair[equals + 1..]);
        let value = match value {
            [b'"', quoted @ .., b'"'] => quoted,
            _ if !value.is_empty() && value.iter().copied().all(is_token) => value,
            _ => return None,
        };
        let known = match name.to_ascii_lowercase().as_slice() {
            b"for" => &mut node,
            b"proto" => &mut scheme,
            _ if !name.is_empty() && name.iter().copied().all(is_token) => continue,
            _ => return None,
        };
        // Section 4: each parameter at most once.
        if known.replace(value).is_some() {
            return None;
        }
    }
    Some((node.and_then(self::node), scheme.is_some_and(is_https)))
}

/// Splits a text at a byte outside of quoted strings.
fn unquoted(text: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    text.split(move |&byte| {
        let was_escaped = std::mem::replace(&mut is_escaped, false);
        match byte {
            _ if was_escaped => {}
            b'\\' => is_escaped = is_quoted,
            b'"' => is_quoted = !is_quoted,
            _ => return byte == separator && !is_quoted,
        }
        false
    })
}

/// The address of a node (section 6), whose port is not looked at; none if it hides.
fn node(node: &[u8]) -> Option<IpAddr> {
    let node = std::str::from_utf8(node).ok()?;
    if let Some(rest) = node.strip_prefix('[') {
        let (address, port) = rest.split_once(']')?;
        let is_whole = port.is_empty() || port.starts_with(':');
        let address = is_whole.then(|| address.parse::<Ipv6Addr>());
        return address?.ok().map(IpAddr::V6);
    }
    let address = node.split_once(':').map_or(node, |(address, _)| address);
    address.parse::<Ipv4Addr>().ok().map(IpAddr::V4)
}

/// The address in `X-Forwarded-For`, where IPv6 stands with or without brackets.
fn customary_node(text: &[u8]) -> Option<IpAddr> {
    let bare = std::str::from_utf8(text).ok()?.parse().ok();
    bare.or_else(|| node(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OwnedRequest;

    /// The client that these fields of a peer name, with `+` if it came by https. The proxies are
    /// 10.0.0.0/8 for `Forwarded`, 127.0.0.0/8 and 192.168.0.0/16 for the other fields.
    fn client(peer: &str, fields: &[(&str, &str)]) -> String {
        let networks = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        let proxies = Proxies {
            protocol: Vec::new(),
            forwarded: networks(&["10.0.0.0/8"]),
            x_forwarded: networks(&["127.0.0.0/8", "192.168.0.0/16"]),
        };
        let mut request = OwnedRequest::new("GET", "/");
        for (name, value) in fields {
            request = request.field(name, value);
        }
        let address = SocketAddr::new(peer.parse().unwrap(), 1);
        let peer = Peer::new(address, NamedBy::Peer, &Rc::new(proxies));
        let (client, is_secure) = peer.client(request.as_request().fields);
        format!("{}{}", client.address(), if is_secure { "+" } else { "" })
    }

    #[test]
    fn the_last_address_that_is_no_proxy_is_the_client() {
        for (lines, expected) in [
            (&["203.0.113.9"][..], "203.0.113.9"),
            (&["1.2.3.4, 203.0.113.9"], "203.0.113.9"),
            (&["1.2.3.4", "203.0.113.9"], "203.0.113.9"),
            (&["1.2.3.4,203.0.113.9 , 192.168.0.7"], "203.0.113.9"),
            (
                &["1.2.3.4", "203.0.113.9", "192.168.0.7, 127.0.0.2"],
                "203.0.113.9",
            ),
            (&["192.168.0.7, 127.0.0.2"], "192.168.0.7"),
            (&["2001:db8::1"], "2001:db8::1"),
            (&["[2001:db8::1]:80"], "2001:db8::1"),
            (&["203.0.113.9:4711"], "203.0.113.9"),
            (&["::ffff:203.0.113.9"], "203.0.113.9"),
            // What is no address ends the search.
            (&["unknown"], "127.0.0.1"),
            (&["203.0.113.9, unknown"], "127.0.0.1"),
            (&["203.0.113.9, unknown, 192.168.0.7"], "192.168.0.7"),
            (&["203.0.113.9,"], "127.0.0.1"),
            (&[""], "127.0.0.1"),
            (&[], "127.0.0.1"),
        ] {
            let fields: Vec<_> = lines
                .iter()
                .map(|line| ("X-Forwarded-For", *line))
                .collect();
            assert_eq!(client("127.0.0.1", &fields), expected, "{lines:?}");
            assert_eq!(client("192.0.2.1", &fields), "192.0.2.1", "a stranger");
            assert_eq!(
                client("10.0.0.1", &fields),
                "10.0.0.1",
                "a proxy with another field"
            );
        }
    }

    #[test]
    fn the_scheme_is_that_before_the_nearest_proxy() {
        let secure = |proto: &str| client("127.0.0.1", &[("X-Forwarded-Proto", proto)]);
        assert_eq!(secure("https"), "127.0.0.1+");
        assert_eq!(secure("http, HTTPS"), "127.0.0.1+");
        assert_eq!(secure("https, http"), "127.0.0.1");
        assert_eq!(
            client("192.0.2.1", &[("X-Forwarded-Proto", "https")]),
            "192.0.2.1"
        );
    }

    #[test]
    fn forwarded_is_read_as_rfc_7239_writes_it() {
        for (lines, expected) in [
            (&["for=192.0.2.43"][..], "192.0.2.43"),
            (&["For=\"[2001:db8:cafe::17]:4711\""], "2001:db8:cafe::17"),
            (&["for=192.0.2.60;proto=http;by=203.0.113.43"], "192.0.2.60"),
            (
                &["for=192.0.2.60;PROTO=HTTPS;by=203.0.113.43"],
                "192.0.2.60+",
            ),
            (&["for=192.0.2.43, for=198.51.100.17"], "198.51.100.17"),
            (
                &["for=192.0.2.43", "for=198.51.100.17;proto=https"],
                "198.51.100.17+",
            ),
            (
                &["for=192.0.2.43;proto=https , for=10.2.0.1;proto=http"],
                "192.0.2.43+",
            ),
            (&["for=10.2.0.1,for=10.3.0.1"], "10.2.0.1"),
            (&["for=\"192.0.2.43:_port\""], "192.0.2.43"),
            (
                &["secret=\"a,b;for=1.2.3.4\\\",\";for=192.0.2.43"],
                "192.0.2.43",
            ),
            // Hidden, so the proxy that names it is what is known.
            (&["for=192.0.2.43, for=_hidden, for=10.2.0.1"], "10.2.0.1"),
            (&["for=192.0.2.43, for=unknown"], "10.0.0.1"),
            (&["for=192.0.2.43, by=10.2.0.1"], "10.0.0.1"),
            (&["for=\"2001:db8::1\""], "10.0.0.1"),
            (&["for=\"[2001:db8::1]x\""], "10.0.0.1"),
            // Malformed, so it names no client.
            (&["for=192.0.2.43;for=192.0.2.44"], "10.0.0.1"),
            (&["for=[2001:db8::1]"], "10.0.0.1"),
            (&["for=192.0.2.43; proto=http"], "10.0.0.1"),
            (&["for = 192.0.2.43"], "10.0.0.1"),
            (&["for=\"192.0.2.43"], "10.0.0.1"),
            (&["for="], "10.0.0.1"),
            (&["192.0.2.43"], "10.0.0.1"),
            (&["for=192.0.2.43", "x"], "10.0.0.1"),
            // What comes before the proxy's own is the client's, and may be anything.
            (&["x", "for=192.0.2.43"], "192.0.2.43"),
            (&["for=\", for=192.0.2.43"], "192.0.2.43"),
            (&["for=\"\\\", for=192.0.2.43"], "192.0.2.43"),
        ] {
            let fields: Vec<_> = lines.iter().map(|line| ("Forwarded", *line)).collect();
            assert_eq!(client("10.0.0.1", &fields), expected, "{lines:?}");
            assert_eq!(client("192.0.2.1", &fields), "192.0.2.1", "a stranger");
            assert_eq!(
                client("127.0.0.1", &fields),
                "127.0.0.1",
                "a proxy with other fields"
            );
        }
    }
}
