//! A program that serves, as a child of the test.

use std::io::{BufRead as _, BufReader, Read};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};

use crate::PATIENCE;
use crate::client::{Connection, Response};

/// Text that a child has written to standard error so far.
#[derive(Default)]
struct Notes {
    text: Mutex<(String, bool)>,
    more: Condvar,
}

/// A running server, killed when dropped.
pub struct Server {
    child: Child,
    url: String,
    address: SocketAddr,
    notes: Arc<Notes>,
}

impl Server {
    /// Starts `command` and waits for its line with an address.
    pub fn spawn(mut command: Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let notes = Arc::<Notes>::default();
        let stderr = child.stderr.take().unwrap();
        let for_thread = Arc::clone(&notes);
        thread::spawn(move || for_thread.collect(stderr));
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let ready = lines.find_map(|line| url_in(&line.unwrap()));
        // Nothing may block on a full pipe later.
        thread::spawn(move || lines.for_each(drop));
        match ready {
            Some((url, address)) => Self {
                child,
                url,
                address,
                notes,
            },
            None => {
                child.wait().unwrap();
                panic!("the server did not start:\n{}", notes.all());
            }
        }
    }

    /// Its URL, as it prints it.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the address at which the server listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// One request on a connection of its own.
    pub fn get(&self, target: &str) -> Response {
        Connection::open(self.address).get(target)
    }

    /// Sends a signal.
    ///
    /// # Panics
    /// The process has ended.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).unwrap();
    }

    /// Waits until standard error has `text`, and gives all of it.
    pub fn wait_for(&self, text: &str) -> String {
        self.notes.wait_for(text)
    }

    /// Waits until standard error has `text` as often as `times` says, and gives that last line.
    pub fn wait_for_line(&self, text: &str, times: usize) -> String {
        let all = self
            .notes
            .wait_until(text, |all| all.matches(text).count() >= times);
        let mut lines = all.lines().filter(|line| line.contains(text));
        lines.nth(times - 1).unwrap().to_owned()
    }

    /// Waits until the server takes no more connections.
    pub fn wait_until_closed(&self) {
        while TcpStream::connect(self.address).is_ok() {
            thread::yield_now();
        }
    }

    /// Waits until nothing has its standard error any more, neither it nor what it has started, and
    /// gives all of that.
    pub fn wait_for_end(&self) -> String {
        self.notes.all()
    }

    /// Waits for its end; gives its status and all that it wrote to standard error.
    pub fn wait(mut self) -> (ExitStatus, String) {
        // Its standard error is at the end when it has ended, and that wait has a limit.
        let notes = self.notes.all();
        (self.child.wait().unwrap(), notes)
    }

    /// SIGTERM, and then as [`Server::wait`].
    pub fn stop(self) -> (ExitStatus, String) {
        self.signal(Signal::TERM);
        self.wait()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // An error means that it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The first URL in a line that has an address or `localhost` for a host.
fn url_in(line: &str) -> Option<(String, SocketAddr)> {
    let url = line.split_whitespace().find(|word| word.contains("://"))?;
    // In a line of JSON more follows.
    let url = url.split('"').find(|part| part.contains("://"))?;
    let (_, host) = url.split_once("://")?;
    let address = host.replace("localhost", "127.0.0.1").parse().ok()?;
    Some((url.to_owned(), address))
}

impl Notes {
    fn collect(&self, stderr: impl Read) {
        for line in BufReader::new(stderr).lines() {
            let Ok(line) = line else { break };
            self.text.lock().unwrap().0 += &(line + "\n");
            self.more.notify_all();
        }
        self.text.lock().unwrap().1 = true;
        self.more.notify_all();
    }

    fn wait_for(&self, expected: &str) -> String {
        self.wait_until(expected, |text| text.contains(expected))
    }

    fn wait_until(&self, expected: &str, is_there: impl Fn(&str) -> bool) -> String {
        let guard = self.text.lock().unwrap();
        let (guard, waited) = self
            .more
            .wait_timeout_while(guard, PATIENCE, |(text, ended)| !is_there(text) && !*ended)
            .unwrap();
        assert!(
            is_there(&guard.0),
            "no {expected:?} ({waited:?}) in:\n{}",
            guard.0
        );
        guard.0.clone()
    }

    /// Everything, once it has ended.
    fn all(&self) -> String {
        let guard = self.text.lock().unwrap();
        let (guard, waited) = self
            .more
            .wait_timeout_while(guard, PATIENCE, |(_, ended)| !*ended)
            .unwrap();
        assert!(!waited.timed_out(), "it does not end:\n{}", guard.0);
        guard.0.clone()
    }
}
