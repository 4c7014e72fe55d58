//! One batch: statements with their values go out together, and their rows come back.

use std::collections::HashSet;
use std::future::poll_fn;
use std::io;
use std::rc::Rc;

use bytes::{Buf as _, BytesMut};
use foldhash::fast::RandomState;
use postgres_protocol::IsNull;
use postgres_protocol::message::frontend::{self, BindError};
use tokio_postgres::types::{IsNull as DriversIsNull, ToSql as _};

use super::super::run::RunError;
use super::super::server_error::DatabaseError;
use super::super::shape::Shape;
use super::super::types::Bound;
use super::answers::{Answers, StatementRows, garbled};
use super::dial::Address;
use super::frame::{HEAD, head};
use super::share::Share;
use super::stream::{Io, shrink};
use crate::Value;

/// Statements that a connection keeps prepared; each costs memory in the server.
const MAX_STATEMENTS: usize = 1_024;

/// One statement with its values.
pub(crate) struct Item<'a> {
    pub(crate) shape: &'a Shape,
    pub(crate) params: &'a [Value],
}

/// Why a batch gave no rows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BatchError {
    /// The statement failed, or the connection.
    Failed(RunError),
    /// It is not understood any more: it was described for another schema.
    Unparsed(DatabaseError),
    /// Its columns are others than when it was described.
    Changed,
    /// It is no query, and what came with it may be of two states.
    NoQuery,
}

/// A batch that failed, and at which of its statements.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FailedBatch {
    pub(crate) index: usize,
    pub(crate) wrong: BatchError,
}

impl FailedBatch {
    /// True if what is prepared on the connection is of no more use.
    pub(crate) fn is_outdated(&self) -> bool {
        match &self.wrong {
            BatchError::Failed(RunError::Database(trouble)) => trouble.is_outdated(),
            BatchError::Failed(_) | BatchError::NoQuery => false,
            BatchError::Unparsed(_) | BatchError::Changed => true,
        }
    }

    /// True if the server has refused or ended the statement, and the connection is good.
    pub(crate) fn is_of_statement(&self) -> bool {
        matches!(&self.wrong, BatchError::Failed(RunError::Database(trouble)) if !trouble.is_lost())
    }

    /// True if the server has ended the statement, for its time or for another session.
    pub(crate) fn is_cancelled(&self) -> bool {
        matches!(&self.wrong, BatchError::Failed(RunError::Database(trouble))
            if trouble.is_cancelled() || trouble.is_conflict())
    }

    /// Describes the fault, for the owner.
    pub(crate) fn sentence(&self) -> String {
        match &self.wrong {
            BatchError::Failed(RunError::Database(trouble)) | BatchError::Unparsed(trouble) => {
                trouble.sentence()
            }
            _ => "it answers with something else than was asked".to_owned(),
        }
    }
}

/// A connection as reads use it. Only its one user and the driver access it.
pub(crate) struct Wire {
    share: Rc<Share>,
    address: Address,
    /// The shapes that the server keeps prepared, by name.
    known: HashSet<u64, RandomState>,
    /// Statements that the server need not keep any more.
    forgotten: Vec<u64>,
    output: BytesMut,
}

impl Wire {
    pub(super) fn new(share: Rc<Share>, address: Address) -> Self {
        Self {
            share,
            address,
            known: HashSet::default(),
            forgotten: Vec::new(),
            output: BytesMut::new(),
        }
    }

    /// Returns the address to which the connection leads.
    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// True if the server has gone, as far as is known without asking.
    pub(crate) fn is_over(&self) -> bool {
        self.share.is_over()
    }

    /// Forgets all statements; the server learns it with the next batch.
    pub(crate) fn forget_all(&mut self) {
        self.forgotten.extend(self.known.drain());
    }

