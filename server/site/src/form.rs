//! A form's body, and whether a page of this site has sent it.

pub(crate) mod body;
pub(crate) mod json;
pub(crate) mod refused;
pub(crate) mod refused_page;
pub(crate) mod refused_redirect;
pub(crate) mod sign;
pub(crate) mod submit;
pub(crate) mod write_answer;

use std::{borrow::Cow, convert::Infallible};

use bytes::Bytes;
use millpond_http::Request;

/// A form may not have more fields than this.
pub(crate) const MAX_FIELDS: usize = 1000;

/// Why a body is refused: the status and the sentence for the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused(pub(crate) u16, pub(crate) &'static str);

/// Name and value of each field. What has no escape in a body is not copied.
pub(crate) type Fields<'b> = Vec<(Cow<'b, str>, Cow<'b, str>)>;

/// Refuses a request that a page of another site has sent (coherence.md, rule 16). Browsers say
/// where a request comes from: newer ones in Sec-Fetch-Site (W3C Fetch Metadata), all of them in
/// the Origin of a POST (Fetch, section 3.2). Every line of both must name this site. A client that
/// sends neither is no browser and carries no visitor's cookies.
///
/// A page with `Referrer-Policy: no-referrer` sends its own form with `Origin: null`, as a page
/// without an origin does; Sec-Fetch-Site tells them apart.
pub(crate) fn guard(request: &Request<'_>) -> Result<(), Refused> {
    let mut sites = request.fields.get_all("sec-fetch-site").peekable();
    let has_site = sites.peek().is_some();
    let is_own_site = sites.all(|site| matches!(site, b"same-origin" | b"none"));
    let is_own = |origin: &[u8]| match std::str::from_utf8(origin) {
        Ok("null") => has_site,
        Ok(origin) => is_own_origin(request, origin),
        Err(_) => false,
    };
    if is_own_site && request.fields.get_all("origin").all(is_own) {
        Ok(())
    } else {
        Err(Refused(403, "This was sent from another site."))
    }
}

/// True unless a page of another site has sent a request, by the rule for forms.
#[must_use]
pub fn is_from_own_page(request: &Request<'_>) -> bool {
    guard(request).is_ok()
}

/// Returns true if an origin is the one that was asked: its scheme, host and port. Where a proxy
/// ends TLS the scheme is not known here, and either will do.
pub(crate) fn is_own_origin(request: &Request<'_>, origin: &str) -> bool {
    let Some((scheme, from)) = origin.split_once("://") else {
        return false;
    };
    let default_port = match scheme {
        "https" => ":443",
        "http" if !request.is_secure => ":80",
        _ => return false,
    };
    let without_port = |host: &str| host.strip_suffix(default_port).unwrap_or(host).to_owned();
    let host = request.host().map(without_port);
    host.is_some_and(|host| without_port(from).eq_ignore_ascii_case(&host))
}

/// Refuses a form with a condition that does not hold or cannot be decided: the method must not be
/// performed then (RFC 9110 sections 13.1.1 and 13.1.2). A form changes the database. The tag of
/// the page at the form's address, if there is one, belongs to a text made from the database, which
/// is not made here.
///
/// Without a page there is no representation, so no tag matches: If-Match never holds,
/// If-None-Match always. Dates are ignored, since pages have none (sections 13.1.3 and 13.1.4).
pub(crate) fn preconditions(request: &Request<'_>, has_page: bool) -> Result<(), Refused> {
    let has = |name| request.fields.get(name).is_some();
    if has("if-match") || (has_page && has("if-none-match")) {
        return Err(Refused(
            412,
            "If-Match and If-None-Match are not supported here.",
        ));
    }
    Ok(())
}

/// Encoding of a form.
#[derive(Clone, Debug)]
pub(crate) enum Encoding {
    Urlencoded,
    Multipart(String),
    /// It was read while it arrived.
    Read(Fields<'static>),
}

/// The encoding that the request declares.
pub(crate) fn encoding(request: &Request<'_>) -> Result<Encoding, Refused> {
    let declared = request
        .fields
        .get("content-type")
        .and_then(|value| std::str::from_utf8(value).ok())
        .unwrap_or_default();
    let media_type = declared.split(';').next().unwrap_or_default().trim();
    if media_type.eq_ignore_ascii_case("application/x-www-form-urlencoded")
        || (media_type.is_empty() && request.body.is_empty())
    {
        return Ok(Encoding::Urlencoded);
    }
    if media_type.eq_ignore_ascii_case("multipart/form-data") {
        return multer::parse_boundary(declared)
            .map(Encoding::Multipart)
            .map_err(|_| Refused(400, "The form has no boundary."));
    }
    Err(Refused(
        415,
        "A body is application/json, application/x-www-form-urlencoded or multipart/form-data.",
    ))
}

/// Reads the fields of a form. The files of a multipart form give their contents, which must be
/// text. In a field that is no file, each end of a line is one line feed.
pub(crate) async fn read(encoding: Encoding, body: &Bytes) -> Result<Fields<'_>, Refused> {
    let fields: Fields<'_> = match encoding {
        Encoding::Urlencoded => {
            let fields = form_urlencoded::parse(body).take(MAX_FIELDS + 1);
            fields
                .map(|(name, text)| (name, unix_lines(text)))
                .collect()
        }
        Encoding::Multipart(boundary) => multipart(boundary, body.clone()).await?,
        Encoding::Read(fields) => fields,
    };
    if fields.len() > MAX_FIELDS {
        Err(Refused(400, "The form has too many fields."))
    } else {
        Ok(fields)
    }
}

