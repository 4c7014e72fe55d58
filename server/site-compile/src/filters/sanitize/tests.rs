//! What goes through, what does not, and that nothing else can.

use super::*;

/// Reads a result with no code of the filter: every `<` must begin a tag of a fixed form, with a
/// known name and known attributes, and all tags must be closed in order.
fn assert_safe(html: &str, text: &str) {
    const NAMES: &str = "a abbr b bdi big blockquote br caption cite code dd del details dfn div dl dt em figcaption \
        figure h1 h2 h3 h4 h5 h6 hr i img ins kbd li mark ol p pre q s samp small span strong sub summary sup table \
        tbody td tfoot th thead tr u ul var";
    const ATTRIBUTES: &str =
        "title lang dir href src alt width height start colspan rowspan scope rel loading";
    let mut open: Vec<&str> = Vec::new();
    let mut rest = html;
    while let Some(at) = rest.find(['<', '>', '"', '\'']) {
        rest = &rest[at..];
        let inner = rest
            .strip_prefix('<')
            .unwrap_or_else(|| panic!("{text:?} gives {html:?}"));
        let end = inner.find('>').unwrap();
        let (tag, after) = (&inner[..end], &inner[end + 1..]);
        rest = after;
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "{text:?} gives {html:?}");
            continue;
        }
        let (name, mut attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        assert!(
            NAMES.split(' ').any(|known| known == name),
            "{name} of {text:?}"
        );
        while !attributes.is_empty() {
            let (attribute, value) = attributes.split_once("=\"").unwrap();
            assert!(
                ATTRIBUTES.split(' ').any(|known| known == attribute),
                "{attribute} of {text:?}"
            );
            let (value, after) = value.split_once('"').unwrap();
            attributes = after.trim_start();
            assert!(!value.contains(['<', '\'']), "{text:?} gives {html:?}");
            if matches!(attribute, "href" | "src") {
                assert_harmless(value, text);
            }
        }
        if !matches!(name, "br" | "hr" | "img") {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?} of {text:?}");
}

/// All that a browser may resolve in the result is `&amp;` and the like, so a scheme is in sight.
fn assert_harmless(value: &str, text: &str) {
    for (at, _) in value.match_indices('&') {
        let is_plain = ["amp;", "lt;", "gt;", "quot;", "#39;"]
            .iter()
            .any(|name| value[at + 1..].starts_with(name));
        assert!(is_plain, "{value} of {text:?}");
    }
    let squeezed: String = value
        .chars()
        .filter(|letter| *letter > ' ')
        .flat_map(char::to_lowercase)
        .collect();
    for scheme in ["javascript:", "data:", "vbscript:", "blob:", "file:"] {
        assert!(!squeezed.starts_with(scheme), "{value} of {text:?}");
    }
}

#[test]
fn what_is_allowed_stays() {
    for (text, expected) in [
        (
            "plain & <b>bold</b> &eacute; &#228;",
            "plain &amp; <b>bold</b> &eacute; &#228;",
        ),
        ("<P TITLE=x>a<br/>b", "<p title=\"x\">a<br>b</p>"),
        (
            "<a href='/x?a=1&amp;b=2' onclick=alert(1)>x</a>",
            "<a rel=\"nofollow ugc noopener noreferrer\" href=\"/x?a=1&amp;b=2\">x</a>",
        ),
        (
            "<img src=/a.png alt=\"a 'b'\" width=10 onerror=x>",
            "<img loading=\"lazy\" src=\"/a.png\" alt=\"a &#39;b&#39;\" width=\"10\">",
        ),
        ("<ul><li>a<li>b</ul>", "<ul><li>a</li><li>b</li></ul>"),
        (
            "<table><tr><td colspan=2>x</table>",
            "<table><tr><td colspan=\"2\">x</td></tr></table>",
        ),
        ("a < b and c > d, 1<2", "a &lt; b and c &gt; d, 1&lt;2"),
        ("<h1>x</h2></h1>", "<h1>x</h1>"),
        (
            "<p>a<p>b<ul><li>c<ul><li>d</ul><li>e",
            "<p>a</p><p>b</p><ul><li>c<ul><li>d</li></ul></li><li>e</li></ul>",
        ),
        (
            "<table><caption>x<tr><th>a<td><p>b<tr><td>c",
            "<table><caption>x</caption><tr><th>a</th><td><p>b</p></td></tr><tr><td>c</td></tr></table>",
        ),
        (
            "<table><div><table><td>q",
            "<table><div></div></table><table><td>q</td></table>",
        ),
        (
            "<table><td><table><td>q",
            "<table><td><table><td>q</td></table></td></table>",
        ),
        ("<h1>a<h2>b</h1>", "<h1>a</h1><h2>b</h2>"),
        ("<b><i>x</b>y</i>", "<b><i>x</i></b>y"),
    ] {
        assert_eq!(clean(text), expected);
        assert_safe(&clean(text), text);
    }
}

