//! The last pass over sanitised HTML: takes out the title, lowers the headings, removes mail
//! addresses and empty elements, and makes the plain text.
//!
//! Works on the sanitiser's output: well-formed, lower-case, attributes in double quotes.

use std::collections::HashMap;

use super::html::Rendered;
use super::text::{one_line, without_mail};

/// Elements without meaning when they are empty, such as remains of a removed badge.
const EMPTY_GOES: [&str; 22] = [
    "a",
    "abbr",
    "b",
    "blockquote",
    "center",
    "div",
    "em",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "i",
    "li",
    "ol",
    "p",
    "span",
    "strong",
    "sub",
    "sup",
    "ul",
];

/// Elements that end a line of plain text.
const BLOCKS: [&str; 19] = [
    "blockquote",
    "br",
    "dd",
    "div",
    "dt",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "li",
    "p",
    "pre",
    "summary",
    "tr",
    "ul",
    "ol",
];

/// One piece of HTML.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece<'h> {
    Open(&'h str, &'h str),
    Close(&'h str, &'h str),
    Text(&'h str),
}

/// Splits HTML into tags and what is between them. Never fails: what is no tag is text.
fn pieces(html: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = html;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let first = rest.chars().next().map_or(0, char::len_utf8);
        let end = tag_end(rest)
            .unwrap_or_else(|| rest[first..].find('<').map_or(rest.len(), |at| at + first));
        let (piece, tail) = rest.split_at(end);
        rest = tail;
        Some(classify(piece))
    })
}

fn classify(piece: &str) -> Piece<'_> {
    let Some(inner) = piece.strip_prefix('<').and_then(|p| p.strip_suffix('>')) else {
        return Piece::Text(piece);
    };
    let name = |tag: &'_ str| {
        tag.find(|c: char| !c.is_ascii_alphanumeric())
            .unwrap_or(tag.len())
    };
    match inner.strip_prefix('/') {
        Some(tag) => Piece::Close(&tag[..name(tag)], piece),
        None => Piece::Open(&inner[..name(inner)], piece),
    }
}