/// The text with a line feed for each CR LF and each lone CR. Browsers send CR LF (HTML standard,
/// "constructing the entry list"), and count one for it in `maxlength`.
pub(crate) fn unix_lines(text: Cow<'_, str>) -> Cow<'_, str> {
    if !text.contains('\r') {
        return text;
    }
    let (mut lines, mut rest) = (String::with_capacity(text.len()), &*text);
    while let Some((line, behind)) = rest.split_once('\r') {
        lines.push_str(line);
        lines.push('\n');
        rest = behind.strip_prefix('\n').unwrap_or(behind);
    }
    lines.push_str(rest);
    Cow::Owned(lines)
}

async fn multipart(boundary: String, body: Bytes) -> Result<Fields<'static>, Refused> {
    let broken = |_| Refused(400, "The form cannot be read.");
    let stream = Pieces(body);
    let mut parts = multer::Multipart::new(stream, boundary);
    let mut fields = Fields::new();
    while let Some(part) = parts.next_field().await.map_err(broken)? {
        let Some(name) = part.name().map(str::to_owned) else {
            return Err(Refused(400, "A part of the form has no name."));
        };
        let is_file = part.file_name().is_some();
        let value = part.bytes().await.map_err(broken)?;
        // Without a copy if the parser keeps no part of it.
        let value = String::from_utf8(value.into())
            .map_err(|_| Refused(400, "A field of the form is not UTF-8."))?;
        let value = match is_file {
            true => value.into(),
            false => unix_lines(value.into()),
        };
        fields.push((name.into(), value));
        if fields.len() > MAX_FIELDS {
            break;
        }
    }
    Ok(fields)
}

/// A piece of a body that the parser gets at a time. It copies what it has not given out yet.
const PIECE: usize = 64 << 10;

/// The body, which has arrived whole, as the stream that the parser wants.
struct Pieces(Bytes);

impl futures_core::Stream for Pieces {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        let len = self.0.len().min(PIECE);
        let piece = self.0.split_to(len);
        std::task::Poll::Ready((len > 0).then_some(Ok(piece)))
    }
}

#[cfg(test)]
mod tests {
    use millpond_http::OwnedRequest;

    use super::*;

    fn post(fields: &[(&str, &str)]) -> OwnedRequest {
        let request = OwnedRequest::new("POST", "/comment").field("Host", "site.example:8080");
        fields
            .iter()
            .fold(request, |request, (name, value)| request.field(name, value))
    }

    #[test]
    fn a_form_is_not_done_under_a_condition_that_may_be_false() {
        for (name, without_page, with_page) in [
            ("If-Match", false, false),
            ("If-None-Match", true, false),
            ("If-Unmodified-Since", true, true),
            ("If-Modified-Since", true, true),
            ("If-Range", true, true),
        ] {
            for value in ["*", "\"a\"", "Sun, 06 Nov 1994 08:49:37 GMT"] {
                let owned = post(&[(name, value)]);
                let holds = |has_page| preconditions(&owned.as_request(), has_page).is_ok();
                assert_eq!(
                    (holds(false), holds(true)),
                    (without_page, with_page),
                    "{name}"
                );
            }
        }
    }

    #[test]
    fn only_this_site_may_post() {
        for (fields, allowed) in [
            (&[][..], true),
            (&[("Sec-Fetch-Site", "same-origin")][..], true),
            (&[("Sec-Fetch-Site", "none")], true),
            (&[("Sec-Fetch-Site", "cross-site")], false),
            (
                &[
                    ("Sec-Fetch-Site", "same-site"),
                    ("Origin", "http://site.example:8080"),
                ],
                false,
            ),
            (
                &[
                    ("Sec-Fetch-Site", "same-origin"),
                    ("Origin", "http://site.example:8080"),
                ],
                true,
            ),
            (
                &[("Sec-Fetch-Site", "same-origin"), ("Origin", "null")],
                true,
            ),
            (
                &[("Sec-Fetch-Site", "cross-site"), ("Origin", "null")],
                false,
            ),
            (
                &[
                    ("Sec-Fetch-Site", "same-origin"),
                    ("Origin", "http://evil.example"),
                ],
                false,
            ),
            (
                &[
                    ("Sec-Fetch-Site", "same-origin"),
                    ("Sec-Fetch-Site", "cross-site"),
                ],
                false,
            ),
            (
                &[
                    ("Origin", "http://site.example:8080"),
                    ("Origin", "http://evil.example"),
                ],
                false,
            ),
            (&[("Origin", "http://site.example:8080")], true),
            (&[("Origin", "https://SITE.example:8080")], true),
            (&[("Origin", "http://site.example")], false),
            (&[("Origin", "null")], false),
            (&[("Origin", "http://evil.example")], false),
            (
                &[("Origin", "http://site.example:8080.evil.example")],
                false,
            ),
        ] {
            assert_eq!(
                guard(&post(fields).as_request()).is_ok(),
                allowed,
                "{fields:?}"
            );
        }
    }

