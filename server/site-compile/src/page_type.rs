//! What a page is sent as, by the end of its name: `feed.xml.html` is XML at `/feed.xml`.

use minijinja::{AutoEscape, Error, Output, State, escape_formatter, value::Value};

/// A kind of page.
#[derive(Debug, PartialEq, Eq)]
pub struct PageType {
    ending: &'static str,
    /// For `Content-Type`.
    pub media_type: &'static str,
    escaping: Escaping,
}

/// Way that keeps a value from being read as a part of the page's own text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Escaping {
    Html,
    /// As of HTML, and without the characters that XML forbids.
    Xml,
    /// Values are written as JSON.
    Json,
    /// Of iCalendar and vCard (RFC 5545 section 3.3.11).
    Calendar,
    /// Plain text has nothing to escape.
    None,
}

/// The types of templates, by the endings of the pages' names.
const TYPES: [PageType; 14] = {
    use Escaping::{Calendar, Json, None, Xml};
    const fn of(ending: &'static str, media_type: &'static str, escaping: Escaping) -> PageType {
        PageType {
            ending,
            media_type,
            escaping,
        }
    }
    [
        of("xml", "application/xml; charset=utf-8", Xml),
        of("rss", "application/rss+xml; charset=utf-8", Xml),
        of("atom", "application/atom+xml; charset=utf-8", Xml),
        of("xsl", "application/xslt+xml; charset=utf-8", Xml),
        of("svg", "image/svg+xml; charset=utf-8", Xml),
        of("txt", "text/plain; charset=utf-8", None),
        of("md", "text/markdown; charset=utf-8", None),
        of("csv", CSV, None),
        of("ics", "text/calendar; charset=utf-8", Calendar),
        of("vcf", "text/vcard; charset=utf-8", Calendar),
        of("json", JSON, Json),
        of("geojson", "application/geo+json", Json),
        of("jsonld", "application/ld+json", Json),
        of("webmanifest", "application/manifest+json", Json),
    ]
};

/// All other pages.
const HTML_PAGE: PageType = PageType {
    ending: "html",
    media_type: HTML,
    escaping: Escaping::Html,
};

/// The media type of pages.
pub const HTML: &str = "text/html; charset=utf-8";

/// The media type of queries without a template.
pub const JSON: &str = "application/json";

/// The media type of rows (RFC 4180); the first line has the names of the columns.
pub const CSV: &str = "text/csv; charset=utf-8; header=present";

/// The name of the escaping of calendars in the template engine.
const CALENDAR: &str = "calendar";

impl PageType {
    /// The type of the page with this name, which is without `.html` or `.sql`.
    pub fn of(stem: &str) -> &'static Self {
        let name = stem.rsplit('/').next().unwrap_or_default();
        let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
        let found = TYPES.iter().find(|kind| kind.ending == ending);
        found.unwrap_or(&HTML_PAGE)
    }

    /// True if rows are sent where there is no template.
    pub fn is_csv(&self) -> bool {
        self.ending == "csv"
    }

    /// The page's bytes. Lines of calendars end with CRLF, and long ones are folded. From XML what
    /// no parser accepts is left out: one such character in a text of a visitor would end the feed
    /// for all its readers.
    pub fn body(&self, text: String) -> Vec<u8> {
        match self.escaping {
            Escaping::Calendar => {
                let mut body = Vec::with_capacity(text.len() + text.len() / 32);
                text.lines().for_each(|line| fold(line, &mut body));
                body
            }
            Escaping::Xml if !text.chars().all(is_of_xml) => {
                let text: String = text.chars().filter(|letter| is_of_xml(*letter)).collect();
                text.into_bytes()
            }
            _ => text.into_bytes(),
        }
    }

    fn auto_escape(&self) -> AutoEscape {
        match self.escaping {
            Escaping::Html | Escaping::Xml => AutoEscape::Html,
            Escaping::Json => AutoEscape::Json,
            Escaping::Calendar => AutoEscape::Custom(CALENDAR.into()),
            Escaping::None => AutoEscape::None,
        }
    }
}

/// Bytes of a line of iCalendar or vCard, without its end.
const LONGEST_LINE: usize = 75;

