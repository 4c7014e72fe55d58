//! Requests of a client that behaves.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use lab_testkit::Client;

/// A response that takes longer is an error.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn connect(address: SocketAddr) -> io::Result<Client> {
    Client::open(address, PATIENCE)
}

/// The body of the response to a request with these field lines; the response must be a 200 with a
/// length.
pub(crate) fn fetch(client: &mut Client, target: &str, fields: &[&str]) -> io::Result<Vec<u8>> {
    let response = client.get(target, fields)?;
    let wrong = |what: String| Err(io::Error::other(format!("{target}: {what}")));
    if response.status != 200 {
        return wrong(format!("answered with {}", response.status));
    }
    if response.field("content-length").is_none() {
        return wrong("no length".to_owned());
    }
    Ok(response.body)
}