    /// *Counterexample*: over TLS an `Origin` of http was this site's own.
    #[test]
    fn an_origin_has_the_scheme_and_the_port_of_the_connection() {
        for (host, origin, plain, secure) in [
            ("a.example", "https://a.example", true, true),
            ("a.example", "http://a.example", true, false),
            ("a.example", "HTTP://a.example", false, false),
            ("a.example", "ftp://a.example", false, false),
            ("a.example", "//a.example", false, false),
            ("a.example:443", "https://a.example", true, true),
            ("a.example", "https://a.example:443", true, true),
            ("a.example:80", "http://a.example", true, false),
            ("a.example:443", "http://a.example", false, false),
            ("a.example:80", "https://a.example", false, false),
            ("a.example:8443", "https://a.example:8443", true, true),
            ("a.example:8443", "http://a.example:8443", true, false),
            ("a.example:8443", "https://a.example", false, false),
            ("[::1]:443", "https://[::1]", true, true),
        ] {
            let request = OwnedRequest::new("POST", "/").field("Host", host);
            let request = request.field("Origin", origin);
            let is_own = |request: OwnedRequest| guard(&request.as_request()).is_ok();
            assert_eq!(is_own(request.clone()), plain, "{host} {origin}");
            assert_eq!(is_own(request.over_tls()), secure, "TLS: {host} {origin}");
        }
    }

    #[test]
    fn fields_of_many_pieces_are_read() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        for len in (PIECE - 100..PIECE + 10).chain([3 * PIECE]) {
            let long = "y".repeat(len);
            let part = |name: &str, value: &str| {
                format!("--x\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
            };
            let body = part("a", &long) + &part("b", "end") + "--x--\r\n";
            let body = Bytes::from(body);
            let fields = runtime.block_on(read(Encoding::Multipart("x".into()), &body));
            let fields = fields.unwrap();
            assert!(fields[0] == ("a".into(), long.into()), "{len}");
            assert_eq!(fields[1..], [("b".into(), "end".into())]);
        }
    }

    #[test]
    fn forms_are_read() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let body = Bytes::from_static(b"a=1+2&b=%26&a=");
        let fields = runtime.block_on(read(Encoding::Urlencoded, &body));
        assert_eq!(
            fields.unwrap(),
            [
                ("a".into(), "1 2".into()),
                ("b".into(), "&".into()),
                ("a".into(), "".into())
            ] as [(Cow<str>, Cow<str>); 3]
        );
        let body = Bytes::from(
            "--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--x\r\nContent-Disposition: form-data; name=\"f\"; filename=\"t.txt\"\r\n\r\nhello\r\n--x--\r\n",
        );
        let request =
            post(&[("Content-Type", "multipart/form-data; boundary=x")]).body(body.clone());
        let fields = runtime.block_on(read(encoding(&request.as_request()).unwrap(), &body));
        assert_eq!(
            fields.unwrap(),
            [("a".into(), "1".into()), ("f".into(), "hello".into())] as [(Cow<str>, Cow<str>); 2]
        );
        let body = Bytes::from_static(b"a=1%0D%0A%0D2%0A%0D%0D%0A3");
        let fields = runtime.block_on(read(Encoding::Urlencoded, &body));
        assert_eq!(fields.unwrap()[..], [("a".into(), "1\n\n2\n\n\n3".into())]);
        let part = |head: &str| {
            format!("--x\r\nContent-Disposition: form-data; name=\"a\"{head}\r\n\r\n1\r\n2\r3\r\n")
        };
        let body = part("") + &part("; filename=\"t.txt\"") + "--x--\r\n";
        let body = Bytes::from(body);
        let fields = runtime.block_on(read(Encoding::Multipart("x".into()), &body));
        assert_eq!(
            fields.unwrap()[..],
            [
                ("a".into(), "1\n2\n3".into()),
                ("a".into(), "1\r\n2\r3".into())
            ]
        );
        let cut = Bytes::from_static(b"--x\r\nContent-Dispo");
        let cut = runtime.block_on(read(Encoding::Multipart("x".into()), &cut));
        assert_eq!(cut, Err(Refused(400, "The form cannot be read.")));
        let many = Bytes::from("a&".repeat(2000));
        assert_eq!(
            runtime.block_on(read(Encoding::Urlencoded, &many)),
            Err(Refused(400, "The form has too many fields."))
        );
        assert_eq!(
            encoding(&post(&[("Content-Type", "text/plain")]).as_request()).err(),
            Some(Refused(
                415,
                "A body is application/json, application/x-www-form-urlencoded or multipart/form-data."
            ))
        );
    }
}