/// Writes a line in parts, of which each but the first begins with a space that readers take out
/// (RFC 5545, section 3.1). No character is cut.
fn fold(line: &str, body: &mut Vec<u8>) {
    let mut room = LONGEST_LINE;
    for letter in line.chars() {
        if letter.len_utf8() > room {
            body.extend_from_slice(b"\r\n ");
            room = LONGEST_LINE - 1;
        }
        room -= letter.len_utf8();
        let mut bytes = [0; 4];
        body.extend_from_slice(letter.encode_utf8(&mut bytes).as_bytes());
    }
    body.extend_from_slice(b"\r\n");
}

/// The escaping of a template. What pages extend, include or import is escaped for HTML and
/// has any name: a page of HTML may include it.
pub fn auto_escape(template: &str) -> AutoEscape {
    let page = template.strip_prefix("pages/");
    match page.and_then(|page| page.strip_suffix(".html")) {
        Some(stem) => PageType::of(stem).auto_escape(),
        None => AutoEscape::Html,
    }
}

/// Writes a value into a page. A column without a value is an empty text, and in JSON null.
pub fn format(out: &mut Output, state: &mut State, value: &Value) -> Result<(), Error> {
    match state.auto_escape() {
        AutoEscape::Json => escape_formatter(out, state, value),
        _ if value.is_none() => Ok(()),
        AutoEscape::Custom(_) if value.is_safe() => {
            Ok(out.write_str(value.as_str().unwrap_or_default())?)
        }
        AutoEscape::Custom(_) => Ok(out.write_str(&calendar_text(&value.to_string()))?),
        _ => escape_formatter(out, state, value),
    }
}

/// True for the characters of XML 1.0, section 2.2.
fn is_of_xml(letter: char) -> bool {
    matches!(letter, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..)
}

/// A text of a calendar: no value ends its line, or its field.
fn calendar_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.replace("\r\n", "\n").chars() {
        match letter {
            '\\' | ';' | ',' => out.extend(['\\', letter]),
            '\n' | '\r' => out.push_str("\\n"),
            letter if letter.is_control() && letter != '\t' => {}
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_name_says_what_a_page_is() {
        for (stem, media_type) in [
            ("feed.xml", "application/xml; charset=utf-8"),
            ("blog/robots.txt", "text/plain; charset=utf-8"),
            ("index", HTML),
            ("feed.xml/index", HTML),
            ("topics/[slug]", HTML),
            ("v1.2", HTML),
            ("xml", HTML),
        ] {
            assert_eq!(PageType::of(stem).media_type, media_type, "{stem}");
        }
        assert_eq!(auto_escape("pages/a.txt.html"), AutoEscape::None);
        assert_eq!(auto_escape("a.txt.html"), AutoEscape::Html);
        assert_eq!(auto_escape("partial.txt"), AutoEscape::Html);
    }

    #[test]
    fn no_value_ends_a_line_of_a_calendar() {
        assert_eq!(
            calendar_text("a;b,c\\d\r\nX:\u{7}y\u{85}"),
            "a\\;b\\,c\\\\d\\nX:y"
        );
        let body = PageType::of("a.ics").body("A\nB\r\n".to_owned());
        assert_eq!(body, b"A\r\nB\r\n");
    }

    #[test]
    fn a_long_line_of_a_calendar_is_folded() {
        for text in [
            "x".repeat(500),
            "ä".repeat(300),
            "a😀".repeat(100),
            String::new(),
        ] {
            let body = PageType::of("a.ics").body(format!("SUMMARY:{text}\nEND"));
            let body = String::from_utf8(body).unwrap();
            assert!(
                body.split("\r\n").all(|line| line.len() <= LONGEST_LINE),
                "{body}"
            );
            assert_eq!(
                body.replace("\r\n ", ""),
                format!("SUMMARY:{text}\r\nEND\r\n")
            );
        }
        let exact = "y".repeat(LONGEST_LINE);
        let body = PageType::of("a.ics").body(exact.clone());
        assert_eq!(body, format!("{exact}\r\n").into_bytes());
    }

    #[test]
    fn xml_has_no_character_that_parsers_refuse() {
        let text = "a\u{b}b\u{0}\tä\u{ffff}\u{1f600}\n";
        let body = |stem| PageType::of(stem).body(text.to_owned());
        assert_eq!(body("feed.xml"), "ab\tä\u{1f600}\n".as_bytes());
        assert_eq!(body("feed"), text.as_bytes());
    }
}
