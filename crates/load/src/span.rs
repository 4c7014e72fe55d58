//! Lengths of time as people write them: `250us`, `50ms`, `1.5s`, `2min`, `1h`.

/// The length in microseconds; `None` if it is not understood or not above zero.
pub(crate) fn micros(text: &str) -> Option<f64> {
    let text = text.trim();
    let unit = text.find(|c: char| c.is_ascii_alphabetic() || c == 'µ')?;
    let (number, unit) = text.split_at(unit);
    let size = match unit {
        "us" | "µs" => 1.0,
        "ms" => 1e3,
        "s" => 1e6,
        "min" => 60e6,
        "h" => 3600e6,
        _ => return None,
    };
    let micros = number.trim().parse::<f64>().ok()? * size;
    (micros > 0.0 && micros.is_finite()).then_some(micros)
}

#[cfg(test)]
mod tests {
    use super::micros;

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
}
