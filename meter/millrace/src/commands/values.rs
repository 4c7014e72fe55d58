//! Numbers as values of flags, with errors in plain words: those of the standard library name
//! types of Rust.

use std::str::FromStr;
use std::time::Duration;

/// A length of time with its unit.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    millrace_stats::duration(text)
        .ok_or_else(|| "a number with a unit is needed, such as 500ms, 10s or 2min".to_owned())
}

/// A whole number.
pub(crate) fn whole<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|_| "a whole number is needed, such as 8".to_owned())
}

/// A number with or without a fraction.
pub(crate) fn number(text: &str) -> Result<f64, String> {
    text.parse()
        .map_err(|_| "a number without a unit is needed, such as 200 or 1.5".to_owned())
}

/// The status of an answer.
pub(crate) fn status(text: &str) -> Result<u16, String> {
    whole(text)
        .ok()
        .filter(|status| (100..=999).contains(status))
        .ok_or_else(|| "a status is a number from 100 to 999, such as 304".to_owned())
}

/// `3%` or `3` as 0.03.
pub(crate) fn percentage(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim_end();
    match number.parse::<f64>() {
        Ok(percent) if (0.1..=50.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("write a percentage from 0.1% to 50%, such as 3%".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::{number, percentage, status, whole};

    #[test]
    fn what_is_no_number_is_told_what_one_looks_like() {
        assert_eq!(
            (whole("8"), number("1.5"), status("304")),
            (Ok(8_usize), Ok(1.5), Ok(304))
        );
        for wrong in ["", "four", "1k", "50/s", "-"] {
            assert!(whole::<usize>(wrong).is_err(), "{wrong}");
            assert!(number(wrong).is_err(), "{wrong}");
        }
        for wrong in ["2xx", "99", "1000"] {
            assert!(status(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_precision_is_a_percentage() {
        assert_eq!(percentage("3%"), Ok(0.03));
        assert_eq!(percentage("0.5 %"), Ok(0.005));
        for bad in ["", "0", "51%", "x", "-1%"] {
            assert!(percentage(bad).is_err(), "{bad}");
        }
    }
}
