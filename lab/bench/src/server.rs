//! The servers under test, each a process of its own on core 0.

use std::{path::Path, process::Command};

use lab_testkit::Server;

use crate::{Result, cpu};

/// The core of the servers; the generator has the other one.
pub(crate) const SERVER_CORE: usize = 0;
/// The core of the generator.
pub(crate) const CLIENT_CORE: usize = 1;

/// Starts `millpond serve` on `site` with one worker and waits until it answers.
pub(crate) fn millpond(binary: &Path, site: &Path) -> Result<Server> {
    if !binary.is_file() {
        return Err(format!(
            "{} is no program; `cargo build --release` makes it, or --millpond names another",
            binary.display()
        ));
    }
    let mut command = Command::new(binary);
    command.arg("serve").arg(site);
    command.args(["--listen", "127.0.0.1:0", "--workers", "1"]);
    cpu::pin(SERVER_CORE)?;
    let server = Server::spawn(command);
    cpu::pin(CLIENT_CORE)?;
    Ok(server)
}
