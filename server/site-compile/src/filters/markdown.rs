//! `markdown`: CommonMark with tables, deletions and tasks, for texts of visitors; with footnotes
//! for documents of the site, and without them for excerpts.
//!
//! HTML in the text is shown as it was written and is not part of the page, unless the template
//! allows it. A link or an image whose address could run a program is left as its text.

use minijinja::{
    AutoEscape, Error, State,
    value::{Kwargs, Value, ValueKind},
};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd, html};

use super::{
    autolinks,
    document::{self, DocumentPlace},
    fault::{given, unfit, unfit_argument},
    footnotes,
};

/// The manner in which a text becomes HTML.
#[derive(Default)]
pub(super) struct TextStyle {
    /// HTML in the text stays as it is: the text is the owner's, whose links lead where they like.
    is_html_allowed: bool,
    has_footnotes: bool,
    /// Headings may have an `id` of their own: `## Title {#id}`.
    has_ids: bool,
    has_autolinks: bool,
    has_alerts: bool,
    /// Schemes of addresses beside those of all texts.
    schemes: Vec<String>,
}

impl TextStyle {
    /// The style of arguments, with `folders = …`.
    fn of(options: &Kwargs, is_document: bool) -> Result<(Self, bool), Error> {
        let flag = |name| options.get::<Option<bool>>(name);
        let (folders, footnotes, ids) = (flag("folders")?, flag("footnotes")?, flag("ids")?);
        let lonely = match (folders, footnotes, ids) {
            _ if is_document => None,
            (Some(_), ..) => Some("`folders` without a document"),
            (_, Some(true), _) => Some("`footnotes = true` without a document"),
            (_, _, Some(true)) => Some("`ids = true` without a document"),
            _ => None,
        };
        if let Some(lonely) = lonely {
            let takes = "`document = \"path\"` beside it";
            return Err(unfit_argument("markdown", lonely, takes));
        }
        let style = Self {
            is_html_allowed: flag("html")? == Some(true),
            has_footnotes: footnotes != Some(false),
            has_ids: ids == Some(true),
            has_autolinks: flag("autolinks")? != Some(false),
            has_alerts: flag("alerts")? != Some(false),
            schemes: options.get::<Option<_>>("schemes")?.unwrap_or_default(),
        };
        options.assert_all_used()?;
        Ok((style, folders != Some(false)))
    }
}

/// The HTML of a text. With `document = PATH` the text is a document of the site's, and with
/// `folders = false` the addresses of all of these are the names of their files. In a page of
/// another type it is escaped as any other text.
pub(super) fn markdown(state: &State, value: &Value, options: &Kwargs) -> Result<Value, Error> {
    let place: Option<Value> = options.get("document")?;
    let place = place.as_ref().map(|place| {
        let text = place.as_str();
        text.ok_or_else(|| unfit_argument("markdown", "no path is given", "`document = \"path\"`"))
    });
    let place = place.transpose()?;
    let (style, has_folders) = TextStyle::of(options, place.is_some())?;
    let Some(value) = given("markdown", value)? else {
        return Ok(Value::from(""));
    };
    let text = value.as_str().filter(|_| value.kind() == ValueKind::String);
    let text = text.ok_or_else(|| unfit("markdown", value, "a text"))?;
    let place = place.map(|path| DocumentPlace { path, has_folders });
    let html = render(text, place, &style);
    Ok(match state.auto_escape() {
        AutoEscape::Html => Value::from_safe_string(html),
        _ => Value::from(html),
    })
}

/// Cells that the tables of one text may have. A table gets the cells that its rows lack, so a
/// short text could have very many.
const CELLS: usize = 1 << 16;

/// Returns the extensions of CommonMark that are read. Footnotes have names that links lead to, so
/// a text of a visitor has none.
pub(super) fn options(text: &str, is_document: bool) -> Options {
    let columns = text.lines().map(|line| line.matches('|').count() + 1);
    let cells = columns.max().unwrap_or(0) * text.lines().count();
    let mut options = Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    options.set(Options::ENABLE_TABLES, cells <= CELLS);
    options.set(Options::ENABLE_FOOTNOTES, is_document);
    options
}

