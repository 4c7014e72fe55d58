//! Texts that are documents of the site's owner: headings with names, and links between files.

use std::collections::HashMap;

use millpond_data::Format;
use minijinja::{
    Error, context,
    value::{Kwargs, Value, ValueKind},
};
use pulldown_cmark::{CowStr, Event, LinkType, Options, Parser, Tag, TagEnd};

use super::{
    fault::{given, unfit},
    markdown::options,
};

/// Place of a document among those of the site.
#[derive(Clone, Copy)]
pub(super) struct DocumentPlace<'p> {
    /// The path of its file without the ending.
    pub(super) path: &'p str,
    /// True if the folders of the files are parts of their addresses.
    pub(super) has_folders: bool,
}

/// Gives each heading an `id`, as GitHub does, or its own; each footnote one with a colon, which no
/// heading has; and lets links to other files lead to their pages.
pub(super) fn prepare(events: &mut [Event<'_>], place: DocumentPlace<'_>) {
    let mut names = HeadingIds::default();
    for at in 0..events.len() {
        let name = match &events[at] {
            Event::Start(Tag::Heading { id, .. }) => {
                Some(names.of(id.as_deref(), &text_of(&events[at + 1..])))
            }
            _ => None,
        };
        match &mut events[at] {
            Event::Start(Tag::Heading {
                id, classes, attrs, ..
            }) => {
                *id = name.filter(|name| !name.is_empty()).map(CowStr::from);
                classes.clear();
                attrs.clear();
            }
            // The domain `.md` is no ending of a file.
            Event::Start(Tag::Link {
                link_type: LinkType::Email,
                ..
            }) => {}
            Event::Start(Tag::Link { dest_url, .. }) => {
                if let Some(page) = page_of(dest_url, place) {
                    *dest_url = page.into();
                }
            }
            Event::Start(Tag::FootnoteDefinition(name)) | Event::FootnoteReference(name) => {
                *name = format!("fn:{name}").into();
            }
            _ => {}
        }
    }
}

/// `headings`: those of a text, each with its level, its text and the `id` that it has, with `ids =
/// true` its own.
pub(super) fn headings(value: &Value, arguments: &Kwargs) -> Result<Value, Error> {
    let has_ids: Option<bool> = arguments.get("ids")?;
    arguments.assert_all_used()?;
    let Some(value) = given("headings", value)? else {
        return Ok(Value::from(Vec::<Value>::new()));
    };
    let text = value.as_str().filter(|_| value.kind() == ValueKind::String);
    let text = text.ok_or_else(|| unfit("headings", value, "a text"))?;
    let mut read = options(text, true);
    read.set(Options::ENABLE_HEADING_ATTRIBUTES, has_ids == Some(true));
    let events: Vec<Event<'_>> = Parser::new_ext(text, read).collect();
    let mut names = HeadingIds::default();
    let found = events.iter().enumerate().filter_map(|(at, event)| {
        let Event::Start(Tag::Heading { level, id, .. }) = event else {
            return None;
        };
        let text = text_of(&events[at + 1..]);
        let id = names.of(id.as_deref(), &text);
        Some(context! { level => *level as u64, id, text })
    });
    Ok(found.collect::<Vec<Value>>().into())
}

/// A link or a picture in a document.
pub struct DocumentLink {
    pub target: String,
    pub is_picture: bool,
    /// Byte of the file at which the link begins.
    pub offset: usize,
}

/// The links and pictures in a Markdown file. Its front matter has none.
pub fn document_links(file: &str) -> Vec<DocumentLink> {
    let start = millpond_data::body_start(file);
    let text = &file[start..];
    let events = Parser::new_ext(text, options(text, true)).into_offset_iter();
    let links = events.filter_map(|(event, range)| {
        let (target, is_picture) = match event {
            Event::Start(Tag::Link {
                dest_url,
                link_type,
                ..
            }) if link_type != LinkType::Email => (dest_url, false),
            Event::Start(Tag::Image { dest_url, .. }) => (dest_url, true),
            _ => return None,
        };
        Some(DocumentLink {
            target: target.into_string(),
            is_picture,
            offset: start + range.start,
        })
    });
    links.collect()
}

/// The path of a link to a Markdown file, without the ending of the file.
pub fn document_stem(path: &str) -> Option<&str> {
    let (stem, format) = Format::of_name(path)?;
    (format == Format::Markdown).then_some(stem)
}

/// The text of a heading that has begun.
fn text_of(events: &[Event<'_>]) -> String {
    let inside = events
        .iter()
        .take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_))));
    let mut out = String::new();
    for event in inside {
        match event {
            Event::Text(text) | Event::Code(text) => out.push_str(text),
            Event::SoftBreak | Event::HardBreak => out.push(' '),
            _ => {}
        }
    }
    out
}

