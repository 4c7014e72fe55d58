//! The line by which a page answers with the bytes of a column:
//! `-- bytes: picture.data type picture.type name picture.file_name attachment`.

use crate::{access::DirectiveLine, parameter_names::is_name};

/// A `-- bytes:` line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BytesLine {
    pub content: ColumnName,
    pub media_type: Option<TextSource>,
    /// The name under which the file is saved.
    pub name: Option<TextSource>,
    /// True if browsers save the file instead of showing it.
    pub is_attachment: bool,
    pub line: DirectiveLine,
}

/// `query.column`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnName {
    pub query: String,
    pub column: String,
}

/// A text of the page, or of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextSource {
    Column(ColumnName),
    Text(String),
}

/// A part of the line, a message and a hint.
type BytesFault = (String, String, String);

const EXAMPLE: &str =
    "for example: -- bytes: picture.data type picture.type name picture.file_name";

/// Reads what follows `-- bytes:`.
pub(super) fn parse(rest: &str, line: DirectiveLine) -> Result<BytesLine, BytesFault> {
    let words = words(rest);
    let mut words = words.iter().map(String::as_str);
    let first = words.next().unwrap_or_default();
    let content = column(first).ok_or_else(|| fault(first, "is no column of a query", EXAMPLE))?;
    let mut read = BytesLine {
        content,
        media_type: None,
        name: None,
        is_attachment: false,
        line,
    };
    while let Some(word) = words.next() {
        let place = match word {
            "attachment" => {
                read.is_attachment = true;
                continue;
            }
            "type" => &mut read.media_type,
            "name" => &mut read.name,
            _ => {
                let hint = "what follows the column is `type …`, `name …` and `attachment`";
                return Err(fault(word, "says nothing about bytes", hint));
            }
        };
        let value = words.next().unwrap_or_default();
        let source = match word {
            "type" => media_type(value),
            _ => file_name(value),
        };
        let source = source.map_err(|(message, hint)| fault(value, message, hint))?;
        if place.replace(source).is_some() {
            return Err(fault(word, "stands there twice", "keep one of them"));
        }
    }
    Ok(read)
}

fn fault(word: &str, message: &str, hint: &str) -> BytesFault {
    let message = match word {
        "" => "the line ends too early".to_owned(),
        word => format!("`{word}` {message}"),
    };
    (word.to_owned(), message, hint.to_owned())
}

/// The words of a line; a text in single quotes is one, with its first quote.
fn words(rest: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = rest.trim_start();
    while !rest.is_empty() {
        let end = match rest.strip_prefix('\'') {
            Some(quoted) => quoted.find('\'').map_or(rest.len(), |at| at + 2),
            None => rest.find(char::is_whitespace).unwrap_or(rest.len()),
        };
        words.push(rest[..end].to_owned());
        rest = rest[end..].trim_start();
    }
    words
}

/// Reads `query.column`.
pub(super) fn column(word: &str) -> Option<ColumnName> {
    let (query, column) = word.split_once('.')?;
    let column = column.trim_matches('"');
    (is_name(query) && !column.is_empty()).then(|| ColumnName {
        query: query.to_owned(),
        column: column.to_owned(),
    })
}

/// Returns the text between quotes.
fn quoted(word: &str) -> Option<&str> {
    word.strip_prefix('\'')?.strip_suffix('\'')
}

/// A message and a hint.
type SourceFault = (&'static str, &'static str);

/// `image/png`, with or without quotes, or a column.
fn media_type(word: &str) -> Result<TextSource, SourceFault> {
    let text = quoted(word).unwrap_or(word);
    if is_media_type(text) {
        return Ok(TextSource::Text(text.to_owned()));
    }
    let hint = "for example: type image/png, or type picture.type for a column";
    let named = column(word).filter(|_| !word.contains('/'));
    named
        .map(TextSource::Column)
        .ok_or(("is neither a media type nor a column", hint))
}

/// `'report.pdf'`, or a column.
fn file_name(word: &str) -> Result<TextSource, SourceFault> {
    if let Some(text) = quoted(word).filter(|text| !text.is_empty()) {
        return Ok(TextSource::Text(text.to_owned()));
    }
    let hint = "for example: name 'report.pdf', or name picture.file_name for a column";
    let named = column(word).map(TextSource::Column);
    named.ok_or(("is neither a name in single quotes nor a column", hint))
}

/// `type/subtype`, with parameters that stand in no quotes (RFC 9110 section 8.3.1).
pub fn is_media_type(text: &str) -> bool {
    let mut parts = text.split(';');
    let is_token = |text: &str| {
        let is_of_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte);
        !text.is_empty() && text.len() <= 127 && text.bytes().all(is_of_token)
    };
    let is_pair = |part: &str, sign: char| {
        let pair = part.split_once(sign);
        pair.is_some_and(|(left, right)| is_token(left) && is_token(right))
    };
    parts
        .next()
        .is_some_and(|essence| is_pair(essence.trim(), '/'))
        && parts.all(|parameter| is_pair(parameter.trim(), '='))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(rest: &str) -> Result<BytesLine, BytesFault> {
        parse(rest, DirectiveLine::default())
    }

    #[test]
    fn lines_are_read() {
        let line = read("a.data  type a.kind name 'Annual report.pdf' attachment").unwrap();
        let name = |column: &str| ColumnName {
            query: "a".to_owned(),
            column: column.to_owned(),
        };
        assert_eq!(line.content, name("data"));
        assert_eq!(line.media_type, Some(TextSource::Column(name("kind"))));
        assert_eq!(
            line.name,
            Some(TextSource::Text("Annual report.pdf".to_owned()))
        );
        assert!(line.is_attachment);
        let line = read("a.data type application/vnd.ms-excel").unwrap();
        let text = TextSource::Text("application/vnd.ms-excel".to_owned());
        assert_eq!(line.media_type, Some(text));
        let line = read("a.data name a.file_name type 'text/plain; charset=utf-8'").unwrap();
        let text = TextSource::Text("text/plain; charset=utf-8".to_owned());
        assert_eq!((line.media_type, line.is_attachment), (Some(text), false));
    }

    #[test]
    fn faults_name_the_word() {
        for (rest, place, message) in [
            ("", "", "the line ends too early"),
            ("data", "data", "`data` is no column of a query"),
            ("of the file", "of", "`of` is no column of a query"),
            (
                "a.data typ image/png",
                "typ",
                "`typ` says nothing about bytes",
            ),
            ("a.data type", "", "the line ends too early"),
            (
                "a.data type png",
                "png",
                "`png` is neither a media type nor a column",
            ),
            (
                "a.data type a/b/c",
                "a/b/c",
                "`a/b/c` is neither a media type nor a column",
            ),
            (
                "a.data name x",
                "x",
                "`x` is neither a name in single quotes nor a column",
            ),
            (
                "a.data name 'x",
                "'x",
                "`'x` is neither a name in single quotes nor a column",
            ),
            (
                "a.data name a.x name a.y",
                "name",
                "`name` stands there twice",
            ),
        ] {
            let fault = read(rest).unwrap_err();
            assert_eq!((&*fault.0, &*fault.1), (place, message), "{rest}");
        }
    }
}
