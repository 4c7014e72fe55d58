//! Markdown as HTML and as plain text.

use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};

/// Characters of a summary.
const SUMMARY: usize = 220;

/// Markdown as a page and as plain text.
pub(crate) struct Rendered {
    pub(crate) html: String,
    pub(crate) text: String,
    /// The first paragraph, as plain text.
    pub(crate) lead: String,
}

/// Renders Markdown. `address` says where a link leads; without one, its text stays.
pub(crate) fn render(markdown: &str, mut address: impl FnMut(&str) -> Option<String>) -> Rendered {
    let (mut events, mut text) = (Vec::new(), String::new());
    let (mut lead, mut begin) = (String::new(), 0);
    let (mut is_link, mut images) = (false, 0);
    for event in Parser::new_ext(
        markdown,
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH,
    ) {
        match &event {
            Event::Text(part) | Event::Code(part) => text.push_str(part),
            Event::SoftBreak | Event::HardBreak | Event::End(TagEnd::TableCell) => text.push(' '),
            Event::Start(Tag::Paragraph) => begin = text.len(),
            Event::End(TagEnd::Paragraph) => {
                if lead.is_empty() {
                    text[begin..].clone_into(&mut lead);
                }
                text.push('\n');
            }
            Event::End(TagEnd::Heading(_) | TagEnd::Item | TagEnd::TableRow) => {
                text.push('\n');
            }
            _ => {}
        }
        events.push(match event {
            Event::Start(Tag::Link {
                link_type,
                dest_url,
                title,
                id,
            }) => {
                let Some(address) = address(&dest_url) else {
                    continue;
                };
                is_link = true;
                let dest_url = CowStr::from(address);
                Event::Start(Tag::Link {
                    link_type,
                    dest_url,
                    title,
                    id,
                })
            }
            Event::End(TagEnd::Link) if !std::mem::take(&mut is_link) => continue,
            // Pictures lie beside the documents, and are no part of the site.
            Event::Start(Tag::Image { .. }) => {
                images += 1;
                continue;
            }
            Event::End(TagEnd::Image) => {
                images -= 1;
                continue;
            }
            _ if images > 0 => continue,
            Event::Html(part) | Event::InlineHtml(part) => Event::Text(part),
            event => event,
        });
    }
    let mut html = String::new();
    html::push_html(&mut html, events.into_iter());
    let text = text.trim().to_owned();
    // A section may be a list alone.
    if lead.is_empty() {
        lead.push_str(text.lines().next().unwrap_or_default());
    }
    Rendered { html, text, lead }
}

/// The anchor of a heading.
pub(crate) fn slug(title: &str) -> String {
    let letters = title.to_lowercase();
    let letters = letters.chars().filter_map(|letter| match letter {
        ' ' => Some('-'),
        '-' | '_' => Some(letter),
        letter => letter.is_alphanumeric().then_some(letter),
    });
    letters.collect()
}

/// A paragraph, cut behind a sentence or a word.
pub(crate) fn summary(paragraph: &str) -> String {
    let line = paragraph.trim();
    let Some((end, _)) = line.char_indices().nth(SUMMARY) else {
        return match line.strip_suffix(':') {
            Some(line) => format!("{line}…"),
            None => line.to_owned(),
        };
    };
    let cut = &line[..end];
    match cut.rfind(". ") {
        Some(sentence) => cut[..=sentence].to_owned(),
        None => format!("{}…", cut.rsplit_once(' ').map_or(cut, |(words, _)| words)),
    }
}
