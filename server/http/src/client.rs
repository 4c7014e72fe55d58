//! Who a client is, as far as addresses tell, and networks of addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// The client of a request: the address of the connection, or the one that a trusted proxy names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Client {
    address: IpAddr,
    pub(crate) named_by: NamedBy,
}

/// Source of the address of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum NamedBy {
    /// The socket itself.
    Peer,
    /// A header of the PROXY protocol, for the whole connection.
    Header,
    /// A field of the request.
    Field,
}

impl Client {
    /// Returns the client at the other end of a connection, with this address.
    #[must_use]
    pub const fn new(address: IpAddr) -> Self {
        Self::named(address, NamedBy::Peer)
    }

    pub(crate) const fn named(address: IpAddr, named_by: NamedBy) -> Self {
        Self {
            address: address.to_canonical(),
            named_by,
        }
    }

    /// Returns its address; one of IPv4 that is mapped into IPv6 is one of IPv4.
    #[must_use]
    pub const fn address(self) -> IpAddr {
        self.address
    }

    /// True if it is a program of this machine. One that a proxy only names so is not: it may be
    /// anywhere.
    #[must_use]
    pub fn is_local(self) -> bool {
        self.named_by == NamedBy::Peer && self.address.is_loopback()
    }

    /// True if it is in one of the networks, whose loopback means [local](Self::is_local) clients.
    #[must_use]
    pub fn is_exempt(self, networks: &[Network]) -> bool {
        is_in(networks, self.address) && (self.is_local() || !self.address.is_loopback())
    }

    /// Returns the key by which clients are told apart.
    #[must_use]
    pub const fn network(self) -> ClientNetwork {
        match self.address {
            IpAddr::V4(address) => ClientNetwork::V4(address.to_bits()),
            // The upper half of the address.
            IpAddr::V6(address) => ClientNetwork::V6((address.to_bits() >> 64) as u64),
        }
    }
}

/// One client, as far as addresses tell: an IPv4 address, or a network of 64 bits of IPv6, in which
/// a single host can take any address (RFC 4291 section 2.5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClientNetwork {
    /// An address of IPv4.
    V4(u32),
    /// The upper 64 bits of an address of IPv6.
    V6(u64),
    /// The upper 56 bits, the rest zero: what one subscriber often has (RFC 6177).
    V6Site(u64),
}

impl ClientNetwork {
    /// Returns the network of 56 bits of IPv6 in which it lies.
    pub(crate) const fn site(self) -> Option<Self> {
        match self {
            Self::V6(bits) => Some(Self::V6Site(bits & !0xff)),
            Self::V4(_) | Self::V6Site(_) => None,
        }
    }
}

/// A network of addresses in CIDR notation, such as `10.0.0.0/8`; one address without a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    first: IpAddr,
    prefix: u32,
}

impl Network {
    /// Returns the addresses of this machine: `127.0.0.0/8` and `::1`.
    #[must_use]
    pub fn loopback() -> Vec<Self> {
        let v4 = Self {
            first: IpAddr::V4(Ipv4Addr::new(127, 0, 0, 0)),
            prefix: 8,
        };
        let v6 = Self {
            first: IpAddr::V6(Ipv6Addr::LOCALHOST),
            prefix: 128,
        };
        vec![v4, v6]
    }

    /// Returns whether the address lies in the network.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let differ = bits(address) ^ bits(self.first);
        address.is_ipv4() == self.first.is_ipv4()
            && differ.checked_shr(128 - self.prefix).unwrap_or(0) == 0
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let first: IpAddr = address.parse().map_err(|_| {
            format!("`{text}` is no IP address and no network such as 10.0.0.0/8 or 2001:db8::/32")
        })?;
        if first.to_canonical() != first {
            return Err(format!(
                "`{text}` is an address of IPv4 in the form of IPv6; write {}",
                first.to_canonical()
            ));
        }
        let longest = if first.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.map_or(Some(longest), |prefix| prefix.parse().ok());
        let prefix = prefix.filter(|prefix| *prefix <= longest).ok_or_else(|| {
            format!("`{text}` has no prefix from 0 to {longest} behind its slash")
        })?;
        let network = Self {
            first: match first {
                IpAddr::V4(address) => {
                    let mask = u32::MAX.checked_shl(32 - prefix).unwrap_or(0);
                    Ipv4Addr::from_bits(address.to_bits() & mask).into()
                }
                IpAddr::V6(address) => {
                    let mask = u128::MAX.checked_shl(128 - prefix).unwrap_or(0);
                    Ipv6Addr::from_bits(address.to_bits() & mask).into()
                }
            },
            prefix,
        };
        match network.first == first {
            true => Ok(network),
            false => Err(format!(
                "`{text}` has bits behind its prefix; did you mean {}/{prefix}?",
                network.first
            )),
        }
    }
}

