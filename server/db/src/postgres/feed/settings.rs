//! What the feed is told when it starts.

use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use tokio_postgres::Config;

use crate::FeedKind;

/// How the feed reaches its server.
#[derive(Clone)]
pub(crate) struct FeedSettings {
    /// Address and user. Of several hosts the first that is a primary is taken.
    pub(crate) config: Config,
    /// Whom to trust, if `config` asks for TLS.
    pub(crate) tls: Arc<ClientConfig>,
    /// This node's own name, 16 hexadecimal digits.
    pub(crate) node: String,
    /// How the server reports changes.
    pub(crate) kind: FeedKind,
    /// The publication that has the tables in it, for logical replication.
    pub(crate) publication: String,
    /// From one heartbeat to the next: see [`heartbeat_for`].
    pub(crate) heartbeat: Duration,
    /// After such a silence the server ends the stream of this node, and this node its connections.
    pub(crate) wal_sender_timeout: Duration,
}

/// How often a heartbeat goes out, so that one that is late does no harm: ten times within the
/// bound, but not more than fifty times in a second, and at least twice.
pub(crate) fn heartbeat_for(max_staleness: Duration) -> Duration {
    (max_staleness / 10).clamp(Duration::from_millis(20), Duration::from_millis(500))
}
