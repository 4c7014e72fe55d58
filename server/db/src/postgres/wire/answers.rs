//! What the server answers to a batch, message by message, without a socket.
//!
//! The order is fixed by what was asked: for each statement that is forgotten a CloseComplete; for
//! each that runs, a ParseComplete if it is new here, a BindComplete, its description if it is new,
//! its rows, and its end. Any other message is not this protocol, but for what a server may say at
//! any time.

use super::super::run::RunError;
use super::super::server_error::{DatabaseError, ServerError};
use super::super::shape::Shape;
use super::batch::{BatchError, Item};
use crate::Value;
use crate::postgres::feed::reader::Reader;
use crate::value::{MAX_RESULT, PER_VALUE};

pub(crate) type StatementRows = Vec<Vec<Value>>;

/// First words of the tag of a statement that only reads.
const QUERIES: [&[u8]; 3] = [b"SELECT", b"SHOW", b"EXPLAIN"];

/// Classes of SQLSTATE that say that a statement does not fit the schema: syntax and names,
/// schemas, what cannot be done.
const SCHEMA: [&str; 3] = ["42", "3F", "0A"];

/// Message that comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExpectedMessage {
    /// This number of statements is still to be closed.
    Closed(usize),
    Parsed,
    Bound,
    Described,
    Rows,
    Ready,
    /// Something went wrong: all that comes is skipped until the server is ready.
    Skipped,
}

/// The answer to one batch, as it comes.
pub(super) struct Answers<'a> {
    items: &'a [Item<'a>],
    /// The shapes that are new on this connection, in the order in which they are parsed, and how
    /// many of them were.
    fresh: &'a [u64],
    parsed: usize,
    /// True if the statement whose answer comes is one of them.
    is_fresh: bool,
    next: ExpectedMessage,
    /// The rows of the statements that are done, and of the one that runs.
    done: Vec<StatementRows>,
    rows: StatementRows,
    /// The bytes of these.
    bytes: usize,
    /// First failure.
    wrong: Option<BatchError>,
}

