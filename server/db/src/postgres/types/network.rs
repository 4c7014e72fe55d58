//! `inet` and `cidr`. A cast to text would not do: it adds the length of the mask where the output
//! form leaves it out.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Reads the binary form: family, bits of the mask, whether it is a `cidr`, bytes of the address,
/// and these.
pub(super) fn read(bytes: &[u8]) -> Option<String> {
    let (head, address) = bytes.split_first_chunk::<4>()?;
    let [family, bits, is_cidr, length] = *head;
    if usize::from(length) != address.len() {
        return None;
    }
    let (text, whole) = match family {
        2 => {
            let octets: [u8; 4] = address.try_into().ok()?;
            (Ipv4Addr::from(octets).to_string(), 32)
        }
        3 => (version_6(address.try_into().ok()?), 128),
        _ => return None,
    };
    Some(if is_cidr != 0 || bits != whole {
        format!("{text}/{bits}")
    } else {
        text
    })
}

/// As std does, but for IPv4 addresses behind zeros alone, which PostgreSQL still writes with dots.
fn version_6(octets: [u8; 16]) -> String {
    let (zeros, rest) = octets.split_at(12);
    match *rest {
        [a, b, c, d] if zeros.iter().all(|zero| *zero == 0) && (a, b) != (0, 0) => {
            format!("::{a}.{b}.{c}.{d}")
        }
        _ => Ipv6Addr::from(octets).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_address_is_refused() {
        assert_eq!(
            read(&[2, 32, 0, 4, 10, 0, 0, 1]).as_deref(),
            Some("10.0.0.1")
        );
        assert_eq!(
            read(&[2, 8, 1, 4, 10, 0, 0, 0]).as_deref(),
            Some("10.0.0.0/8")
        );
        for wrong in [
            &[][..],
            &[2, 32, 0, 4, 10],
            &[4, 32, 0, 0],
            &[3, 128, 0, 4, 1, 2, 3, 4],
        ] {
            assert_eq!(read(wrong), None);
        }
    }
}
