//! Other programs that write: transactions of every sort, each noted in the log.

use std::time::Duration;

use crate::Choices;
use postgres::{Client, Error, NoTls};

use crate::coherence::context::Context;
use crate::coherence::log::Log;
use crate::coherence::transaction::TransactionStep;

/// From one transaction to the next.
const PACE: Duration = Duration::from_millis(150);
/// While the server is away.
const AWAY: Duration = Duration::from_millis(100);
/// How long a transaction stays open that is not in a hurry, at most.
const LONG_MS: usize = 1500;

/// How a transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TransactionEnd {
    Commit,
    /// Prepared first, and committed a moment later.
    Prepared,
    Rollback,
}

/// Writes until the span is over.
pub(crate) fn write(context: &Context, url: &str, number: usize, mut choices: Choices<'_>) {
    let mut writer = Writer {
        context,
        name: format!("adversary-{number}"),
        doubtful: None,
    };
    let mut client = None;
    while !context.span.pass(PACE) {
        let Some(mut open) = client.take().or_else(|| writer.connect(url)) else {
            context.span.pass(AWAY);
            continue;
        };
        // The end of the connection rolls back an open transaction.
        if writer.transaction(&mut open, &mut choices).is_ok() {
            client = Some(open);
        }
    }
    // A transaction that stays prepared would hold its locks, and the next slot, for ever.
    if writer.doubtful.is_some() {
        writer.connect(url);
    }
}

/// A connection to the server that waits a while for locks of other writers.
pub(crate) fn connect(url: &str) -> Result<Client, Error> {
    let mut config: postgres::Config = url.parse()?;
    config.connect_timeout(Duration::from_secs(5));
    let mut client = config.connect(NoTls)?;
    client.batch_execute("set lock_timeout = '5s'")?;
    Ok(client)
}

struct Writer<'f> {
    context: &'f Context,
    /// Also that of its prepared transaction, of which it has one at most.
    name: String,
    /// A write whose connection was lost after PREPARE was sent: it may be prepared still.
    doubtful: Option<u64>,
}

impl Writer<'_> {
    fn connect(&mut self, url: &str) -> Option<Client> {
        let mut client = connect(url).ok()?;
        if let Some(write) = self.doubtful {
            let left = "select from pg_prepared_xacts where gid = $1";
            let is_left = client.query_opt(left, &[&self.name]).ok()?.is_some();
            if is_left {
                let statement = format!("rollback prepared '{}'", self.name);
                client.batch_execute(&statement).ok()?;
                self.context.log.undone(write);
            } else {
                self.context.log.unknown(write);
            }
            self.doubtful = None;
        }
        Some(client)
    }

    /// One transaction. An error leaves the connection in no state to go on.
    fn transaction(&mut self, client: &mut Client, choices: &mut Choices<'_>) -> Result<(), Error> {
        let log = &self.context.log;
        let write = log.begin();
        let end = match choices.below(10) {
            0..7 => TransactionEnd::Commit,
            7 => TransactionEnd::Prepared,
            _ => TransactionEnd::Rollback,
        };
        if let Err(error) = self.steps(client, write, choices) {
            let rolled_back = client.batch_execute("rollback");
            log.undone(write);
            // A deadlock, a taken seat: the next one is luckier.
            return rolled_back.map_err(|_| error);
        }
        match end {
            TransactionEnd::Commit => committed(log, write, client.batch_execute("commit")),
            TransactionEnd::Rollback => {
                let done = client.batch_execute("rollback");
                log.undone(write);
                done
            }
            TransactionEnd::Prepared => self.prepared(client, write, choices),
        }
    }

    fn steps(
        &self,
        client: &mut Client,
        write: u64,
        choices: &mut Choices<'_>,
    ) -> Result<(), Error> {
        client.batch_execute("begin")?;
        for _ in 0..=choices.below(4) {
            if choices.chance(15) {
                // What it notes is undone, so it is not noted.
                client.batch_execute("savepoint here")?;
                TransactionStep::any(choices).run(client, write, choices)?;
                client.batch_execute("rollback to here")?;
            }
            for change in TransactionStep::any(choices).run(client, write, choices)? {
                self.context.log.note(write, change);
            }
        }
        if choices.chance(5) {
            let long = u64::try_from(choices.below(LONG_MS)).unwrap_or_default();
            self.context.span.pass(Duration::from_millis(long));
        }
        Ok(())
    }

    fn prepared(
        &mut self,
        client: &mut Client,
        write: u64,
        choices: &mut Choices<'_>,
    ) -> Result<(), Error> {
        self.doubtful = Some(write);
        client.batch_execute(&format!("prepare transaction '{}'", self.name))?;
        if choices.chance(50) {
            self.context.span.pass(PACE);
        }
        client.batch_execute(&format!("commit prepared '{}'", self.name))?;
        self.doubtful = None;
        self.context.log.acknowledged(write);
        Ok(())
    }
}

/// Notes the result of a COMMIT. After any error the result is unknown.
pub(crate) fn committed(log: &Log, write: u64, outcome: Result<(), Error>) -> Result<(), Error> {
    match outcome {
        Ok(()) => log.acknowledged(write),
        Err(_) => log.unknown(write),
    }
    outcome
}