impl<'a> Answers<'a> {
    /// To a batch that closes this number of statements, parses those of `fresh` and runs `items`.
    pub(super) fn new(items: &'a [Item<'a>], fresh: &'a [u64], closes: usize) -> Self {
        let mut answers = Self {
            items,
            fresh,
            parsed: 0,
            is_fresh: false,
            next: ExpectedMessage::Closed(closes),
            done: Vec::with_capacity(items.len()),
            rows: Vec::new(),
            bytes: 0,
            wrong: None,
        };
        answers.closed(closes);
        answers
    }

    /// The index of the statement whose answer comes.
    pub(super) fn at(&self) -> usize {
        self.done.len()
    }

    /// How many of the new statements the server has parsed.
    pub(super) fn parsed(&self) -> usize {
        self.parsed
    }

    /// The rows of each statement, or what went wrong first.
    pub(super) fn outcome(self) -> Result<Vec<StatementRows>, BatchError> {
        match self.wrong {
            None => Ok(self.done),
            Some(wrong) => Err(wrong),
        }
    }

    /// Takes the next message; whether it was the last. After an error the connection is of no more
    /// use.
    pub(super) fn take(&mut self, tag: u8, body: &[u8]) -> Result<bool, BatchError> {
        match (self.next, tag) {
            // A notice, a setting, a notification.
            (_, b'N' | b'S' | b'A') => {}
            (_, b'E') => self.refused(body)?,
            (ExpectedMessage::Ready | ExpectedMessage::Skipped, b'Z') => return self.ready(body),
            (ExpectedMessage::Skipped, b'1') => self.parsed += 1,
            (ExpectedMessage::Skipped, b'2' | b'T' | b'n' | b'D' | b'C' | b'I') => {}
            (ExpectedMessage::Closed(left), b'3') => self.closed(left - 1),
            (ExpectedMessage::Parsed, b'1') => {
                self.parsed += 1;
                self.next = ExpectedMessage::Bound;
            }
            (ExpectedMessage::Bound, b'2') => self.bound(),
            (ExpectedMessage::Described, b'T' | b'n') => self.described(body)?,
            (ExpectedMessage::Rows, b'D') => self.row(body)?,
            (ExpectedMessage::Rows, b'C' | b'I') => self.ended(body),
            (_, tag) => {
                let tag = char::from(tag);
                return Err(garbled(format!("a message {tag:?} out of its turn")));
            }
        }
        Ok(false)
    }

    /// The statement whose answer comes, if it is not the end.
    fn shape(&self) -> Option<&'a Shape> {
        self.items.get(self.at()).map(|item| item.shape)
    }

    fn closed(&mut self, left: usize) {
        if left > 0 {
            self.next = ExpectedMessage::Closed(left);
        } else {
            self.begin();
        }
    }

    /// The next statement's turn.
    fn begin(&mut self) {
        let shape = self.shape();
        let fresh = self.fresh.get(self.parsed);
        self.is_fresh = shape.is_some_and(|shape| fresh == Some(&shape.id));
        self.next = if shape.is_none() {
            ExpectedMessage::Ready
        } else if self.is_fresh {
            ExpectedMessage::Parsed
        } else {
            ExpectedMessage::Bound
        };
    }

    fn bound(&mut self) {
        self.next = if self.is_fresh {
            ExpectedMessage::Described
        } else {
            ExpectedMessage::Rows
        };
    }

    /// The columns must be those that the statement was described with, or its rows would be
    /// misread.
    fn described(&mut self, body: &[u8]) -> Result<(), BatchError> {
        let matches = match self.shape() {
            Some(shape) => is_described(shape, body),
            None => Some(false),
        };
        match matches {
            Some(true) => self.next = ExpectedMessage::Rows,
            Some(false) => self.fail(BatchError::Changed),
            None => return Err(garbled("a description that is cut short")),
        }
        Ok(())
    }

    fn row(&mut self, body: &[u8]) -> Result<(), BatchError> {
        let short = || garbled("a row that is cut short");
        let decoders = self.shape().map_or(&[][..], |shape| &shape.decoders);
        let mut reader = Reader(body);
        if reader.u16().map(usize::from) != Some(decoders.len()) {
            return Err(garbled("a row of another number of columns"));
        }
        let mut values = Vec::with_capacity(decoders.len());
        self.bytes += size_of::<Vec<Value>>() + PER_VALUE * decoders.len();
        for (index, decoder) in decoders.iter().enumerate() {
            let value = match reader.sized().ok_or_else(short)? {
                None => Value::Null,
                Some(bytes) => match decoder.read(bytes) {
                    Some(value) => value,
                    // The message is whole, so the rest of the answer is read as ever.
                    None => {
                        self.fail(BatchError::Failed(RunError::Unreadable(index)));
                        return Ok(());
                    }
                },
            };
            self.bytes += value.heap_size();
            values.push(value);
        }
        if !reader.is_empty() {
            return Err(garbled("a row that is longer than its values"));
        }
        if self.bytes > MAX_RESULT {
            return Err(BatchError::Failed(RunError::TooLarge));
        }
        self.rows.push(values);
        Ok(())
    }

    /// A statement has run. One that is no query has ended the snapshot, or begun a transaction
    /// that lasts.
    fn ended(&mut self, tag: &[u8]) {
        let is_query = QUERIES.iter().any(|word| tag.starts_with(word));
        if !tag.is_empty() && !is_query {
            return self.fail(BatchError::NoQuery);
        }
        // Results are kept: no more room than they need.
        self.rows.shrink_to_fit();
        self.done.push(std::mem::take(&mut self.rows));
        self.bytes = 0;
        self.begin();
    }

    /// The server refuses a statement, or the connection.
    fn refused(&mut self, body: &[u8]) -> Result<(), BatchError> {
        let trouble = DatabaseError::Server(Box::new(ServerError::read(body)));
        if trouble.is_lost() {
            return Err(BatchError::Failed(RunError::Database(trouble)));
        }
        // Of a statement that was described before, this is about the schema; a lock that it has to
        // wait for is not.
        let is_of_schema =
            (trouble.server_error()).is_some_and(|error| SCHEMA.contains(&error.class()));
        self.fail(match self.next {
            ExpectedMessage::Parsed | ExpectedMessage::Bound if is_of_schema => {
                BatchError::Unparsed(trouble)
            }
            _ => BatchError::Failed(RunError::Database(trouble)),
        });
        Ok(())
    }

    /// The first that goes wrong is reported.
    fn fail(&mut self, wrong: BatchError) {
        self.wrong.get_or_insert(wrong);
        self.next = ExpectedMessage::Skipped;
    }

    fn ready(&mut self, body: &[u8]) -> Result<bool, BatchError> {
        if body == b"I" {
            return Ok(true);
        }
        // A transaction that a statement has begun.
        Err(self.wrong.take().unwrap_or(BatchError::NoQuery))
    }
}

/// True if a RowDescription has the columns of `shape`; `None` if it is cut short. NoData has no
/// body.
fn is_described(shape: &Shape, body: &[u8]) -> Option<bool> {
    if body.is_empty() {
        return Some(shape.given.is_empty());
    }
    let mut reader = Reader(body);
    let columns = reader.u16()?;
    let mut matches = usize::from(columns) == shape.given.len();
    for index in 0..usize::from(columns) {
        let name = reader.until_zero()?;
        // Its table, and its number there.
        reader.take(6)?;
        let kind = reader.u32()?;
        // The length and the modifier of its type, and the format.
        reader.take(8)?;
        let given = shape.given.get(index);
        matches &= given.is_some_and(|(known, oid)| known.as_bytes() == name && *oid == kind);
    }
    Some(matches && reader.is_empty())
}

/// The message is not valid in the protocol, so its meaning is unknown.
pub(super) fn garbled(what: impl std::fmt::Display) -> BatchError {
    let why = format!("what comes is not PostgreSQL's protocol: {what}");
    BatchError::Failed(RunError::Database(DatabaseError::Gone(why)))
}
