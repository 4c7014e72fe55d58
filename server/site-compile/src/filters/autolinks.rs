//! Additions of GitHub to the text of Markdown: addresses by themselves are links (GFM, section
//! 6.9), and alerts have a title.
//!
//! Addresses are looked for in one pass over each text; a domain has at most [`DOMAIN`] bytes, so
//! the time is linear in hostile texts.

use pulldown_cmark::{BlockQuoteKind, CowStr, Event, LinkType, Tag, TagEnd, TextMergeStream};

/// The longest name of a host in bytes (RFC 1035).
const DOMAIN: usize = 253;

/// The events with links for the addresses in their texts.
pub(super) fn with_links<'t>(events: impl Iterator<Item = Event<'t>>) -> Vec<Event<'t>> {
    let mut out = Vec::new();
    // Links, pictures and blocks of code that are open.
    let mut closed = 0_usize;
    for event in TextMergeStream::new(events) {
        match &event {
            Event::Start(Tag::Link { .. } | Tag::Image { .. } | Tag::CodeBlock(_)) => closed += 1,
            Event::End(TagEnd::Link | TagEnd::Image | TagEnd::CodeBlock) => {
                closed = closed.saturating_sub(1);
            }
            _ => {}
        }
        match event {
            Event::Text(text) if closed == 0 => push_text(text, &mut out),
            event => out.push(event),
        }
    }
    out
}

/// The title of an alert, behind its beginning.
pub(super) fn title(kind: BlockQuoteKind) -> Event<'static> {
    let title = match kind {
        BlockQuoteKind::Note => "Note",
        BlockQuoteKind::Tip => "Tip",
        BlockQuoteKind::Important => "Important",
        BlockQuoteKind::Warning => "Warning",
        BlockQuoteKind::Caution => "Caution",
    };
    Event::Html(format!("<p class=\"markdown-alert-title\">{title}</p>\n").into())
}

fn push_text<'t>(text: CowStr<'t>, out: &mut Vec<Event<'t>>) {
    let mut from = 0;
    for (at, byte) in text.bytes().enumerate() {
        let found = match byte {
            _ if at < from => None,
            b'h' | b'H' | b'w' | b'W' => web(&text, at).map(|(end, href)| (at, end, href)),
            b'@' => mail(&text, from, at),
            _ => None,
        };
        let Some((start, end, href)) = found else {
            continue;
        };
        if from < start {
            out.push(Event::Text(text[from..start].to_owned().into()));
        }
        out.push(Event::Start(Tag::Link {
            link_type: LinkType::Autolink,
            dest_url: href.into(),
            title: CowStr::Borrowed(""),
            id: CowStr::Borrowed(""),
        }));
        out.push(Event::Text(text[start..end].to_owned().into()));
        out.push(Event::End(TagEnd::Link));
        from = end;
    }
    if from == 0 {
        out.push(Event::Text(text));
    } else if from < text.len() {
        out.push(Event::Text(text[from..].to_owned().into()));
    }
}

/// The end of an address of the web that begins here, and where it leads.
fn web(text: &str, at: usize) -> Option<(usize, String)> {
    let before = text[..at].chars().next_back();
    if !before.is_none_or(|sign| sign.is_whitespace() || "*_~(".contains(sign)) {
        return None;
    }
    let rest = &text[at..];
    let begins = |prefix: &&&str| {
        let found = rest.get(..prefix.len());
        found.is_some_and(|found| found.eq_ignore_ascii_case(prefix))
    };
    let prefix = ["https://", "http://", "www."].iter().find(begins)?;
    let host = if *prefix == "www." { 0 } else { prefix.len() };
    domain(&rest[host..])?;
    let end = rest.find(|sign: char| sign.is_whitespace() || sign == '<');
    let address = trimmed(&rest[..end.unwrap_or(rest.len())]);
    let scheme = if host == 0 { "http://" } else { "" };
    (address.len() > prefix.len()).then(|| (at + address.len(), format!("{scheme}{address}")))
}

/// The host with which a text begins: parts with points between, no `_` in the last two.
fn domain(text: &str) -> Option<&str> {
    let is_in_it = |sign: char| sign.is_alphanumeric() || "-_.".contains(sign);
    let domain = beginning(text, is_in_it);
    let mut parts = domain.rsplit('.');
    let (last, before) = (parts.next()?, parts.next()?);
    let is_host = !last.is_empty() && !before.is_empty();
    (is_host && !last.contains('_') && !before.contains('_')).then_some(domain)
}

/// The signs of a kind with which a text begins, at most as many as a host may have, without points
/// at the end.
fn beginning(text: &str, is_of_it: impl Fn(char) -> bool) -> &str {
    let text = &text[..text.floor_char_boundary(DOMAIN)];
    let end = text.find(|sign: char| !is_of_it(sign));
    text[..end.unwrap_or(text.len())].trim_end_matches('.')
}

/// An address without the signs at its end that belong to the sentence.
fn trimmed(mut address: &str) -> &str {
    let count = |sign| address.matches(sign).count();
    let (opening, mut closing) = (count('('), count(')'));
    loop {
        match address.chars().next_back() {
            Some('?' | '!' | '.' | ',' | ':' | '*' | '_' | '~' | '\'' | '"') => {}
            Some(')') if closing > opening => closing -= 1,
            _ => return address,
        }
        address = &address[..address.len() - 1];
    }
}

/// The place of an e-mail address around an `@`, and where it leads.
fn mail(text: &str, from: usize, at: usize) -> Option<(usize, usize, String)> {
    let local = text.as_bytes()[from..at].iter().rev();
    let is_local = |byte: &&u8| byte.is_ascii_alphanumeric() || b".+_-".contains(byte);
    let start = at - local.take_while(is_local).count();
    let is_in_it = |sign: char| sign.is_ascii_alphanumeric() || "-_.".contains(sign);
    let host = beginning(&text[at + 1..], is_in_it);
    let is_host = host.contains('.') && !host.starts_with('.') && !host.ends_with(['-', '_']);
    let end = at + 1 + host.len();
    (start < at && is_host).then(|| (start, end, format!("mailto:{}", &text[start..end])))
}
