//! A client that sends one request after the other and looks at what the server says about it.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use base_clock::Boottime;
use lab_testkit::Client;

/// Longest wait for a piece of a response.
const PATIENCE: Duration = Duration::from_secs(10);

/// A connection that is kept open.
pub(crate) struct TimingClient(Client);

/// Result of one request.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TimedResponse {
    pub(crate) status: u16,
    /// From the request's first byte to the response's last, in microseconds.
    pub(crate) total_us: f64,
    /// The database's part, as the server says (`Server-Timing`), in microseconds.
    pub(crate) database_us: Option<f64>,
    /// `Cache-Status`, empty if there was none.
    pub(crate) cache_status: String,
    /// Bytes of the body.
    pub(crate) bytes: usize,
}

impl TimingClient {
    /// Connects to the server at `address`.
    pub(crate) fn connect(address: SocketAddr) -> io::Result<Self> {
        Client::open(address, PATIENCE).map(Self)
    }

    /// Asks for `path` and reads the whole response.
    pub(crate) fn get(&mut self, path: &str) -> io::Result<TimedResponse> {
        let sent = Boottime::now();
        let response = self.0.get(path, &[])?;
        let total = Boottime::now().since(sent);
        let cache_status = response.field("cache-status").unwrap_or_default();
        Ok(TimedResponse {
            status: response.status,
            total_us: total.as_secs_f64() * 1e6,
            database_us: response.field("server-timing").and_then(database_us),
            cache_status: cache_status.to_owned(),
            bytes: response.body.len(),
        })
    }
}

/// The entry `db;dur=…` of a `Server-Timing` field, which is in milliseconds.
fn database_us(value: &str) -> Option<f64> {
    let entries = value.split(',').map(|entry| entry.trim().split_once(';'));
    let (_, parameter) = entries.flatten().find(|(name, _)| *name == "db")?;
    let millis: f64 = parameter.trim().strip_prefix("dur=")?.parse().ok()?;
    Some(millis * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_database_time_is_read_from_its_field() {
        assert_eq!(database_us("db;dur=0.42, render;dur=0.1"), Some(420.0));
        assert_eq!(database_us("render;dur=0.1"), None);
        assert_eq!(database_us("db;dur=x"), None);
    }
}
