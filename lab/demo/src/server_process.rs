//! `millpond serve` as a child process that ends with this one.

use std::collections::VecDeque;
use std::io::{self, BufRead as _, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use rustix::process::{Pid, Signal, kill_process};

use crate::failure::{DemoFailure, DemoResult};
use crate::output::note;

/// Ports that are tried after the requested one.
const PORTS: u16 = 100;
/// Lines of a server's standard error that a failure repeats.
const LOG_LINES: usize = 20;

/// Text that a server has written to standard error.
#[derive(Default)]
struct ServerLog {
    is_shown: AtomicBool,
    last: Mutex<VecDeque<String>>,
}

/// A running server. Dropping it stops it.
pub(crate) struct ServerProcess {
    child: Child,
    address: SocketAddr,
    log: Arc<ServerLog>,
}

impl ServerProcess {
    /// Starts `program serve SITE --listen LISTEN`, followed by `arguments`, and waits until the
    /// program prints its address.
    pub(crate) fn start(
        program: &Path,
        site: &Path,
        listen: SocketAddr,
        arguments: &[&str],
    ) -> DemoResult<Self> {
        let mut child = Command::new(program)
            .arg("serve")
            .arg(site)
            .args(["--listen", &listen.to_string()])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C reaches this program only, which then stops its servers in order.
            .process_group(0)
            .spawn()
            .map_err(|error| {
                DemoFailure::new(format!("{} cannot be run: {error}", program.display()))
            })?;
        let log = Arc::<ServerLog>::default();
        let reader = child.stderr.take().map(|stderr| log.follow(stderr));
        let address = child.stdout.take().and_then(first_address);
        let server = Self {
            child,
            address: address.unwrap_or(listen),
            log,
        };
        if address.is_some() {
            return Ok(server);
        }
        Err(server.failed(reader))
    }

    /// The address that the server answers on.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Copies the server's standard error to this program's from now on.
    pub(crate) fn show_log(&self) {
        self.log.is_shown.store(true, Ordering::SeqCst);
    }

    /// Fails if the server has ended.
    pub(crate) fn check(&mut self) -> DemoResult {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(DemoFailure::new(format!("the server ended: {status}"))),
            Err(error) => Err(DemoFailure::new(format!("the server is lost: {error}"))),
        }
    }

    /// The failure of a server that closed its standard output before it said an address.
    fn failed(mut self, reader: Option<JoinHandle<()>>) -> DemoFailure {
        let status = self.child.wait();
        if let Some(reader) = reader {
            // The thread ends with the pipe, and does not panic.
            let _ = reader.join();
        }
        let last = self.log.last.lock().unwrap_or_else(PoisonError::into_inner);
        let lines: Vec<&str> = last.iter().map(String::as_str).collect();
        let status = status.map_or_else(|error| error.to_string(), |status| status.to_string());
        DemoFailure::new(format!(
            "the server did not start ({status}):\n{}",
            lines.join("\n")
        ))
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.log.is_shown.store(false, Ordering::SeqCst);
            // The server finishes its requests, for at most its drain timeout.
            let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
            let _ = self.child.wait();
        }
    }
}

impl ServerLog {
    /// Reads `stderr` to its end on a thread of its own, so the server never waits for a full pipe.
    fn follow(self: &Arc<Self>, stderr: ChildStderr) -> JoinHandle<()> {
        let log = Arc::clone(self);
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if log.is_shown.load(Ordering::SeqCst) {
                    note(&line);
                }
                let mut last = log.last.lock().unwrap_or_else(PoisonError::into_inner);
                if last.len() == LOG_LINES {
                    last.pop_front();
                }
                last.push_back(line);
            }
        })
    }
}

/// The address in the first line of `stdout` that has one; later lines are read and dropped.
fn first_address(stdout: ChildStdout) -> Option<SocketAddr> {
    let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
    let address = lines.find_map(|line| address_in(&line))?;
    thread::spawn(move || lines.for_each(drop));
    Some(address)
}

fn address_in(line: &str) -> Option<SocketAddr> {
    let (_, rest) = line.split_once("http://")?;
    rest.split_whitespace().next()?.parse().ok()
}

/// `address`, or the next port of it that is free.
pub(crate) fn free_near(address: SocketAddr) -> DemoResult<SocketAddr> {
    let last = address.port().saturating_add(PORTS);
    let mut next = address;
    loop {
        match TcpListener::bind(next) {
            Ok(_) => break,
            Err(error)
                if error.kind() == io::ErrorKind::AddrInUse
                    && address.port() != 0
                    && next.port() < last =>
            {
                next.set_port(next.port() + 1);
            }
            Err(error) => {
                return Err(
                    DemoFailure::new(format!("cannot listen on {next}: {error}"))
                        .hint("name another address with --listen; port 0 is any free port"),
                );
            }
        }
    }
    if next != address {
        note(format_args!(
            "note: {address} is in use; the magazine is on port {} instead",
            next.port()
        ));
    }
    Ok(next)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn a_port_in_use_is_skipped() {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let in_use = TcpListener::bind(any).unwrap();
        let address = in_use.local_addr().unwrap();
        assert!(free_near(address).unwrap().port() > address.port());
    }

    #[test]
    fn the_address_is_read_from_the_ready_line() {
        let line = "millpond serving /a/site on http://127.0.0.1:8080";
        assert_eq!(address_in(line), "127.0.0.1:8080".parse().ok());
        assert_eq!(address_in("millpond"), None);
    }

    #[test]
    fn a_server_that_does_not_start_is_quoted() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("server");
        std::fs::write(&program, "#!/bin/sh\necho no such site >&2\nexit 1\n").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&program, mode).unwrap();
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let started = ServerProcess::start(&program, folder.path(), any, &[]);
        let failure = started.err().map(|failure| format!("{failure:?}"));
        assert!(failure.unwrap().contains("no such site"));
    }
}
