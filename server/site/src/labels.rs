//! Labels by which the connections count the requests of a site: the site, the route, the kind of
//! client, and how the request was answered.
//!
//! A label is a number, so that a response can carry it. The route has a number of the site, which
//! it keeps while the site runs; it is the route of a file in `pages/`, never the path or the host
//! of a request.

use std::{
    cell::Cell,
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use millpond_http::{Reply, Request, Response, says_crawler};
use millpond_pages::CacheStatus;
use millpond_site_compile::compile::Pages;
use parking_lot::Mutex;

/// Routes of one site that have a number of their own.
const MOST_ROUTES: usize = 4096;
/// Bits of a label, from the lowest: outcome, crawler, route, site.
const CRAWLER: u32 = 4;
const ROUTE: u32 = 5;
const SITE: u32 = 18;
/// Number of routes for which there is no other.
const OTHER: u32 = (1 << (SITE - ROUTE)) - 1;
/// Sites that are told apart. One number is left out, with which a label could be that of
/// [`MERGED`](millpond_http::RequestCounts::MERGED).
const MOST_SITES: u32 = u32::MAX >> SITE;

const _: () = assert!((MOST_ROUTES as u32) < OTHER);

/// How a request was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum AnswerKind {
    /// Otherwise.
    Other = 1,
    /// From memory.
    Hit,
    /// The page was made for the request.
    Miss,
    /// Another request had begun to make the page.
    Waited,
    /// Made for the visitor alone.
    Private,
    /// Made past the store.
    Bypass,
    /// From memory, beyond the bound, because the database is away.
    Stale,
    /// A file.
    Static,
    /// The listing of a folder.
    Listing,
    /// The stream of a live page.
    Live,
    /// A form, or another write.
    Write,
    /// The client is led elsewhere.
    Redirect,
    /// Too much at once, or the database is away.
    Refused,
    /// Another error.
    Error,
}

/// Names of the outcomes; the first is that of none.
const NAMES: [&str; 15] = [
    "none", "other", "hit", "miss", "waited", "private", "bypass", "stale", "static", "listing",
    "live", "write", "redirect", "refused", "error",
];

impl From<CacheStatus> for AnswerKind {
    fn from(status: CacheStatus) -> Self {
        match status {
            CacheStatus::Hit => Self::Hit,
            CacheStatus::Collapsed => Self::Waited,
            CacheStatus::Made(..) | CacheStatus::Uncacheable => Self::Miss,
            CacheStatus::FirstPrivate | CacheStatus::Private => Self::Private,
            CacheStatus::OwnWrite | CacheStatus::Form | CacheStatus::Off => Self::Bypass,
        }
    }
}

impl AnswerKind {
    /// Returns the response with this outcome.
    #[inline]
    pub(crate) fn of(self, response: Response) -> Response {
        response.with_label(self as u32)
    }

    fn by_status(status: u16, is_write: bool) -> Self {
        match status {
            429 | 503 => Self::Refused,
            400.. => Self::Error,
            _ if is_write => Self::Write,
            301..=303 | 307 | 308 => Self::Redirect,
            _ => Self::Other,
        }
    }
}

/// Meaning of the label of a response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteName {
    /// The folder of the site, from that of the server; none for a single site.
    pub site: Option<Arc<str>>,
    /// The route, such as `/articles/{id}`; `other` for one of too many; none where no page is.
    pub route: Option<Arc<str>>,
    /// True if the client says that it is a crawler.
    pub is_crawler: bool,
    /// How the request was answered, such as `hit`, `miss` or `static`.
    pub outcome: &'static str,
}

impl RouteName {
    /// Reads a label, but for its site and its route.
    pub(crate) fn of(label: u32) -> Self {
        let outcome = (label & ((1 << CRAWLER) - 1)) as usize;
        Self {
            is_crawler: (label >> CRAWLER) & 1 == 1,
            outcome: NAMES.get(outcome).copied().unwrap_or(NAMES[0]),
            ..Self::default()
        }
    }
}

/// Returns the number of the site of a label.
pub(crate) const fn site_of(label: u32) -> usize {
    (label >> SITE) as usize
}

/// The numbers of a site's routes.
#[derive(Debug, Default)]
pub(crate) struct RouteNumbers {
    /// The number of the site, in its place.
    site: AtomicU32,
    /// The names by their numbers, from 1.
    names: Mutex<Vec<Arc<str>>>,
}

impl RouteNumbers {
    /// Gives the site a number, from 0; of too many sites the last ones have one together.
    pub(crate) fn set_site(&self, number: usize) {
        let number = u32::try_from(number).map_or(MOST_SITES, |number| number.min(MOST_SITES));
        let number = if number == MOST_SITES {
            number - 1
        } else {
            number
        };
        self.site.store(number << SITE, Ordering::Relaxed);
    }

