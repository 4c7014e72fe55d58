//! The servers under test, each a process of its own on core 0.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::{Result, cpu, hit_ratio};

/// The core of the servers; the generator has the other one.
pub(crate) const SERVER_CORE: usize = 0;
/// The core of the generator.
pub(crate) const CLIENT_CORE: usize = 1;

/// A server that ends with this value.
pub(crate) struct BenchServer {
    pub(crate) name: &'static str,
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

/// Compiles `lab/floor/floor.c`.
fn build_floor(binary: &Path) -> Result<()> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../floor/floor.c");
    let mut compile = Command::new("cc");
    compile
        .args(["-O2", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(binary)
        .arg(&source);
    let status = compile.status().map_err(|error| format!("cc: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("cc {}: {status}", source.display()))
    }
}

/// Starts the floor with the bytes of `response`.
pub(crate) fn floor(response: &[u8], path: &str) -> Result<BenchServer> {
    let binary = compile_floor()?;
    let file = hit_ratio::target().join("floor.response");
    fs::write(&file, response).map_err(|error| format!("{}: {error}", file.display()))?;
    let mut command = Command::new(binary);
    command.arg("0").arg(file).stdout(Stdio::piped());
    let child = start(&mut command)?;
    printed_port(child, path)
}

/// Compiles the floor into the target folder, for [`working`].
pub(crate) fn compile_floor() -> Result<PathBuf> {
    let binary = hit_ratio::target().join("floor");
    build_floor(&binary)?;
    Ok(binary)
}

/// The floor with 1 kB of body, which hashes `rounds` times for each request.
pub(crate) fn working(floor: &Path, rounds: u64) -> Result<BenchServer> {
    let mut command = Command::new(floor);
    command
        .args(["0", "200", "1000", &rounds.to_string()])
        .stdout(Stdio::piped());
    printed_port(start(&mut command)?, "/")
}

/// The floor whose process is `child`, once it has said its port.
fn printed_port(mut child: Child, path: &str) -> Result<BenchServer> {
    let mut port = String::new();
    let stdout = child.stdout.take();
    let read = stdout.map(|stdout| BufReader::new(stdout).read_line(&mut port));
    let server = BenchServer {
        name: "floor",
        url: format!("http://127.0.0.1:{}{path}", port.trim()),
        child,
    };
    match read {
        Some(Ok(1..)) => Ok(server),
        _ => Err("the floor did not say its port".to_owned()),
    }
}

/// Starts `millpond serve` on `site` with one worker and waits until it answers.
pub(crate) fn millpond(
    binary: &Path,
    site: &Path,
    path: &str,
    cached: bool,
) -> Result<BenchServer> {
    let port = free_port().map_err(|error| format!("no free port: {error}"))?;
    let listen = format!("127.0.0.1:{port}");
    let mut command = Command::new(binary);
    command
        .arg("serve")
        .arg(site)
        .args(["--listen", &listen, "--workers", "1"])
        .stdout(Stdio::null());
    if !cached {
        command.arg("--no-cache");
    }
    let child = start(&mut command)?;
    let name = if cached {
        "millpond, hit"
    } else {
        "millpond --no-cache"
    };
    let mut server = BenchServer {
        name,
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
pub(crate) fn until_it_listens(child: &mut Child, address: &str, what: &str) -> Result<()> {
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

pub(crate) fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// One whole response of `server`, head and all, as it is sent on a connection that stays open.
pub(crate) fn fetch(server: &BenchServer) -> Result<Vec<u8>> {
    let address = server.url.trim_start_matches("http://");
    let (host, path) = address.split_once('/').unwrap_or((address, ""));
    let request = format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let exchange = || -> std::io::Result<Vec<u8>> {
        let mut stream = TcpStream::connect(host)?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        stream.write_all(request.as_bytes())?;
        let mut response = Vec::new();
        while length(&response).is_none_or(|length| response.len() < length) {
            let mut chunk = [0; 65536];
            match stream.read(&mut chunk)? {
                0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
                read => response.extend_from_slice(&chunk[..read]),
            }
        }
        Ok(response)
    };
    let response = exchange().map_err(|error| format!("{}: {error}", server.url))?;
    if response.starts_with(b"HTTP/1.1 200 ") {
        Ok(response)
    } else {
        let head = String::from_utf8_lossy(&response);
        Err(format!(
            "{}: {}",
            server.url,
            head.lines().next().unwrap_or("no answer")
        ))
    }
}

/// The bytes of the response that begins here, once its head is complete. Without a Content-Length
/// only the head counts: such a page would differ from the floor's.
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

#[cfg(test)]
mod tests {
    use std::{
        io::{Read as _, Write as _},
        net::TcpStream,
        process::{Command, Stdio},
    };

    use super::{BenchServer, build_floor, fetch, length, printed_port};
    use crate::cpu;

    /// A floor that is bound to no core: a test machine may have only one.
    fn floor(head: &str, body: &str) -> BenchServer {
        let folder = tempfile::tempdir().expect("a folder");
        let binary = folder.path().join("floor");
        build_floor(&binary).expect("cc");
        let child = Command::new(binary)
            .args(["0", head, body])
            .stdout(Stdio::piped())
            .spawn();
        printed_port(child.expect("a process"), "/").expect("a port")
    }

    #[test]
    fn the_floor_answers_each_request_of_a_pipeline() {
        let server = floor("300", "1000");
        let mut stream = TcpStream::connect(
            server
                .url
                .trim_start_matches("http://")
                .trim_end_matches('/'),
        )
        .expect("connects");
        let request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        // The last request comes in two halves, cut within its end.
        let (first, second) = request.split_at(request.len() - 1);
        stream
            .write_all((request.repeat(99) + first).as_bytes())
            .expect("sent");
        let mut answers = vec![0; 99 * 1300];
        stream.read_exact(&mut answers).expect("99 answers");
        stream.write_all(second.as_bytes()).expect("sent");
        let mut last = vec![0; 1300];
        stream.read_exact(&mut last).expect("the hundredth answer");
        assert!(last.starts_with(b"HTTP/1.1 200 OK\r\n") && last[..300].ends_with(b"\r\n\r\n"));
        assert!(answers.chunks(1300).all(|answer| answer == last));
        assert!(cpu::run_time(server.pid()).expect("schedstat").as_nanos() > 0);
    }

    #[test]
    fn a_reader_that_sleeps_gets_every_byte_in_the_end() {
        let server = floor("200", "100000");
        let mut stream = TcpStream::connect(
            server
                .url
                .trim_start_matches("http://")
                .trim_end_matches('/'),
        )
        .expect("connects");
        // 30 MB: far more than the socket's buffers hold, so the floor must pause and continue
        // within a response.
        stream
            .write_all("\r\n\r\n".repeat(300).as_bytes())
            .expect("sent");
        // Another connection is served meanwhile.
        assert_eq!(fetch(&server).expect("a response").len(), 100_200);
        let mut answers = vec![0; 300 * 100_200];
        stream.read_exact(&mut answers).expect("all answers");
        assert!(
            answers
                .chunks(100_200)
                .all(|answer| answer == &answers[..100_200])
        );
    }

    #[test]
    fn a_server_without_an_answer_is_an_error() {
        let mut server = floor("100", "1");
        server.child.kill().expect("killed");
        server.child.wait().expect("ended");
        assert!(fetch(&server).is_err());
    }

    #[test]
    fn a_response_ends_where_it_says() {
        assert_eq!(length(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n"), None);
        assert_eq!(
            length(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n"),
            Some(41)
        );
        let server = floor("200", "5000");
        assert_eq!(fetch(&server).expect("a response").len(), 5200);
    }
}
