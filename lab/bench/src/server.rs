//! The servers under test, each a process of its own on core 0.

use std::{
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::{Result, cpu};

/// The core of the servers; the generator has the other one.
pub(crate) const SERVER_CORE: usize = 0;
/// The core of the generator.
pub(crate) const CLIENT_CORE: usize = 1;

/// A server that ends with this value.
pub(crate) struct BenchServer {
    pub(crate) url: String,
    child: Child,
}

impl BenchServer {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for BenchServer {
    fn drop(&mut self) {
        // It may have ended by itself; either way nothing of it is left.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts `millpond serve` on `site` with one worker and waits until it answers.
pub(crate) fn millpond(binary: &Path, site: &Path, path: &str) -> Result<BenchServer> {
    let port = free_port().map_err(|error| format!("no free port: {error}"))?;
    let listen = format!("127.0.0.1:{port}");
    let mut command = Command::new(binary);
    command
        .arg("serve")
        .arg(site)
        .args(["--listen", &listen, "--workers", "1"])
        .stdout(Stdio::null());
    let child = start(&mut command)?;
    let mut server = BenchServer {
        url: format!("http://{listen}{path}"),
        child,
    };
    let what = format!("{} serve {}", binary.display(), site.display());
    until_it_listens(&mut server.child, &listen, &what)?;
    until_it_answers(&listen).map_err(|error| format!("{what}: {error}"))?;
    Ok(server)
}

/// Waits for the first byte of any answer: a server accepts connections before it has opened its
/// site.
fn until_it_answers(address: &str) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    stream.write_all(format!("GET / HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes())?;
    stream.read_exact(&mut [0])
}

/// Waits until the program that was started as `what` takes connections at `address`.
fn until_it_listens(child: &mut Child, address: &str, what: &str) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(30);
    while TcpStream::connect(address).is_err() {
        if let Ok(Some(status)) = child.try_wait() {
            return Err(format!("{what}: {status}"));
        }
        if Instant::now() > deadline {
            return Err(format!("{what} does not listen on {address}"));
        }
        // There is no event for another program's listening socket.
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn start(command: &mut Command) -> Result<Child> {
    cpu::pin(SERVER_CORE)?;
    let child = command.stdin(Stdio::null()).spawn();
    cpu::pin(CLIENT_CORE)?;
    child.map_err(|error| format!("{:?} does not start: {error}", command.get_program()))
}

fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// The bytes of the response that begins here, once its head is complete. Without a Content-Length
/// only the head counts.
pub(crate) fn length(response: &[u8]) -> Option<usize> {
    let head = response
        .windows(4)
        .position(|window| window == b"\r\n\r\n")?;
    let text = String::from_utf8_lossy(&response[..head]).to_ascii_lowercase();
    let body = text.lines().find_map(|line| {
        line.strip_prefix("content-length:")?
            .trim()
            .parse::<usize>()
            .ok()
    });
    Some(head + 4 + body.unwrap_or(0))
}
