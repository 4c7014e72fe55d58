//! Values in source text: numbers, shifts, products and spans of time; how the page writes them.

/// A number in the unit in which it is stored; a span of time in milliseconds.
///
/// `after` is `const`, or text after which the first field `name` is meant.
pub(super) fn read(source: &str, after: &str, name: &str) -> Option<u64> {
    if after == "const" {
        let start = source.find(&format!("const {name}: "))?;
        let (_, rest) = source[start..].split_once(" = ")?;
        return evaluate(rest.split_once(';')?.0);
    }
    let start = source.find(after)? + after.len();
    let lines = source[start..].lines();
    let field = format!("{name}: ");
    let mut values = lines.filter_map(|line| line.trim_start().strip_prefix(&field));
    evaluate(values.next()?.trim_end_matches(','))
}

fn evaluate(expression: &str) -> Option<u64> {
    let expression = expression.trim();
    for (call, millis) in [
        ("Duration::from_secs(", 1000),
        ("Duration::from_millis(", 1),
    ] {
        if let Some(rest) = expression.strip_prefix(call) {
            return evaluate(rest.strip_suffix(')')?)?.checked_mul(millis);
        }
    }
    if let Some((value, shift)) = expression.split_once("<<") {
        return evaluate(value)?.checked_mul(1 << evaluate(shift)?.min(62));
    }
    if let Some((left, right)) = expression.split_once('*') {
        return evaluate(left)?.checked_mul(evaluate(right)?);
    }
    expression.replace('_', "").parse().ok()
}

/// How a value is written.
#[derive(Clone, Copy)]
pub(super) enum Unit {
    Bytes,
    Count,
    /// The source has a `Duration`.
    Time,
}

impl Unit {
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "bytes" => Self::Bytes,
            "count" => Self::Count,
            "time" => Self::Time,
            _ => return None,
        })
    }

    pub(super) fn show(self, value: u64) -> String {
        match self {
            Self::Bytes => bytes(value),
            Self::Count => grouped(value),
            Self::Time if value.is_multiple_of(1000) => format!("{} s", grouped(value / 1000)),
            Self::Time => format!("{} ms", grouped(value)),
        }
    }
}

/// In the largest unit that leaves a whole number.
fn bytes(value: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    for (size, unit) in units {
        if value >= size && value.is_multiple_of(size) {
            return format!("{} {unit}", grouped(value / size));
        }
    }
    format!("{} bytes", grouped(value))
}

/// With a comma between thousands.
fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Unit, read};

    #[test]
    fn constants_and_fields_are_read() {
        let source = "\
            /// MOST: how much\npub(crate) const MOST: usize = 32 * 1024 * 1024;\n\
            const PAUSE: Duration = Duration::from_millis(50);\nconst LONG: u64 = 10_000;\n\
            const ACCOUNT: Rate = Rate {\n    burst: 10,\n    interval: Duration::from_secs(60),\n};\n\
            const ADDRESS: Rate = Rate {\n    burst: 3 << 4,\n};\n";
        assert_eq!(read(source, "const", "MOST"), Some(32 << 20));
        assert_eq!(read(source, "const", "PAUSE"), Some(50));
        assert_eq!(read(source, "const", "LONG"), Some(10_000));
        assert_eq!(read(source, "const ACCOUNT", "interval"), Some(60_000));
        assert_eq!(read(source, "const ADDRESS", "burst"), Some(48));
        assert_eq!(read(source, "const", "OTHER"), None);
        assert_eq!(read("const MOST: usize = OTHER;", "const", "MOST"), None);
    }

    #[test]
    fn values_are_written_in_their_units() {
        for (unit, value, text) in [
            (Unit::Bytes, 64 << 10, "64 KiB"),
            (Unit::Bytes, 3_800, "3,800 bytes"),
            (Unit::Count, 262_144, "262,144"),
            (Unit::Count, 999, "999"),
            (Unit::Time, 60_000, "60 s"),
            (Unit::Time, 1_500, "1,500 ms"),
        ] {
            assert_eq!(unit.show(value), text);
        }
    }
}
