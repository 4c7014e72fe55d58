//! One connection that stays open, and asks for one page after the other.

use std::{net::SocketAddr, time::Duration};

use lab_testkit::Client;

use crate::Result;

pub(super) struct PageClient(Client);

impl PageClient {
    pub(super) fn connect(address: SocketAddr) -> Result<Self> {
        let client = Client::open(address, Duration::from_secs(30));
        client
            .map(Self)
            .map_err(|error| format!("{address}: {error}"))
    }

    /// The body of `path`; anything but 200 is an error.
    pub(super) fn get(&mut self, path: &str) -> Result<String> {
        match self.0.get(path, &[]) {
            Ok(response) if response.status == 200 => Ok(response.text()),
            Ok(response) => Err(format!("{path}: {}", response.status)),
            Err(error) => Err(format!("{path}: {error}")),
        }
    }
}
