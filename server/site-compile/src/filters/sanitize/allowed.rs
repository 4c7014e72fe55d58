//! What may be in HTML of visitors.

/// An element that is allowed.
#[derive(Debug)]
pub(super) struct Element {
    pub(super) name: &'static str,
    /// True for elements without content and end.
    pub(super) is_void: bool,
    /// Open elements that it ends, as in a browser, back to the last that it must stand within. If
    /// they stayed open here, their end tags could end elements of the page.
    pub(super) ends: &'static [&'static str],
    /// Elements of which one must be open: outside of them it would end an element of the page.
    pub(super) within: &'static [&'static str],
    /// Its attributes, besides those of all elements.
    attributes: &'static [(&'static str, AttributeKind)],
    /// Attributes that it gets.
    pub(super) added: &'static str,
}

/// The values that an attribute may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttributeKind {
    Text,
    /// An address without a scheme, or of http, https, mailto or tel.
    Address,
    /// At most five digits.
    Number,
    Word(&'static [&'static str]),
}

use AttributeKind::{Address, Number, Text, Word};

const fn plain(name: &'static str) -> Element {
    Element {
        name,
        is_void: false,
        ends: &[],
        within: &[],
        attributes: &[],
        added: "",
    }
}

const fn void(name: &'static str) -> Element {
    Element {
        is_void: true,
        ..plain(name)
    }
}

const fn block(name: &'static str) -> Element {
    Element {
        ends: &["p"],
        ..plain(name)
    }
}

const fn heading(name: &'static str) -> Element {
    Element {
        ends: &["p", "h1", "h2", "h3", "h4", "h5", "h6"],
        ..plain(name)
    }
}

const fn part(
    name: &'static str,
    within: &'static [&'static str],
    ends: &'static [&'static str],
) -> Element {
    Element {
        within,
        ends,
        ..plain(name)
    }
}

/// No `class`, `id`, `name` and `style`: they would reach into the page.
const OF_ALL: [(&str, AttributeKind); 3] = [
    ("title", Text),
    ("lang", Text),
    ("dir", Word(&["ltr", "rtl", "auto"])),
];

const TABLE: &[&str] = &["table"];
const ROWS: &[&str] = &["caption", "tbody", "td", "tfoot", "th", "thead", "tr"];
/// Elements in which paragraphs, headings, links and tables begin anew.
pub(super) const SCOPES: &[&str] = &["caption", "td", "th"];
const CELL: &[(&str, AttributeKind)] = &[
    ("colspan", Number),
    ("rowspan", Number),
    ("scope", Word(&["row", "col", "rowgroup", "colgroup"])),
];

/// The elements, by their names. None of them has a content that a browser reads otherwise than
/// text with tags.
static ELEMENTS: [Element; 55] = [
    Element {
        ends: &["a"],
        attributes: &[("href", Address)],
        // RFC 6596 and its like: the site does not vouch for it, and it learns nothing of it.
        added: " rel=\"nofollow ugc noopener noreferrer\"",
        ..plain("a")
    },
    plain("abbr"),
    plain("b"),
    plain("bdi"),
    plain("big"),
    block("blockquote"),
    void("br"),
    part("caption", TABLE, &[]),
    plain("cite"),
    plain("code"),
    part("dd", &["dl"], &["dd", "dt"]),
    plain("del"),
    block("details"),
    plain("dfn"),
    block("div"),
    block("dl"),
    part("dt", &["dl"], &["dd", "dt"]),
    plain("em"),
    block("figcaption"),
    block("figure"),
    heading("h1"),
    heading("h2"),
    heading("h3"),
    heading("h4"),
    heading("h5"),
    heading("h6"),
    Element {
        ends: &["p"],
        ..void("hr")
    },
    plain("i"),
    Element {
        attributes: &[
            ("src", Address),
            ("alt", Text),
            ("width", Number),
            ("height", Number),
        ],
        added: " loading=\"lazy\"",
        ..void("img")
    },
    plain("ins"),
    plain("kbd"),
    part("li", &["ul", "ol"], &["li"]),
    plain("mark"),
    Element {
        attributes: &[("start", Number)],
        ..block("ol")
    },
    block("p"),
    block("pre"),
    plain("q"),
    plain("s"),
    plain("samp"),
    plain("small"),
    plain("span"),
    plain("strong"),
    plain("sub"),
    part("summary", &["details"], &[]),
    plain("sup"),
    Element {
        ends: &["p", "table"],
        ..plain("table")
    },
    part("tbody", TABLE, ROWS),
    Element {
        attributes: CELL,
        ..part("td", TABLE, &["td", "th"])
    },
    part("tfoot", TABLE, ROWS),
    Element {
        attributes: CELL,
        ..part("th", TABLE, &["td", "th"])
    },
    part("thead", TABLE, ROWS),
    part("tr", TABLE, &["caption", "td", "th", "tr"]),
    plain("u"),
    block("ul"),
    plain("var"),
];

impl Element {
    /// The element of a name in lower case.
    pub(super) fn of(name: &str) -> Option<&'static Self> {
        let at = ELEMENTS.binary_search_by(|element| element.name.cmp(name));
        at.ok().map(|at| &ELEMENTS[at])
    }

    /// An attribute of it that is allowed, by its name in lower case.
    pub(super) fn attribute(&self, name: &str) -> Option<(&'static str, AttributeKind)> {
        let mut all = self.attributes.iter().chain(&OF_ALL);
        all.find(|(known, _)| *known == name).copied()
    }
}

/// Elements whose content is no text of the page; it is left out with them.
pub(super) const LEFT_OUT: &str = "\
    iframe math noembed noframes noscript object plaintext script select style svg template \
    textarea title";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_found_and_none_is_read_as_raw_text() {
        assert!(ELEMENTS.is_sorted_by(|a, b| a.name < b.name));
        for element in &ELEMENTS {
            assert!(Element::of(element.name).is_some());
            assert!(LEFT_OUT.split(' ').all(|name| name != element.name) && element.name != "xmp");
        }
    }
}
