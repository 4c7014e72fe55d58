//! Stored histograms, which can be merged over runs: HDR V2, in base64.
//!
//! The format is "V2" of HdrHistogram without compression: <http://hdrhistogram.org>,
//! `V2EncodedHistogram` in its Java sources. Any HdrHistogram library reads it. Values are
//! nanoseconds, from 1 ns to one hour.

use std::fmt;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer as _, V2Serializer};
use serde::{Deserialize, Serialize};

use crate::Latencies;
use crate::latency::summary;
use crate::series::{LONGEST, histogram};

/// Significant digits of the histograms of a run.
pub const FINE: u8 = 3;
/// Significant digits of the histograms of an interval.
pub(crate) const COARSE: u8 = 2;
/// Bytes before the counts: cookie, length, offset, digits, lowest, highest, ratio.
const HEAD: usize = 40;

/// A histogram of nanoseconds as HDR V2 in base64. The text is always readable: deserialization
/// refuses text that is no histogram.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Hdr(String);

impl Hdr {
    /// Writes a histogram down, if it holds anything.
    pub fn of(times: &Histogram<u64>) -> Option<Self> {
        if times.is_empty() {
            return None;
        }
        let mut bytes = Vec::new();
        // Writing into memory does not fail, and the bounds are this crate's own.
        V2Serializer::new().serialize(times, &mut bytes).ok()?;
        Some(Self(BASE64_STANDARD.encode(bytes)))
    }

    /// The text: base64 of HDR V2.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The histogram, empty if the text is none: every `Hdr` was checked when it was made.
    pub fn histogram(&self) -> Histogram<u64> {
        read(&self.0).unwrap_or_else(|_| histogram(FINE))
    }

    /// Number of samples.
    pub fn samples(&self) -> u64 {
        self.histogram().len()
    }

    /// One histogram with the samples of several of the same resolution; `None` if there are none.
    pub fn merge<'a>(all: impl IntoIterator<Item = &'a Self>) -> Option<Self> {
        let mut all = all.into_iter();
        let mut sum = all.next()?.histogram();
        for other in all {
            // All have the bounds that `read` insists on, so nothing can fall outside.
            let _ = sum.add(other.histogram());
        }
        Self::of(&sum)
    }
}

impl fmt::Debug for Hdr {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Hdr({} samples)", self.samples())
    }
}

impl TryFrom<String> for Hdr {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        read(&text)?;
        Ok(Self(text))
    }
}

impl From<Hdr> for String {
    fn from(hdr: Hdr) -> Self {
        hdr.0
    }
}

/// Reads what `Hdr::of` wrote. Bounds and length are checked before anything of their size is
/// allocated: the text comes from outside.
fn read(text: &str) -> Result<Histogram<u64>, String> {
    let bytes = BASE64_STANDARD
        .decode(text)
        .map_err(|error| format!("a histogram is not base64: {error}"))?;
    let number = |at: usize, length: usize| {
        let field = bytes.get(at..at + length)?;
        Some(
            field
                .iter()
                .fold(0, |sum: u64, byte| sum << 8 | u64::from(*byte)),
        )
    };
    let digits = number(12, 4).and_then(|digits| u8::try_from(digits).ok());
    let is_ours = matches!(digits, Some(FINE | COARSE))
        && number(16, 8) == Some(1)
        && number(24, 8) == Some(LONGEST)
        && number(4, 4) == Some((bytes.len() - HEAD.min(bytes.len())) as u64);
    if !is_ours {
        return Err(format!(
            "a histogram is not HDR V2 of 1 to {LONGEST} nanoseconds with {COARSE} or {FINE} significant digits"
        ));
    }
    Deserializer::new()
        .deserialize(&mut bytes.as_slice())
        .map_err(|error| format!("a histogram cannot be read: {error}"))
}

/// The histograms of a run, each as HDR V2 in base64, in nanoseconds; `None` if there is nothing to
/// measure. [`Latencies`] says what each one counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Histograms {
    /// Their resolution: values that differ in this number of decimal digits are distinguished.
    pub significant_digits: u8,
    /// From the scheduled send to the complete answer.
    pub response: Option<Hdr>,
    /// From the actual send to the complete answer.
    pub service: Option<Hdr>,
    /// From the scheduled to the actual send.
    pub send_lag: Option<Hdr>,
    /// The part of the send lag spent waiting for a connection.
    pub waiting: Option<Hdr>,
    /// The client's own part of the send lag.
    pub lateness: Option<Hdr>,
    /// From asking for a connection to having it.
    pub connect: Option<Hdr>,
    /// TLS handshakes with a certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full_handshake: Option<Hdr>,
    /// TLS handshakes that resumed an earlier session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resumed_handshake: Option<Hdr>,
}

impl Histograms {
    /// The sum of several.
    pub fn merge(all: &[&Self]) -> Self {
        let sum = |of: fn(&Self) -> Option<&Hdr>| Hdr::merge(all.iter().filter_map(|one| of(one)));
        Self {
            significant_digits: FINE,
            response: sum(|one| one.response.as_ref()),
            service: sum(|one| one.service.as_ref()),
            send_lag: sum(|one| one.send_lag.as_ref()),
            waiting: sum(|one| one.waiting.as_ref()),
            lateness: sum(|one| one.lateness.as_ref()),
            connect: sum(|one| one.connect.as_ref()),
            full_handshake: sum(|one| one.full_handshake.as_ref()),
            resumed_handshake: sum(|one| one.resumed_handshake.as_ref()),
        }
    }

    /// The latencies that follow from them.
    pub fn latencies(&self) -> Latencies {
        let of = |hdr: &Option<Hdr>| summary(&hdr.as_ref()?.histogram());
        Latencies {
            response: of(&self.response),
            service: of(&self.service),
            send_lag: of(&self.send_lag),
            waiting: of(&self.waiting),
            lateness: of(&self.lateness),
            connect: of(&self.connect),
            full_handshake: of(&self.full_handshake),
            resumed_handshake: of(&self.resumed_handshake),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_survives_encoding() {
        for digits in [FINE, COARSE] {
            let mut times = histogram(digits);
            for value in [0, 1, 999, 123_456, 7_000_000_000, LONGEST] {
                times.record_n(value, 3).unwrap();
            }
            let hdr = Hdr::of(&times).unwrap();
            assert_eq!(hdr.histogram(), times);
            assert_eq!(hdr.samples(), 18);
            assert_eq!(Hdr::try_from(hdr.as_str().to_owned()), Ok(hdr));
        }
        assert_eq!(Hdr::of(&histogram(FINE)), None);
    }

    #[test]
    fn invalid_text_is_refused_without_allocating() {
        let mut times = histogram(FINE);
        times.record(5).unwrap();
        let bytes = BASE64_STANDARD
            .decode(Hdr::of(&times).unwrap().as_str())
            .unwrap();
        let refused = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = bytes.clone();
            change(&mut bytes);
            read(&BASE64_STANDARD.encode(bytes)).is_err()
        };
        assert!(!refused(&|_| ()));
        assert!(refused(&|bytes| bytes.truncate(41)));
        assert!(refused(&|bytes| bytes.clear()));
        assert!(refused(&|bytes| bytes[0] ^= 1), "the cookie");
        assert!(
            refused(&|bytes| bytes[4] = 0xff),
            "a length of four gigabytes"
        );
        assert!(refused(&|bytes| bytes[15] = 5), "more digits");
        assert!(refused(&|bytes| bytes[24] = 0x7f), "a range of centuries");
        assert!(read("no base64 at all").is_err());
    }
}
