//! Markdown as HTML, for texts that explain a report.

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

/// The HTML of a text in Markdown, with tables. HTML in it is shown as it is written, images as
/// their texts, and headings stand below those of a report. A link keeps its address only if that
/// is `https:`, `http:`, or a page of the same folder.
pub(crate) fn prose(text: &str) -> String {
    let events = Parser::new_ext(text, Options::ENABLE_TABLES).filter_map(event);
    let mut links = Vec::new();
    let events = events.filter(|event| match event {
        Event::Start(Tag::Link { dest_url, .. }) => {
            let is_kept = is_harmless(dest_url);
            links.push(is_kept);
            is_kept
        }
        Event::End(TagEnd::Link) => links.pop().unwrap_or(false),
        _ => true,
    });
    let mut out = String::new();
    html::push_html(&mut out, events);
    // A wide table scrolls by itself.
    out.replace("<table>", "<div class=\"scroll\" tabindex=\"0\"><table>")
        .replace("</table>", "</table></div>")
}

fn event(event: Event<'_>) -> Option<Event<'_>> {
    Some(match event {
        Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
        Event::Start(Tag::HtmlBlock) => Event::Start(Tag::Paragraph),
        Event::End(TagEnd::HtmlBlock) => Event::End(TagEnd::Paragraph),
        Event::Start(Tag::Image { .. }) | Event::End(TagEnd::Image) => return None,
        Event::Start(Tag::Heading { .. }) => Event::Start(Tag::Heading {
            level: HeadingLevel::H3,
            id: None,
            classes: Vec::new(),
            attrs: Vec::new(),
        }),
        Event::End(TagEnd::Heading(_)) => Event::End(TagEnd::Heading(HeadingLevel::H3)),
        other => other,
    })
}

fn is_harmless(address: &str) -> bool {
    let is_page = !address.starts_with('/')
        && address
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_./#".contains(c));
    is_page || address.starts_with("https://") || address.starts_with("http://")
}

#[cfg(test)]
mod tests {
    use super::prose;

    #[test]
    fn markdown_becomes_html_and_html_does_not() {
        let html = prose(
            "# Why\n\nA *page* & `code` with [a link](02.html), <b>bold</b>.\n\n<script>x</script>\n",
        );
        assert_eq!(
            html,
            "<h3>Why</h3>\n<p>A <em>page</em> &amp; <code>code</code> with <a href=\"02.html\">a link</a>, \
             &lt;b&gt;bold&lt;/b&gt;.</p>\n<p>&lt;script&gt;x&lt;/script&gt;\n</p>\n"
        );
    }

    #[test]
    fn links_to_programs_and_images_are_their_texts() {
        let html =
            prose("[a](javascript:alert(1)) ![b](x.png) [c](https://example.org/) [d](//evil)");
        let expected = "<p>a b <a href=\"https://example.org/\">c</a> d</p>\n";
        assert_eq!(html, expected);
    }

    #[test]
    fn a_table_scrolls() {
        let html = prose("|a|\n|-|\n|1|\n");
        assert!(
            html.contains("<div class=\"scroll\" tabindex=\"0\"><table>"),
            "{html}"
        );
        assert!(html.ends_with("</table></div>\n"), "{html}");
    }
}
