//! The options that say where a running server answers its owner, and asking there.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use millpond_site::Config;

use crate::failure::{CommandFailure, CommandResult};

#[derive(Args)]
pub(super) struct AdminOption {
    /// The folder of the site that is served; its admin.listen says where to ask
    #[arg(long, default_value = ".", value_name = "DIR")]
    site: PathBuf,
    /// Ask here instead of at admin.listen
    #[arg(long, value_name = "ADDR")]
    admin: Option<SocketAddr>,
}

/// Bytes that are read of an answer.
const LONGEST_ANSWER: u64 = 64 << 20;
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

impl AdminOption {
    /// Returns the address at which the server answers its owner.
    pub(super) fn address(&self) -> CommandResult<SocketAddr> {
        if let Some(address) = self.admin {
            return Ok(address);
        }
        let of_site = Config::read(&self.site)?.admin;
        of_site.ok_or_else(|| {
            let site = self.site.display();
            CommandFailure::new(format!("{site} has no admin.listen, so no server can be asked")).hint(
                "write [admin] and listen = \"127.0.0.1:9180\" into its millpond.toml and restart, or give --admin ADDR",
            )
        })
    }
}

/// Returns the body of the answer to a GET for `target`, whose head has the lines `fields` too.
pub(super) fn get(address: SocketAddr, target: &str, fields: &str) -> CommandResult<String> {
    let request =
        format!("GET {target} HTTP/1.1\r\nHost: {address}\r\n{fields}Connection: close\r\n\r\n");
    let exchange = || -> io::Result<String> {
        let mut stream = TcpStream::connect_timeout(&address, ANSWER_TIMEOUT)?;
        stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.take(LONGEST_ANSWER).read_to_string(&mut answer)?;
        Ok(answer)
    };
    let answer = exchange().map_err(|error| {
        CommandFailure::new(format!("{address} does not answer: {error}"))
            .hint("is the server running, and was it started with this admin.listen?")
    })?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    if head.starts_with("HTTP/1.1 200 ") {
        Ok(body.to_owned())
    } else {
        Err(CommandFailure::new(format!("{address}: {}", body.trim())))
    }
}