fn render(text: &str, place: Option<DocumentPlace<'_>>, style: &TextStyle) -> String {
    let mut read = options(text, place.is_some() || !style.has_footnotes);
    read.set(Options::ENABLE_HEADING_ATTRIBUTES, style.has_ids);
    read.set(Options::ENABLE_GFM, style.has_alerts);
    let parsed = Parser::new_ext(text, read);
    let mut events: Vec<Event<'_>> = match style.has_footnotes {
        true => parsed.collect(),
        false => footnotes::left_out(parsed),
    };
    if let Some(place) = place {
        document::prepare(&mut events, place);
    }
    let is_html_allowed = style.is_html_allowed;
    // For each link or image that is open, whether it is left as its text.
    let mut refused = Vec::new();
    let events = events.into_iter().filter_map(|event| match event {
        Event::Html(text) | Event::InlineHtml(text) if !is_html_allowed => Some(Event::Text(text)),
        Event::Start(Tag::HtmlBlock) if !is_html_allowed => Some(Event::Start(Tag::Paragraph)),
        Event::End(TagEnd::HtmlBlock) if !is_html_allowed => Some(Event::End(TagEnd::Paragraph)),
        Event::Start(Tag::Link { ref dest_url, .. } | Tag::Image { ref dest_url, .. }) => {
            let is_refused = !is_html_allowed && !may_lead_to(dest_url, &style.schemes);
            refused.push(is_refused);
            (!is_refused).then_some(event)
        }
        Event::End(TagEnd::Link | TagEnd::Image) => {
            let is_refused = refused.pop().unwrap_or(true);
            (!is_refused).then_some(event)
        }
        event => Some(event),
    });
    let events = events.flat_map(|event| {
        let title = match event {
            Event::Start(Tag::BlockQuote(Some(kind))) => Some(autolinks::title(kind)),
            _ => None,
        };
        std::iter::once(event).chain(title)
    });
    let mut out = String::with_capacity(text.len() * 3 / 2);
    match style.has_autolinks {
        true => html::push_html(&mut out, autolinks::with_links(events).into_iter()),
        false => html::push_html(&mut out, events),
    }
    out
}

/// Schemes that a link may have.
const SCHEMES: [&str; 4] = ["http", "https", "mailto", "tel"];

/// True for an address without a scheme, and with one of those of all texts.
pub(super) fn is_harmless(address: &str) -> bool {
    may_lead_to(address, &[])
}