/// Returns the bits of an address, from the highest on.
const fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => (address.to_bits() as u128) << 96,
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// Returns whether one of the networks has the address.
pub(crate) fn is_in(networks: &[Network], address: IpAddr) -> bool {
    networks.iter().any(|network| network.contains(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_client() {
        let client = |text: &str| Client::new(text.parse().unwrap()).network();
        assert_eq!(client("192.0.2.1"), client("::ffff:192.0.2.1"));
        assert_ne!(client("192.0.2.1"), client("192.0.2.2"));
        assert_eq!(client("2001:db8::1"), client("2001:db8::ffff:0:0:1"));
        assert_ne!(client("2001:db8::1"), client("2001:db8:0:1::1"));
        let site = |text: &str| client(text).site();
        assert_eq!(site("192.0.2.1"), None);
        assert_eq!(site("2001:db8:0:0::1"), site("2001:db8:0:ff::1"));
        assert_ne!(site("2001:db8:0:0::1"), site("2001:db8:0:100::1"));
    }

    #[test]
    fn loopback_is_exempt_only_as_the_peer_itself() {
        for (address, named_by, expected) in [
            ("127.0.0.1", NamedBy::Peer, true),
            ("::1", NamedBy::Peer, true),
            ("::ffff:127.0.0.1", NamedBy::Peer, true),
            ("127.0.0.1", NamedBy::Header, false),
            ("::ffff:127.0.0.1", NamedBy::Field, false),
            ("::1", NamedBy::Field, false),
            ("192.0.2.1", NamedBy::Peer, true),
            ("192.0.2.1", NamedBy::Header, true),
            ("192.0.2.1", NamedBy::Field, true),
            ("192.0.2.2", NamedBy::Peer, false),
        ] {
            let mut networks = Network::loopback();
            networks.push("192.0.2.1".parse().unwrap());
            let client = Client::named(address.parse().unwrap(), named_by);
            assert_eq!(client.is_exempt(&networks), expected, "{client:?}");
        }
    }

    #[test]
    fn networks() {
        for (network, address, expected) in [
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("10.0.0.0/8", "::ffff:10.0.0.1", true),
            ("192.0.2.1", "192.0.2.1", true),
            ("192.0.2.1", "192.0.2.2", false),
            ("0.0.0.0/0", "203.0.113.9", true),
            ("0.0.0.0/0", "2001:db8::1", false),
            ("::/0", "203.0.113.9", false),
            ("::/0", "2001:db8::1", true),
            ("2001:db8::/32", "2001:db8:ffff::", true),
            ("2001:db8::/32", "2001:db9::", false),
            ("::1", "::1", true),
        ] {
            let found = network.parse::<Network>().unwrap();
            let found = found.contains(address.parse().unwrap());
            assert_eq!(found, expected, "{network} {address}");
        }
        let loopback = ["127.0.0.0/8", "::1"].map(|text| text.parse::<Network>().unwrap());
        assert_eq!(Network::loopback(), loopback);
        for (text, part) in [
            ("10.0.0.1/8", "did you mean 10.0.0.0/8?"),
            ("2001:db8::1/32", "did you mean 2001:db8::/32?"),
            ("10.0.0.0/33", "from 0 to 32"),
            ("::/129", "from 0 to 128"),
            ("::/", "from 0 to 128"),
            ("proxy", "is no IP address"),
            ("10.0.0/8", "is no IP address"),
        ] {
            let error = text.parse::<Network>().unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
