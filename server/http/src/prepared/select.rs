//! Which content codings a client reads (RFC 9110 section 12.5.3). Allocates nothing.

use super::Coding;
use crate::request::Request;

/// Quality in thousandths.
type Quality = u16;

/// The qualities of one request. Who refuses everything, the content without a coding included
/// (`*;q=0`, or `identity;q=0` where no coding is made), gets it without one all the same: section
/// 12.5.3 asks for that or 406, and section 12.1 leaves the choice to the server. Without an
/// Accept-Encoding no coding is used: section 12.5.3 would allow any, but clients that send none
/// seldom decode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Preferences {
    codings: [Option<Quality>; Coding::ALL.len()],
    identity: Option<Quality>,
    any: Option<Quality>,
}

impl Preferences {
    pub(super) fn of(request: &Request<'_>) -> Self {
        let mut preferences = Self::default();
        for list in request.fields.get_all("accept-encoding") {
            preferences.add(list);
        }
        preferences
    }

    fn add(&mut self, list: &[u8]) {
        for element in list.split(|&b| b == b',') {
            let mut parameters = element.split(|&b| b == b';').map(<[u8]>::trim_ascii);
            let name = parameters.next().unwrap_or_default();
            let quality = parameters.find_map(|p| {
                let (name, value) = p.split_at_checked(2)?;
                name.eq_ignore_ascii_case(b"q=").then(|| quality(value))
            });
            let quality = Some(quality.unwrap_or(1000));
            if name == b"*" {
                self.any = quality;
            } else if name.eq_ignore_ascii_case(b"identity") {
                self.identity = quality;
            } else if let Some(coding) = Coding::ALL
                .into_iter()
                .find(|c| name.eq_ignore_ascii_case(c.name().as_bytes()))
            {
                self.codings[coding as usize] = quality;
            } else if name.eq_ignore_ascii_case(b"x-gzip") {
                // Section 8.4.1.3: the same as gzip.
                self.codings[Coding::Gzip as usize] = quality;
            }
        }
    }

    /// True if any coding can be accepted.
    pub(super) fn any(&self) -> bool {
        Coding::ALL
            .into_iter()
            .any(|coding| self.accepted(coding).is_some())
    }

    /// True if the client does not want the content without a coding.
    pub(super) fn refuses_identity(&self) -> bool {
        self.identity.or(self.any) == Some(0)
    }

    /// True if the client reads `coding`, though it may like others better.
    pub(super) fn reads(&self, coding: Coding) -> bool {
        self.quality(coding).is_some()
    }

    fn quality(&self, coding: Coding) -> Option<Quality> {
        self.codings[coding as usize]
            .or(self.any)
            .filter(|quality| *quality > 0)
    }

    /// The quality of `coding`, if the client reads it and does not like it less than the content
    /// as it is.
    pub(super) fn accepted(&self, coding: Coding) -> Option<Quality> {
        let quality = self.quality(coding)?;
        (quality >= self.identity.unwrap_or(0)).then_some(quality)
    }

    /// The coding to make for this client: the one it likes best, and among equals our preference.
    pub(super) fn best_coding(&self) -> Option<Coding> {
        // `max_by_key` gives the last of equals.
        let accepted = Coding::ALL
            .into_iter()
            .rev()
            .filter_map(|coding| Some((coding, self.accepted(coding)?)));
        accepted
            .max_by_key(|(_, quality)| *quality)
            .map(|(coding, _)| coding)
    }
}

/// `qvalue` (section 12.4.2) in thousandths; what is not one counts as 0, so that a coding is not
/// sent by mistake.
fn quality(value: &[u8]) -> Quality {
    let digits = match value {
        [b'1'] => return 1000,
        [b'1', b'.', rest @ ..] if rest.len() <= 3 && rest.iter().all(|&b| b == b'0') => {
            return 1000;
        }
        [b'0', b'.', rest @ ..] if rest.len() <= 3 && rest.iter().all(u8::is_ascii_digit) => rest,
        _ => return 0,
    };
    let digit = |at: usize| digits.get(at).map_or(0, |&b| Quality::from(b - b'0'));
    digit(0) * 100 + digit(1) * 10 + digit(2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OwnedRequest;

    #[test]
    fn the_best_coding() {
        use Coding::{Brotli, Gzip, Zstd};
        for (field, best) in [
            ("gzip, deflate, br, zstd", Some(Brotli)),
            ("gzip, deflate, br;q=0.9, zstd", Some(Zstd)),
            ("GZIP", Some(Gzip)),
            ("x-gzip", Some(Gzip)),
            ("*", Some(Brotli)),
            ("*;q=0, gzip;q=0.001", Some(Gzip)),
            ("br;q=0, *", Some(Zstd)),
            ("gzip;q=0.5, identity", None),
            ("gzip;q=0", None),
            ("gzip;q=2", None),
            ("gzip; Q=1.000", Some(Gzip)),
            ("deflate", None),
            ("", None),
            ("identity;q=0", None),
            ("identity;q=0, *", Some(Brotli)),
            ("identity;q=0, gzip;q=0.001", Some(Gzip)),
            ("*;q=0", None),
            ("*;q=0.5, br;q=0", Some(Zstd)),
            ("*;q=0.1, gzip", Some(Gzip)),
            ("gzip;q=0.5, identity;q=0.5", Some(Gzip)),
            ("gzip ; q=0.5 , br ;q=0.25", Some(Gzip)),
            ("gzip;q=1.1", None),
            ("gzip;q=0.0001", None),
            ("gzip;q=", None),
            ("gzip;level=9;q=0.5", Some(Gzip)),
            (",, ,gzip,", Some(Gzip)),
        ] {
            let owned = OwnedRequest::new("GET", "/").field("Accept-Encoding", field);
            assert_eq!(
                Preferences::of(&owned.as_request()).best_coding(),
                best,
                "{field}"
            );
        }
        assert!(!Preferences::default().any());
        let two_lines = OwnedRequest::new("GET", "/")
            .field("Accept-Encoding", "gzip;q=0.5")
            .field("Accept-Encoding", "zstd;q=0.6");
        let best = Preferences::of(&two_lines.as_request()).best_coding();
        assert_eq!(best, Some(Zstd));
    }
}
