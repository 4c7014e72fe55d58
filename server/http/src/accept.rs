//! What kind of answer a client prefers by its `Accept`: one for programs or one for people.

use memchr::memchr2_iter;

use crate::request::Request;

/// True if an answer for a program suits this client better than one for a person: its `Accept`
/// prefers JSON to HTML, or it sends a token and does not name HTML.
#[must_use]
pub fn prefers_json(request: &Request<'_>) -> bool {
    let is_json = json_preference(request) > preference(request, "text/html");
    is_json || (has_token(request) && !names_html(request))
}

/// True if a client sends JSON, takes it too, and does not name HTML. Never one that sends GET or
/// HEAD: so no response that a cache keeps depends on `Content-Type`.
#[must_use]
pub fn sends_json(request: &Request<'_>) -> bool {
    let media_type = request.fields.get("content-type").unwrap_or_default();
    let media_type = media_type.split(|&byte| byte == b';').next();
    let media_type = media_type.unwrap_or_default().trim_ascii();
    let takes_json = request.fields.get("accept").is_none() || json_preference(request).0 > 0;
    !matches!(request.method, "GET" | "HEAD")
        && media_type.eq_ignore_ascii_case(b"application/json")
        && takes_json
        && !names_html(request)
}

fn json_preference(request: &Request<'_>) -> (u16, u8) {
    let plain = preference(request, "application/json");
    plain.max(preference(request, "application/problem+json"))
}

/// True if a client sends a token (RFC 6750), as no browser does by itself. It makes no difference
/// whether the service takes tokens: what sends one is a program.
fn has_token(request: &Request<'_>) -> bool {
    let mut lines = request.fields.get_all("authorization");
    lines.any(|line| {
        let scheme = line.get(..7);
        scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"bearer "))
    })
}

/// True if a client says itself that it is a crawler: its `User-Agent` has one of the words that
/// crawlers use for themselves.
#[must_use]
pub fn says_crawler(request: &Request<'_>) -> bool {
    // Each word with a letter in it that is rare among browsers, and the letter's place.
    const WORDS: [(&[u8], usize); 3] = [(b"bot", 0), (b"crawl", 3), (b"spider", 3)];
    let agent = request.fields.get("user-agent").unwrap_or_default();
    WORDS.iter().any(|(word, at)| {
        let letter = word[*at];
        let mut places = memchr2_iter(letter, letter.to_ascii_uppercase(), agent);
        places.any(|place| {
            let start = place.checked_sub(*at);
            let found = start.and_then(|start| agent.get(start..start + word.len()));
            found.is_some_and(|found| found.eq_ignore_ascii_case(word))
        })
    })
}

/// True if a client names HTML among what it takes, as a browser does that goes to a page.
#[must_use]
pub fn names_html(request: &Request<'_>) -> bool {
    let (weight, exactness) = preference(request, "text/html");
    weight > 0 && exactness == 2
}

/// How much a client wants a media type by its `Accept` (RFC 9110 section 12.5.1): the weight in
/// thousandths, then how exactly it is named. *Counterexample* by the weight alone: `Accept:
/// application/json, */*`, which many clients send who cannot read HTML.
fn preference(request: &Request<'_>, media_type: &str) -> (u16, u8) {
    let kind = media_type.split('/').next().unwrap_or_default();
    let lines = request.fields.get_all("accept");
    let lines = lines.filter_map(|line| std::str::from_utf8(line).ok());
    let ranges = lines.flat_map(|line| line.split(','));
    let matching = ranges.filter_map(|range| {
        let (range, parameters) = range.split_once(';').unwrap_or((range, ""));
        let range = range.trim();
        let exactness = match range.strip_suffix("/*") {
            Some("*") => 0,
            Some(of) if of.eq_ignore_ascii_case(kind) => 1,
            None if range.eq_ignore_ascii_case(media_type) => 2,
            _ => return None,
        };
        Some((exactness, weight(parameters)))
    });
    // The range that names the type most exactly decides.
    let found = matching.max();
    found.map_or((0, 0), |(exactness, weight)| (weight, exactness))
}

/// The weight among the parameters of a range, in thousandths.
fn weight(parameters: &str) -> u16 {
    let mut parameters = parameters.split(';').filter_map(|one| one.split_once('='));
    let q = parameters.find(|(name, _)| name.trim().eq_ignore_ascii_case("q"));
    let weight = q.map(|(_, value)| value.trim().parse::<f32>().unwrap_or(0.0));
    (weight.unwrap_or(1.0).clamp(0.0, 1.0) * 1000.0) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OwnedRequest;

    #[test]
    fn a_client_that_prefers_json_gets_json() {
        for (accept, expected) in [
            (None, false),
            (Some(""), false),
            (Some("*/*"), false),
            (Some("application/json"), true),
            (Some("application/problem+json"), true),
            (Some("APPLICATION/JSON;q=0.5"), true),
            (Some("application/json, text/plain, */*"), true),
            (Some("application/*"), true),
            (Some("text/html"), false),
            (Some("text/html,application/json"), false),
            (Some("text/html;q=0.9, application/json"), true),
            (Some("text/*, application/json"), true),
            (Some("text/html,application/xhtml+xml,*/*;q=0.8"), false),
            (Some("application/json;q=0, */*"), false),
            (Some("application/json;q=x, */*;q=0.1"), false),
            (Some("text/html;q=NaN, application/json;q=2"), true),
        ] {
            let request = OwnedRequest::new("GET", "/");
            let request = match accept {
                Some(accept) => request.field("Accept", accept),
                None => request,
            };
            let found = prefers_json(&request.as_request());
            assert_eq!(found, expected, "{accept:?}");
        }
    }

    #[test]
    fn a_client_with_a_token_gets_json_unless_it_asks_for_html() {
        for (token, accept, expected) in [
            ("Bearer x", None, true),
            ("bearer x", Some("*/*"), true),
            ("Bearer x", Some("text/html,*/*;q=0.8"), false),
            ("Bearer x", Some("text/html;q=0, */*"), true),
            ("Basic x", None, false),
            ("Bearerx", None, false),
        ] {
            let request = OwnedRequest::new("GET", "/").field("Authorization", token);
            let request = match accept {
                Some(accept) => request.field("Accept", accept),
                None => request,
            };
            let found = prefers_json(&request.as_request());
            assert_eq!(found, expected, "{token} {accept:?}");
        }
    }

    #[test]
    fn a_client_that_sends_json_gets_json_unless_it_asks_for_html() {
        let json = "application/json";
        for (method, content, accept, expected) in [
            ("POST", json, None, true),
            ("POST", json, Some("*/*"), true),
            ("PUT", "Application/JSON; charset=utf-8", Some("*/*"), true),
            ("POST", json, Some("text/html, */*"), false),
            ("POST", json, Some("text/html;q=0, */*"), true),
            ("POST", json, Some("text/plain"), false),
            ("POST", json, Some("application/json;q=0"), false),
            ("POST", "application/jsonx", Some("*/*"), false),
            ("POST", "application/x-www-form-urlencoded", None, false),
            ("GET", json, Some("*/*"), false),
            ("HEAD", json, None, false),
        ] {
            let request = OwnedRequest::new(method, "/").field("Content-Type", content);
            let request = match accept {
                Some(accept) => request.field("Accept", accept),
                None => request,
            };
            let found = sends_json(&request.as_request());
            assert_eq!(found, expected, "{method} {content} {accept:?}");
        }
    }
}