/// The names of the headings of one text.
#[derive(Default)]
struct HeadingIds {
    /// The names, and the last number that was added to each.
    given: HashMap<String, usize>,
}

impl HeadingIds {
    /// The `id` that a heading has of its own, else one made of its text. One with a colon may be
    /// that of a footnote.
    fn of(&mut self, own: Option<&str>, text: &str) -> String {
        match own.filter(|own| !own.is_empty() && !own.contains(':')) {
            Some(own) => {
                self.given.entry(own.to_owned()).or_default();
                own.to_owned()
            }
            None => self.next(text),
        }
    }

    /// Small letters, digits, `-` and `_`; blanks become `-`, other signs are left out, and a name
    /// that is taken gets a number.
    fn next(&mut self, text: &str) -> String {
        let mut name = String::with_capacity(text.len());
        for letter in text.trim().chars() {
            match letter {
                ' ' => name.push('-'),
                '-' | '_' => name.push(letter),
                letter if letter.is_alphanumeric() => name.extend(letter.to_lowercase()),
                _ => {}
            }
        }
        let first = name.clone();
        while self.given.contains_key(&name) {
            let count = self.given.entry(first.clone()).or_default();
            *count += 1;
            name = format!("{first}-{count}");
        }
        self.given.insert(name.clone(), 0);
        name
    }
}

/// The address of the page of a file that a link names from the file at `place`; none where the
/// link is not to such a file, or leads out of the folder that the places are in.
fn page_of(link: &str, place: DocumentPlace<'_>) -> Option<String> {
    let end = link.find(['?', '#']).unwrap_or(link.len());
    let (path, rest) = link.split_at(end);
    if path.starts_with('/') || path.contains(':') {
        return None;
    }
    let page = document_stem(path)?;
    if !place.has_folders {
        let name = page.rsplit('/').next().filter(|name| !name.is_empty())?;
        return Some(format!("{name}{rest}"));
    }
    let mut depth = place.path.matches('/').count();
    for part in page.split('/') {
        depth = match part {
            ".." => depth.checked_sub(1)?,
            "." | "" => depth,
            _ => depth + 1,
        };
    }
    let is_named = !page.is_empty() && !page.ends_with('/');
    is_named.then(|| format!("{page}{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_headings_are_those_of_github() {
        let mut names = HeadingIds::default();
        for (text, name) in [
            ("Errors at the field", "errors-at-the-field"),
            ("`[[host]]` and C++", "host-and-c"),
            ("What's new?  1.0", "whats-new--10"),
            ("Größe_a", "größe_a"),
            ("A", "a"),
            ("A", "a-1"),
            ("A 1", "a-1-1"),
            ("A", "a-2"),
            ("", ""),
            ("?", "-1"),
        ] {
            assert_eq!(names.next(text), name, "{text}");
        }
    }

    #[test]
    fn links_between_files_lead_to_pages() {
        for (link, place, page) in [
            ("templates.md", "reference/site", Some("templates")),
            (
                "../guide/a.md#b-c",
                "reference/site",
                Some("../guide/a#b-c"),
            ),
            ("./a.md?x=y.md", "b", Some("./a?x=y.md")),
            ("a.markdown", "c", Some("a")),
            ("A.MD#b", "c", Some("A#b")),
            ("a/../b.md", "c", Some("a/../b")),
            ("../../README.md", "reference/site", None),
            ("a/../../b.md", "c", None),
            ("../a.md", "c", None),
            ("/a.md", "c", None),
            ("https://x.example/a.md", "c", None),
            ("mailto:a@b.md", "c", None),
            ("#a.md", "c", None),
            ("a.png", "c", None),
            (".md", "c", None),
            ("a/.md", "c", None),
        ] {
            let place = DocumentPlace {
                path: place,
                has_folders: true,
            };
            let found = page_of(link, place);
            assert_eq!(found.as_deref(), page, "{link} in {}", place.path);
        }
    }

    #[test]
    fn without_folders_in_addresses_the_name_of_a_file_counts() {
        let place = DocumentPlace {
            path: "tea",
            has_folders: false,
        };
        for (link, page) in [
            ("hello.md", Some("hello")),
            ("../hello.md#a", Some("hello#a")),
            ("../../2025/hello.md?b", Some("hello?b")),
            ("../.md", None),
            ("/a.md", None),
            ("https://x.example/a.md", None),
            ("../a.png", None),
        ] {
            assert_eq!(page_of(link, place).as_deref(), page, "{link}");
        }
    }

    #[test]
    fn many_equal_headings_end() {
        let mut names = HeadingIds::default();
        let last = (0..100_000).map(|_| names.next("x")).last();
        assert_eq!(last.as_deref(), Some("x-99999"));
    }
}
