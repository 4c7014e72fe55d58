//! The `robots.txt` of a site that has none (RFC 9309).

use std::fmt::Write as _;

use crate::page::Endpoint;
use millpond_site_format::route::Segment;

/// Asks crawlers to stay away from the pages with `-- crawl: no`, with any query; none if there are
/// no such pages.
pub fn robots(endpoints: &[Endpoint]) -> Option<String> {
    let mut text = "User-agent: *\n".to_owned();
    let mut is_any = false;
    let pages = endpoints.iter();
    for endpoint in pages.filter(|it| it.page.as_ref().is_some_and(|page| page.is_uncrawled)) {
        is_any = true;
        let mut path = String::new();
        for segment in &endpoint.pattern.segments {
            match segment {
                Segment::Literal(literal) => path.extend(["/", literal]),
                Segment::Param(_) | Segment::Rest(_) => path.push_str("/*"),
            }
        }
        if path.is_empty() {
            path.push('/');
        }
        // RFC 9309 section 2.2.3: `$` is the end, so that `/search` does not forbid `/searching`.
        let _ = write!(text, "Disallow: {path}$\nDisallow: {path}?\n");
    }
    is_any.then_some(text)
}