/// The length of the tag at the beginning of `html`, if there is one. A `>` in a quoted value does
/// not end a tag.
fn tag_end(html: &str) -> Option<usize> {
    let after = html.strip_prefix('<')?;
    let start = after.strip_prefix('/').unwrap_or(after);
    if !start.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return None;
    }
    let mut quoted = false;
    for (at, byte) in html.bytes().enumerate() {
        match byte {
            b'"' => quoted = !quoted,
            b'>' if !quoted => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// The nesting depth of tags in HTML that is not yet sanitised. Elements that a parser closes by
/// itself do not count.
pub(super) fn depth(html: &str) -> usize {
    const CLOSED: [&str; 15] = [
        "area", "br", "col", "dd", "dt", "hr", "img", "input", "li", "p", "source", "td", "th",
        "tr", "wbr",
    ];
    let mut open: HashMap<String, usize> = HashMap::new();
    let (mut depth, mut deepest) = (0_usize, 0);
    for at in html.match_indices('<').map(|(at, _)| at + 1) {
        let (tag, closes) = html[at..]
            .strip_prefix('/')
            .map_or((&html[at..], false), |tag| (tag, true));
        let name = tag
            .split(|c: char| !c.is_ascii_alphanumeric())
            .next()
            .unwrap_or_default()
            .to_ascii_lowercase();
        if !name.starts_with(|c: char| c.is_ascii_alphabetic()) || CLOSED.contains(&name.as_str()) {
            continue;
        }
        let count = open.entry(name).or_default();
        if !closes {
            *count += 1;
            depth += 1;
        } else if *count > 0 {
            *count -= 1;
            depth -= 1;
        }
        deepest = deepest.max(depth);
    }
    deepest
}

pub(super) fn tidy(html: &str) -> Rendered {
    let all = without_empty(html);
    let (title, body) = without_title(&all);
    let shift = usize::from(
        body.iter()
            .any(|piece| matches!(piece, Piece::Open("h1", _))),
    );
    let mut rendered = Rendered {
        html: String::with_capacity(html.len()),
        text: String::new(),
        title,
        lead: None,
    };
    let mut code = 0_usize;
    for piece in body {
        match piece {
            Piece::Open(name @ ("code" | "pre"), tag) => {
                code += 1;
                rendered.text.push_str(line_break(name));
                rendered.html.push_str(tag);
            }
            Piece::Open(name, tag) => {
                open_block(&mut rendered.text, name);
                rendered.html.push_str(&lowered(name, tag, shift));
            }
            Piece::Close(name, tag) => {
                code -= usize::from(matches!(name, "code" | "pre") && code > 0);
                rendered.text.push_str(if matches!(name, "td" | "th") {
                    " "
                } else {
                    line_break(name)
                });
                rendered.html.push_str(&lowered(name, tag, shift));
            }
            Piece::Text(text) if code > 0 => {
                rendered.html.push_str(text);
                rendered.text.push_str(&unescape(text));
            }
            Piece::Text(text) => {
                // The brackets of `<name@host>` are entities here, so addresses are looked for in
                // the decoded text.
                let decoded = unescape(text);
                let kept = without_mail(&decoded);
                if kept == decoded {
                    rendered.html.push_str(text);
                } else {
                    rendered.html.push_str(&escape(&kept));
                }
                rendered.text.push_str(&kept);
            }
        }
    }
    rendered.text = lines(&rendered.text);
    rendered.lead = lead(&rendered.html);
    rendered
}

/// All pieces but the elements that hold only white space.
fn without_empty(html: &str) -> Vec<Piece<'_>> {
    let mut kept: Vec<Piece<'_>> = Vec::new();
    for piece in pieces(html) {
        if let Piece::Close(name, _) = piece
            && EMPTY_GOES.contains(&name)
        {
            let blank = |piece: &Piece<'_>| match piece {
                Piece::Text(text) => text.trim().is_empty(),
                Piece::Open(name, _) => *name == "br",
                Piece::Close(..) => false,
            };
            let start = kept.iter().rposition(|piece| !blank(piece));
            if let Some(start) = start
                && matches!(kept[start], Piece::Open(opened, _) if opened == name)
            {
                // A word on each side of an emptied element stays two words.
                let space = kept[start + 1..]
                    .iter()
                    .any(|piece| matches!(piece, Piece::Text(_)));
                kept.truncate(start);
                if space {
                    kept.push(Piece::Text(" "));
                }
                continue;
            }
        }
        kept.push(piece);
    }
    kept
}

/// Takes out the leading `h1`, if the first heading is one.
fn without_title<'h>(pieces: &[Piece<'h>]) -> (Option<String>, Vec<Piece<'h>>) {
    let heading = |piece: &Piece<'_>| {
        matches!(
            piece,
            Piece::Open("h1" | "h2" | "h3" | "h4" | "h5" | "h6", _)
        )
    };
    let start = pieces
        .iter()
        .position(heading)
        .filter(|&at| matches!(pieces[at], Piece::Open("h1", _)));
    let end = start.and_then(|start| {
        let length = pieces[start..]
            .iter()
            .position(|piece| matches!(piece, Piece::Close("h1", _)))?;
        Some(start + length)
    });
    let (Some(start), Some(end)) = (start, end) else {
        return (None, pieces.to_vec());
    };
    let text: String = pieces[start..end]
        .iter()
        .map(|piece| match piece {
            Piece::Text(text) => unescape(text),
            _ => String::new(),
        })
        .collect();
    let text = one_line(&without_mail(&text));
    (
        (!text.is_empty()).then_some(text),
        [&pieces[..start], &pieces[end + 1..]].concat(),
    )
}

/// A heading's tag, one level lower.
fn lowered(name: &str, tag: &str, shift: usize) -> String {
    match name {
        "h1" | "h2" | "h3" | "h4" | "h5" if shift > 0 => {
            let level = usize::from(name.as_bytes()[1] - b'0') + shift;
            tag.replacen(name, &format!("h{level}"), 1)
        }
        _ => tag.to_owned(),
    }
}

