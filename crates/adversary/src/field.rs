//! Where it is fought: what all threads share.

use std::net::SocketAddr;
use std::time::Duration;

use crate::log::Log;
use crate::span::Span;

/// A server under attack, as its visitors see it.
pub(crate) trait Target: Send + Sync {
    /// Where it listens now; a node that was killed comes back elsewhere.
    fn address(&self) -> SocketAddr;
    /// Its `max_staleness`.
    fn bound(&self) -> Duration;
}

/// The nodes, the log, and how long it lasts.
pub(crate) struct Field {
    pub(crate) nodes: Vec<Box<dyn Target>>,
    pub(crate) log: Log,
    pub(crate) span: Span,
}

impl Field {
    /// With the world as [`create`](crate::world::create) has made it a moment ago.
    pub(crate) fn new(nodes: Vec<Box<dyn Target>>) -> Self {
        Self {
            nodes,
            log: Log::new(),
            span: Span::default(),
        }
    }
}
