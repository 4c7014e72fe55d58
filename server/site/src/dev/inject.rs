//! The script in the site's own pages.

use bytes::Bytes;
use millpond_http::{Body, Response};

use crate::live::script::{insert, script};

/// Fields that do not hold for the changed page.
const DROPPED: [&str; 6] = [
    "accept-ranges",
    "cache-control",
    "content-length",
    "etag",
    "last-modified",
    "vary",
];

/// The tag of the script of live pages, with the state that the page shows. It stays in a live page
/// that is changed in place. After a POST a reload would send the form again, so the script only
/// says that something has changed.
pub(super) fn tag(state: &str, is_after_post: bool) -> String {
    let (path, post) = (
        &script().path,
        if is_after_post { " data-post" } else { "" },
    );
    format!(
        "<script type=\"module\" src=\"{path}\" data-state=\"{state}\"{post} data-live-keep></script>"
    )
}

/// A page of HTML with the script before the end of its body; any other response as it is.
pub(super) fn with_script(response: Response, tag: &str) -> Response {
    let media_type = response.field("content-type").unwrap_or_default();
    let is_html = media_type
        .get(..9)
        .is_some_and(|start| start.eq_ignore_ascii_case("text/html"));
    let policy = response
        .field("content-security-policy")
        .unwrap_or_default();
    // The content of a sandbox is a visitor's, and runs no script.
    let is_sandboxed = policy.contains("sandbox");
    let is_encoded = response.field("content-encoding").is_some();
    match response.body() {
        Body::Bytes(page)
            if is_html && !is_sandboxed && !is_encoded && response.status() != 206 =>
        {
            let body = insert(page, tag.as_bytes());
            replaced(&response, body)
        }
        _ => response,
    }
}

/// Replaces the body of the response, which no cache keeps.
fn replaced(response: &Response, body: Vec<u8>) -> Response {
    let mut builder = Response::builder(response.status()).field("Cache-Control", "no-store");
    for (name, value) in fields(response) {
        if !DROPPED
            .iter()
            .any(|dropped| name.eq_ignore_ascii_case(dropped))
        {
            builder = builder.field(name, value);
        }
    }
    builder.body(Bytes::from(body))
}

/// The field lines of a response.
pub(super) fn fields(response: &Response) -> impl Iterator<Item = (&str, &str)> {
    let parts = [response.head(), response.extra()].into_iter();
    let parts = parts.filter_map(|part| std::str::from_utf8(part).ok());
    let lines = parts.flat_map(|part| part.split("\r\n"));
    // The status line has no colon in front of a value: `HTTP/1.1 200 OK`.
    lines
        .filter(|line| !line.starts_with("HTTP/"))
        .filter_map(|line| line.split_once(": "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_stands_before_the_end_of_the_body() {
        for (page, expected) in [
            ("", "#"),
            ("text", "text#"),
            ("<p>x</p></body></html>", "<p>x</p>#</body></html>"),
            ("</BODY >", "#</BODY >"),
            ("a </body> in a text</body>", "a </body> in a text#</body>"),
            ("é\u{1f30a}</body>", "é\u{1f30a}#</body>"),
        ] {
            let page = insert(page.as_bytes(), b"#");
            assert_eq!(String::from_utf8(page).unwrap(), expected);
        }
        assert_eq!(insert(b"\xff</body>", b"#"), b"\xff#</body>");
    }

    #[test]
    fn only_whole_pages_of_html_get_it() {
        let page = |media_type: &str| {
            Response::builder(200)
                .field("Content-Type", media_type)
                .field("ETag", "\"x\"")
                .field("Set-Cookie", "a=b")
        };
        let changed = with_script(page("Text/HTML; charset=utf-8").body("page"), "#");
        assert_eq!(changed.body().len(), 5);
        assert_eq!(changed.field("content-length"), Some("5"));
        assert_eq!(changed.field("etag"), None);
        assert_eq!(changed.field("cache-control"), Some("no-store"));
        assert_eq!(changed.field("set-cookie"), Some("a=b"));
        let policy = "sandbox; default-src 'none'";
        for same in [
            page("application/json").body("page"),
            page("text/html")
                .field("Content-Encoding", "br")
                .body("page"),
            page("text/html")
                .field("Content-Security-Policy", policy)
                .body("page"),
            page("text/html").empty(),
        ] {
            let before = same.body().len();
            let after = with_script(same, "#");
            assert_eq!(after.body().len(), before);
            assert_eq!(after.field("etag"), Some("\"x\""));
        }
    }
}