/// Begins a line for a block, unless it is the first paragraph of a list item, which follows the
/// bullet.
fn open_block(text: &mut String, name: &str) {
    let bullet = text.trim_end_matches('\n').len();
    if name == "p" && text[..bullet].ends_with("• ") {
        text.truncate(bullet);
        return;
    }
    text.push_str(line_break(name));
    if name == "li" {
        text.push_str("• ");
    }
}

fn line_break(name: &str) -> &'static str {
    if BLOCKS.contains(&name) { "\n" } else { "" }
}

/// The text of the first paragraph that has any.
fn lead(html: &str) -> Option<String> {
    let start = html.find("<p>")? + 3;
    let end = html[start..].find("</p>")? + start;
    let text: String = pieces(&html[start..end])
        .filter_map(|piece| match piece {
            Piece::Text(text) => Some(unescape(text)),
            _ => None,
        })
        .collect();
    Some(one_line(&text)).filter(|text| !text.is_empty())
}

/// Trims each line, and keeps at most one blank one between two.
fn lines(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let (mut blank, mut in_list) = (0, false);
    for line in text.lines() {
        let line = line.trim_end();
        if matches!(line.trim(), "" | "•") {
            blank += 1;
            continue;
        }
        let item = line.trim_start().starts_with('•');
        if !kept.is_empty() {
            // Items of one list stand close.
            kept.push_str(if blank > 0 && !(item && in_list) {
                "\n\n"
            } else {
                "\n"
            });
        }
        in_list = item || (in_list && blank == 0);
        blank = 0;
        kept.extend(line.chars().filter(|c| !c.is_control() || *c == '\t'));
    }
    kept
}

/// The entities that the sanitiser writes.
fn unescape(text: &str) -> String {
    let plain = text
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&nbsp;", " ");
    plain.replace("&amp;", "&")
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_join_to_the_whole() {
        for html in [
            "<p>a</p>",
            "a < b <p",
            "é<b title=\"a > b\">x</b>é",
            "<",
            "",
            "<é>",
            "</",
            "日本<br>",
        ] {
            let joined: String = pieces(html)
                .map(|piece| match piece {
                    Piece::Open(_, text) | Piece::Close(_, text) | Piece::Text(text) => text,
                })
                .collect();
            assert_eq!(joined, html);
        }
    }

    #[test]
    fn remains_of_badges_are_removed() {
        let tidied = tidy(
            "<h1>Name <a href=\"https://a.example/\">\n</a></h1>\n<p><a rel=\"x\"></a>\n<a></a></p><p>Text.</p>",
        );
        assert_eq!(tidied.html.trim(), "<p>Text.</p>");
        assert_eq!(tidied.title.as_deref(), Some("Name"));
        assert_eq!(tidied.lead.as_deref(), Some("Text."));
        assert_eq!(
            tidy("<p>a<b> </b>c</p><table><tr><td></td></tr></table>").html,
            "<p>a c</p><table><tr><td></td></tr></table>"
        );
    }

    #[test]
    fn plain_text_keeps_blocks_apart() {
        let text = tidy("<p>One &lt;two&gt; &amp;amp; 3</p><ul><li>a</li><li>\n<p>b</p></li></ul><pre><code>x\n  y\n</code></pre>").text;
        assert_eq!(text, "One <two> &amp; 3\n\n• a\n• b\n\nx\n  y");
    }

    #[test]
    fn mail_addresses_are_removed_except_in_code() {
        let tidied = tidy("<p>By A &lt;a@example.org&gt;</p><p><code>a@example.org</code></p>");
        assert_eq!(
            tidied.html,
            "<p>By A &lt;[mail address]&gt;</p><p><code>a@example.org</code></p>"
        );
    }

    #[test]
    fn depth_counts_open_tags() {
        assert_eq!(depth("<div><p>a<br><br><p><b>x</b></p></div>"), 2);
        assert_eq!(depth(&"<b></i>".repeat(9)), 9);
        assert_eq!(depth("a < b, 1<2"), 0);
    }
}
