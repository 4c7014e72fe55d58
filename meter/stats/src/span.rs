//! Lengths of time as people write them: `250us`, `50ms`, `1.5s`, `2min`, `1h`, `7d`.

use std::time::Duration;

/// The length in microseconds; `None` if it is not understood or not above zero.
pub fn micros(text: &str) -> Option<f64> {
    read(text).filter(|micros| *micros > 0.0)
}

/// The length, which may be zero; `None` if it cannot be read, is negative, or is too long for the
/// type.
#[must_use]
pub fn duration(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(read(text)? / 1e6).ok()
}

/// A finite number of microseconds.
fn read(text: &str) -> Option<f64> {
    let text = text.trim();
    let unit = text.find(|c: char| c.is_ascii_alphabetic() || c == 'µ')?;
    let (number, unit) = text.split_at(unit);
    let size = match unit {
        "us" | "µs" => 1.0,
        "ms" => 1e3,
        "s" => 1e6,
        "min" => 60e6,
        "h" => 3600e6,
        "d" => 86_400e6,
        _ => return None,
    };
    let micros = number.trim().parse::<f64>().ok()? * size;
    micros.is_finite().then_some(micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_has_a_number_and_a_unit() {
        for (text, expected) in [
            ("250us", Some(250.0)),
            ("1.5 ms", Some(1_500.0)),
            (" 2min ", Some(120e6)),
            ("1h", Some(3600e6)),
            ("0s", None),
            ("-1s", None),
            ("5", None),
            ("5 parsecs", None),
            ("1e999s", None),
            ("s", None),
        ] {
            assert_eq!(micros(text), expected, "{text}");
        }
    }
    #[test]
    fn a_length_may_be_nothing_where_that_is_asked() {
        for (text, expected) in [
            ("0s", Some(Duration::ZERO)),
            ("500ms", Some(Duration::from_millis(500))),
            ("1.5s", Some(Duration::from_millis(1500))),
            ("2 min", Some(Duration::from_secs(120))),
            ("-1s", None),
            ("1.2.3s", None),
            ("1e3s", None),
            ("99999999999999999999h", None),
        ] {
            assert_eq!(duration(text), expected, "{text}");
        }
    }
}
