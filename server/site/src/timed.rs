//! `Server-Timing` of hits. A service of its own, so that a hit costs nothing where it is off.

use std::net::SocketAddr;

use millpond_http::{BodyHandling, Reply, Request, Response, Service};

/// `Cache-Status` of a hit, and what such a response gets.
const HIT: Option<&str> = Some("millpond; hit");
const LINE: &[u8] = b"Server-Timing: cache;desc=hit\r\n";

/// A service whose hits say that they are hits.
pub struct TimedService<S>(pub S);

impl<S: Service> Service for TimedService<S> {
    fn call(&self, request: &Request<'_>) -> Reply {
        match self.0.call(request) {
            Reply::Ready(response) => timed(response).into(),
            Reply::Reusable(mut reply) => {
                reply.0 = timed(reply.0);
                Reply::Reusable(reply)
            }
            later => later,
        }
    }

    fn body_begins(&self, request: &Request<'_>) -> BodyHandling {
        self.0.body_begins(request)
    }

    fn wants_done(&self) -> bool {
        self.0.wants_done()
    }

    fn done(&self, request: &Request<'_>, status: u16, body_bytes: u64, label: u32) {
        self.0.done(request, status, body_bytes, label);
    }

    fn refused(&self, peer: SocketAddr, status: u16) {
        self.0.refused(peer, status);
    }
}

fn timed(response: Response) -> Response {
    if response.field("cache-status") != HIT {
        return response;
    }
    let extra = [response.extra(), LINE].concat();
    response.with_extra(extra.into())
}
