//! Byte ranges (RFC 9110 sections 14.1.2 and 14.2): which parts of a content a Range field asks
//! for.

use crate::limits::RANGES;

/// Cost of a further part on the wire beside its bytes: a delimiter and the fields of the part.
/// Parts that are nearer to each other are sent as one (section 15.3.7.2).
pub(super) const PART_OVERHEAD: u64 = 128;

/// The bytes `first..=last`.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) struct ByteRange {
    pub(super) first: u64,
    pub(super) last: u64,
}

impl ByteRange {
    pub(super) const fn len(self) -> u64 {
        self.last - self.first + 1
    }

    /// True if both together cost less as one part than as two.
    const fn is_near(self, other: Self) -> bool {
        const REACH: u64 = PART_OVERHEAD + 1;
        self.first <= other.last.saturating_add(REACH)
            && other.first <= self.last.saturating_add(REACH)
    }

    fn with(self, other: Self) -> Self {
        Self {
            first: self.first.min(other.first),
            last: self.last.max(other.last),
        }
    }
}

/// Result of a Range field for a content of known length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ranges {
    /// Another unit, malformed, or more ranges than [`RANGES`]: answered in full, as section 14.2
    /// allows.
    Ignored,
    /// Nothing of the content is in any of them: 416.
    Unsatisfiable,
    /// At least one part, in the order in which they were asked for (section 15.3.7.2). No two of
    /// them overlap or are near each other, so all together are never more than the content.
    Parts(Vec<ByteRange>),
}

/// Reads `bytes=` and a list of `first-last`, `first-` and `-length`.
pub(super) fn parse_ranges(value: &[u8], len: u64) -> Ranges {
    // Section 14.2: a unit that is not known is passed over; section 14.1: its name has no case.
    let set = match split_once(value, b'=') {
        Some((unit, set)) if unit.eq_ignore_ascii_case(b"bytes") => set,
        _ => return Ranges::Ignored,
    };
    let specs = set.split(|&b| b == b',').map(<[u8]>::trim_ascii);
    let mut parts = Vec::new();
    let mut count = 0;
    // Section 5.6.1.2: empty elements of a list say nothing.
    for spec in specs.filter(|spec| !spec.is_empty()) {
        count += 1;
        match parse_range(spec, len) {
            _ if count > RANGES => return Ranges::Ignored,
            Range::Invalid => return Ranges::Ignored,
            Range::Outside => {}
            Range::Within(part) => add(&mut parts, part),
        }
    }
    match (count, parts.is_empty()) {
        (0, _) => Ranges::Ignored,
        (_, true) => Ranges::Unsatisfiable,
        _ => Ranges::Parts(parts),
    }
}

enum Range {
    Invalid,
    Outside,
    Within(ByteRange),
}

fn parse_range(spec: &[u8], len: u64) -> Range {
    let Some((first, last)) = split_once(spec, b'-') else {
        return Range::Invalid;
    };
    let part = |first, last: u64| ByteRange {
        first,
        last: last.min(len.saturating_sub(1)),
    };
    match (first, number(first), last, number(last)) {
        (b"", _, _, Some(0)) => Range::Outside,
        // Of an empty content any such range is all of it, which Content-Range cannot say.
        (b"", _, _, Some(_)) if len == 0 => Range::Invalid,
        (b"", _, _, Some(suffix)) => Range::Within(part(len.saturating_sub(suffix), len)),
        (_, Some(first), _, Some(last)) if last < first => Range::Invalid,
        (_, Some(first), b"", _) | (_, Some(first), _, Some(_)) if first >= len => Range::Outside,
        (_, Some(first), b"", _) => Range::Within(part(first, len)),
        (_, Some(first), _, Some(last)) => Range::Within(part(first, last)),
        _ => Range::Invalid,
    }
}

/// Adds `part`; with those that it overlaps or is near to it becomes one, in the place of the
/// foremost of them.
fn add(parts: &mut Vec<ByteRange>, mut part: ByteRange) {
    let mut place = parts.len();
    // One that has grown may reach parts that it did not reach before; each round takes one away.
    while let Some(at) = parts.iter().position(|other| other.is_near(part)) {
        part = part.with(parts.remove(at));
        place = place.min(at);
    }
    parts.insert(place, part);
}

fn split_once(bytes: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let index = memchr::memchr(at, bytes)?;
    Some((&bytes[..index], &bytes[index + 1..]))
}

