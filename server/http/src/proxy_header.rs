//! The header with which a proxy begins a connection, to name its client: the PROXY protocol,
//! versions 1 and 2 (<https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt>).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::limits::PROXY_HEADER;

const VERSION_1: &[u8] = b"PROXY ";
const VERSION_2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
/// The longest line of version 1, with its end.
const LONGEST_LINE: usize = 107;

/// A whole header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProxyHeader {
    /// Its length in bytes.
    pub(crate) len: usize,
    /// The client; none if the proxy speaks for itself, or names an address of another kind.
    pub(crate) source: Option<SocketAddr>,
}

/// The bytes do not begin with a header. The connection must be closed (section 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoHeader;

impl ProxyHeader {
    /// Reads the header with which `input` begins; none if more bytes are needed.
    ///
    /// # Errors
    /// The bytes are not the beginning of a header.
    pub(crate) fn read(input: &[u8]) -> Result<Option<Self>, NoHeader> {
        if agree(input, VERSION_2) {
            version_2(input)
        } else if agree(input, VERSION_1) {
            version_1(input)
        } else {
            Err(NoHeader)
        }
    }
}

/// Returns whether `input` begins with `start`, as far as it has arrived.
fn agree(input: &[u8], start: &[u8]) -> bool {
    let len = input.len().min(start.len());
    input[..len] == start[..len]
}

/// Section 2.1: `PROXY TCP4 192.0.2.1 192.0.2.9 56324 443` and CRLF.
fn version_1(input: &[u8]) -> Result<Option<ProxyHeader>, NoHeader> {
    let line = &input[..input.len().min(LONGEST_LINE)];
    let more = match line.len() < LONGEST_LINE {
        true => Ok(None),
        false => Err(NoHeader),
    };
    let Some(end) = line.iter().position(|byte| matches!(byte, b'\r' | b'\n')) else {
        return more;
    };
    match &line[end..] {
        [b'\r', b'\n', ..] => {}
        [b'\r'] => return more,
        _ => return Err(NoHeader),
    }
    let words = line.get(VERSION_1.len()..end).ok_or(NoHeader)?;
    let words = std::str::from_utf8(words).map_err(|_| NoHeader)?;
    let mut words = words.split(' ');
    let family = words.next();
    let source = match (family, [(); 4].map(|()| words.next()), words.next()) {
        (Some("UNKNOWN"), ..) => None,
        (Some("TCP4"), [Some(from), Some(to), Some(port), Some(to_port)], None) => {
            to.parse::<Ipv4Addr>().map_err(|_| NoHeader)?;
            let from: Ipv4Addr = from.parse().map_err(|_| NoHeader)?;
            Some((from.into(), ports(port, to_port)?))
        }
        (Some("TCP6"), [Some(from), Some(to), Some(port), Some(to_port)], None) => {
            to.parse::<Ipv6Addr>().map_err(|_| NoHeader)?;
            let from: Ipv6Addr = from.parse().map_err(|_| NoHeader)?;
            Some((from.into(), ports(port, to_port)?))
        }
        _ => return Err(NoHeader),
    };
    Ok(Some(ProxyHeader {
        len: end + 2,
        source: source.map(|(address, port): (IpAddr, u16)| (address, port).into()),
    }))
}

/// The port of the client. Both are decimal, without a sign and without a zero in front.
fn ports(from: &str, to: &str) -> Result<u16, NoHeader> {
    let port = |text: &str| match text.bytes().all(|byte| byte.is_ascii_digit()) {
        true if text == "0" || !text.starts_with('0') => text.parse().ok(),
        _ => None,
    };
    port(to).and(port(from)).ok_or(NoHeader)
}

