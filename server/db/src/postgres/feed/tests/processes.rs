//! What becomes of the slot of a process that can do nothing about it any more: one that was
//! killed, and one that is frozen.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use super::*;

/// The environment variables of the other process: the URL, and the timeout of the stream in
/// milliseconds.
const URL: &str = "MILLPOND_FEED_TEST_URL";
const TIMEOUT: &str = "MILLPOND_FEED_TEST_TIMEOUT";
/// Condition that the node has a slot.
const HAS_SLOT: &str = "exists (select from pg_replication_slots where slot_name like 'millpond_00000000000000ac_%' \
    and database = current_database())";
/// Its stream's, where it is frozen: long enough for a machine that is busy.
const SHORT: Duration = Duration::from_secs(3);

/// Prints every call, a line each.
struct PrintingSink;

fn print(line: &str) {
    let mut out = std::io::stdout().lock();
    // The parent process may be gone, and then this process ends too.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

impl Sink<DatabaseFeed> for PrintingSink {
    fn apply(&self, change: Change<DatabaseFeed>) {
        let Mark { transaction, at } = change.mark;
        print(&format!("apply {transaction} {at}"));
    }

    fn visible(&self, _: &Snapshot) {}

    fn heartbeat(&self, sent: Boottime, position: u64) {
        print(&format!("heartbeat {} {position}", sent.as_nanos()));
    }

    fn new_epoch(&self, reason: &str) {
        print(&format!("epoch {reason}"));
    }
}

/// A line of [`PrintingSink`]'s; the tags of a change are left out.
fn heard(line: &str) -> Option<SinkEvent> {
    let (kind, rest) = line.split_once(' ')?;
    if kind == "epoch" {
        return Some(SinkEvent::NewEpoch(rest.to_owned()));
    }
    let (one, other) = rest.split_once(' ')?;
    let (one, other) = (one.parse().ok()?, other.parse().ok()?);
    match kind {
        "apply" => {
            let (transaction, at) = (one, other);
            Some(SinkEvent::Apply(Mark { transaction, at }, Vec::new()))
        }
        "heartbeat" => Some(SinkEvent::Heartbeat(Boottime::from_nanos(one), other)),
        _ => None,
    }
}

#[test]
#[ignore = "the other process of the tests beside it"]
fn feeds_until_it_is_killed() {
    let (Ok(url), Ok(timeout)) = (std::env::var(URL), std::env::var(TIMEOUT)) else {
        return;
    };
    let link = Arc::new(FeedLink::default());
    link.delivery.start(Arc::new(PrintingSink));
    let settings = FeedSettings {
        wal_sender_timeout: Duration::from_millis(timeout.parse().unwrap()),
        ..settings(&url, "00000000000000ac")
    };
    let _feed = start(settings, link).unwrap();
    // Until its standard input ends, if it is not killed.
    let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
}

/// A process that feeds; it is killed with this value.
struct Other(Child);

impl Other {
    fn start(url: &str, wal_sender_timeout: Duration) -> Self {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact"])
            .arg("postgres::feed::tests::processes::feeds_until_it_is_killed")
            .env(URL, url)
            .env(TIMEOUT, wal_sender_timeout.as_millis().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        Self(child.unwrap())
    }

    /// The calls to its sink, for as long as it lives.
    fn listen(&mut self) -> Arc<Recorder> {
        let recorder = Arc::new(Recorder::default());
        let (out, its) = (self.0.stdout.take().unwrap(), Arc::clone(&recorder));
        std::thread::spawn(move || hear(out, &its));
        recorder
    }

    /// Returns once all its threads stand still.
    fn freeze(&self) {
        let pid = Pid::from_child(&self.0);
        kill_process(pid, Signal::STOP).unwrap();
        let (_, status) = waitpid(Some(pid), WaitOptions::UNTRACED).unwrap().unwrap();
        assert!(status.stopped(), "{status:?}");
    }

    fn thaw(&self) {
        kill_process(Pid::from_child(&self.0), Signal::CONT).unwrap();
    }

    fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        self.kill();
    }
}

fn hear(out: ChildStdout, recorder: &Recorder) {
    let lines = BufReader::new(out).lines().map_while(Result::ok);
    for line in lines {
        if let Some(one) = heard(&line) {
            recorder.record(one);
        }
    }
}

#[test]
fn a_process_that_is_killed_leaves_no_slot() {
    let mut fixture = FeedFixture::new(shared(), "create table article (id int primary key)");
    let mut other = Other::start(&fixture.url, PATIENCE);
    other.listen();
    wait_until(&mut fixture.client, HAS_SLOT);
    other.kill();
    wait_until(&mut fixture.client, &format!("not {HAS_SLOT}"));
    assert_eq!(fixture.slots(), 1);
}

/// The server itself has no timeout here, so it is the one that the feed's session has set.
#[test]
fn a_process_that_is_frozen_loses_its_slot_and_then_begins_an_epoch() {
    let server = server(Options::new().set("wal_sender_timeout", "0"));
    let mut client = connect(&server.url());
    let schema =
        "create table article (id int primary key); create publication millpond for all tables";
    client.batch_execute(schema).unwrap();
    let mut other = Other::start(&server.url(), SHORT);
    let recorder = other.listen();
    recorder.settle();
    other.freeze();
    let frozen = Boottime::now();
    wait_until(&mut client, HAS_SLOT);
    client
        .batch_execute("insert into article values (1)")
        .unwrap();
    wait_until(&mut client, &format!("not {HAS_SLOT}"));
    let thawed = Boottime::now();
    other.thaw();
    // Its other connection is alive, and it may send a heartbeat through that at once; but none
    // comes back.
    let later =
        |event: &SinkEvent| matches!(event, SinkEvent::Heartbeat(sent, _) if *sent >= frozen);
    let fresh = recorder.wait_for("a heartbeat from after the thaw", 0, later);
    let before = recorder.since(0);
    let SinkEvent::Heartbeat(sent, _) = before[fresh] else {
        panic!("{:?}", before[fresh]);
    };
    assert!(sent >= thawed, "sent by a process that stood still");
    let old = before[..fresh]
        .iter()
        .rposition(|event| matches!(event, SinkEvent::Heartbeat(..)));
    let between = &before[old.unwrap()..fresh];
    let begins =
        |event: &SinkEvent| matches!(event, SinkEvent::NewEpoch(why) if why == "the feed starts");
    assert!(between.iter().any(begins), "{between:?}");
    wait_until(&mut client, HAS_SLOT);
    client
        .batch_execute("insert into article values (2)")
        .unwrap();
    recorder.wait_for("a change", fresh, |event| {
        matches!(event, SinkEvent::Apply(..))
    });
}
