//! Every limit of the server in one place: those an owner sets, and those that follow from the
//! protocol.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::client::Network;

/// Limits of a client on one connection, in size and time. Sizes are bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest request-target; beyond it 414. Default 8 KiB.
    pub target: usize,
    /// Longest head: request line, field lines, empty line; beyond it 431. Default 64 KiB.
    pub head: usize,
    /// Longest request body after decoding; beyond it 413. Default 1 MiB.
    pub body: usize,
    /// From the first byte of a head to its last; beyond it 408. Default 10 s.
    pub head_timeout: Duration,
    /// How long a body or a response may stand still. It is also the start credit of the minimum
    /// average rate of 1 KiB/s, so that a client which sends one byte now and then is bounded too.
    /// Beyond it 408 for a body; a response that the client does not read is dropped with its
    /// connection.
    /// Default 30 s.
    pub progress_timeout: Duration,
    /// How long a connection may be silent between requests; then it is closed without a word.
    /// Default 60 s.
    pub idle_timeout: Duration,
    /// Connections open at once, over all workers that share one
    /// [`WorkerGroup`](crate::WorkerGroup); one more is answered with 503 and closed. Default
    /// 10,000.
    pub connections: usize,
    /// How long requests in flight may take to finish after a shutdown was asked for. Default 10 s.
    pub drain_timeout: Duration,
    /// Limits of a client on all of its connections.
    pub client: ClientLimits,
    /// Proxies before the server.
    pub proxies: Proxies,
    /// True if a worker of which few ask looks for their next requests for up to 50 µs before it
    /// sleeps. It does so only while that finds them. Default true.
    pub spins: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            target: 8 << 10,
            head: 64 << 10,
            body: 1 << 20,
            head_timeout: Duration::from_secs(10),
            progress_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(60),
            connections: 10_000,
            drain_timeout: Duration::from_secs(10),
            client: ClientLimits::default(),
            proxies: Proxies::default(),
            spins: true,
        }
    }
}

/// Limits of one client over all workers that share one [`WorkerGroup`](crate::WorkerGroup). A
/// client is an address of IPv4, or a network of 64 bits of IPv6; all clients in a network of 56
/// bits together may have four times as much. 0 is no limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientLimits {
    /// Connections open at once; one more is answered with 503 and closed. Default 1,000.
    pub connections: usize,
    /// Requests a second, after a burst of those of four seconds; one more is answered with 429.
    /// Default 2,000.
    pub requests: usize,
    /// Requests a second with a method that may change something. Default 100.
    pub writes: usize,
    /// Bytes a second that are received and sent; beyond them the connections of the client pause.
    /// Default 125 MB, which is a gigabit.
    pub bytes: usize,
    /// Addresses without limits, beside those of the [`Proxies`]. Default: loopback.
    pub exempt: Vec<Network>,
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self {
            connections: 1000,
            requests: 2000,
            writes: 100,
            bytes: 125_000_000,
            exempt: Network::loopback(),
        }
    }
}

/// Proxies before the server: what they say of a client is believed. What others say is ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proxies {
    /// Peers whose connections begin with a header of the PROXY protocol, version 1 or 2. A
    /// connection of such a peer without one is closed. Default: none.
    pub protocol: Vec<Network>,
    /// Peers whose `Forwarded` (RFC 7239) is believed. Default: none.
    pub forwarded: Vec<Network>,
    /// Peers whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed, unless their `Forwarded`
    /// is. Default: loopback.
    pub x_forwarded: Vec<Network>,
}

impl Default for Proxies {
    fn default() -> Self {
        Self {
            protocol: Vec::new(),
            forwarded: Vec::new(),
            x_forwarded: Network::loopback(),
        }
    }
}