/// `1*DIGIT`; what overflows is past the end of any content, so it saturates (section 14.1.2).
fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(digits.iter().fold(0_u64, |sum, digit| {
        sum.saturating_mul(10)
            .saturating_add(u64::from(digit - b'0'))
    }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parts<const N: usize>(parts: [(u64, u64); N]) -> Ranges {
        Ranges::Parts(
            parts
                .map(|(first, last)| ByteRange { first, last })
                .into_iter()
                .collect(),
        )
    }

    #[test]
    fn ranges_of_ten_bytes() {
        for (value, ranges) in [
            ("bytes=0-0", parts([(0, 0)])),
            ("bytes=2-4", parts([(2, 4)])),
            ("BYTES=2-", parts([(2, 9)])),
            ("bytes=-3", parts([(7, 9)])),
            ("bytes=-99", parts([(0, 9)])),
            ("bytes=0-99999999999999999999999", parts([(0, 9)])),
            ("bytes=9-9", parts([(9, 9)])),
            ("bytes= 1-2 ", parts([(1, 2)])),
            ("bytes=,1-2,,", parts([(1, 2)])),
            ("bytes=10-", Ranges::Unsatisfiable),
            ("bytes=10-11", Ranges::Unsatisfiable),
            ("bytes=-0", Ranges::Unsatisfiable),
            ("bytes=-0,10-", Ranges::Unsatisfiable),
            ("bytes=99999999999999999999999-", Ranges::Unsatisfiable),
            ("bytes=4-2", Ranges::Ignored),
            ("bytes=11-10", Ranges::Ignored),
            ("bytes=0-1,4-2", Ranges::Ignored),
            ("bytes=0-1,x", Ranges::Ignored),
            ("bytes=-", Ranges::Ignored),
            ("bytes=", Ranges::Ignored),
            ("bytes=,", Ranges::Ignored),
            ("bytes=a-b", Ranges::Ignored),
            ("bytes=+1-2", Ranges::Ignored),
            ("bytes=1 - 2", Ranges::Ignored),
            ("bytes =1-2", Ranges::Ignored),
            ("lines=1-2", Ranges::Ignored),
            ("bytes", Ranges::Ignored),
            ("", Ranges::Ignored),
        ] {
            assert_eq!(parse_ranges(value.as_bytes(), 10), ranges, "{value}");
        }
    }

    #[test]
    fn ranges_of_nothing() {
        assert_eq!(parse_ranges(b"bytes=0-", 0), Ranges::Unsatisfiable);
        assert_eq!(parse_ranges(b"bytes=-0", 0), Ranges::Unsatisfiable);
        assert_eq!(parse_ranges(b"bytes=-1", 0), Ranges::Ignored);
    }

    #[test]
    fn several_ranges_keep_their_order_and_near_ones_are_one() {
        for (value, ranges) in [
            ("0-0,500-500,900-", parts([(0, 0), (500, 500), (900, 999)])),
            ("900-,500-500,0-0", parts([(900, 999), (500, 500), (0, 0)])),
            ("0-1,2000-,500-500", parts([(0, 1), (500, 500)])),
            ("0-1,2-3", parts([(0, 3)])),
            ("0-9,138-139", parts([(0, 139)])),
            ("0-9,139-140", parts([(0, 9), (139, 140)])),
            ("0-500,400-600,-1", parts([(0, 600), (999, 999)])),
            ("900-,0-9,300-310,5-305", parts([(900, 999), (0, 310)])),
            ("0-9,300-310,900-,0-", parts([(0, 999)])),
        ] {
            let value = format!("bytes={value}");
            assert_eq!(parse_ranges(value.as_bytes(), 1000), ranges, "{value}");
        }
    }

    #[test]
    fn more_ranges_than_anybody_needs_are_ignored() {
        let many = |count: usize| {
            let list: Vec<_> = (0..count).map(|n| format!("{0}-{0}", n * 1000)).collect();
            format!("bytes={}", list.join(","))
        };
        assert!(matches!(
            parse_ranges(many(RANGES).as_bytes(), 1 << 20),
            Ranges::Parts(parts) if parts.len() == RANGES
        ));
        let ignored = parse_ranges(many(RANGES + 1).as_bytes(), 1 << 20);
        assert_eq!(ignored, Ranges::Ignored);
    }

    proptest! {
        #[test]
        fn parts_lie_within_and_apart(len in 0_u64..2000, set in "[0-9]{0,4}-[0-9]{0,4}(,[0-9]{0,4}-[0-9]{0,4}){0,7}") {
            if let Ranges::Parts(parts) = parse_ranges(format!("bytes={set}").as_bytes(), len) {
                for (at, part) in parts.iter().enumerate() {
                    prop_assert!(part.first <= part.last && part.last < len);
                    prop_assert!(parts[..at].iter().all(|other| !other.is_near(*part)));
                }
                prop_assert!(parts.iter().map(|part| part.len()).sum::<u64>() <= len);
            }
        }
    }
}
