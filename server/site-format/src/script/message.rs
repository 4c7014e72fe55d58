//! `-- message:` lines: the owner's own sentences for what is wrong with a form.
//!
//! ```sql
//! -- message: title unique = "An album of this title exists."
//! -- message: ends_at ends_after_start = "The end is before the start."
//! -- message: stock = "Sold out."
//! -- message: title unique [de] = "Ein Album dieses Titels gibt es schon."
//! -- message: * missing [de] = "Bitte ausfüllen."
//! ```

use super::Complaint;
use crate::parameter_names::is_name;

/// A `-- message:` line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageLine {
    /// A parameter, a `:one` query, `form` for what belongs to no field, or [`ANY_FIELD`].
    pub of: String,
    /// Fault, constraint or `:one` query; all faults if none is named.
    pub about: Option<String>,
    /// The value of a part of the path for which the sentence is.
    pub language: Option<String>,
    pub sentence: String,
    /// From 1; 0 if a folder's file has the line.
    pub line: usize,
}

/// The word for each field of a form, and for the form itself.
pub const ANY_FIELD: &str = "*";

const EXAMPLE: &str = "for example: -- message: title unique = \"An album of this title exists.\"";

/// Reads what stands behind `-- message:`.
pub(super) fn message(rest: &str, line: usize) -> Result<MessageLine, Complaint> {
    let complain = |message: String| Err((message, Some(EXAMPLE.to_owned())));
    let Some((left, sentence)) = rest.split_once('=') else {
        return complain("a message needs a field, `=` and a sentence".to_owned());
    };
    let mut words = left.split_whitespace();
    let of = words.next().unwrap_or_default();
    if !is_name(of) && of != ANY_FIELD {
        return complain(format!("`{of}` is no name of a field"));
    }
    let mut words = words.peekable();
    let about = words.next_if(|word| !word.starts_with('['));
    let language = words.next_if(|word| word.starts_with('[') && word.ends_with(']'));
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
        language: language.map(|word| word[1..word.len() - 1].to_owned()),
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
        let spoken = |rest| message(rest, 1).map(|line| (line.of, line.about, line.language));
        assert_eq!(
            spoken("title [de]=\"Nein.\""),
            Ok(("title".into(), None, Some("de".into())))
        );
        assert_eq!(
            spoken("* missing [pt-BR] = \"Não.\""),
            Ok(("*".into(), Some("missing".into()), Some("pt-BR".into())))
        );
        for (rest, expected) in [
            ("title [de = \"x\"", "`[de` stands before"),
            ("title [de] unique = \"x\"", "`unique` stands before"),
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
