//! Streams of events (<https://html.spec.whatwg.org/multipage/server-sent-events.html>) beside the
//! load of a run: how long a write takes to reach all who look at a page.
//!
//! One thread holds all streams and sends the writes. The next write is sent when it is due and
//! every stream has had an event since the last one, so an event belongs to the write before it. A
//! stream that ends is counted and not opened again.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hdrhistogram::Histogram;
use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::io::Errno;
use rustix::net::sockopt::socket_error;

use crate::outcome::{FailureKind, Fault};
use crate::request::Requests;
use crate::response::{Parser, ResponseHead};
use crate::sink::{Discard, Sink};
use crate::transport::{ConnectedSocket, HandshakeStep, Received, Target, Wire, kind_of_connect};
use crate::url::Url;
use crate::{Error, Plan, RequestPlan, limits};
use base_clock::{MS, Nanos, SECOND, nanos};
use millrace_stats::hdr::FINE;
use millrace_stats::series::histogram;

/// Streams that a plan holds at most.
pub(crate) const MOST_STREAMS: usize = 1_000_000;
/// Events taken from epoll at once.
const EVENTS: usize = 256;
/// The longest sleep, so that the end of the run is noticed.
const LONGEST: Nanos = 100 * MS;

/// Streams of a plan, and the write that they are to tell of.
#[derive(Clone, Debug)]
pub struct StreamsPlan {
    /// How many are held.
    pub count: usize,
    /// Writes a second.
    pub rate: f64,
    /// The request of each stream.
    pub request: RequestPlan,
    /// The request that changes what the streams tell.
    pub write: RequestPlan,
}

/// Results of the streams of a run.
pub struct StreamTimes {
    /// Streams that the plan asks for.
    pub asked: u64,
    /// Streams whose response began, with the status 200.
    pub opened: u64,
    /// Streams that ended before the run did.
    pub ended: u64,
    /// Writes with a good response.
    pub writes: u64,
    /// Writes with another response, or with none.
    pub failed_writes: u64,
    /// Events that came before a write, or again after the first one that followed it.
    pub others: u64,
    /// Streams that had no event within the timeout after a write, summed over writes.
    pub missed: u64,
    /// From the send of a write to the first event of each stream after it.
    pub times: Histogram<u64>,
}

/// One stream.
struct EventStream {
    wire: Wire,
    parser: Parser,
    reader: EventReader,
    /// True if it has had no event since the last write.
    is_awaited: bool,
    /// True if it has missed one, and measures no more.
    is_lost: bool,
}

/// Counts the events of a body that have data and no type of their own.
#[derive(Default)]
struct EventReader {
    is_open: bool,
    /// The beginning of the line so far.
    line: Vec<u8>,
    has_data: bool,
    has_type: bool,
    events: u64,
}

impl Sink for EventReader {
    fn head(&mut self, head: &ResponseHead<'_>) {
        self.is_open = head.bytes.get(9..12) == Some(b"200");
    }

    fn body(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match byte {
                b'\n' => self.line_ends(),
                b'\r' => {}
                _ if self.line.len() < 8 => self.line.push(*byte),
                _ => {}
            }
        }
    }
}

impl EventReader {
    fn line_ends(&mut self) {
        match &self.line[..] {
            [] => {
                self.events += u64::from(self.has_data && !self.has_type);
                (self.has_data, self.has_type) = (false, false);
            }
            line => {
                self.has_data |= line.starts_with(b"data");
                self.has_type |= line.starts_with(b"event");
            }
        }
        self.line.clear();
    }
}

/// The connection of the writes.
struct EventWriter {
    wire: Option<Wire>,
    parser: Parser,
    is_awaited: bool,
}

/// All streams of a run, open.
pub(crate) struct Subscribers<'a> {
    target: &'a Target,
    timeout: Duration,
    write: Requests,
    plan: &'a StreamsPlan,
    epoll: OwnedFd,
    streams: Vec<Option<EventStream>>,
    writer: EventWriter,
    /// When the last write was sent.
    sent: Nanos,
    /// Streams without an event since then.
    awaited: u64,
    buffer: Box<[u8]>,
    found: StreamTimes,
}

