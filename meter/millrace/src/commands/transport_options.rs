//! The options that say how a measuring command reaches the server, and what it demands of the bodies of answers.

use std::path::PathBuf;

use clap::Args;
use millrace_client::{Bandwidth, Plan, Trust};

use super::headings::{REQUEST, SERVER};

/// How the server is reached.
#[derive(Args)]
#[command(next_help_heading = SERVER)]
pub(crate) struct TransportOptions {
    /// Root certificates (PEM) for https://, instead of the system's
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,
    /// Accept every certificate
    #[arg(long, conflicts_with = "cacert")]
    insecure: bool,
    /// Connect through this Unix socket
    #[arg(long, value_name = "PATH", conflicts_with = "connect_to")]
    unix_socket: Option<PathBuf>,
    /// Connect there; Host and TLS keep the URL's host
    #[arg(long, value_name = "HOST:PORT")]
    connect_to: Option<String>,
    /// Most that each connection receives in a second, such as 50K (bytes) or 400kbit
    #[arg(long, value_name = "RATE", hide_short_help = true)]
    throttle_down: Option<Bandwidth>,
    /// Most that each connection sends in a second
    #[arg(long, value_name = "RATE", hide_short_help = true)]
    throttle_up: Option<Bandwidth>,
    /// A regular expression that the body of a good answer matches
    #[arg(long, value_name = "REGEX", help_heading = REQUEST)]
    expect_body: Option<String>,
    /// The SHA-256 digest of the body of a good answer
    #[arg(long, value_name = "HEX", help_heading = REQUEST, hide_short_help = true)]
    expect_sha256: Option<String>,
}

impl TransportOptions {
    /// `plan` with these options.
    pub(crate) fn apply(&self, plan: Plan) -> Plan {
        plan.with(|plan| {
            plan.target.unix_socket = self.unix_socket.clone();
            plan.target.connect_to = self.connect_to.clone();
            plan.target.trust = match &self.cacert {
                Some(path) => Trust::File(path.clone()),
                None if self.insecure => Trust::Everybody,
                None => Trust::System,
            };
            plan.target.throttle_down = self.throttle_down;
            plan.target.throttle_up = self.throttle_up;
            plan.request.expect_body = self.expect_body.clone();
            plan.request.expect_sha256 = self.expect_sha256.clone();
        })
    }
}
