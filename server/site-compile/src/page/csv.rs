//! The rows of a query as CSV (RFC 4180): a line of the columns' names, then a line for each row.

use millpond_db::{ResultRows, Value};

use crate::object::json;

/// Program that reads the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CsvReader {
    /// A program takes each value as it stands.
    Program,
    /// A spreadsheet runs a text that begins as a formula does.
    Spreadsheet,
}

impl CsvReader {
    /// Returns who reads: a spreadsheet, or a program.
    pub const fn of(is_spreadsheet: bool) -> Self {
        match is_spreadsheet {
            true => Self::Spreadsheet,
            false => Self::Program,
        }
    }
}

impl CsvReader {
    /// The text as it is sent: for a spreadsheet with a single quote in front of what it would take
    /// for a formula (OWASP, "CSV Injection"). A number stays one.
    fn sent(self, text: String) -> String {
        match self {
            Self::Spreadsheet if is_formula(&text) => format!("'{text}"),
            _ => text,
        }
    }
}

/// True if a spreadsheet could take a text for a formula. It may leave out blanks in front and read
/// the wide forms of the signs as these.
fn is_formula(text: &str) -> bool {
    let begun = text.trim_start_matches([' ', '\u{a0}', '\u{3000}', '\u{feff}']);
    begun.starts_with([
        '=', '+', '-', '@', '\t', '\r', '\n', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}',
    ]) && !is_number(text)
}

/// A number as databases write one, such as `-12.50` or `1e+20`.
fn is_number(text: &str) -> bool {
    let is_sign = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | 'e' | 'E');
    text.chars().all(is_sign) && text.parse::<f64>().is_ok()
}

/// The text of the rows. A column without a value is an empty field.
pub fn csv(data: &ResultRows, reader: CsvReader) -> Vec<u8> {
    let mut out = String::new();
    let names = data.columns.iter().map(|name| name.to_string());
    push_line(&mut out, names.map(|name| reader.sent(name)));
    for row in &data.rows {
        push_line(&mut out, row.iter().map(|value| field(value, reader)));
    }
    out.into_bytes()
}

/// Appends a line. A field stands in quotes if a reader would take it for two, or for none: the one
/// field of an empty line.
fn push_line(out: &mut String, fields: impl ExactSizeIterator<Item = String>) {
    let is_single = fields.len() == 1;
    for (at, field) in fields.enumerate() {
        if at > 0 {
            out.push(',');
        }
        if field.contains([',', '"', '\r', '\n']) || is_single && field.is_empty() {
            out.push('"');
            out.push_str(&field.replace('"', "\"\""));
            out.push('"');
        } else {
            out.push_str(&field);
        }
    }
    out.push_str("\r\n");
}

/// A value as JSON has it, but a text without its quotes.
fn field(value: &Value, reader: CsvReader) -> String {
    match json(value) {
        serde_json::Value::Null => String::new(),
        serde_json::Value::String(text) => reader.sent(text),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn every_value_is_one_field() {
        let data = ResultRows {
            columns: ["id", "na\"me", "x"].map(Arc::from).into(),
            rows: vec![
                vec![1.into(), "a,b\r\nc \"d\"".into(), Value::Null],
                vec![Value::Real(2.5), "".into(), true.into()],
                vec![
                    (-7).into(),
                    " =1+1".into(),
                    serde_json::json!({ "a": [1] }).into(),
                ],
            ],
        };
        let text = |reader| String::from_utf8(csv(&data, reader)).unwrap();
        let expected = "id,\"na\"\"me\",x\r\n1,\"a,b\r\nc \"\"d\"\"\",\r\n2.5,,true\r\n-7, =1+1,\"{\"\"a\"\":[1]}\"\r\n";
        assert_eq!(text(CsvReader::Program), expected);
        assert_eq!(
            text(CsvReader::Spreadsheet),
            expected.replace(" =1+1", "' =1+1")
        );
    }

    #[test]
    fn a_spreadsheet_runs_no_text() {
        for text in [
            "=1+1",
            "=HYPERLINK(\"http://x\",\"y\")",
            "+1+1",
            "-1+1",
            "-2+3+cmd|' /C calc'!A0",
            "@SUM(1)",
            "\t=1",
            "\r=1",
            "\n=1",
            "\u{feff}=1",
            "\u{ff1d}1",
            "-",
            "+inf",
            "-nan",
            "+43 1 23",
        ] {
            assert_eq!(
                CsvReader::Spreadsheet.sent(text.to_owned()),
                format!("'{text}")
            );
            assert_eq!(CsvReader::Program.sent(text.to_owned()), text);
        }
        for text in [
            "",
            "a=1",
            "-12.50",
            "+5",
            "1e+20",
            "-1E-3",
            "2026-01-01",
            "'=1",
            "a\n=1",
        ] {
            assert_eq!(CsvReader::Spreadsheet.sent(text.to_owned()), text);
        }
    }
}