impl<'a> Subscribers<'a> {
    /// Opens the streams of a plan. One that cannot be opened is left out.
    ///
    /// # Errors
    /// A request cannot be made, or this machine does not have what the streams need.
    pub(crate) fn open(
        plan: &'a Plan,
        streams: &'a StreamsPlan,
        url: &Url,
        target: &'a Target,
    ) -> Result<Self, Error> {
        let request = Requests::render(&plan.target, &streams.request, url)?;
        let all = plan.load.connections + streams.count + 1;
        limits::descriptors(all)?;
        if plan.target.unix_socket.is_none() {
            limits::source_ports(all)?;
        }
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|errno| Error::System {
            what: "create an epoll",
            source: errno.into(),
        })?;
        let mut own = Self {
            target,
            timeout: plan.request.timeout,
            write: Requests::render(&plan.target, &streams.write, url)?,
            plan: streams,
            epoll,
            streams: Vec::with_capacity(streams.count),
            writer: EventWriter {
                wire: None,
                parser: Parser::new(),
                is_awaited: false,
            },
            sent: 0,
            awaited: 0,
            buffer: vec![0; 64 << 10].into_boxed_slice(),
            found: StreamTimes {
                asked: streams.count as u64,
                opened: 0,
                ended: 0,
                writes: 0,
                failed_writes: 0,
                others: 0,
                missed: 0,
                times: histogram(FINE),
            },
        };
        for _ in 0..streams.count {
            let stream = own.connect(own.streams.len() as u64, request.bytes(0));
            own.streams.push(stream.ok().map(|wire| EventStream {
                wire,
                parser: Parser::new(),
                reader: EventReader::default(),
                is_awaited: false,
                is_lost: false,
            }));
        }
        Ok(own)
    }

    /// Opens a connection, sends a request on it and has its events reported under a number.
    fn connect(&self, number: u64, request: &[u8]) -> Result<Wire, Fault> {
        let mut wire = open(self.target, self.timeout)?;
        send(&mut wire, request).map_err(|_| (FailureKind::Reset, None))?;
        let data = epoll::EventData::new_u64(number);
        let flags = epoll::EventFlags::IN | epoll::EventFlags::RDHUP;
        epoll::add(&self.epoll, &wire, data, flags)
            .map_err(|_| (FailureKind::ConnectFailed, None))?;
        Ok(wire)
    }

    /// Holds the streams and writes until the load is over.
    pub(crate) fn hold(mut self, is_over: &AtomicBool) -> StreamTimes {
        let interval = (SECOND as f64 / self.plan.rate) as Nanos;
        let mut events = Vec::with_capacity(EVENTS);
        let mut due = base_clock::now() + interval;
        loop {
            let now = base_clock::now();
            let is_late = now >= self.sent + nanos(self.timeout);
            let is_done = self.awaited == 0 && !self.writer.is_awaited;
            let is_last = is_over.load(Ordering::Acquire);
            if is_last && (is_done || is_late) {
                self.settle();
                return self.found;
            }
            if !is_last && now >= due && (is_done || is_late) {
                self.settle();
                self.write();
                due = (due + interval).max(now);
            }
            let wait = match due > now {
                true => LONGEST.min(due - now),
                false => LONGEST,
            };
            let wait = Timespec::try_from(Duration::from_nanos(wait)).ok();
            events.clear();
            // Interrupted, it is tried again.
            let _ = epoll::wait(&self.epoll, spare_capacity(&mut events), wait.as_ref());
            for event in &events {
                let number = event.data.u64() as usize;
                match number < self.streams.len() {
                    true => self.read(number),
                    false => self.read_answer(),
                }
            }
        }
    }

    /// Gives up what has not come after the last write.
    fn settle(&mut self) {
        self.found.missed += std::mem::take(&mut self.awaited);
        // What comes now may be of that write or of the next one, so the stream measures no more.
        for stream in self.streams.iter_mut().flatten() {
            stream.is_lost |= std::mem::take(&mut stream.is_awaited);
        }
        if std::mem::take(&mut self.writer.is_awaited) {
            self.write_failed();
        }
    }

    fn write(&mut self) {
        let request = self.write.bytes(0);
        let mut wire = self.writer.wire.take();
        self.sent = base_clock::now();
        let is_sent = wire
            .as_mut()
            .is_some_and(|wire| send(wire, request).is_ok());
        if !is_sent {
            self.writer.parser = Parser::new();
            wire = self.connect(self.streams.len() as u64, request).ok();
            self.sent = base_clock::now();
        }
        self.writer.is_awaited = wire.is_some();
        self.writer.wire = wire;
        if self.writer.wire.is_none() {
            self.found.failed_writes += 1;
            return;
        }
        for stream in self.streams.iter_mut().flatten() {
            // One that has not begun to tell has nothing to tell.
            stream.is_awaited = stream.reader.is_open && !stream.is_lost;
            self.awaited += u64::from(stream.is_awaited);
        }
    }

    /// A write changed nothing, so no event is awaited.
    fn write_failed(&mut self) {
        self.found.failed_writes += 1;
        self.writer.wire = None;
        self.writer.is_awaited = false;
        self.awaited = 0;
        let streams = self.streams.iter_mut().flatten();
        streams.for_each(|stream| stream.is_awaited = false);
    }

    fn read_answer(&mut self) {
        let Some(wire) = &mut self.writer.wire else {
            return;
        };
        let answer = match wire.recv(&mut self.buffer, usize::MAX) {
            Received::Bytes(count) => {
                let bytes = &self.buffer[..count];
                self.writer
                    .parser
                    .feed(bytes, self.write.head, &mut Discard)
            }
            Received::Nothing => return,
            _ => Ok((0, self.writer.parser.closed())),
        };
        match answer {
            Ok((_, Some(answer))) if self.plan.write.is_good(answer.status) => {
                self.found.writes += 1;
                self.writer.is_awaited = false;
                if !answer.reusable {
                    self.writer.wire = None;
                }
            }
            Ok((used, None)) if used > 0 => {}
            // An idle connection was closed.
            _ if !self.writer.is_awaited => self.writer.wire = None,
            _ => self.write_failed(),
        }
    }

    fn read(&mut self, number: usize) {
        let Some(stream) = &mut self.streams[number] else {
            return;
        };
        let (was_open, before) = (stream.reader.is_open, stream.reader.events);
        let is_going_on = match stream.wire.recv(&mut self.buffer, usize::MAX) {
            Received::Bytes(count) => {
                let fed = (stream.parser).feed(&self.buffer[..count], false, &mut stream.reader);
                matches!(fed, Ok((_, None)))
            }
            Received::Nothing => return,
            _ => false,
        };
        let now = base_clock::now();
        self.found.opened += u64::from(stream.reader.is_open && !was_open);
        let mut events = stream.reader.events - before;
        if events > 0 && std::mem::take(&mut stream.is_awaited) {
            self.found
                .times
                .saturating_record(now.saturating_sub(self.sent).max(1));
            self.awaited -= 1;
            events -= 1;
        }
        self.found.others += events;
        if !is_going_on {
            self.found.ended += u64::from(stream.reader.is_open);
            self.awaited -= u64::from(stream.is_awaited);
            self.streams[number] = None;
        }
    }
}

