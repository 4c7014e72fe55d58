//! Bytes to a request, and paths to their normal form.

use std::hint::black_box;

use millpond_http::{parts::Heads, path::normalize};

/// As wrk sends it.
pub(super) const WRK: &str = "GET /files/0123.txt HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n";

/// Head that Firefox and Chromium send for a page that they have, from the same site.
const BROWSER: &str = "\
GET /read?id=50000123 HTTP/1.1\r\n\
Host: magazine.example\r\n\
User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\r\n\
Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8\r\n\
Accept-Language: en-GB,en;q=0.7,de;q=0.3\r\n\
Accept-Encoding: gzip, deflate, br, zstd\r\n\
Referer: https://magazine.example/\r\n\
Connection: keep-alive\r\n\
Cookie: theme=dark; session=9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822c\r\n\
Upgrade-Insecure-Requests: 1\r\n\
Sec-Fetch-Dest: document\r\n\
Sec-Fetch-Mode: navigate\r\n\
Sec-Fetch-Site: same-origin\r\n\
Sec-Fetch-User: ?1\r\n\
If-None-Match: \"W2ZJrVlNkT0wJp8bq5rC1A\"\r\n\
Priority: u=0, i\r\n\
\r\n";

pub(super) fn parse_wrk() -> Box<dyn FnMut()> {
    parse(WRK, 1)
}

pub(super) fn parse_browser() -> Box<dyn FnMut()> {
    parse(BROWSER, 15)
}

fn parse(head: &'static str, fields: usize) -> Box<dyn FnMut()> {
    let mut heads = Heads::new();
    assert_eq!(heads.parse(head.as_bytes()), Some(fields));
    Box::new(move || {
        black_box(heads.parse(black_box(head.as_bytes())));
    })
}

pub(super) fn normalize_plain() -> Box<dyn FnMut()> {
    path("/articles/2026/tides", "/articles/2026/tides")
}

pub(super) fn normalize_escaped() -> Box<dyn FnMut()> {
    path(
        "/articles/./old/../caf%C3%A9%20au%20lait",
        "/articles/café au lait",
    )
}

fn path(raw: &'static str, normal: &str) -> Box<dyn FnMut()> {
    assert_eq!(normalize(raw).as_deref(), Ok(normal));
    Box::new(move || {
        let _ = black_box(normalize(black_box(raw)));
    })
}