/// Section 2.2: the signature, version and command, family, length, addresses, and TLVs, which are
/// skipped.
fn version_2(input: &[u8]) -> Result<Option<ProxyHeader>, NoHeader> {
    let Some((head, rest)) = input.split_at_checked(VERSION_2.len() + 4) else {
        return Ok(None);
    };
    let [version, family, high, low] = head[VERSION_2.len()..] else {
        return Err(NoHeader);
    };
    let len = usize::from(u16::from_be_bytes([high, low]));
    if head.len() + len > PROXY_HEADER {
        return Err(NoHeader);
    }
    let is_local = match version {
        0x20 => true,
        0x21 => false,
        _ => return Err(NoHeader),
    };
    // The length of the addresses; the family of a proxy that speaks for itself is ignored.
    let least = match family {
        _ if is_local => 0,
        // UNSPEC in one of its halves: addresses, if there are some, are ignored.
        0x00..=0x02 | 0x10 | 0x20 | 0x30 => 0,
        0x11 | 0x12 => 12,
        0x21 | 0x22 => 36,
        0x31 | 0x32 => 216,
        _ => return Err(NoHeader),
    };
    if len < least {
        return Err(NoHeader);
    }
    let Some(body) = rest.get(..len) else {
        return Ok(None);
    };
    let port = |at: usize| u16::from_be_bytes([body[at], body[at + 1]]);
    let source = match (family, body.first_chunk::<4>(), body.first_chunk::<16>()) {
        _ if is_local => None,
        (0x11, Some(address), _) => Some((IpAddr::from(*address), port(8)).into()),
        (0x21, _, Some(address)) => Some((IpAddr::from(*address), port(32)).into()),
        _ => None,
    };
    Ok(Some(ProxyHeader {
        len: head.len() + len,
        source,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(len: usize, source: &str) -> Result<Option<ProxyHeader>, NoHeader> {
        let source = (!source.is_empty()).then(|| source.parse().unwrap());
        Ok(Some(ProxyHeader { len, source }))
    }

    /// A header of version 2 with these addresses and TLVs.
    fn binary(version: u8, family: u8, body: &[u8]) -> Vec<u8> {
        let len = u16::try_from(body.len()).unwrap().to_be_bytes();
        [VERSION_2, &[version, family], &len, body].concat()
    }

    /// Every beginning of a header asks for more, and what follows it does not matter.
    #[track_caller]
    fn check(input: &[u8], source: &str) {
        for cut in 0..input.len() {
            assert_eq!(ProxyHeader::read(&input[..cut]), Ok(None), "{cut}");
        }
        for rest in ["", "G", "\r\n", "PROXY "] {
            let input = [input, rest.as_bytes()].concat();
            let len = input.len() - rest.len();
            assert_eq!(ProxyHeader::read(&input), header(len, source));
        }
    }

    #[test]
    fn lines_of_version_1() {
        for (line, source) in [
            ("TCP4 192.0.2.1 192.0.2.9 56324 443", "192.0.2.1:56324"),
            ("TCP4 192.0.2.1 192.0.2.9 0 65535", "192.0.2.1:0"),
            ("TCP6 2001:DB8::1 ::1 1 2", "[2001:db8::1]:1"),
            ("UNKNOWN", ""),
            ("UNKNOWN 1 2 3 whatever", ""),
        ] {
            check(format!("PROXY {line}\r\n").as_bytes(), source);
        }
        let longest = format!("PROXY UNKNOWN {}\r\n", "x".repeat(91));
        assert_eq!(longest.len(), LONGEST_LINE);
        check(longest.as_bytes(), "");
    }

    #[test]
    fn lines_that_are_none_of_version_1() {
        for line in [
            "proxy TCP4 192.0.2.1 192.0.2.9 1 2\r\n",
            "PROXY  TCP4 192.0.2.1 192.0.2.9 1 2\r\n",
            "PROXY TCP4 192.0.2.1  192.0.2.9 1 2\r\n",
            "PROXY TCP4 192.0.2.1 192.0.2.9 1\r\n",
            "PROXY TCP4 192.0.2.1 192.0.2.9 1 2 3\r\n",
            "PROXY TCP4 192.0.2.1 192.0.2.9 1 2 \r\n",
            "PROXY TCP4 192.0.2.1 192.0.2.9 1 2\n",
            "PROXY TCP4 192.0.2.1 192.0.2.9 1 2\rG",
            "PROXY TCP4 192.0.2.01 192.0.2.9 1 2\r\n",
            "PROXY TCP4 2001:db8::1 192.0.2.9 1 2\r\n",
            "PROXY TCP6 192.0.2.1 192.0.2.9 1 2\r\n",
            "PROXY TCP4 192.0.2.1 192.0.2.9 01 2\r\n",
            "PROXY TCP4 192.0.2.1 192.0.2.9 +1 2\r\n",
            "PROXY TCP4 192.0.2.1 192.0.2.9 65536 2\r\n",
            "PROXY TCP4 192.0.2.1 192.0.2.9  2\r\n",
            "PROXY UDP4 192.0.2.1 192.0.2.9 1 2\r\n",
            "PROXY UNKNOWNS\r\n",
            "PROXY \r\n",
            "PROXYTCP4 192.0.2.1 192.0.2.9 1 2\r\n",
            "GET / HTTP/1.1\r\n",
            "\x16\x03\x01",
        ] {
            assert_eq!(
                ProxyHeader::read(line.as_bytes()),
                Err(NoHeader),
                "{line:?}"
            );
        }
        let long = format!("PROXY UNKNOWN {}\r\n", "x".repeat(92));
        assert_eq!(ProxyHeader::read(long.as_bytes()), Err(NoHeader));
        assert_eq!(
            ProxyHeader::read(&long.as_bytes()[..LONGEST_LINE]),
            Err(NoHeader)
        );
    }

    #[test]
    fn headers_of_version_2() {
        let v4 = [192, 0, 2, 1, 192, 0, 2, 9, 0xdc, 0x04, 0x01, 0xbb];
        let v6 = [&[0x20, 1, 0xd, 0xb8][..], &[0; 28], &[0, 7, 1, 0xbb]].concat();
        let tlv = [0x04, 0, 2, 1, 1];
        check(&binary(0x21, 0x11, &v4), "192.0.2.1:56324");
        check(
            &binary(0x21, 0x11, &[&v4[..], &tlv].concat()),
            "192.0.2.1:56324",
        );
        check(
            &binary(0x21, 0x21, &[&v6[..], &tlv].concat()),
            "[2001:db8::]:7",
        );
        check(&binary(0x20, 0x11, &v4), "");
        check(&binary(0x20, 0x00, &[]), "");
        check(&binary(0x20, 0xff, &tlv), "");
        // No address of TCP: the connection is that of the proxy.
        check(&binary(0x21, 0x00, &tlv), "");
        for family in [0x10, 0x20, 0x30] {
            check(&binary(0x21, family, &[]), "");
            check(&binary(0x21, family, &tlv), "");
            check(&binary(0x21, family, &v6), "");
        }
        check(&binary(0x21, 0x12, &v4), "");
        check(&binary(0x21, 0x31, &[7; 216]), "");
        let longest = vec![0; PROXY_HEADER - 16];
        check(&binary(0x21, 0x21, &longest), "[::]:0");
    }

    #[test]
    fn headers_that_are_none_of_version_2() {
        for (version, family, len) in [
            (0x11, 0x11, 12),
            (0x22, 0x11, 12),
            (0x31, 0x11, 12),
            (0x21, 0x11, 11),
            (0x21, 0x21, 35),
            (0x21, 0x31, 215),
            (0x21, 0x13, 12),
            (0x21, 0x03, 12),
            (0x21, 0x40, 12),
            (0x21, 0x41, 12),
            (0x21, 0x11, PROXY_HEADER - 15),
        ] {
            let header = binary(version, family, &vec![0; len]);
            assert_eq!(
                ProxyHeader::read(&header),
                Err(NoHeader),
                "{version} {family} {len}"
            );
        }
    }
}
