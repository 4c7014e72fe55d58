//! Numbers for people: three digits that matter, a unit, thin spaces between thousands.

use time::OffsetDateTime;
use time::macros::format_description;

/// Between the thousands of a number: narrow and never broken over lines.
const THIN: char = '\u{202f}';
/// Between a number and its unit: never broken over lines.
const SPACE: char = '\u{a0}';

/// A whole number with its thousands apart: `1 234`.
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3 * THIN.len_utf8());
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            text.push(THIN);
        }
        text.push(digit);
    }
    text
}

/// A time given in microseconds: `87.2 µs`, `3.40 ms`, `1.25 s`.
pub fn micros(value: f64) -> String {
    scaled(
        value,
        &[(1e6, "s"), (1e3, "ms"), (1.0, "µs"), (1e-3, "ns")],
        "µs",
    )
}

/// A time given in seconds: the same, but nothing is `0 s`.
pub fn seconds(value: f64) -> String {
    if value == 0.0 {
        format!("0{SPACE}s")
    } else {
        micros(value * 1e6)
    }
}

/// A rate: `945 /s`, `12.3 k/s`.
pub fn rate(value: f64) -> String {
    scaled(
        value,
        &[(1e9, "G/s"), (1e6, "M/s"), (1e3, "k/s"), (1.0, "/s")],
        "/s",
    )
}

/// An amount of bytes, in powers of ten: `512 B`, `1.20 MB`.
pub fn bytes(value: f64) -> String {
    if value < 1000.0 {
        return format!("{value:.0}{SPACE}B");
    }
    scaled(
        value,
        &[(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")],
        "B",
    )
}

/// A share from 0 to 1: `12.3 %`.
pub fn percent(share: f64) -> String {
    format!("{}{SPACE}%", significant(share * 100.0))
}

/// How many times: `13.2 ×`.
pub fn times(ratio: f64) -> String {
    format!("{}{SPACE}×", plain(ratio))
}

/// A bare number: `1 234`, `12.3`, `0.045`.
pub fn plain(value: f64) -> String {
    significant(value)
}

/// A moment in seconds since 1970: `2026-11-29 12:30`.
pub fn moment(seconds: f64) -> String {
    let format = format_description!("[year]-[month]-[day] [hour]:[minute]");
    let moment = OffsetDateTime::from_unix_timestamp(seconds as i64);
    let text = moment.ok().and_then(|moment| moment.format(format).ok());
    text.unwrap_or_else(none)
}

/// A moment at an axis: `29 Nov` at midnight, else `12:30`.
pub(crate) fn tick_moment(seconds: f64) -> String {
    let Ok(moment) = OffsetDateTime::from_unix_timestamp(seconds as i64) else {
        return none();
    };
    if seconds.rem_euclid(86_400.0) == 0.0 {
        let month = moment.month().to_string();
        format!("{}{SPACE}{}", moment.day(), &month[..3])
    } else {
        format!("{:02}:{:02}", moment.hour(), moment.minute())
    }
}

/// Stands for a value that is not there.
pub fn none() -> String {
    "–".to_owned()
}

fn scaled(value: f64, units: &[(f64, &str)], zero: &str) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    // 999.96 would be rounded to 1000 of the smaller unit.
    let fits = |size: f64| value.abs() >= size * 0.9995;
    match units
        .iter()
        .find(|(size, _)| fits(*size))
        .or(units.last().filter(|_| value != 0.0))
    {
        Some((size, unit)) => format!("{}{SPACE}{unit}", significant(value / size)),
        None => format!("0{SPACE}{zero}"),
    }
}

/// Three significant digits, never in powers of ten.
fn significant(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let size = value.abs();
    if size == 0.0 {
        return "0".to_owned();
    }
    if size >= 99.95 {
        let sign = if value < 0.0 { "−" } else { "" };
        return format!("{sign}{}", count(size.round() as u64));
    }
    // 0.00345 has two zeros to pass before its first digit counts.
    let decimals = if size >= 9.995 {
        1
    } else {
        (2 - (size * 1.0005).log10().floor() as i32).clamp(2, 9) as usize
    };
    format!("{value:.decimals$}").replace('-', "−")
}

/// A number as it stands at an axis: without zeros that say nothing.
pub(crate) fn trimmed(text: &str) -> String {
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == THIN || c == '−'))
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number = if number.contains('.') {
        number.trim_end_matches('0').trim_end_matches('.')
    } else {
        number
    };
    format!("{number}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(text.replace([THIN, SPACE], " "), expected);
    }

    #[test]
    fn whole_numbers_have_their_thousands_apart() {
        check(&count(0), "0");
        check(&count(999), "999");
        check(&count(1234), "1 234");
        check(&count(u64::MAX), "18 446 744 073 709 551 615");
    }

    #[test]
    fn times_and_rates_find_their_unit() {
        check(&micros(0.0), "0 µs");
        check(&micros(0.25), "250 ns");
        check(&micros(87.25), "87.2 µs");
        check(&micros(999.96), "1.00 ms");
        check(&micros(3400.0), "3.40 ms");
        check(&micros(99_960.0), "100 ms");
        check(&micros(1_250_000.0), "1.25 s");
        check(&micros(9e9), "9 000 s");
        check(&seconds(0.0), "0 s");
        check(&seconds(0.25), "250 ms");
        check(&rate(12_345.0), "12.3 k/s");
        check(&rate(945.0), "945 /s");
        check(&rate(0.5), "0.500 /s");
        check(&bytes(512.0), "512 B");
        check(&bytes(1_204_000.0), "1.20 MB");
        check(&percent(0.1234), "12.3 %");
        check(&percent(1.0), "100 %");
        check(&plain(0.00345), "0.00345");
        check(&plain(-5.0), "−5.00");
        check(&micros(f64::NAN), "–");
        check(&moment(1_795_239_001.0), "2026-11-21 05:30");
        check(&moment(f64::INFINITY), "–");
    }

    #[test]
    fn axes_have_no_empty_digits() {
        check(&trimmed(&micros(5000.0)), "5 ms");
        check(&trimmed(&micros(2500.0)), "2.5 ms");
        check(&trimmed(&count(1000)), "1 000");
        check(&trimmed(&rate(100_000.0)), "100 k/s");
        check(&trimmed(&plain(0.5)), "0.5");
    }
}
