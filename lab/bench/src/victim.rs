//! The server under attack: the real program with a small site, its output, and its resources.

use std::{
    fs::{self, File},
    net::SocketAddr,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use lab_torture::http::site;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::{
    Result, cpu,
    server::{self, CLIENT_CORE, SERVER_CORE},
};

/// Limit for the server to notice that its clients have gone. It reads on for two seconds after a
/// refusal.
const QUIET: Duration = Duration::from_secs(60);

/// Short limits of time: what stands still ends within two seconds.
const IMPATIENT: &str =
    "[limits]\nhead_timeout = \"1s\"\nidle_timeout = \"2s\"\nprogress_timeout = \"1s\"\n";

/// A server, killed when dropped.
pub(crate) struct Victim {
    child: Child,
    address: SocketAddr,
    dir: TempDir,
    idle_sockets: usize,
}

impl Victim {
    /// `millpond serve` with two workers on all cores, as it stands after its first connection.
    pub(crate) fn start(binary: &Path) -> Result<Self> {
        Self::start_at(binary, "", |command, address| {
            command.args(["--workers", "2", "--listen", address]);
        })
    }

    /// Starts a server with https, a certificate for `localhost`, short limits of time, and one
    /// worker on a core of its own. The calling thread, and those that it starts, have the other
    /// core.
    pub(crate) fn start_secure(binary: &Path) -> Result<Self> {
        // A child begins where its parent is.
        cpu::pin(SERVER_CORE)?;
        let victim = Self::start_at(binary, IMPATIENT, |command, address| {
            command.args(["--workers", "1", "--domain", "localhost"]);
            command.args(["--listen", "127.0.0.1:0", "--tls-listen", address]);
        });
        cpu::pin(CLIENT_CORE)?;
        victim
    }

    fn start_at(binary: &Path, limits: &str, listen: impl Fn(&mut Command, &str)) -> Result<Self> {
        let said = |error: std::io::Error| format!("the site under attack: {error}");
        let dir = tempfile::tempdir().map_err(said)?;
        site::write(dir.path()).map_err(said)?;
        let settings = dir.path().join("millpond.toml");
        let text = fs::read_to_string(&settings).map_err(said)?;
        fs::write(&settings, text + limits).map_err(said)?;
        let stderr = File::create(dir.path().join("stderr")).map_err(said)?;
        let port = server::free_port().map_err(|error| format!("no free port: {error}"))?;
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let mut command = Command::new(binary);
        command
            .arg("serve")
            .arg(dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr);
        listen(&mut command, &address.to_string());
        let what = format!("{} serve", binary.display());
        let mut child = command
            .spawn()
            .map_err(|error| format!("{what}: {error}"))?;
        server::until_it_listens(&mut child, &address.to_string(), &what)?;
        let mut victim = Self {
            child,
            address,
            dir,
            idle_sockets: usize::MAX,
        };
        // The connection of the readiness check may be included; one more than there are does no
        // harm later.
        victim.idle_sockets = victim.sockets()?;
        Ok(victim)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Bytes of memory in use for itself, after it has closed what its clients left open. Mapped
    /// files, its own program among them, are not counted: the system can take them back.
    pub(crate) fn resident_when_quiet(&self) -> Result<u64> {
        let deadline = Instant::now() + QUIET;
        while self.sockets()? > self.idle_sockets {
            if Instant::now() > deadline {
                return Err(format!(
                    "after {} s without clients the server still has {} sockets, and had {}",
                    QUIET.as_secs(),
                    self.sockets()?,
                    self.idle_sockets
                ));
            }
            // There is no event for another process closing a socket.
            thread::sleep(Duration::from_millis(20));
        }
        self.resident()
    }

    fn resident(&self) -> Result<u64> {
        let path = format!("/proc/{}/status", self.child.id());
        let status = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
        resident_bytes(&status)
            .ok_or_else(|| format!("{path} has no RssAnon: the server has ended"))
    }

    fn sockets(&self) -> Result<usize> {
        let path = format!("/proc/{}/fd", self.child.id());
        let entries = fs::read_dir(&path).map_err(|error| format!("{path}: {error}"))?;
        let is_socket = |entry: std::io::Result<fs::DirEntry>| {
            let target = fs::read_link(entry.ok()?.path()).ok()?;
            target.to_str()?.starts_with("socket:").then_some(())
        };
        Ok(entries.filter_map(is_socket).count())
    }

    /// Asks it to end; returns its standard error. An unclean end or a panic is a fault, and named.
    pub(crate) fn stop(mut self) -> Result<Vec<String>> {
        kill_process(Pid::from_child(&self.child), Signal::TERM)
            .map_err(|error| format!("the server cannot be asked to end: {error}"))?;
        let status = self
            .child
            .wait()
            .map_err(|error| format!("the server's end: {error}"))?;
        let path = self.dir.path().join("stderr");
        let said =
            fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut faults: Vec<String> = said
            .lines()
            .filter(|line| line.contains("panicked"))
            .map(str::to_owned)
            .collect();
        if !status.success() {
            faults.push(format!("the server ended with {status}: {said}"));
        }
        Ok(faults)
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        // It may have ended by itself; either way nothing of it is left.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The line `RssAnon:     1234 kB`.
fn resident_bytes(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::resident_bytes;

    #[test]
    fn memory_is_read_from_the_status() {
        assert_eq!(
            resident_bytes(
                "VmRSS:\t 16 kB\nRssAnon:\t    12 kB\nRssFile:\t 3 kB\nRssShmem:\t 1 kB\n"
            ),
            Some(12_288)
        );
        assert_eq!(resident_bytes("Name:\tx\n"), None);
    }
}
