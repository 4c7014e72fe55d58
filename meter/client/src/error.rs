//! Why a run could not be started or finished.

use std::fmt;
use std::io;

/// A run that measured nothing. Failures between client and server are not an `Error`; the run
/// counts them in its [`Errors`](crate::Errors).
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The plan contradicts itself or cannot be carried out. The sentence says which part, and what
    /// to do.
    Plan(String),
    /// The host name has no address.
    Resolve {
        /// The name and port that were asked for.
        name: String,
        /// Error of the resolver.
        source: io::Error,
    },
    /// The server accepts no connection.
    Unreachable {
        /// Its address, or the path of its Unix socket.
        address: String,
        /// Error of the system.
        source: io::Error,
    },
    /// The connections need more file descriptors than this process may have.
    Descriptors {
        /// How many are needed.
        need: u64,
        /// How many are allowed at most.
        have: u64,
    },
    /// The connections need more source ports than this machine has for one destination.
    SourcePorts {
        /// How many are needed.
        need: u64,
        /// How many there are.
        have: u64,
    },
    /// The operating system refused something that the client itself needs.
    System {
        /// Action that failed.
        what: &'static str,
        /// Error of the system.
        source: io::Error,
    },
    /// A client thread panicked: a bug in this crate.
    Thread,
    /// The PostgreSQL server to be watched cannot be reached or read.
    Postgres(base_probe::postgres::PgError),
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plan(sentence) => out.write_str(sentence),
            Self::Resolve { name, source } => write!(out, "no address for {name}: {source}"),
            Self::Unreachable { address, source } => match source.kind() {
                io::ErrorKind::ConnectionRefused => write!(out, "nothing listens at {address}"),
                io::ErrorKind::TimedOut => {
                    write!(
                        out,
                        "{address} does not answer: no connection within the timeout"
                    )
                }
                _ => write!(out, "cannot connect to {address}: {source}"),
            },
            Self::Descriptors { need, have } => write!(
                out,
                "{need} file descriptors are needed and {have} allowed: use fewer connections, or raise the limit \
                 (ulimit -n, LimitNOFILE=)"
            ),
            Self::SourcePorts { need, have } => write!(
                out,
                "{need} source ports are needed and {have} there are: use fewer connections, or widen the range \
                 (sysctl net.ipv4.ip_local_port_range)"
            ),
            Self::System { what, source } => write!(out, "cannot {what}: {source}"),
            Self::Thread => out.write_str("a client thread panicked; please report this as a bug"),
            Self::Postgres(error) => error.fmt(out),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Resolve { source, .. }
            | Self::Unreachable { source, .. }
            | Self::System { source, .. } => Some(source),
            Self::Postgres(error) => error.source(),
            _ => None,
        }
    }
}
