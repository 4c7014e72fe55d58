//! Byte ranges (RFC 9110 section 14.1.2).

/// What a Range field comes to for a content of known length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Range {
    /// Another unit, malformed, or several ranges: answered in full, as section 14.2 allows.
    Ignored,
    /// Nothing of the content is in it: 416.
    Unsatisfiable,
    /// The bytes `first..=last`.
    Part { first: usize, last: usize },
}

/// Reads `bytes=first-last`, `bytes=first-` and `bytes=-length`.
pub(super) fn parse_range(value: &[u8], len: usize) -> Range {
    let Some((unit, range)) = split_once(value, b'=') else {
        return Range::Ignored;
    };
    if !unit.eq_ignore_ascii_case(b"bytes") {
        return Range::Ignored;
    }
    let Some((first, last)) = split_once(range.trim_ascii(), b'-') else {
        return Range::Ignored;
    };
    match (
        first.is_empty(),
        number(first),
        last.is_empty(),
        number(last),
    ) {
        (false, Some(first), true, _) => part(first, usize::MAX, len),
        (false, Some(first), false, Some(last)) if first <= last => part(first, last, len),
        (true, _, false, Some(0)) => Range::Unsatisfiable,
        (true, _, false, Some(suffix)) => part(len.saturating_sub(suffix), usize::MAX, len),
        _ => Range::Ignored,
    }
}

fn part(first: usize, last: usize, len: usize) -> Range {
    if first >= len {
        Range::Unsatisfiable
    } else {
        Range::Part {
            first,
            last: last.min(len - 1),
        }
    }
}

fn split_once(bytes: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let index = memchr::memchr(at, bytes)?;
    Some((&bytes[..index], &bytes[index + 1..]))
}

/// `1*DIGIT`; what overflows is past the end of any content, so it saturates.
fn number(digits: &[u8]) -> Option<usize> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(digits.iter().fold(0_usize, |sum, digit| {
        sum.saturating_mul(10)
            .saturating_add(usize::from(digit - b'0'))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_ten_bytes() {
        let part = |first, last| Range::Part { first, last };
        for (value, range) in [
            ("bytes=0-0", part(0, 0)),
            ("bytes=2-4", part(2, 4)),
            ("BYTES=2-", part(2, 9)),
            ("bytes=-3", part(7, 9)),
            ("bytes=-99", part(0, 9)),
            ("bytes=0-99999999999999999999999", part(0, 9)),
            ("bytes=9-9", part(9, 9)),
            ("bytes=10-", Range::Unsatisfiable),
            ("bytes=-0", Range::Unsatisfiable),
            ("bytes=99999999999999999999999-", Range::Unsatisfiable),
            ("bytes=4-2", Range::Ignored),
            ("bytes=0-1,3-4", Range::Ignored),
            ("bytes=-", Range::Ignored),
            ("bytes=", Range::Ignored),
            ("bytes=a-b", Range::Ignored),
            ("bytes=+1-2", Range::Ignored),
            ("lines=1-2", Range::Ignored),
            ("", Range::Ignored),
        ] {
            assert_eq!(parse_range(value.as_bytes(), 10), range, "{value}");
        }
        assert_eq!(parse_range(b"bytes=0-", 0), Range::Unsatisfiable);
    }
}
