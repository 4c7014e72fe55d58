//! A node: a Millpond of its own, with a way of its own to the server or with the file of all.

use std::fs;
use std::io::{self, BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use lab_testkit::fast_dir;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::coherence::context::Target;
use crate::coherence::relay::Relay;
use crate::coherence::scenario::Feed;
use crate::coherence::site;
use base_clock::Boottime;

/// How long a node may take to its end: it lets requests finish.
const ENDING: Duration = Duration::from_secs(60);
/// From one look to the next while that is waited for.
const LOOK: Duration = Duration::from_millis(20);

/// How a node reaches the database.
#[derive(Debug)]
pub(crate) enum Link {
    /// At an address that no other node uses: the packets can be told apart.
    Straight((Ipv4Addr, u16)),
    /// Through a relay, which replaces the network.
    Relay(Relay),
    /// An SQLite file, which all nodes open.
    File(PathBuf),
}

impl Link {
    /// The settings of the node's database.
    fn settings(&self, feed: Feed) -> String {
        let (address, port) = match self {
            Self::Straight(server) => *server,
            Self::Relay(relay) => (Ipv4Addr::LOCALHOST, relay.port()),
            Self::File(file) => {
                let url = format!("url = \"sqlite:{}\"", file.display());
                return match feed {
                    Feed::Logical => url,
                    Feed::Triggers => format!("{url}\nfeed = \"triggers\""),
                };
            }
        };
        let feed = feed.name();
        format!("url = \"postgres://postgres@{address}:{port}/postgres\"\nfeed = \"{feed}\"")
    }
}

/// A node; it ends with the value.
#[derive(Debug)]
pub(crate) struct Node {
    program: PathBuf,
    site: TempDir,
    bound: Duration,
    pub(crate) link: Link,
    running: Mutex<Running>,
}

#[derive(Debug)]
struct Running {
    child: Child,
    address: SocketAddr,
}

impl Node {
    /// Starts `program serve` on a site of its own and waits until it answers. The objects that a
    /// feed by triggers needs are installed first, by an owner.
    pub(crate) fn start(
        program: &Path,
        link: Link,
        feed: Feed,
        bound: Duration,
    ) -> io::Result<Self> {
        let site = fast_dir();
        let max_staleness = format!("{}s", bound.as_secs());
        let on_postgres = !matches!(link, Link::File(_));
        site::write(
            site.path(),
            &link.settings(feed),
            &max_staleness,
            on_postgres,
        )?;
        if feed == Feed::Triggers {
            install(program, site.path())?;
        }
        let running = Mutex::new(serve(program, site.path())?);
        Ok(Self {
            program: program.to_owned(),
            site,
            bound,
            link,
            running,
        })
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn signal(&self, signal: Signal) -> io::Result<()> {
        let pid = Pid::from_child(&self.running().child);
        Ok(kill_process(pid, signal)?)
    }

    /// SIGSTOP: connections stay open, nothing moves.
    pub(crate) fn freeze(&self) -> io::Result<()> {
        self.signal(Signal::STOP)
    }

    /// SIGCONT.
    pub(crate) fn thaw(&self) -> io::Result<()> {
        self.signal(Signal::CONT)
    }

    /// Silences the relay to the server, or ends the silence.
    pub(crate) fn silence(&self, silent: bool) -> Result<(), String> {
        match &self.link {
            Link::Relay(relay) => {
                relay.silence(silent);
                Ok(())
            }
            Link::Straight(_) | Link::File(_) => Err("the node has no relay".to_owned()),
        }
    }

    /// The bytes of memory that it has.
    pub(crate) fn memory(&self) -> u64 {
        memory_of(self.running().child.id())
    }

    /// SIGKILL, and a new one in its place, which listens elsewhere.
    pub(crate) fn replace(&self) -> io::Result<()> {
        {
            let mut running = self.running();
            running.child.kill()?;
            running.child.wait()?;
        }
        let next = serve(&self.program, self.site.path())?;
        *self.running() = next;
        Ok(())
    }

    /// SIGTERM, and its end.
    pub(crate) fn stop(&self) -> io::Result<()> {
        self.signal(Signal::TERM)?;
        let began = Boottime::now();
        while self.running().child.try_wait()?.is_none() {
            if Boottime::now().since(began) > ENDING {
                return Err(io::Error::other("a node does not end"));
            }
            // A process is waited for without a limit, or looked at.
            thread::sleep(LOOK);
        }
        Ok(())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // An error means that it has ended already.
        let mut running = self.running();
        let _ = running.child.kill();
        let _ = running.child.wait();
    }
}

impl Target for Arc<Node> {
    fn address(&self) -> SocketAddr {
        self.running().address
    }

    fn bound(&self) -> Duration {
        self.bound
    }
}

fn install(program: &Path, site: &Path) -> io::Result<()> {
    let mut command = Command::new(program);
    command.args(["check", "--fix", "--yes"]).arg(site);
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    let to_message = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("the check fails: {to_message}")))
}

fn serve(program: &Path, site: &Path) -> io::Result<Running> {
    let mut command = Command::new(program);
    command.args(["serve", "--listen", "127.0.0.1:0", "--workers", "1"]);
    command.arg(site).stdin(Stdio::null());
    // What it has to say is the reader's of a failed test.
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let output = child.stdout.take().map(BufReader::new);
    let mut lines = output.into_iter().flat_map(|output| output.lines());
    let address = lines.find_map(|line| address_in(&line.ok()?));
    let Some(address) = address else {
        let _ = child.kill();
        let status = child.wait()?;
        let what = format!("the node did not start: {status}");
        return Err(io::Error::other(what));
    };
    // Nothing may block on a full pipe later.
    thread::spawn(move || lines.for_each(drop));
    Ok(Running { child, address })
}

/// The resident memory of a process, in bytes; `None` if the process has ended.
pub(crate) fn memory_of(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_ascii_whitespace().next());
    kilobytes
        .and_then(|word| word.parse::<u64>().ok())
        .unwrap_or_default()
        << 10
}

fn address_in(line: &str) -> Option<SocketAddr> {
    let (_, rest) = line.split_once("http://")?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::address_in;

    #[test]
    fn a_node_says_where_it_listens() {
        let address = address_in("serving x on http://127.0.0.1:4711 with 1 worker");
        assert_eq!(address, Some(([127, 0, 0, 1], 4711).into()));
        assert_eq!(address_in("serving"), None);
    }
}
