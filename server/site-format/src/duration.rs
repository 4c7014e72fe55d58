//! Spans of time as people write them: `250ms`, `1s`, `10min`, `2h`, `1d`.

use std::time::Duration;

/// Reads a span of time: a whole number and a unit.
pub fn parse(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let bad = || format!("`{text}` is no span of time: a whole number and one of ms, s, min, h, d");
    let number: u64 = text[..digits].parse().map_err(|_| bad())?;
    let seconds = match text[digits..].trim() {
        "ms" => return Ok(Duration::from_millis(number)),
        "s" => 1,
        "min" => 60,
        "h" => 3600,
        "d" => 86400,
        _ => return Err(bad()),
    };
    number
        .checked_mul(seconds)
        .map(Duration::from_secs)
        .ok_or_else(bad)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_of_time() {
        assert_eq!(parse("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parse(" 10 min "), Ok(Duration::from_secs(600)));
        for bad in [
            "",
            "1",
            "s",
            "-1s",
            "1.5s",
            "1 fortnight",
            "99999999999999999999s",
            "18446744073709551615d",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