#[test]
fn what_could_run_or_leave_its_place_goes() {
    for (text, expected) in [
        ("a<script>alert(1)</script>b", "ab"),
        ("a<SCRIPT >alert('</scripts>')</ScRiPt\n>b", "ab"),
        ("a<script>alert(1)", "a"),
        ("<style>*{display:none}</style>x", "x"),
        (
            "<svg><style><img src=x onerror=alert(1)></style></svg>x",
            "x",
        ),
        (
            "<math><mtext><table><mglyph><style><img src=x></style></math>x",
            "x",
        ),
        (
            "<noscript><p title=\"</noscript><img src=x onerror=alert(1)>\">",
            "<img loading=\"lazy\" src=\"x\">&quot;&gt;",
        ),
        ("<!-- <b> --><i>x</i><!x><?php x ?>", "<i>x</i>"),
        (
            "<!--><img src=x onerror=alert(1)>-->",
            "<img loading=\"lazy\" src=\"x\">--&gt;",
        ),
        ("</div></section></body>x", "x"),
        ("<td>x</td><li>y</li><caption>z", "xyz"),
        ("<div", ""),
        ("<div title=\"x", ""),
        ("<p style=x class=y id=z name=w>a", "<p>a</p>"),
        (
            "<form action=/x><input name=a><button>b</button></form>",
            "b",
        ),
        (
            "<a href=javascript:alert(1)>x",
            "<a rel=\"nofollow ugc noopener noreferrer\">x</a>",
        ),
        ("<b title=a title=b>x", "<b title=\"a\">x</b>"),
        ("x\0y", "xy"),
    ] {
        assert_eq!(clean(text), expected, "{text}");
        assert_safe(&clean(text), text);
    }
}

#[test]
fn no_address_runs_a_program() {
    for address in [
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        " javascript:alert(1)",
        "java\tscript:alert(1)",
        "java&#9;script:alert(1)",
        "java&#x0A;script:alert(1)",
        "&#106;avascript:alert(1)",
        "javascript&#58;alert(1)",
        "javascript&#x3a;alert(1)",
        "\u{1}javascript:alert(1)",
        "data:text/html,<script>alert(1)</script>",
        "vbscript:x",
    ] {
        let text = format!("<a href=\"{address}\">x</a>");
        let html = clean(&text);
        assert_eq!(
            html, "<a rel=\"nofollow ugc noopener noreferrer\">x</a>",
            "{address}"
        );
    }
    // What a browser would resolve in the text is text in the result.
    let html = clean("<a href=\"javascript&colon;alert(1)\">x</a>");
    assert!(
        html.contains("href=\"javascript&amp;colon;alert(1)\""),
        "{html}"
    );
}

/// Fragments that filters were broken with.
const FRAGMENTS: [&str; 44] = [
    "<",
    ">",
    "</",
    "/>",
    "<!--",
    "-->",
    "--!>",
    "<![CDATA[",
    "]]>",
    "<?",
    "\"",
    "'",
    "`",
    "=",
    " ",
    "\n",
    "\t",
    "\0",
    "/",
    "&",
    ";",
    "&lt;",
    "&#60;",
    "&colon;",
    "&#0;",
    "&#x110000;",
    "script",
    "<a href=",
    "javascript:",
    "<img src=",
    " onerror=x",
    "<table>",
    "<td>",
    "<svg>",
    "</svg>",
    "<b>",
    "</b>",
    "<p>",
    "<li>",
    "<ul>",
    "<textarea>",
    "é",
    "\u{1f30a}",
    "<title>",
];

#[test]
fn any_text_gives_only_what_is_allowed() {
    bolero::check!()
        .with_type::<Vec<(u8, char)>>()
        .for_each(|choices| {
            let mut text = String::new();
            for (choice, letter) in choices {
                match FRAGMENTS.get(usize::from(*choice)) {
                    Some(fragment) => text.push_str(fragment),
                    None => text.push(*letter),
                }
            }
            let html = clean(&text);
            assert_safe(&html, &text);
            assert_eq!(clean(&html), html, "{text:?} is clean after one pass");
        });
}

#[test]
fn a_hostile_text_costs_as_much_as_it_is_long() {
    let tags: String = (0..20_000).map(|at| format!("<b title={at}><p>")).collect();
    assert!(clean(&tags).len() < 4 * tags.len());
    for part in [
        "<",
        "<a ",
        "</",
        "<!--",
        "<script>",
        "<a href=\"",
        "&",
        "<table><tr><td>",
        "</script",
    ] {
        let text = part.repeat(50_000);
        let html = clean(&text);
        assert!(html.len() <= 8 * text.len(), "{part}");
        assert_safe(&html, part);
    }
}
