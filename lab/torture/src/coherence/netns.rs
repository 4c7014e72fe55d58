//! A network namespace of its own for a scenario, if the machine permits one.
//!
//! A program enters a namespace when it starts, so the test of scenarios runs itself again. Root
//! may make one at once; other users make a user namespace around it, which many machines permit.
//! If both are impossible, or a program is missing, the scenario shares the machine's network,
//! relays replace the network between nodes and server, and the report says why.

use std::env;
use std::io::{self, BufRead as _, BufReader};
use std::process::{Command, ExitStatus};

use crate::coherence::packets::{Packets, program, run};

/// Set for the test that was started in a namespace.
const INSIDE: &str = "MILLPOND_ADVERSARY_NAMESPACE";

/// Network namespace in which the caller is.
#[derive(Debug)]
pub enum Netns {
    /// In a namespace of its own, where packets can be lost.
    Isolated(Packets),
    /// Outside: the test has run in a namespace, and this is how it ended.
    Finished(ExitStatus),
    /// Packets cannot be lost on this machine, for this reason.
    Shared(String),
}

/// Runs the test with this full name, which calls this, again in a namespace.
///
/// # Errors
/// The test could not be started, or its namespace could not be made ready.
pub fn enter_netns(test: &str) -> io::Result<Netns> {
    if env::var_os(INSIDE).is_some() {
        return Packets::take().map(Netns::Isolated);
    }
    if let Err(reason) = permitted() {
        return Ok(Netns::Shared(reason.to_string()));
    }
    let mut again = in_new_namespace();
    again.arg(env::current_exe()?).env(INSIDE, "1");
    again.args([test, "--exact", "--nocapture"]);
    let (output, input) = io::pipe()?;
    let mut child = again.stdout(input.try_clone()?).stderr(input).spawn()?;
    // The command keeps its ends of the pipe open.
    drop(again);
    // Said anew, so that it belongs to this test.
    for line in BufReader::new(output).lines() {
        println!("{}", line?);
    }
    child.wait().map(Netns::Finished)
}

/// Starts the program behind it in a namespace.
fn in_new_namespace() -> Command {
    let mut command = program("unshare");
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-current-user", "--keep-caps"]);
    }
    command.args(["--net", "--"]);
    command
}

/// Tries everything that a scenario needs of a namespace, each in one of its own.
fn permitted() -> io::Result<()> {
    run(
        in_new_namespace().args(["ip", "link", "set", "lo", "up"]),
        "",
    )?;
    run(
        in_new_namespace().args(["nft", "add table inet millpond"]),
        "",
    )
}
