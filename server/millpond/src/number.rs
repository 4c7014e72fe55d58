//! Numbers for people: three significant digits, a unit, thin spaces between thousands.

/// Between the thousands of a number: narrow, and never broken over lines.
const THIN: char = '\u{202f}';
/// Between a number and its unit: never broken over lines.
const SPACE: char = '\u{a0}';

/// A whole number with separated thousands: `1 234`.
pub(crate) fn count(value: u64) -> String {
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

/// A time given in seconds: `87.2 µs`, `3.40 ms`, `1.25 s`.
pub(crate) fn seconds(value: f64) -> String {
    if value == 0.0 {
        return format!("0{SPACE}s");
    }
    scaled(
        value * 1e6,
        &[(1e6, "s"), (1e3, "ms"), (1.0, "µs"), (1e-3, "ns")],
    )
}

/// An amount of bytes, in powers of ten: `512 B`, `1.20 MB`.
pub(crate) fn bytes(value: f64) -> String {
    if value < 1000.0 {
        return format!("{value:.0}{SPACE}B");
    }
    scaled(
        value,
        &[(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")],
    )
}

/// A share from 0 to 1: `12.3 %`.
pub(crate) fn percent(share: f64) -> String {
    format!("{}{SPACE}%", significant(share * 100.0))
}

/// `value`, which is not zero, in the largest of `units` that it fills, or in the last one.
fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    // 999.96 would be rounded to 1000 of the smaller unit.
    let fits = |size: f64| value.abs() >= size * 0.9995;
    let unit = units.iter().find(|(size, _)| fits(*size)).or(units.last());
    unit.map_or_else(String::new, |(size, unit)| {
        format!("{}{SPACE}{unit}", significant(value / size))
    })
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
    // The first significant digit of 0.00345 stands after two zeros.
    let decimals = if size >= 9.995 {
        1
    } else {
        (2 - (size * 1.0005).log10().floor() as i32).clamp(2, 9) as usize
    };
    format!("{value:.decimals$}").replace('-', "−")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(text.replace([THIN, SPACE], " "), expected);
    }

    #[test]
    fn numbers_find_their_unit() {
        check(&count(0), "0");
        check(&count(1234), "1 234");
        check(&count(u64::MAX), "18 446 744 073 709 551 615");
        check(&seconds(0.0), "0 s");
        check(&seconds(87.25e-6), "87.2 µs");
        check(&seconds(999.96e-6), "1.00 ms");
        check(&seconds(0.25), "250 ms");
        check(&seconds(9e3), "9 000 s");
        check(&bytes(512.0), "512 B");
        check(&bytes(1_204_000.0), "1.20 MB");
        check(&percent(0.1234), "12.3 %");
        check(&percent(1.0), "100 %");
    }
}
