//! Subscribers: they hold the streams of live pages, and judge what they know.
//!
//! *Within the bound plus the interval of a commit every subscriber has been told of a state at
//! least as new, or its stream has ended so that it asks again.* A subscriber asks for the page
//! after each event, as the script in a browser does. So what it knows is the last page that it has
//! got, which is held against the log while its stream says nothing. A node that is stopped can
//! tell nothing: it is judged only while it answers each look at once.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::Choices;

use crate::coherence::client::PATIENCE;
use crate::coherence::context::Context;
use crate::coherence::judge::{Circumstances, judge};
use crate::coherence::page::Ask;
use crate::coherence::reader::{SeenPage, Visitor};
use crate::coherence::report::ScenarioReport;
use base_clock::Boottime;

/// The address of the streams.
pub(crate) const STREAM: &str = "/.millpond/live";
/// An address that a node answers without its database.
pub(crate) const NOWHERE: &str = "/nowhere";
/// `live.interval` of the nodes, which name none.
const INTERVAL: Duration = Duration::from_millis(100);
/// A second in which the page is made, or the stream is ended, and a second for a busy machine.
const GRACE: Duration = Duration::from_secs(2);
/// A stream that tells the state within this time after it was found late was kept from it by the
/// machine: the thread that looks after live pages is one of many. One that forgets tells nothing.
const LAST_GRACE: Duration = Duration::from_secs(4);
/// From one look at a stream to the next.
const PACE: Duration = Duration::from_millis(50);
/// The most looks at a stream before another page: for some 20 seconds.
const LOOKS: usize = 400;
/// A node with less time than this between its answers is not stopped.
const STALL: Duration = Duration::from_millis(500);

/// Subscribes to one page of one node for a while, then to another page.
pub(crate) fn subscribe(
    context: &Context,
    node: usize,
    mut choices: Choices<'_>,
) -> ScenarioReport {
    let mut visitor = Visitor::new(context);
    while !context.span.pass(PACE) {
        let ask = Ask::popular(&mut choices);
        let looks = choices.below(LOOKS);
        let Some(seen) = visitor.request_and_judge(node, &ask, None) else {
            continue;
        };
        let address = context.nodes[node].address();
        match EventStream::open(address, &ask.target(), &seen.tag) {
            Ok(stream) => hold(context, &mut visitor, (node, &ask), seen, stream, looks),
            Err(error) => visitor.report.error(error.kind().to_string()),
        }
    }
    visitor.report
}

/// Looks at a stream this many times, or until it ends.
fn hold(
    context: &Context,
    visitor: &mut Visitor<'_>,
    (node, ask): (usize, &Ask),
    mut seen: SeenPage,
    mut stream: EventStream,
    looks: usize,
) {
    visitor.report.streams.opened += 1;
    let allowed = context.nodes[node].bound() + INTERVAL + GRACE;
    let mut answered = Boottime::now();
    let mut prompt_since = answered;
    let mut late_since = None;
    for _ in 0..looks {
        if context.span.pass(PACE) {
            return;
        }
        // All that was to be told by now has been sent when the node has answered.
        let now = Boottime::now();
        let is_there = visitor.on(node, |client| client.get(NOWHERE, "")).is_some();
        let told = stream.news().filter(|_| is_there);
        let Some(told) = told else {
            visitor.report.streams.ended += 1;
            return;
        };
        if told {
            visitor.report.streams.told += 1;
            match visitor.request_and_judge(node, ask, None) {
                Some(page) => seen = page,
                None => return,
            }
        }
        let before = std::mem::replace(&mut answered, Boottime::now());
        if answered.since(before) > STALL {
            prompt_since = answered;
        }
        if now.since(prompt_since) <= allowed {
            continue;
        }
        let circumstances = Circumstances {
            // Writes through this node are told as all others are.
            sent: now.minus(allowed),
            node,
            bound: Duration::ZERO,
            own: None,
        };
        let late = judge(&context.log, ask, &seen.rows, circumstances).late;
        late_since = late_since.or(Some(now)).filter(|_| late.is_some());
        let late = late.filter(|_| late_since.is_some_and(|since| now.since(since) > LAST_GRACE));
        context.tally.looked(late.is_some());
        visitor.report.looked(late.as_deref(), || {
            format!("{} of node {node}: {:?}", ask.target(), seen.rows)
        });
        if late.is_some() {
            return;
        }
    }
}

/// A stream of events, which is looked at without waiting.
struct EventStream {
    socket: TcpStream,
    /// Bytes of a line that has not come whole.
    rest: Vec<u8>,
}

impl EventStream {
    /// Opens the stream of a page that the client has with this entity tag.
    fn open(address: SocketAddr, target: &str, tag: &str) -> io::Result<Self> {
        let page: String = target.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let mut socket = TcpStream::connect_timeout(&address, PATIENCE)?;
        write!(
            socket,
            "GET {STREAM}?page={page}&seen={tag} HTTP/1.1\r\nHost: {address}\r\n\r\n"
        )?;
        socket.set_nonblocking(true)?;
        let rest = Vec::new();
        Ok(Self { socket, rest })
    }

    /// Returns true if another state was told since the last look. None if the stream has ended.
    fn news(&mut self) -> Option<bool> {
        let mut piece = [0; 4096];
        loop {
            match self.socket.read(&mut piece) {
                Ok(0) => return None,
                Ok(length) => self.rest.extend_from_slice(&piece[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
        let end = self.rest.iter().rposition(|byte| *byte == b'\n');
        let lines: Vec<u8> = self.rest.drain(..end.map_or(0, |end| end + 1)).collect();
        let lines = String::from_utf8_lossy(&lines);
        let has = |start: &str| lines.lines().any(|line| line.starts_with(start));
        (!has("retry: ") && !has("event: gone")).then(|| has("id: "))
    }
}