/// True for an address without a scheme, with one of those above, or with another that is allowed.
/// Browsers read past controls and spaces in a scheme, so they do not count here either. A scheme
/// begins with a letter, so `10:30` has none.
fn may_lead_to(address: &str, more: &[String]) -> bool {
    let mut scheme = String::new();
    let letters = address
        .chars()
        .filter(|letter| !letter.is_control() && !letter.is_whitespace());
    for letter in letters {
        match letter {
            ':' => {
                let is_more = |known: &String| known.eq_ignore_ascii_case(&scheme);
                let is_none = scheme.starts_with(|first: char| first.is_ascii_digit());
                return is_none || SCHEMES.contains(&&*scheme) || more.iter().any(is_more);
            }
            '/' | '?' | '#' => return true,
            letter => scheme.extend(letter.to_lowercase()),
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(text: &str, is_html_allowed: bool, place: Option<DocumentPlace<'_>>) -> String {
        let style = TextStyle {
            is_html_allowed,
            ..style(true)
        };
        super::render(text, place, &style)
    }

    /// The style of a text without arguments.
    fn style(has_footnotes: bool) -> TextStyle {
        TextStyle {
            has_footnotes,
            has_autolinks: true,
            has_alerts: true,
            ..TextStyle::default()
        }
    }

    fn place(path: &str) -> Option<DocumentPlace<'_>> {
        Some(DocumentPlace {
            path,
            has_folders: true,
        })
    }

    #[test]
    fn the_cells_of_a_short_text_have_a_limit() {
        let table = format!(
            "{}\n{}\n{}",
            "a|".repeat(512),
            "-|".repeat(512),
            "a\n".repeat(511)
        );
        assert!(render(&table, false, None).len() < 2 * table.len());
        assert!(render("a|b\n-|-\n1|2", false, None).contains("<td>2</td>"));
    }

    #[test]
    fn no_text_of_a_visitor_runs_a_program() {
        for text in [
            "<script>alert(1)</script>",
            "a <img src=x onerror=alert(1)> b",
            "<div\nonclick=alert(1)>\n\n*b*",
            "[a](javascript:alert(1))",
            "[a](JaVaScRiPt:alert(1))",
            "[a](java&#10;script:alert(1))",
            "[a](&#1;javascript:alert(1))",
            "[a](<java\tscript:alert(1)>)",
            "[a](javascript&colon;alert(1))",
            "[a](data:text/html,<script>alert(1)</script>)",
            "![a](javascript:alert(1))",
            "<javascript:alert(1)>",
            "[a][b]\n\n[b]: javascript:alert(1)",
            "[![x](data:image/svg+xml,<svg>)](vbscript:x)",
        ] {
            let html = render(text, false, place("a/b")).to_lowercase();
            let tags: String = html
                .split('<')
                .skip(1)
                .filter_map(|rest| rest.split('>').next())
                .collect();
            for bad in ["script", "onerror", "onclick", "img", "data:", "href"] {
                assert!(!tags.contains(bad), "{text} gave {html}");
            }
        }
    }

    #[test]
    fn links_tables_and_allowed_html_are_as_written() {
        for (text, is_html_allowed, expected) in [
            (
                "[a](/b?c=d:e) <https://x.example> [m](mailto:a@b.example)",
                false,
                "<p><a href=\"/b?c=d:e\">a</a> <a href=\"https://x.example\">https://x.example</a> <a href=\"mailto:a@b.example\">m</a></p>\n",
            ),
            (
                "~~a~~ **b** `<c>`",
                false,
                "<p><del>a</del> <strong>b</strong> <code>&lt;c&gt;</code></p>\n",
            ),
            (
                "|a|\n|-|\n|1|",
                false,
                "<table><thead><tr><th>a</th></tr></thead><tbody>\n<tr><td>1</td></tr>\n</tbody></table>\n",
            ),
            (
                "- [ ] a\n- [x] b",
                false,
                "<ul>\n<li><input disabled=\"\" type=\"checkbox\"/>\na</li>\n<li><input disabled=\"\" type=\"checkbox\" checked=\"\"/>\nb</li>\n</ul>\n",
            ),
            (
                "a[^1]\n\n[^1]: b c",
                false,
                "<p>a[^1]</p>\n<p>[^1]: b c</p>\n",
            ),
            ("a <b>c</b>", true, "<p>a <b>c</b></p>\n"),
            ("a <b>c</b>", false, "<p>a &lt;b&gt;c&lt;/b&gt;</p>\n"),
            ("<b>c</b>", false, "<p>&lt;b&gt;c&lt;/b&gt;</p>\n"),
        ] {
            assert_eq!(render(text, is_html_allowed, None), expected);
        }
    }

    #[test]
    fn addresses_by_themselves_are_links_as_on_github() {
        for (text, links) in [
            (
                "see https://x.example/a_b?c=d&e=f.",
                &["https://x.example/a_b?c=d&amp;e=f"][..],
            ),
            (
                "www.x.example/a, (www.y.example)",
                &["http://www.x.example/a", "http://www.y.example"],
            ),
            ("(http://x.example/a_(b))", &["http://x.example/a_(b)"]),
            ("**HTTP://x.example**", &["HTTP://x.example"]),
            ("a.b+c@x.example. d@e", &["mailto:a.b+c@x.example"]),
            ("xhttp://x.example http://x http://a_b.c_d www.", &[]),
            ("`http://x.example` [http://y.example](/z)", &["/z"]),
            ("ftp://x.example javascript:alert(1)", &[]),
            ("<http://x.example>", &["http://x.example"]),
        ] {
            let html = render(text, false, None);
            let found: Vec<&str> = html
                .split("<a href=\"")
                .skip(1)
                .filter_map(|rest| rest.split('"').next())
                .collect();
            assert_eq!(found, links, "{text}: {html}");
        }
        let plain = TextStyle {
            has_autolinks: false,
            ..style(true)
        };
        let html = super::render("www.x.example", None, &plain);
        assert_eq!(html, "<p>www.x.example</p>\n");
    }

    #[test]
    fn alerts_ids_and_schemes_are_as_the_options_say() {
        let alert = "> [!WARNING]\n> Hot *tea*";
        assert_eq!(
            render(alert, false, None),
            "<blockquote class=\"markdown-alert-warning\">\n<p class=\"markdown-alert-title\">Warning</p>\n\
             <p>Hot <em>tea</em></p>\n</blockquote>\n"
        );
        let bare = TextStyle {
            has_alerts: false,
            ..style(true)
        };
        assert!(super::render(alert, None, &bare).contains("[!WARNING]"));
        let heading = "## Hot tea {#hot .big onclick=x}\n\n## Hot";
        let own = TextStyle {
            has_ids: true,
            ..style(true)
        };
        assert_eq!(
            super::render(heading, place("a"), &own),
            "<h2 id=\"hot\">Hot tea</h2>\n<h2 id=\"hot-1\">Hot</h2>\n"
        );
        assert!(render(heading, false, place("a")).contains("{#hot"));
        let links = "[a](irc://x) [b](10:30) ![c](data:image/png;base64,AA) [d](sms:1)";
        let count = |html: &str| html.matches("href=").count() + html.matches("src=").count();
        assert_eq!(count(&render(links, false, None)), 1);
        assert_eq!(count(&render(links, true, None)), 4);
        let more = TextStyle {
            schemes: vec!["irc".to_owned(), "data".to_owned()],
            ..style(true)
        };
        assert_eq!(count(&super::render(links, None, &more)), 3);
    }

    #[test]
    fn a_footnote_has_no_id_of_a_heading() {
        let html = render(
            "# Footnote 1\n\n# fn:1\n\na[^1]\n\n[^1]: b",
            false,
            place("a"),
        );
        for id in [
            "id=\"footnote-1\"",
            "id=\"fn1\"",
            "id=\"fn:1\"",
            "href=\"#fn:1\"",
        ] {
            assert_eq!(html.matches(id).count(), 1, "{id}: {html}");
        }
    }

    #[test]
    fn an_excerpt_has_no_footnotes() {
        for (text, expected) in [
            (
                "a[^1] b.[^x-y]\n\n[^1]: c\n\n    d\n[^x-y]: e\n\nf",
                "<p>a b.</p>\n<p>f</p>\n",
            ),
            // The notes are behind the end of the excerpt.
            (
                "a[^1], *b[^2]* and ![c[^3]](d)",
                "<p>a, <em>b</em> and <img src=\"d\" alt=\"c\" /></p>\n",
            ),
            ("a [^ b] [^] [^c [^d", "<p>a [^ b] [^] [^c [^d</p>\n"),
            (
                "`[^1]`\n\n```\n[^1]\n```",
                "<p><code>[^1]</code></p>\n<pre><code>[^1]\n</code></pre>\n",
            ),
            (
                "- a[^1]\n\n  [^1]: b\n- c",
                "<ul>\n<li>\n<p>a</p>\n</li>\n<li>\n<p>c</p>\n</li>\n</ul>\n",
            ),
            ("[^1]: only", ""),
        ] {
            assert_eq!(super::render(text, None, &style(false)), expected, "{text}");
            let html = super::render(text, place("a"), &style(false));
            assert!(!html.contains("footnote"), "{html}");
        }
    }

    /// A hostile text costs little more than a harmless one of its length.
    #[test]
    fn hostile_texts_end() {
        for piece in [
            "[",
            "![",
            "> ",
            "*a_ ",
            "`a",
            "<a ",
            "[a](",
            "|a",
            "- ",
            "&",
            "\\",
            "[a]: b\n",
            "# a\n",
            "[^a]",
            "[^a]: b\n\n",
            "- [ ] ",
            "[^a]: [^b] ",
            "[^",
            "www.a_",
            "http://a.b)",
            "a@",
            "a@b.c_",
            "www.",
            "> [!NOTE]\n",
        ] {
            let text = piece.repeat(200_000 / piece.len());
            for has_footnotes in [true, false] {
                let html = super::render(&text, place("a"), &style(has_footnotes));
                assert!(html.len() < 40_000_000, "{piece} gave {}", html.len());
            }
        }
    }
}