    /// Returns the numbers of the pages' routes by the places of their endpoints. A route that has
    /// a number keeps it.
    pub(crate) fn of_pages(&self, pages: &Pages) -> Box<[u32]> {
        let mut names = self.names.lock();
        let endpoints = pages.endpoints.iter();
        let numbers = endpoints.map(|endpoint| {
            let route = endpoint.pattern.to_string();
            let at = match names.iter().position(|name| **name == *route) {
                None if names.len() >= MOST_ROUTES => return OTHER,
                None => {
                    names.push(route.into());
                    names.len() - 1
                }
                Some(at) => at,
            };
            u32::try_from(at + 1).unwrap_or(OTHER)
        });
        numbers.collect()
    }

    /// Returns the meaning of a label of this site.
    pub(crate) fn name(&self, label: u32) -> RouteName {
        let number = (label >> ROUTE) & OTHER;
        let route = match number {
            OTHER => Some(Arc::from("other")),
            _ => (number as usize)
                .checked_sub(1)
                .and_then(|at| self.names.lock().get(at).cloned()),
        };
        RouteName {
            route,
            ..RouteName::of(label)
        }
    }

    /// Returns what labels the response to a request, at the route of this number.
    #[inline]
    pub(crate) fn labeler(&self, request: &Request<'_>, route: u32) -> Labeler {
        let crawler = u32::from(says_crawler(request));
        let site = self.site.load(Ordering::Relaxed);
        Labeler {
            base: site | (route << ROUTE) | (crawler << CRAWLER),
            is_write: !matches!(request.method, "GET" | "HEAD" | "OPTIONS"),
        }
    }
}

/// The route of a request, once it is known: its number.
pub(crate) type KnownRoute = Cell<u32>;

/// Labels the response to one request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Labeler {
    /// The label without the outcome.
    base: u32,
    is_write: bool,
}

impl Labeler {
    /// Completes the label of a response, which has at most an outcome.
    #[inline]
    pub(crate) fn label(self, response: &mut Response) {
        let outcome = match response.label() & ((1 << CRAWLER) - 1) {
            0 => AnswerKind::by_status(response.status(), self.is_write) as u32,
            outcome => outcome,
        };
        response.set_label(self.base | outcome);
    }

    /// Completes the label of the response that a reply gives, now or later.
    #[inline]
    pub(crate) fn label_reply(self, reply: &mut Reply) {
        match reply {
            Reply::Ready(response) => self.label(response),
            Reply::Reusable(reply) => self.label(&mut reply.0),
            Reply::Later(future) => {
                let response = std::mem::replace(future, Box::pin(pending()));
                *reply = Reply::later(async move {
                    let mut response = response.await;
                    self.label(&mut response);
                    response
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use millpond_http::OwnedRequest;

    use super::*;

    fn label(routes: &RouteNumbers, agent: &str, route: u32, outcome: Option<AnswerKind>) -> u32 {
        let request = OwnedRequest::new("GET", "/").field("User-Agent", agent.as_bytes());
        let mut response = Response::text(200, "");
        if let Some(outcome) = outcome {
            response = outcome.of(response);
        }
        routes
            .labeler(&request.as_request(), route)
            .label(&mut response);
        response.label()
    }

    #[test]
    fn a_label_has_the_site_the_route_the_client_and_the_outcome() {
        let routes = RouteNumbers::default();
        routes.names.lock().push("/a/[id]".into());
        for (site, number) in [(0, 0), (7, 7), (1 << 20, MOST_SITES as usize - 1)] {
            routes.set_site(site);
            let hit = label(&routes, "Mozilla/5.0", 1, Some(AnswerKind::Hit));
            assert_eq!(site_of(hit), number);
            let name = routes.name(hit);
            assert_eq!(name.route.as_deref(), Some("/a/[id]"));
            assert_eq!((name.outcome, name.is_crawler), ("hit", false));
            let other = label(&routes, "x/1 (a GoogleBot)", OTHER, None);
            let name = routes.name(other);
            assert_eq!(name.route.as_deref(), Some("other"));
            assert_eq!((name.outcome, name.is_crawler), ("other", true));
            assert_ne!(other, u32::MAX);
            assert_eq!(routes.name(label(&routes, "", 0, None)).route, None);
        }
    }

    #[test]
    fn each_outcome_has_its_name() {
        for (outcome, name) in [
            (AnswerKind::Other, "other"),
            (AnswerKind::Static, "static"),
            (AnswerKind::Live, "live"),
            (AnswerKind::Refused, "refused"),
            (AnswerKind::Error, "error"),
        ] {
            assert_eq!(NAMES[outcome as usize], name);
        }
        for (status, is_write, outcome) in [
            (200, false, AnswerKind::Other),
            (303, true, AnswerKind::Write),
            (308, false, AnswerKind::Redirect),
            (304, false, AnswerKind::Other),
            (404, true, AnswerKind::Error),
            (503, false, AnswerKind::Refused),
        ] {
            assert_eq!(AnswerKind::by_status(status, is_write), outcome, "{status}");
        }
    }
}