/// Opens a connection, and waits for it.
fn open(target: &Target, timeout: Duration) -> Result<Wire, Fault> {
    let socket = target.connect()?;
    wait(&socket, PollFlags::OUT, timeout)?;
    if let Ok(Err(errno)) | Err(errno) = socket_error(&socket) {
        return Err(kind_of_connect(errno));
    }
    let mut session = match target.begin(socket)? {
        ConnectedSocket::Open(wire) => return Ok(wire),
        ConnectedSocket::Shaking(session) => session,
    };
    loop {
        match session.continue_handshake()? {
            HandshakeStep::Done => return Ok(Wire::Tls(session)),
            HandshakeStep::Waits => wait(&session, PollFlags::IN, timeout)?,
            HandshakeStep::WantsRoom => wait(&session, PollFlags::OUT, timeout)?,
        }
    }
}

fn wait(socket: impl AsFd, flags: PollFlags, timeout: Duration) -> Result<(), Fault> {
    let timeout = Timespec::try_from(timeout).ok();
    match poll(&mut [PollFd::new(&socket, flags)], timeout.as_ref()) {
        Ok(0) => Err((FailureKind::Timeout, None)),
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(errno) => Err(kind_of_connect(errno)),
    }
}

/// Sends a request, which a socket without unsent bytes takes whole.
fn send(wire: &mut Wire, request: &[u8]) -> Result<(), Errno> {
    let taken = wire.send(request)?;
    match wire.drain()? && taken == request.len() {
        true => Ok(()),
        false => Err(Errno::AGAIN),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_with_data_and_without_a_type_are_counted() {
        let text = b": hello\n\nretry: 5\n\nid: a\ndata: 1\n\nevent: beat\ndata: 1\n\r\ndata\r\n\r\ndata: 3";
        let mut reader = EventReader::default();
        for byte in text {
            reader.body(&[*byte]);
        }
        assert_eq!(reader.events, 2);
        reader.body(b"\n\n");
        assert_eq!(reader.events, 3);
    }
}
