//! Facts of a request by which admission goes.

use std::{net::Ipv4Addr, time::Duration};

use base_clock::Boottime;
use millpond_http::{Client, Request, says_crawler};
use millpond_pages::{Arrival, Priority};

use crate::core::Core;
use millpond_site_compile::page::Page;

/// Returns the priority of a request for a page, as its fields tell (Fetch Metadata; a client that
/// sends none is a person's as well as any).
pub(crate) fn priority_of(request: &Request<'_>, is_api: bool) -> Priority {
    let field = |name: &str| request.fields.get(name).unwrap_or_default();
    let is_ahead = ["sec-purpose", "purpose", "x-moz"].iter().any(|name| {
        let value = field(name);
        value.starts_with(b"prefetch") || value.starts_with(b"prerender")
    });
    if says_crawler(request) {
        Priority::Bot
    } else if is_ahead {
        Priority::Prefetch
    } else if is_api || !matches!(field("sec-fetch-dest"), b"" | b"document" | b"iframe") {
        Priority::Resource
    } else {
        Priority::Document
    }
}

/// A request with a priority.
pub(crate) fn arrival_of(
    core: &Core,
    request: &Request<'_>,
    priority: Priority,
    page: &Page,
) -> Arrival {
    let client = request.client();
    Arrival {
        priority,
        client: client.network(),
        is_exempt: client.is_exempt(&core.exempt),
        at: request.received,
        cost: page.counters.mean_fill(),
    }
}

/// The work of the server itself.
pub(crate) fn own_arrival(cost: Duration) -> Arrival {
    Arrival {
        priority: Priority::Ahead,
        client: Client::new(Ipv4Addr::LOCALHOST.into()).network(),
        is_exempt: true,
        at: Boottime::now(),
        cost,
    }
}

#[cfg(test)]
mod tests {
    use millpond_http::OwnedRequest;

    use super::*;

    #[test]
    fn a_request_says_what_it_is_for() {
        for (name, value, expected) in [
            ("Accept", "text/html", Priority::Document),
            ("Sec-Fetch-Dest", "document", Priority::Document),
            ("Sec-Fetch-Dest", "image", Priority::Resource),
            ("Sec-Fetch-Dest", "empty", Priority::Resource),
            ("Sec-Purpose", "prefetch;prerender", Priority::Prefetch),
            (
                "User-Agent",
                "Mozilla/5.0 (compatible; GoogleBot/2.1)",
                Priority::Bot,
            ),
            (
                "User-Agent",
                "Mozilla/5.0 (X11; Linux x86_64)",
                Priority::Document,
            ),
        ] {
            let request = OwnedRequest::new("GET", "/").field(name, value);
            assert_eq!(
                priority_of(&request.as_request(), false),
                expected,
                "{name}: {value}"
            );
        }
    }
}
