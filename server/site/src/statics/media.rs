//! What is said of a file by its name: its media type, by the ending, and how long it may be kept.

use std::path::Path;

use millpond_http::is_compressible;

/// Type of a file by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Media {
    /// The value of Content-Type.
    pub(super) content_type: String,
    /// The value of Cache-Control.
    pub(super) cache_control: &'static str,
    /// True if compressing it is worth while.
    pub(super) compressible: bool,
}

/// `application/octet-stream` for an unknown ending. Text is taken to be UTF-8, which is nearly
/// always right.
pub(super) fn media_of(path: &Path, cache_control: &'static str) -> Media {
    let guess = mime_guess::from_path(path).first_or_octet_stream();
    // RFC 9239 section 6: the older names of JavaScript are aliases, and only this one takes the
    // charset with it.
    let essence = match guess.essence_str() {
        "application/javascript" | "application/x-javascript" => "text/javascript",
        other => other,
    };
    Media {
        cache_control,
        compressible: is_compressible(essence),
        content_type: if essence.starts_with("text/") {
            format!("{essence}; charset=utf-8")
        } else {
            essence.to_owned()
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types() {
        for (name, content_type, compressible) in [
            ("a.html", "text/html; charset=utf-8", true),
            ("a.CSS", "text/css; charset=utf-8", true),
            ("a.min.js", "text/javascript; charset=utf-8", true),
            ("a.mjs", "text/javascript; charset=utf-8", true),
            ("robots.txt", "text/plain; charset=utf-8", true),
            ("a.md", "text/markdown; charset=utf-8", true),
            ("a.json", "application/json", true),
            ("site.webmanifest", "application/manifest+json", true),
            ("a.svg", "image/svg+xml", true),
            ("a.xml", "text/xml; charset=utf-8", true),
            ("feed.atom", "application/atom+xml", true),
            ("a.wasm", "application/wasm", true),
            ("a.ttf", "font/ttf", true),
            ("a.woff2", "font/woff2", false),
            ("a.png", "image/png", false),
            ("a.avif", "image/avif", false),
            ("a.zip", "application/zip", false),
            ("a.html.gz", "application/gzip", false),
            ("LICENSE", "application/octet-stream", false),
            ("a.nonsense", "application/octet-stream", false),
        ] {
            let expected = Media {
                content_type: content_type.to_owned(),
                cache_control: "no-cache",
                compressible,
            };
            assert_eq!(media_of(Path::new(name), "no-cache"), expected, "{name}");
        }
    }
}
