//! A server of one's own, a client, and folders to serve. Every child ends with its test.

use std::fs;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// How long a test waits for something before it fails. Nothing is expected to take a hundredth of it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// `millpond` with arguments, not yet started.
pub(crate) fn millpond(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_millpond"));
    command.args(args);
    command
}

/// Runs `millpond` to its end in `dir`.
pub(crate) fn run(dir: &Path, args: &[&str]) -> Output {
    millpond(args).current_dir(dir).output().unwrap()
}

/// Runs `millpond` and gives its exit status and what it wrote to standard error.
pub(crate) fn fail(dir: &Path, args: &[&str]) -> (i32, String) {
    let output = run(dir, args);
    (output.status.code().unwrap_or(-1), text(&output.stderr))
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Writes `contents` to `name` below `dir`, with the folders that it needs.
pub(crate) fn write(dir: &Path, name: &str, contents: &str) {
    let path = dir.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, contents).unwrap();
}

/// The site of `millpond new`.
pub(crate) fn new_site() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let output = run(dir.path(), &["new", "."]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    dir
}

/// The same with this `millpond.toml`.
pub(crate) fn site_with(settings: &str) -> TempDir {
    let site = new_site();
    write(site.path(), "millpond.toml", settings);
    site
}

/// What a child has written to standard error so far.
#[derive(Default)]
struct Notes {
    text: Mutex<(String, bool)>,
    more: Condvar,
}

/// A running server, killed when dropped.
pub(crate) struct Server {
    child: Child,
    address: SocketAddr,
    notes: Arc<Notes>,
}

impl Server {
    /// `millpond serve SITE` on a free port, ready to answer.
    pub(crate) fn start(site: &Path) -> Self {
        Self::with(site, &[])
    }

    /// The same with more arguments.
    pub(crate) fn with(site: &Path, args: &[&str]) -> Self {
        let mut command = millpond(&["serve", "--listen", "127.0.0.1:0", "--workers", "2"]);
        command.arg(site).args(args);
        Self::spawn(command)
    }

    /// Starts `command` and waits for its line with an address.
    pub(crate) fn spawn(mut command: Command) -> Self {
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
        let ready = lines.find_map(|line| address_in(&line.unwrap()));
        // Nothing may block on a full pipe later.
        thread::spawn(move || lines.for_each(drop));
        match ready {
            Some(address) => Self {
                child,
                address,
                notes,
            },
            None => {
                child.wait().unwrap();
                panic!("the server did not start:\n{}", notes.all());
            }
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// One request on a connection of its own.
    pub(crate) fn get(&self, target: &str) -> Response {
        Connection::open(self.address).get(target)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).unwrap();
    }

    /// Waits until standard error has `text`, and gives all of it.
    pub(crate) fn wait_for(&self, text: &str) -> String {
        self.notes.wait_for(text)
    }

    /// Waits until the server takes no more connections.
    pub(crate) fn wait_until_closed(&self) {
        while TcpStream::connect(self.address).is_ok() {
            thread::yield_now();
        }
    }

    /// Waits for its end; gives its status and all that it wrote to standard error.
    pub(crate) fn wait(mut self) -> (ExitStatus, String) {
        // Its standard error is at the end when it has ended, and that wait has a limit.
        let notes = self.notes.all();
        (self.child.wait().unwrap(), notes)
    }

    /// SIGTERM, and then as [`Server::wait`].
    pub(crate) fn stop(self) -> (ExitStatus, String) {
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

fn address_in(line: &str) -> Option<SocketAddr> {
    let (_, rest) = line.split_once("http://")?;
    rest.split_whitespace().next()?.parse().ok()
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
        let guard = self.text.lock().unwrap();
        let (guard, waited) = self
            .more
            .wait_timeout_while(guard, PATIENCE, |(text, ended)| {
                !text.contains(expected) && !*ended
            })
            .unwrap();
        assert!(
            guard.0.contains(expected),
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

/// A response, read whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) status: u16,
    /// Field names in lower case, values trimmed, in order.
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Response {
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let found = self.fields.iter().find(|(field, _)| field == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        text(&self.body)
    }
}

/// A keep-alive connection. Bytes go out as they are given; a response must have a Content-Length or no body.
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
    address: SocketAddr,
}

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream: BufReader::new(stream),
            address,
        }
    }

    pub(crate) fn get(&mut self, target: &str) -> Response {
        self.get_with(target, &[])
    }

    /// With more field lines, such as `Accept-Encoding: br`.
    pub(crate) fn get_with(&mut self, target: &str, fields: &[&str]) -> Response {
        let more: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
        self.send(&format!(
            "GET {target} HTTP/1.1\r\nHost: {}\r\n{more}\r\n",
            self.address
        ));
        self.receive()
    }

    /// A form of this very site.
    pub(crate) fn post(&mut self, target: &str, form: &str) -> Response {
        self.send(&format!(
            "POST {target} HTTP/1.1\r\nHost: {0}\r\nOrigin: http://{0}\r\nContent-Type: application/x-www-form-urlencoded\r\n\
             Content-Length: {1}\r\n\r\n{form}",
            self.address,
            form.len()
        ));
        self.receive()
    }

    pub(crate) fn send(&mut self, bytes: &str) {
        self.stream.get_mut().write_all(bytes.as_bytes()).unwrap();
    }

    pub(crate) fn receive(&mut self) -> Response {
        let head = self.line();
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        let status = status.unwrap_or_else(|| panic!("no status in {head:?}"));
        let mut fields = Vec::new();
        loop {
            let line = self.line();
            let Some((name, value)) = line.split_once(':') else {
                break;
            };
            fields.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut response = Response {
            status,
            fields,
            body: Vec::new(),
        };
        let length = response
            .field("content-length")
            .map_or(0, |n| n.parse().unwrap());
        response.body.resize(length, 0);
        self.stream.read_exact(&mut response.body).unwrap();
        response
    }

    /// Whether the server closes the connection without another byte.
    pub(crate) fn is_closed(&mut self) -> bool {
        matches!(self.stream.read(&mut [0]), Ok(0))
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
}
