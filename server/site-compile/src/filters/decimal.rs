//! Decimal numbers of any size, exactly as they were written.

use minijinja::value::{Value, ValueKind};

/// A number as a template is given one.
pub(super) enum Number {
    Finite(Decimal),
    /// PostgreSQL's numbers know it, and infinity.
    Nan,
    Infinite {
        is_negative: bool,
    },
}

/// The digits of a number. No binary fraction is involved: `0.1` is one tenth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    /// Zero is not negative.
    pub(super) is_negative: bool,
    /// Without zeros in front, but for a single one.
    pub(super) whole: String,
    pub(super) fraction: String,
}

/// The largest power of ten that a text may name; PostgreSQL's and SQLite's floats end at 308.
const MAX_EXPONENT: usize = 400;

impl Number {
    /// Reads a number, or a text that is one; none if it is neither.
    pub(super) fn of(value: &Value) -> Option<Self> {
        match value.kind() {
            ValueKind::Number if value.is_integer() => {
                Decimal::parse(&value.to_string()).map(Self::Finite)
            }
            ValueKind::Number => {
                // The shortest text that is read as this number, as `1.1` for 1.1.
                let float = f64::try_from(value.clone()).ok()?;
                Self::parse(&float.to_string())
            }
            ValueKind::String => Self::parse(value.as_str()?.trim()),
            _ => None,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
        if unsigned.eq_ignore_ascii_case("nan") {
            return Some(Self::Nan);
        }
        if ["inf", "infinity"].contains(&unsigned.to_ascii_lowercase().as_str()) {
            let is_negative = text.starts_with('-');
            return Some(Self::Infinite { is_negative });
        }
        Decimal::parse(text).map(Self::Finite)
    }
}

impl Decimal {
    /// Reads `-12.50` or `1.5e-7`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
        let (digits, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((digits, exponent)) => (digits, exponent.parse::<i32>().ok()?),
            None => (unsigned, 0),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_digits(whole) || !is_digits(fraction) || whole.len() + fraction.len() == 0 {
            return None;
        }
        let decimal = Self {
            is_negative: text.starts_with('-'),
            whole: whole.to_owned(),
            fraction: fraction.to_owned(),
        };
        let by = exponent.unsigned_abs() as usize;
        match exponent {
            _ if by > MAX_EXPONENT => None,
            0.. => Some(decimal.raised(by)),
            _ => Some(decimal.lowered(by)),
        }
    }

    /// Multiplied by ten to the power of `by`.
    fn raised(mut self, by: usize) -> Self {
        while self.fraction.len() < by {
            self.fraction.push('0');
        }
        let rest = self.fraction.split_off(by);
        self.whole.push_str(&self.fraction);
        self.fraction = rest;
        self.normal()
    }

    /// Divided by ten to the power of `by`.
    pub(super) fn lowered(mut self, by: usize) -> Self {
        if self.whole.len() < by {
            self.whole.insert_str(0, &"0".repeat(by - self.whole.len()));
        }
        let moved = self.whole.split_off(self.whole.len() - by);
        self.fraction.insert_str(0, &moved);
        self.normal()
    }

    /// With exactly `places` decimals. A half is rounded away from zero, as PostgreSQL rounds
    /// `numeric`.
    pub(super) fn rounded(mut self, places: usize) -> Self {
        let is_up = self
            .fraction
            .as_bytes()
            .get(places)
            .is_some_and(|digit| *digit >= b'5');
        self.fraction.truncate(places);
        while self.fraction.len() < places {
            self.fraction.push('0');
        }
        if is_up {
            let mut digits = format!("0{}{}", self.whole, self.fraction).into_bytes();
            for digit in digits.iter_mut().rev() {
                if *digit == b'9' {
                    *digit = b'0';
                } else {
                    *digit += 1;
                    break;
                }
            }
            let text = String::from_utf8(digits).unwrap_or_default();
            let (whole, fraction) = text.split_at(text.len() - places);
            self.whole = whole.to_owned();
            self.fraction = fraction.to_owned();
        }
        self.normal()
    }

    /// True for 1 and for 1.00.
    pub(super) fn is_one(&self) -> bool {
        !self.is_negative && self.whole == "1" && self.fraction.bytes().all(|digit| digit == b'0')
    }

    fn normal(mut self) -> Self {
        let zeros = self
            .whole
            .bytes()
            .take_while(|digit| *digit == b'0')
            .count();
        self.whole
            .drain(..zeros.min(self.whole.len().saturating_sub(1)));
        if self.whole.is_empty() {
            self.whole.push('0');
        }
        let is_zero = self.whole == "0" && self.fraction.bytes().all(|digit| digit == b'0');
        self.is_negative &= !is_zero;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounded(text: &str, places: usize) -> String {
        let Decimal {
            is_negative,
            whole,
            fraction,
        } = Decimal::parse(text).unwrap().rounded(places);
        let sign = if is_negative { "-" } else { "" };
        let point = if places == 0 { "" } else { "." };
        format!("{sign}{whole}{point}{fraction}")
    }

    #[test]
    fn rounding_is_exact_at_any_size() {
        for (text, places, expected) in [
            ("2.675", 2, "2.68"),
            ("0.285", 2, "0.29"),
            ("-0.5", 0, "-1"),
            ("-0.4", 0, "0"),
            ("-0.001", 2, "0.00"),
            ("999.995", 2, "1000.00"),
            ("007", 1, "7.0"),
            (".5", 1, "0.5"),
            ("5.", 1, "5.0"),
            ("1e3", 0, "1000"),
            ("1.2345e2", 1, "123.5"),
            ("25e-4", 3, "0.003"),
            (
                "123456789012345678901234567890.125",
                2,
                "123456789012345678901234567890.13",
            ),
        ] {
            assert_eq!(rounded(text, places), expected, "{text}");
        }
        let long = format!("{}.5", "9".repeat(200_000));
        assert_eq!(rounded(&long, 0), format!("1{}", "0".repeat(200_000)));
    }

    #[test]
    fn what_is_no_number_is_none() {
        for bad in [
            "", ".", "-", "1,5", "1 000", "0x10", "1e", "1e999", "e5", "$5", "１",
        ] {
            assert!(Number::parse(bad).is_none(), "{bad}");
        }
        assert!(matches!(
            Number::parse("-Infinity"),
            Some(Number::Infinite { is_negative: true })
        ));
        assert!(matches!(Number::parse("NaN"), Some(Number::Nan)));
    }
}