/// Field lines in one head; one more is 431.
pub(crate) const FIELDS: usize = 100;
/// Longest method token. The longest registered one (UPDATEREDIRECTREF) has 17 bytes.
pub(crate) const METHOD: usize = 32;
/// Empty lines ignored before a request line; RFC 9112 section 2.2 asks for at least one.
pub(crate) const EMPTY_LINES: u8 = 2;
/// Longest line with a chunk size and its extensions.
pub(crate) const CHUNK_LINE: usize = 1 << 10;
/// All chunk extensions of one body together: they cost the client nothing and us parsing.
pub(crate) const CHUNK_EXTENSIONS: usize = 16 << 10;
/// The whole trailer section, which is read and discarded.
pub(crate) const TRAILERS: usize = 8 << 10;

/// Field lines in one HTTP/2 request, crumbs of cookies counted one by one; one more is 431. More
/// than in HTTP/1.1, because a browser sends each cookie as a field of its own.
pub(crate) const HTTP2_FIELDS: usize = 200;
/// Streams of one HTTP/2 connection that are open, or whose handlers are still running; one more is
/// refused, and may be tried again.
pub(crate) const HTTP2_STREAMS: usize = 100;
/// Bytes of one stream that an HTTP/2 client may send ahead of our reading.
pub(crate) const STREAM_WINDOW: u32 = 256 << 10;
/// Bytes of all streams of a connection together that an HTTP/2 client may send ahead of our
/// reading.
pub(crate) const CONNECTION_WINDOW: u32 = 1 << 20;
/// Frames that concern no response (acknowledgements, resets, windows) waiting on one HTTP/2
/// connection; a client that makes more of them and does not read is disconnected.
pub(crate) const CONTROL_FRAMES: usize = 16 << 10;
/// How long an HTTP/2 client may still open streams after it was told that the connection ends,
/// unless it answers a PING earlier.
pub(crate) const GO_AWAY_GRACE: Duration = Duration::from_secs(1);
/// Streams, with their buffers, that a worker keeps for reuse.
pub(crate) const SPARE_STREAMS: usize = 256;

/// Ranges in one Range field; with one more it is ignored (RFC 9110 section 14.2).
pub(crate) const RANGES: usize = 16;
/// All parts of one multipart response together, which are copied for it: as much as may wait on
/// one connection.
pub(crate) const MULTIPART: u64 = OUTPUT as u64;

