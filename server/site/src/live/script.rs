//! The script that keeps a page in a browser up to date, and its place in the page.

use std::sync::{Arc, LazyLock};

use millpond_http::{Body, Coding, Content, Parts, Prepared, entity_tag, smallest_brotli};

/// The folder of the addresses that every site has.
pub(crate) const FOLDER: &str = "/.millpond/";
/// The address of all streams.
pub(crate) const STREAM: &str = "/.millpond/live";

/// The library that changes one document into another (`morphlex.md`), and ours, which calls it.
const PARTS: [&str; 2] = [include_str!("morphlex.js"), include_str!("live.js")];

/// The script, and its address, which changes with its text.
pub(crate) struct LiveScript {
    pub(crate) path: String,
    pub(crate) prepared: Arc<Prepared>,
}

/// Returns the script.
pub(crate) fn script() -> &'static LiveScript {
    static PREPARED: LazyLock<LiveScript> = LazyLock::new(|| {
        let text = text();
        let parts = Parts {
            status: 200,
            media_type: "text/javascript; charset=utf-8",
            fields: &[("Cache-Control", "public, max-age=31536000, immutable")],
            body: text.clone().into(),
            last_modified: None,
            compressible: true,
        };
        let small = smallest_brotli(text.as_bytes());
        let small = small.map(|small| (Coding::Brotli, Body::Bytes(small.into())));
        let path = format!("{FOLDER}live.{}.js", &entity_tag(text.as_bytes())[1..17]);
        let content = Content {
            identity: Body::Bytes(text.into()),
            codings: small.into_iter().collect(),
        };
        LiveScript {
            path,
            prepared: Arc::new(Prepared::with_content(&parts, content)),
        }
    });
    &PREPARED
}

/// The text of the script, without comments, without white space at the beginning of lines, and
/// without the ends of lines behind which a statement or a list goes on.
fn text() -> String {
    let lines = PARTS.iter().flat_map(|part| part.lines()).map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with("//"));
    let end = |line: &str| match line.ends_with([';', '{', ',', '(']) {
        true => "",
        false => "\n",
    };
    lines.flat_map(|line| [line, end(line)]).collect()
}

/// Adds the script to a page, at the end of its body. Returns what the entity tag is of, and the
/// page: the script is told the tag, which is that of the page without it.
pub(crate) fn with_script(page: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let path = &script().path;
    let tagged = [page, path.as_bytes()].concat();
    let tag = entity_tag(&tagged);
    let tag = tag.trim_matches('"');
    let element = format!("<script type=\"module\" src=\"{path}\" data-tag=\"{tag}\"></script>");
    (tagged, insert(page, element.as_bytes()))
}

/// Returns `page` with an element before the last `</body>`, or at its end.
pub(crate) fn insert(page: &[u8], element: &[u8]) -> Vec<u8> {
    let end = b"</body";
    let at = page
        .windows(end.len())
        .rposition(|part| part.eq_ignore_ascii_case(end));
    let (before, after) = page.split_at(at.unwrap_or(page.len()));
    [before, element, after].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_stands_at_the_end_of_the_body_and_knows_the_tag() {
        for (page, before, after) in [
            ("<body>a</body></html>", "<body>a", "</body></html>"),
            ("a", "a", ""),
            ("", "", ""),
        ] {
            let (tagged, whole) = with_script(page.as_bytes());
            let tag = entity_tag(&tagged);
            let path = &script().path;
            let element =
                format!("<script type=\"module\" src=\"{path}\" data-tag={tag}></script>");
            assert_eq!(
                String::from_utf8(whole).unwrap(),
                format!("{before}{element}{after}")
            );
        }
    }

    #[test]
    fn the_script_is_small() {
        let packed = smallest_brotli(text().as_bytes());
        let len = packed.map_or(0, |packed| packed.len());
        assert!((1..=4608).contains(&len), "{len} bytes");
    }
}
