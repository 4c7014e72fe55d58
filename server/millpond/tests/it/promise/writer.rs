//! Another program that writes to the site's database: the test binary in a process of its own,
//! which reads on its standard input what to write. It ends with its input, so also when the test
//! has ended.

use std::io::{BufRead as _, BufReader, Write as _, stdin, stdout};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use base_clock::Boottime;
use rusqlite::{Connection, TransactionBehavior};

use super::record::Commit;
use crate::support::PATIENCE;

/// Set for the other program only: the file to write to.
const FILE: &str = "MILLPOND_TEST_WRITES_TO";

/// The other program, as the test sees it.
pub(super) struct OtherProgram {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl OtherProgram {
    pub(super) fn start(file: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "promise::writer_process", "--nocapture"])
            .env(FILE, file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self {
            child,
            input,
            output,
        }
    }

    /// Lets it raise the version of an article.
    pub(super) fn commit(&mut self, article: u64) -> Commit {
        writeln!(self.input.as_mut().unwrap(), "{article}").unwrap();
        let mut line = String::new();
        // The test harness writes to the same pipe.
        let said = loop {
            line.clear();
            assert!(
                self.output.read_line(&mut line).unwrap() > 0,
                "it has ended"
            );
            if let Some(said) = line.trim_end().strip_prefix("committed ") {
                break said;
            }
        };
        let (version, at) = said.split_once(' ').unwrap();
        Commit {
            at: Boottime::from_nanos(at.parse().unwrap()),
            article,
            version: version.parse().unwrap(),
        }
    }
}

impl Drop for OtherProgram {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.wait();
    }
}

/// In the other program: writes as its input says, and reports when each commit was acknowledged.
pub(super) fn serve_if_asked() {
    let Some(file) = std::env::var_os(FILE) else {
        return;
    };
    let mut connection = Connection::open(file).unwrap();
    connection.busy_timeout(PATIENCE).unwrap();
    // Ends the line that the harness may have begun.
    println!();
    for line in stdin().lines() {
        let version = raise(&mut connection, line.unwrap().parse().unwrap());
        let at = Boottime::now().as_nanos();
        let mut output = stdout().lock();
        writeln!(output, "committed {version} {at}").unwrap();
        output.flush().unwrap();
    }
}

fn raise(connection: &mut Connection, article: u64) -> u64 {
    let article = i64::try_from(article).unwrap();
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .unwrap();
    transaction
        .execute(
            "update ledger set commits = commits + 1, article_id = ?1",
            [article],
        )
        .unwrap();
    let version: i64 = transaction
        .query_row(
            "update article set version = version + 1, mark = (select commits from ledger) where id = ?1 returning version",
            [article],
            |row| row.get(0),
        )
        .unwrap();
    transaction
        .execute(
            "update mirror set version = version + 1 where article_id = ?1",
            [article],
        )
        .unwrap();
    transaction.commit().unwrap();
    u64::try_from(version).unwrap()
}