    /// Runs the statements in one snapshot, and gives the rows of each.
    ///
    /// If the future is dropped, or fails so that the rest of the answer is not read, the
    /// connection is closed.
    pub(crate) async fn run(
        &mut self,
        items: &[Item<'_>],
    ) -> Result<Vec<StatementRows>, FailedBatch> {
        if self.known.len() + items.len() > MAX_STATEMENTS {
            self.forget_all();
        }
        let fresh = self.write(items).map_err(|error| FailedBatch {
            index: 0,
            wrong: lost(error),
        })?;
        let Self {
            share,
            known,
            forgotten,
            output,
            ..
        } = self;
        let Some((turn, mut io)) = share.take().await else {
            return Err(FailedBatch {
                index: 0,
                wrong: lost(CLOSED),
            });
        };
        let mut answers = Answers::new(items, &fresh, forgotten.len());
        let read = exchange(&mut io, output, &mut answers).await;
        let index = answers.at();
        let failed = |wrong| FailedBatch { index, wrong };
        read.map_err(failed)?;
        turn.give_back(io);
        shrink(output);
        forgotten.clear();
        known.extend(fresh.iter().take(answers.parsed()));
        answers.outcome().map_err(failed)
    }

    /// Writes the batch into the buffer; gives the shapes that are parsed in it.
    fn write(&mut self, items: &[Item<'_>]) -> io::Result<Vec<u64>> {
        let mut fresh = Vec::new();
        let output = &mut self.output;
        // What a batch that was given up has left.
        output.clear();
        for id in &self.forgotten {
            frontend::close(b'S', name(*id).as_str(), output)?;
        }
        for Item { shape, params } in items {
            let name = name(shape.id);
            let is_new = !self.known.contains(&shape.id) && !fresh.contains(&shape.id);
            if is_new {
                let types = shape.params.iter().map(|kind| kind.oid());
                frontend::parse(name.as_str(), &shape.text, types, output)?;
                fresh.push(shape.id);
            }
            bind(name.as_str(), shape, params, output)?;
            if is_new {
                frontend::describe(b'P', "", output)?;
            }
            frontend::execute("", 0, output)?;
        }
        frontend::sync(output);
        Ok(fresh)
    }
}

/// Values go as text, which the server reads for every type; rows come back in binary.
fn bind(name: &str, shape: &Shape, params: &[Value], output: &mut BytesMut) -> io::Result<()> {
    let bound = frontend::bind(
        "",
        name,
        [],
        shape.params.iter().zip(params),
        |(kind, value), output| {
            Ok(match Bound(value).to_sql(kind, output)? {
                DriversIsNull::Yes => IsNull::Yes,
                DriversIsNull::No => IsNull::No,
            })
        },
        [1],
        output,
    );
    bound.map_err(|error| match error {
        BindError::Conversion(error) => io::Error::other(error),
        BindError::Serialization(error) => error,
    })
}

/// The name of a statement in the server, apart from those of the driver (`s1`).
struct Name {
    bytes: [u8; 20],
    start: usize,
}

fn name(id: u64) -> Name {
    let mut bytes = [b'm'; 20];
    let mut start = bytes.len();
    let mut rest = id;
    // 16 digits are the whole of it.
    for _ in 0..16 {
        start -= 1;
        bytes[start] = b"0123456789abcdef"[(rest & 15) as usize];
        rest >>= 4;
        if rest == 0 {
            break;
        }
    }
    Name {
        bytes,
        start: start - 1,
    }
}

impl Name {
    fn as_str(&self) -> &str {
        // Nothing but ASCII is in it.
        std::str::from_utf8(&self.bytes[self.start..]).unwrap_or_default()
    }
}

const CLOSED: &str = "the server has closed the connection";

fn lost(why: impl std::fmt::Display) -> BatchError {
    BatchError::Failed(RunError::Database(DatabaseError::connection_lost(why)))
}

/// Sends what was written, and reads the whole answer.
pub(super) async fn exchange(
    io: &mut Io,
    output: &mut BytesMut,
    answers: &mut Answers<'_>,
) -> Result<(), BatchError> {
    loop {
        while let Some((tag, length)) = next(&io.input)? {
            let done = answers.take(tag, &io.input[HEAD..length])?;
            io.input.advance(length);
            if done && output.is_empty() {
                return Ok(());
            }
            if done {
                return Err(garbled("an answer before the question"));
            }
        }
        let read = poll_fn(|cx| io.poll_turn(cx, output)).await;
        if read.map_err(lost)? == 0 {
            return Err(lost(CLOSED));
        }
    }
}

/// The first message, if all of it is there.
fn next(input: &[u8]) -> Result<Option<(u8, usize)>, BatchError> {
    match head(input) {
        Ok(Some((tag, length))) if length <= input.len() => Ok(Some((tag, length))),
        Ok(_) => Ok(None),
        Err(wrong) if wrong.tag == b'D' && wrong.length > HEAD => {
            Err(BatchError::Failed(RunError::TooLarge))
        }
        Err(wrong) => Err(garbled(format!("a message of {} bytes", wrong.length))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_have_names_of_their_own() {
        assert_eq!(name(0).as_str(), "m0");
        assert_eq!(name(0x1f).as_str(), "m1f");
        assert_eq!(name(u64::MAX).as_str(), "mffffffffffffffff");
    }
}