/// A read buffer. Large enough that a request with cookies arrives in one read.
pub(crate) const READ_BUFFER: usize = 16 << 10;
/// Exchanges that a worker keeps for reuse: 1 MiB of read buffers, and up to 6 MiB of what else
/// they hold.
pub(crate) const SPARE_BUFFERS: usize = 64;
/// Output waiting on one connection, beyond which no further request of it is evaluated. A pipeline
/// gives the kernel not much more than this before others have their turn.
pub(crate) const OUTPUT: usize = 256 << 10;
/// Output waiting on one connection in a turn with more than [`FEW_CONNECTIONS`]: the kernel takes
/// a millisecond for a quarter of a megabyte, and many clients may ask for much and read nothing.
pub(crate) const BUSY_OUTPUT: usize = 32 << 10;
/// Connections with news in one turn.
pub(crate) const FEW_CONNECTIONS: usize = 32;
/// How long connections continue without an event before new events are looked at. The last one to
/// begin may take longer.
pub(crate) const CONTINUED: Duration = Duration::from_micros(50);
/// And for each connection that had news, so that both have a share of a busy worker.
pub(crate) const CONTINUED_FOR_EACH: Duration = Duration::from_micros(4);
/// Connections that had news in a turn, for each of which groups one handshake more continues.
pub(crate) const EVENTS_PER_HANDSHAKE: usize = 64;
/// Memory of requests that have not arrived whole, heads and bodies, all of a worker's together. A
/// client that sends one byte now and then may hold a body for a quarter of an hour. What the
/// service makes of a body, such as the fields of a form, comes on top.
pub(crate) const REQUEST_MEMORY: usize = 32 << 20;
/// Bodies in files, all of a worker's together; at least [`Limits::body`].
pub(crate) const BODY_DISK: usize = 1 << 30;
/// A body up to this length never goes to a file, and is never refused for those of others once it
/// is complete.
pub(crate) const SMALL_BODY: usize = 64 << 10;
/// A longer body goes to a file even while there is memory.
pub(crate) const BODY_IN_MEMORY: usize = 1 << 20;
/// Bodies of a worker that are in files at once: each takes a descriptor while it arrives.
pub(crate) const BODY_FILES: usize = 256;
/// At most one body in a file for this number of permitted connections, so that the files fit into
/// the descriptors that are left for other things.
pub(crate) const CONNECTIONS_PER_BODY_FILE: usize = 16;
/// Bytes of a large body that are taken before others have their turn.
pub(crate) const BODY_TURN: usize = 1 << 20;
/// Cached responses per worker, with the heads of their requests. A body that is shared with its
/// source counts in full: it may stay in memory for the cache alone.
pub(crate) const REPEATED_BYTES: usize = 16 << 20;
/// The longest such response, head and body: above it, sending is what costs.
pub(crate) const REPEATED_ANSWER: usize = 64 << 10;
/// Series in which a worker counts requests; the requests of further ones count together.
pub(crate) const SERIES: usize = 4096;
/// Requests answered for one connection before others have their turn, unless it must wait anyway.
pub(crate) const TURN: usize = 64;
/// One `sendfile`; then other connections have their turn.
pub(crate) const FILE_CHUNK: usize = 2 << 20;
/// Lengths of files that are held back until they fill segments: those that the kernel takes in two
/// rounds of 64 KiB, if they begin with a page. One round has no rest. Longer ones cost more with
/// it over one connection, and less over many (`docs/notes/2026-11-21-cost-of-a-hit.md`).
pub(crate) const CORKED: RangeInclusive<u64> = (64 << 10) + 1..=128 << 10;
/// Bytes per second that a body or a response must move on average, once the start credit is used
/// up.
pub(crate) const MIN_RATE: u64 = 1 << 10;

/// Time whose share of [`ClientLimits`] a client may use at once.
pub(crate) const BURST: Duration = Duration::from_secs(4);
/// Limits of one client that all clients in a network of 56 bits of IPv6 have together.
pub(crate) const SITE_SHARE: usize = 4;
/// Requests that a connection may answer before it asks the counts of its client again.
pub(crate) const CLIENT_BATCH: u16 = 64;
/// Clients that are remembered, or twice the open connections if that is more. Each takes up to 160
/// bytes, so all take 5 MiB.
pub(crate) const CLIENTS: usize = 32 << 10;
/// The longest header of the PROXY protocol, version 2, as in haproxy: a certificate fits. It waits
/// in the socket, and costs no memory here.
pub(crate) const PROXY_HEADER: usize = 16 << 10;

/// After the last response a closing connection reads on this long and this much, so that the
/// client gets the response before a reset could destroy it (RFC 9112 section 9.6).
pub(crate) const LINGER: Duration = Duration::from_secs(2);
/// See [`LINGER`].
pub(crate) const LINGER_BYTES: u32 = 8 << 20;
/// Connections over the limit that are lingering at once per worker; further ones are closed
/// without an answer.
pub(crate) const REFUSALS_LINGERING: usize = 256;
/// A shutdown leaves idle connections this long, for requests that are already on the wire.
pub(crate) const DRAIN_GRACE: Duration = Duration::from_millis(100);
/// Connections accepted before others have their turn.
pub(crate) const ACCEPTS: usize = 64;
/// Connections that are still taken in when a shutdown begins.
pub(crate) const LAST_ACCEPTS: usize = 4096;
/// Pause after `accept` failed for want of descriptors or memory.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

// A line that is waited for must fit beside the head it belongs to; see `Decoder::space`.
const _: () = assert!(CHUNK_LINE < READ_BUFFER / 2 && TRAILERS <= READ_BUFFER / 2);
const _: () = assert!(METHOD + 16 < READ_BUFFER);
// It is looked at whole before it is taken from the socket.
const _: () = assert!(PROXY_HEADER <= READ_BUFFER);
