//! Texts without their footnotes, for excerpts.

use pulldown_cmark::{CowStr, Event, Tag, TagEnd, TextMergeStream};

/// The events of a text without the marks of footnotes and without the notes. A mark counts also if
/// its note is not in the text, as in the beginning of a post.
pub(super) fn left_out<'t>(events: impl Iterator<Item = Event<'t>>) -> Vec<Event<'t>> {
    let mut open_notes = 0_usize;
    let mut is_code = false;
    let kept = TextMergeStream::new(events).filter_map(|event| {
        let was_open = open_notes > 0;
        match event {
            Event::Start(Tag::FootnoteDefinition(_)) => open_notes += 1,
            Event::End(TagEnd::FootnoteDefinition) => open_notes = open_notes.saturating_sub(1),
            Event::Start(Tag::CodeBlock(_)) => is_code = true,
            Event::End(TagEnd::CodeBlock) => is_code = false,
            _ => {}
        }
        if was_open || open_notes > 0 {
            return None;
        }
        match event {
            Event::FootnoteReference(_) => None,
            Event::Text(text) if !is_code => Some(Event::Text(without_marks(text))),
            event => Some(event),
        }
    });
    kept.collect()
}

/// A text without what looks like `[^1]`.
fn without_marks(text: CowStr<'_>) -> CowStr<'_> {
    if !text.contains("[^") {
        return text;
    }
    let mut kept = String::with_capacity(text.len());
    let mut rest = &*text;
    while let Some((before, behind)) = rest.split_once("[^") {
        kept.push_str(before);
        let end = behind.find(|sign: char| matches!(sign, '[' | ']') || sign.is_whitespace());
        rest = match end {
            Some(end) if end > 0 && behind[end..].starts_with(']') => &behind[end + 1..],
            _ => {
                kept.push_str("[^");
                behind
            }
        };
    }
    kept.push_str(rest);
    kept.into()
}
