//! Markdown to HTML that is safe to show: rendered by `pulldown-cmark`, sanitised by `ammonia`,
//! then tidied.
//!
//! The source is not trusted: no script, no style beyond a cell's alignment, no form, no scheme but
//! `http` and `https`, `nofollow` on every link, and identifiers prefixed with `s-` so that they
//! never equal the page's own.

use std::borrow::Cow;
use std::collections::HashMap;

use ammonia::{Builder, UrlRelative};
use pulldown_cmark::{BrokenLink, CowStr, Event, Options, Parser, Tag, TagEnd};

use super::text::slug;
use super::tidy;

/// Deeper nesting of blocks than any text needs; beyond it the time to sanitise grows faster than
/// the text.
const MAX_DEPTH: usize = 64;

/// A text made ready for its columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rendered {
    /// Sanitised HTML, its headings below the page's own `h1`.
    pub(super) html: String,
    /// Plain text of the page, a line for each block.
    pub(super) text: String,
    /// The text of the leading `h1`, which is taken out of the HTML.
    pub(super) title: Option<String>,
    /// The text of the first paragraph.
    pub(super) lead: Option<String>,
}

/// Renders texts. It is cheap to use and expensive to make: one for each import.
pub(super) struct Renderer {
    sanitiser: Builder<'static>,
}

impl Renderer {
    pub(super) fn new() -> Self {
        Self {
            sanitiser: sanitiser(),
        }
    }

    /// # Errors
    /// A sentence, when the text nests deeper than a text does.
    pub(super) fn render(&self, markdown: &str) -> Result<Rendered, String> {
        let mut html = String::with_capacity(markdown.len() * 2);
        pulldown_cmark::html::push_html(&mut html, events(markdown)?.into_iter());
        if tidy::depth(&html) > 2 * MAX_DEPTH {
            return Err(too_deep());
        }
        let clean = self.sanitiser.clean(&html).to_string();
        Ok(tidy::tidy(&clean))
    }
}

fn too_deep() -> String {
    format!("nests more than {MAX_DEPTH} blocks deep")
}

/// The parsed text, with identifiers for its headings.
fn events(markdown: &str) -> Result<Vec<Event<'_>>, String> {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_GFM;
    // `[Type]` in a library's documentation is a link that rustdoc resolves: here it becomes the
    // plain word. In other texts square brackets without a target are plain text, so only code in
    // brackets counts as such a link.
    let resolve = |link: BrokenLink<'_>| {
        link.reference
            .starts_with('`')
            .then_some((CowStr::Borrowed(""), CowStr::Borrowed("")))
    };
    let parser = Parser::new_with_broken_link_callback(markdown, options, Some(resolve));
    let mut events = Vec::new();
    let mut depth = 0_usize;
    for event in parser {
        match &event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return Err(too_deep());
        }
        events.push(match event {
            // The sanitiser lets no form control through.
            Event::TaskListMarker(done) => {
                Event::Text(CowStr::Borrowed(if done { "☑ " } else { "☐ " }))
            }
            event => event,
        });
    }
    name_headings(&mut events);
    Ok(events)
}

/// Gives each heading the identifier made from its text, as the tables of contents in READMEs
/// expect.
fn name_headings(events: &mut [Event<'_>]) {
    let mut seen: HashMap<String, usize> = HashMap::new();
    for start in 0..events.len() {
        if !matches!(events[start], Event::Start(Tag::Heading { .. })) {
            continue;
        }
        let text: String = events[start..]
            .iter()
            .take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_))))
            .filter_map(|event| match event {
                Event::Text(text) | Event::Code(text) => Some(&**text),
                _ => None,
            })
            .collect();
        let name = slug(&text);
        let again = seen
            .entry(name.clone())
            .and_modify(|count| *count += 1)
            .or_insert(0);
        let unique = if *again == 0 {
            name
        } else {
            format!("{name}-{again}")
        };
        if let Event::Start(Tag::Heading { id, .. }) = &mut events[start] {
            *id = Some(unique.into());
        }
    }
}

fn sanitiser() -> Builder<'static> {
    let mut builder = Builder::default();
    builder
        .url_schemes(["http", "https"].into())
        .link_rel(Some("nofollow noopener noreferrer"))
        .id_prefix(Some("s-"))
        .add_tag_attributes("div", ["id"])
        .add_tag_attributes("li", ["id"])
        .add_tag_attributes("code", ["class"])
        .add_tag_attributes("td", ["style"])
        .add_tag_attributes("th", ["style"])
        .filter_style_properties(["text-align"].into())
        .add_allowed_classes("div", ["footnote-definition"])
        .add_allowed_classes("sup", ["footnote-reference", "footnote-definition-label"])
        .add_allowed_classes(
            "blockquote",
            [
                "markdown-alert-note",
                "markdown-alert-tip",
                "markdown-alert-important",
            ],
        )
        .add_allowed_classes(
            "blockquote",
            ["markdown-alert-warning", "markdown-alert-caution"],
        )
        .attribute_filter(filter_attribute);
    for heading in ["h1", "h2", "h3", "h4", "h5", "h6"] {
        builder.add_tag_attributes(heading, ["id"]);
    }
    // A component's text has no base here: relative links lose their target, and images (badges)
    // are removed.
    builder.rm_tags(["img", "figure", "figcaption", "map", "area"]);
    builder.url_relative(UrlRelative::Custom(Box::new(within_the_page)));
    builder
}

