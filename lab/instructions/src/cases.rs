//! What is counted: the steps of a hit by themselves, and whole hits.

mod connection;
mod folder;
mod head;
mod http2_client;
mod response;
mod service;
mod store;

use crate::counted::counted_instructions;

/// Something whose instructions are counted.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// In a few words.
    pub(crate) what: &'static str,
    kind: CaseKind,
}

enum CaseKind {
    /// Makes the work; it is done once before it is counted.
    Work(fn() -> Box<dyn FnMut()>),
    /// Serves this number of requests over a socket; the worker's whole thread is counted.
    Served(fn(u32)),
}

const fn work(name: &'static str, what: &'static str, make: fn() -> Box<dyn FnMut()>) -> Case {
    Case {
        name,
        what,
        kind: CaseKind::Work(make),
    }
}

const fn served(name: &'static str, what: &'static str, serve: fn(u32)) -> Case {
    Case {
        name,
        what,
        kind: CaseKind::Served(serve),
    }
}

/// All of them, the smallest first.
pub(crate) static CASES: &[Case] = &[
    work(
        "normalize-plain",
        "a path that is in its normal form",
        head::normalize_plain,
    ),
    work(
        "normalize-escaped",
        "a path with escapes and dot segments",
        head::normalize_escaped,
    ),
    work(
        "parse-wrk",
        "a head as wrk sends it, to a request",
        head::parse_wrk,
    ),
    work(
        "parse-browser",
        "a head as browsers send it, to a request",
        head::parse_browser,
    ),
    work(
        "respond-plain",
        "a response for a client without wishes",
        response::plain,
    ),
    work(
        "respond-coded",
        "a response in the best of three codings",
        response::coded,
    ),
    work(
        "respond-unchanged",
        "304 for If-None-Match",
        response::unchanged,
    ),
    work("respond-range", "206 for one range", response::range),
    work("store-hit", "one of 1,000 stored entries", store::hit),
    work(
        "static-call",
        "path, route and one of 1,000 static files, to a response",
        service::static_file,
    ),
    work(
        "page-call",
        "path, route, key and one of 100 stored pages, to a response",
        service::page,
    ),
    served(
        "static-hit",
        "a static file over a connection, from its bytes to the system call that sends it",
        connection::static_file,
    ),
    served(
        "static-pipelined",
        "the same, 16 requests deep",
        connection::pipelined,
    ),
    served(
        "page-hit",
        "a stored page over a connection",
        connection::page,
    ),
    served(
        "http2-hit",
        "a static file over a connection of HTTP/2 in clear text, one stream at a time",
        connection::http2_file,
    ),
    served(
        "http2-indexed",
        "the same, with heads as h2load sends them",
        connection::http2_indexed,
    ),
    served(
        "http2-streams",
        "16 of these streams at once, without indexes",
        connection::http2_streams,
    ),
    served(
        "http2-page-hit",
        "a stored page over such a connection, one stream at a time",
        connection::http2_page,
    ),
];

impl Case {
    /// Two numbers of repetitions. Only their difference counts: one-time work is in both.
    pub(crate) const fn repetitions(&self) -> (u32, u32) {
        match self.kind {
            // Multiples of 1,000, so that each file and entry is met equally often.
            CaseKind::Work(_) => (1000, 11_000),
            // Multiples of 16, for the pipeline; large enough that each of 1,000 files has been
            // requested often enough to be cached.
            CaseKind::Served(_) => (3072, 7168),
        }
    }

    /// Does it `times` times, counted.
    pub(crate) fn run(&self, times: u32) {
        match self.kind {
            CaseKind::Work(make) => {
                let mut work = make();
                work();
                counted_instructions(times, &mut *work);
            }
            CaseKind::Served(serve) => serve(times),
        }
    }
}
