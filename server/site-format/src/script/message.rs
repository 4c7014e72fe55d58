//! `-- message:` lines: the owner's own sentences for what is wrong with a form.
//!
//! ```sql
//! -- message: title unique = "An album of this title exists."
//! -- message: ends_at ends_after_start = "The end is before the start."
//! -- message: stock = "Sold out."
//! ```

use super::Complaint;
use crate::parameter_names::is_name;

/// A `-- message:` line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageLine {
    /// A parameter, a `:one` query, or `form` for what belongs to no field.
    pub of: String,
    /// Fault, constraint or `:one` query; all faults if none is named.
    pub about: Option<String>,
    pub sentence: String,
    pub line: usize,
}

const EXAMPLE: &str = "for example: -- message: title unique = \"An album of this title exists.\"";

/// Reads what stands behind `-- message:`.
pub(super) fn message(rest: &str, line: usize) -> Result<MessageLine, Complaint> {
    let complain = |message: String| Err((message, Some(EXAMPLE.to_owned())));
    let Some((left, sentence)) = rest.split_once('=') else {
        return complain("a message needs a field, `=` and a sentence".to_owned());
    };
    let mut words = left.split_whitespace();
    let of = words.next().unwrap_or_default();
    if !is_name(of) {
        return complain(format!("`{of}` is no name of a field"));
    }
    let about = words.next();
    if let Some(more) = words.next() {
        return complain(format!("`{more}` stands before the `=`"));
    }
    let sentence = sentence.trim();
    let inner = sentence
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .filter(|inner| !inner.is_empty() && !inner.replace("\"\"", "").contains('"'));
    let Some(inner) = inner else {
        return complain("a sentence stands in double quotes".to_owned());
    };
    Ok(MessageLine {
        of: of.to_owned(),
        about: about.map(str::to_owned),
        sentence: inner.replace("\"\"", "\""),
        line,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_of_a_field_and_perhaps_of_one_fault() {
        let read = |rest: &str| message(rest, 1).map(|line| (line.of, line.about, line.sentence));
        assert_eq!(
            read("title unique = \"There is \"\"one\"\" = enough.\""),
            Ok((
                "title".into(),
                Some("unique".into()),
                "There is \"one\" = enough.".into()
            ))
        );
        assert_eq!(
            read("form=\"No.\""),
            Ok(("form".into(), None, "No.".into()))
        );
        for (rest, expected) in [
            ("title", "a message needs"),
            ("= \"x\"", "`` is no name"),
            ("title unique more = \"x\"", "`more` stands before"),
            ("title = x", "a sentence stands in double quotes"),
            ("title = \"\"", "a sentence stands in double quotes"),
            ("title = \"a\" b\"", "a sentence stands in double quotes"),
        ] {
            let (complaint, _) = read(rest).unwrap_err();
            assert!(complaint.starts_with(expected), "{rest}: {complaint}");
        }
    }
}
