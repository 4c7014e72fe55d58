//! A connection to PostgreSQL: frames in and out, with TLS or without, never blocking but where a
//! caller waits.
//!
//! What goes out is built by the `postgres-protocol` crate. Frames that come in are cut here,
//! because that crate knows neither the answer to START_REPLICATION nor what travels behind it.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};

use bytes::{Buf as _, Bytes, BytesMut};
use postgres_protocol::message::frontend;
use rustix::event::PollFlags;

use super::reader::Reader;
use super::socket::Socket;
use super::tls::TlsSession;
use super::wait::{FeedEnd, Patience};
use crate::postgres::TextRow;

/// The longest frame: PostgreSQL makes none above a gigabyte.
const MAX_FRAME: usize = 1 << 30;
/// Read at once.
const CHUNK: usize = 64 * 1024;
/// After this number of bytes the input is processed, even if there is more.
const MOST: usize = 1024 * 1024;

/// One message of the server.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) tag: u8,
    pub(crate) body: Bytes,
}

pub(crate) struct FeedConnection {
    socket: Socket,
    tls: Option<TlsSession>,
    /// Buffer into which reads go first: clearing room at the end of `input` for each would cost
    /// more than copying what came.
    chunk: Box<[u8]>,
    input: BytesMut,
    output: BytesMut,
    closed: bool,
    has_more: bool,
    notified: bool,
}

impl AsFd for FeedConnection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl FeedConnection {
    pub(crate) fn new(socket: Socket) -> Self {
        Self {
            socket,
            tls: None,
            chunk: vec![0; CHUNK].into_boxed_slice(),
            input: BytesMut::new(),
            output: BytesMut::new(),
            closed: false,
            has_more: false,
            notified: false,
        }
    }

    /// Returns the answer of the server to a wish for TLS: one byte, and nothing else before the
    /// handshake.
    pub(crate) fn offers_tls(&mut self, patience: Patience<'_>) -> Result<bool, FeedEnd> {
        frontend::ssl_request(&mut self.output);
        self.flush()?;
        while self.input.is_empty() {
            patience.wait(self.as_fd(), self.waits_for())?;
            self.flush()?;
            if !self.fill()? && self.closed {
                return Err(closed());
            }
        }
        // More than one byte is data injected in clear text before TLS (CVE-2021-23222).
        match &self.input[..] {
            b"S" => self.input.clear(),
            b"N" => {
                self.input.clear();
                return Ok(false);
            }
            _ => {
                return Err(FeedEnd::lost(
                    "the server does not understand a wish for TLS",
                ));
            }
        }
        Ok(true)
    }

    /// Everything from now on goes through TLS.
    pub(crate) fn secure(
        &mut self,
        mut session: TlsSession,
        patience: Patience<'_>,
    ) -> Result<(), FeedEnd> {
        while session.shakes_hands(&mut self.socket)? {
            patience.wait(self.as_fd(), session.waits_for())?;
        }
        self.tls = Some(session);
        Ok(())
    }

    /// Returns the buffer for messages to the server; [`flush`](Self::flush) sends them.
    pub(crate) fn output(&mut self) -> &mut BytesMut {
        &mut self.output
    }

