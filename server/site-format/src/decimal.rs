//! Decimal numbers with all their digits: `12.50`, as `<input type=number>` sends it.

use std::{borrow::Cow, cmp::Ordering};

/// A number may not have more characters than this.
const LONGEST: usize = 200;

/// The one spelling of a number: `-0.5`, without needless zeros. None of what is no number.
pub fn read(text: &str) -> Option<Cow<'_, str>> {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let are_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let is_number = are_digits(whole) && are_digits(fraction) && !fraction.is_empty();
    if !is_number || digits.is_empty() || text.len() > LONGEST {
        return None;
    }
    let whole = match whole.trim_start_matches('0') {
        "" => "0",
        whole => whole,
    };
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    let is_zero = whole == "0" && fraction.is_empty();
    let sign = if is_negative && !is_zero { "-" } else { "" };
    let spelt = format!("{sign}{whole}{point}{fraction}");
    Some(match spelt == text {
        true => Cow::Borrowed(text),
        false => Cow::Owned(spelt),
    })
}

/// The order of two numbers in their one spelling.
pub fn order(one: &str, other: &str) -> Ordering {
    match (one.strip_prefix('-'), other.strip_prefix('-')) {
        (Some(one), Some(other)) => order(other, one),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => {
            let parts = |text| str::split_once(text, '.').unwrap_or((text, ""));
            let ((one, first), (other, second)) = (parts(one), parts(other));
            let whole = one.len().cmp(&other.len()).then(one.cmp(other));
            whole.then(first.cmp(second))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_has_one_spelling() {
        for (text, expected) in [
            ("12.50", Some("12.5")),
            ("0", Some("0")),
            ("-0.00", Some("0")),
            (".5", Some("0.5")),
            ("007", Some("7")),
            ("-010.010", Some("-10.01")),
            (
                "99999999999999999999.000000000000000000001",
                Some("99999999999999999999.000000000000000000001"),
            ),
            ("", None),
            ("-", None),
            (".", None),
            ("5.", None),
            ("1,5", None),
            ("+1", None),
            ("1e3", None),
            ("--1", None),
            (" 1", None),
            ("\u{661}", None),
            ("1.-5", None),
        ] {
            assert_eq!(read(text).as_deref(), expected, "{text}");
        }
        assert_eq!(read(&"1".repeat(LONGEST + 1)), None);
    }

    #[test]
    fn numbers_have_their_order() {
        let sorted = [
            "-10.01", "-10", "-9.5", "-0.1", "0", "0.09", "0.1", "0.11", "9", "10", "10.5",
        ];
        for (at, one) in sorted.iter().enumerate() {
            for (other_at, other) in sorted.iter().enumerate() {
                assert_eq!(order(one, other), at.cmp(&other_at), "{one} {other}");
            }
        }
    }
}