/// `#part`, which means a part of the same text: its identifier carries the prefix.
fn within_the_page(url: &str) -> Option<Cow<'_, str>> {
    let part = url.strip_prefix('#').filter(|part| !part.is_empty())?;
    Some(Cow::Owned(format!("#s-{part}")))
}

/// Of a code block's class only the language is kept.
fn filter_attribute<'v>(element: &str, attribute: &str, value: &'v str) -> Option<Cow<'v, str>> {
    if element != "code" || attribute != "class" {
        return Some(Cow::Borrowed(value));
    }
    let language = value.split([' ', ',']).next().unwrap_or_default();
    let name = language.strip_prefix("language-")?;
    let plain = !name.is_empty()
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"+-_#.".contains(&b));
    plain.then_some(Cow::Borrowed(language))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn component(markdown: &str, expected: &str) {
        let rendered = Renderer::new().render(markdown).unwrap();
        assert_eq!(rendered.html.trim(), expected);
    }

    #[test]
    fn text_tables_and_code() {
        component("a **b** ~~c~~", "<p>a <strong>b</strong> <del>c</del></p>");
        component(
            "|a|b|\n|-|-:|\n|1|2|",
            "<table><thead><tr><th>a</th><th style=\"text-align:right\">b</th></tr></thead><tbody>\n\
             <tr><td>1</td><td style=\"text-align:right\">2</td></tr>\n</tbody></table>",
        );
        component(
            "```rust,no_run\nlet a = 1 < 2;\n```",
            "<pre><code class=\"language-rust\">let a = 1 &lt; 2;\n</code></pre>",
        );
        component("- [x] done", "<ul>\n<li>☑ done</li>\n</ul>");
    }

    #[test]
    fn script_handlers_and_other_schemes_are_removed() {
        component("<script>alert(1)</script>ok", "ok");
        component("a <b onclick=x()>b</b>", "<p>a <b>b</b></p>");
        component("<img src=x onerror=alert(1)>\n\nok", "<p>ok</p>");
        component(
            "[x](javascript:alert(1)) [y](data:text/html,x)",
            "<p><a rel=\"nofollow noopener noreferrer\">x</a> <a rel=\"nofollow noopener noreferrer\">y</a></p>",
        );
        component(
            "<style>p{}</style><iframe src=https://a.example></iframe><form><input></form>ok",
            "ok",
        );
        component(
            "<p style=\"position:fixed\" class=\"masthead\" id=\"x\">a</p>",
            "<p>a</p>",
        );
        component("<td style=\"position:fixed;text-align:left\">a</td>", "a");
    }

    #[test]
    fn links_without_a_base() {
        let rel = "rel=\"nofollow noopener noreferrer\"";
        component("[a](docs/x.md)", &format!("<p><a {rel}>a</a></p>"));
        component(
            "[a](https://a.example/)",
            &format!("<p><a href=\"https://a.example/\" {rel}>a</a></p>"),
        );
        component("![badge](https://a.example/b.svg)\n\nok", "<p>ok</p>");
        component("[![badge](b.svg)](https://a.example)\n\nok", "<p>ok</p>");
        component(
            "[`Type`] and [x]",
            &format!("<p><a {rel}><code>Type</code></a> and [x]</p>"),
        );
        for hostile in ["//evil.example", "/\\evil.example"] {
            component(
                &format!("<a href=\"{hostile}\">a</a>"),
                &format!("<p><a {rel}>a</a></p>"),
            );
        }
    }

    #[test]
    fn headings_have_names_and_stay_below_the_title() {
        let text = "# Title\n\n[to](#part-one)\n\n## Part one\n\n## Part one\n\n## comments";
        let rendered = Renderer::new().render(text).unwrap();
        assert_eq!(rendered.title.as_deref(), Some("Title"));
        assert!(
            rendered.html.contains("href=\"#s-part-one\""),
            "{}",
            rendered.html
        );
        assert!(
            rendered
                .html
                .contains("<h2 id=\"s-part-one\">Part one</h2>"),
            "{}",
            rendered.html
        );
        assert!(
            rendered.html.contains("<h2 id=\"s-part-one-1\">"),
            "{}",
            rendered.html
        );
        assert!(
            rendered.html.contains("<h2 id=\"s-comments\">"),
            "{}",
            rendered.html
        );
        component(
            "# T\n\n# A\n\n## B",
            "<h2 id=\"s-a\">A</h2>\n<h3 id=\"s-b\">B</h3>",
        );
    }

    #[test]
    fn footnotes_lead_to_their_places() {
        let html = Renderer::new().render("a[^1]\n\n[^1]: note").unwrap().html;
        assert!(
            html.contains("href=\"#s-1\"") && html.contains("id=\"s-1\""),
            "{html}"
        );
    }

    #[test]
    fn absurd_nesting_is_refused() {
        let renderer = Renderer::new();
        assert!(renderer.render(&">".repeat(10_000)).is_err());
        assert!(renderer.render(&"<div>".repeat(10_000)).is_err());
        assert!(
            renderer
                .render(&format!("a {}", "<b>".repeat(10_000)))
                .is_err()
        );
        assert!(renderer.render(&"[".repeat(10_000)).is_ok());
    }
}