    /// Sends as much as the socket takes.
    pub(crate) fn flush(&mut self) -> Result<(), FeedEnd> {
        if let Some(tls) = &mut self.tls {
            tls.send(&mut self.output, &mut self.socket)?;
            return Ok(());
        }
        while !self.output.is_empty() {
            match self.socket.write(&self.output) {
                Ok(sent) => self.output.advance(sent),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Returns the events that the socket is to be polled for.
    pub(crate) fn waits_for(&self) -> PollFlags {
        let unsent =
            !self.output.is_empty() || self.tls.as_ref().is_some_and(TlsSession::has_unsent);
        if unsent {
            PollFlags::IN | PollFlags::OUT
        } else {
            PollFlags::IN
        }
    }

    /// Reads what is there, or a megabyte of it; whether it was anything.
    pub(crate) fn fill(&mut self) -> Result<bool, FeedEnd> {
        let before = self.input.len();
        let mut received = 0;
        while received < MOST {
            let read = match &mut self.tls {
                Some(tls) => tls.receive(&mut self.socket, &mut self.input),
                None => self.socket.read(&mut self.chunk).inspect(|count| {
                    self.input.extend_from_slice(&self.chunk[..*count]);
                }),
            };
            match read {
                Ok(0) => {
                    self.closed = true;
                    break;
                }
                // Less than there was room for is all that there was.
                Ok(count) if self.tls.is_none() && count < CHUNK => break,
                Ok(count) => received += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(self.after_notices(error)),
            }
        }
        self.has_more = received >= MOST;
        Ok(self.input.len() > before)
    }

    /// True if there was more to read when what is there was last read.
    pub(crate) fn has_more(&self) -> bool {
        self.has_more
    }

    /// A reset may come right behind the sentence that explains it; the sentence is worth more.
    fn after_notices(&mut self, error: io::Error) -> FeedEnd {
        match self.next() {
            Err(refused @ FeedEnd::Refused { .. }) => refused,
            _ => error.into(),
        }
    }

    /// The next message that is there as a whole. Notices and parameters are skipped, notifications
    /// noted; an error of the server is one here.
    pub(crate) fn next(&mut self) -> Result<Option<Frame>, FeedEnd> {
        loop {
            let mut head = Reader(&self.input);
            let (Some(tag), Some(length)) = (head.u8(), head.u32()) else {
                return self.nothing();
            };
            let length = length as usize;
            if !(4..=MAX_FRAME).contains(&length) {
                return Err(FeedEnd::lost(format!(
                    "what comes is not PostgreSQL's protocol: a message of {length} bytes"
                )));
            }
            if self.input.len() <= length {
                self.input.reserve(length + 1 - self.input.len());
                return self.nothing();
            }
            let body = self.input.split_to(length + 1).freeze().slice(5..);
            match tag {
                b'N' | b'S' => {}
                b'A' => self.notified = true,
                b'E' => return Err(refusal(&body)),
                _ => return Ok(Some(Frame { tag, body })),
            }
        }
    }

    /// True if a notification arrived since the last check.
    pub(crate) fn take_notified(&mut self) -> bool {
        std::mem::take(&mut self.notified)
    }

    fn nothing(&self) -> Result<Option<Frame>, FeedEnd> {
        if self.closed { Err(closed()) } else { Ok(None) }
    }

    /// Waits for the next message.
    pub(crate) fn expect(&mut self, patience: Patience<'_>) -> Result<Frame, FeedEnd> {
        loop {
            self.flush()?;
            if let Some(frame) = self.next()? {
                return Ok(frame);
            }
            patience.wait(self.as_fd(), self.waits_for())?;
            self.fill()?;
        }
    }

    /// Asks, without waiting for the answer.
    pub(crate) fn ask(&mut self, sql: &str) -> Result<(), FeedEnd> {
        frontend::query(sql, &mut self.output)?;
        self.flush()
    }

    /// Asks, and waits for the rows.
    pub(crate) fn query(
        &mut self,
        sql: &str,
        patience: Patience<'_>,
    ) -> Result<Vec<TextRow>, FeedEnd> {
        self.ask(sql)?;
        let mut answer = QueryRows::default();
        loop {
            let frame = self.expect(patience)?;
            if let Some(rows) = answer.take(&frame)? {
                return Ok(rows);
            }
        }
    }
}

/// The rows of an answer, as they come.
#[derive(Default)]
pub(crate) struct QueryRows(Vec<TextRow>);

impl QueryRows {
    /// Takes the next message; the rows, if it was the last.
    pub(crate) fn take(&mut self, frame: &Frame) -> Result<Option<Vec<TextRow>>, FeedEnd> {
        match frame.tag {
            b'D' => {
                let row = row(&frame.body).ok_or_else(|| FeedEnd::lost("a row is cut short"))?;
                self.0.push(row);
                Ok(None)
            }
            b'Z' => Ok(Some(std::mem::take(&mut self.0))),
            // The description of the rows, and the end of one command.
            b'T' | b'C' | b'I' => Ok(None),
            tag => Err(unexpected(tag)),
        }
    }
}

fn row(body: &[u8]) -> Option<TextRow> {
    let mut reader = Reader(body);
    let columns = reader.u16()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (0..columns)
        .map(|_| reader.sized().map(|value| value.map(text)))
        .collect()
}

pub(crate) fn unexpected(tag: u8) -> FeedEnd {
    FeedEnd::lost(format!(
        "the server sends a message that is not expected here: {:?}",
        char::from(tag)
    ))
}

fn closed() -> FeedEnd {
    FeedEnd::disconnected("the server has closed the connection")
}

/// The server's code, its sentence, and what it adds.
fn refusal(body: &[u8]) -> FeedEnd {
    let (mut code, mut sentence, mut detail, mut hint) =
        (String::new(), String::new(), String::new(), String::new());
    let mut reader = Reader(body);
    while let Some(kind) = reader.u8().filter(|kind| *kind != 0) {
        let Some(text) = reader.text() else { break };
        match kind {
            b'C' => text.clone_into(&mut code),
            b'M' => text.clone_into(&mut sentence),
            b'D' => detail = format!("; {text}"),
            b'H' => hint = format!(" ({text})"),
            _ => {}
        }
    }
    let sentence = format!("{sentence}{detail}{hint}");
    FeedEnd::Refused { code, sentence }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_has_code_and_sentence_however_it_is_cut() {
        let body = b"SERROR\0C42P01\0Mno such table\0Hmake it\0\0";
        let whole = FeedEnd::Refused {
            code: "42P01".to_owned(),
            sentence: "no such table (make it)".to_owned(),
        };
        assert_eq!(refusal(body), whole);
        for cut in 0..body.len() {
            assert!(matches!(refusal(&body[..cut]), FeedEnd::Refused { .. }));
        }
    }

    #[test]
    fn a_row_that_is_cut_short_is_none() {
        let body = b"\0\x02\0\0\0\x01a\xff\xff\xff\xff";
        assert_eq!(row(body), Some(vec![Some("a".to_owned()), None]));
        for cut in 0..body.len() {
            assert_eq!(row(&body[..cut]), None, "{cut}");
        }
    }
}
