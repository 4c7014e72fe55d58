//! What systemd is told about the process (sd_notify(3)).

use std::env;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

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
        let address = match name.strip_prefix('@') {
            Some(name) => SocketAddr::from_abstract_name(name)?,
            None => SocketAddr::from_pathname(&name)?,
        };
        let socket = UnixDatagram::unbound()?;
        socket.connect_addr(&address)?;
        let number = |name| env::var(name).ok()?.parse::<u64>().ok();
        let is_ours = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
        let watchdog = number("WATCHDOG_USEC").filter(|&time| is_ours && time > 0);
        Ok(Self {
            socket: Some(socket),
            // It ends the process if it hears nothing for this time.
            watchdog: watchdog.map(|time| Duration::from_micros(time) / 2),
        })
    }

    /// Returns how often `WATCHDOG=1` is to be told.
    #[must_use]
    pub const fn watchdog(&self) -> Option<Duration> {
        self.watchdog
    }

    /// Tells assignments, one a line. systemd may be away for a moment, which is no reason to wait.
    pub fn tell(&self, state: &str) {
        if let Some(socket) = &self.socket {
            let _ = socket.send(state.as_bytes());
        }
    }
}
