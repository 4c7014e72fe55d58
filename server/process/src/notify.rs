//! What systemd is told about the process (sd_notify(3)).

use std::env;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use rustix::net::{SendFlags, send};

/// How long a message waits while systemd reads none.
const PATIENCE: Duration = Duration::from_secs(1);

/// The socket to systemd, if it wants to be told.
#[derive(Debug, Default)]
pub struct Notifier {
    socket: Option<UnixDatagram>,
    watchdog: Option<Duration>,
}

impl Notifier {
    /// Connects to what the environment names: `NOTIFY_SOCKET`, and `WATCHDOG_USEC` with
    /// `WATCHDOG_PID`.
    ///
    /// # Errors
    /// The socket is not there.
    pub fn connect() -> io::Result<Self> {
        let Ok(name) = env::var("NOTIFY_SOCKET") else {
            return Ok(Self::default());
        };
        let number = |name| env::var(name).ok()?.parse::<u64>().ok();
        let is_ours = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
        let watchdog = number("WATCHDOG_USEC").filter(|&time| is_ours && time > 0);
        Ok(Self {
            socket: Some(socket(&name)?),
            // It ends the process if it hears nothing for this time.
            watchdog: watchdog.map(|time| Duration::from_micros(time) / 2),
        })
    }

    /// Returns how often [`Self::keep_alive`] is to be called.
    #[must_use]
    pub const fn watchdog(&self) -> Option<Duration> {
        self.watchdog
    }

    /// Tells the watchdog that the process is alive. While systemd reads nothing, it ends nothing.
    pub fn keep_alive(&self) {
        if let Some(socket) = &self.socket {
            let _ = send(socket, b"WATCHDOG=1", SendFlags::DONTWAIT);
        }
    }

    /// Tells assignments, one a line. systemd may be away for a moment, which is no reason to wait
    /// for long.
    pub fn tell(&self, state: &str) {
        if let Some(socket) = &self.socket {
            let _ = socket.send(state.as_bytes());
        }
    }
}

fn socket(name: &str) -> io::Result<UnixDatagram> {
    let address = match name.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(name)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.connect_addr(&address)?;
    socket.set_write_timeout(Some(PATIENCE))?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_socket_holds_up_nothing_and_what_is_told_later_arrives() {
        let name = format!("millpond-test-notify-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let systemd = UnixDatagram::bind_addr(&address).unwrap();
        let notifier = Notifier {
            socket: Some(socket(&format!("@{name}")).unwrap()),
            watchdog: None,
        };
        // More than any queue has room for.
        for _ in 0..100_000 {
            notifier.keep_alive();
        }
        notifier.tell("LOST=1");
        systemd.set_nonblocking(true).unwrap();
        let mut buffer = [0; 32];
        let mut heard = || systemd.recv(&mut buffer).map(|len| buffer[..len].to_vec());
        while let Ok(told) = heard() {
            assert_eq!(told, b"WATCHDOG=1");
        }
        notifier.tell("READY=1");
        assert_eq!(heard().unwrap(), b"READY=1");
    }
}
