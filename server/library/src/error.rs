//! Why a server does not start.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Writes the sentence of an error for `Debug` too: a `main` that returns an error is ended by Rust
/// with that form.
macro_rules! debug_as_display {
    ($($type:ty),*) => {
        $(impl std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        })*
    };
}

pub(crate) use debug_as_display;

debug_as_display!(RouteError, StartError);

/// A route that cannot be.
#[derive(Clone, PartialEq, Eq)]
pub struct RouteError {
    pattern: String,
    what: String,
}

impl RouteError {
    pub(crate) fn new(pattern: &str, what: impl Into<String>) -> Self {
        Self {
            pattern: pattern.to_owned(),
            what: what.into(),
        }
    }

    /// The pattern.
    #[must_use]
    pub fn pattern(&self) -> &str {
        &self.pattern
    }
}

impl fmt::Display for RouteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the route {} {}", self.pattern, self.what)
    }
}

impl std::error::Error for RouteError {}

/// Why a server does not start.
#[non_exhaustive]
pub enum StartError {
    /// A route has a mistake, the first one that was found.
    Route(RouteError),
    /// The text is no address with a port, such as `127.0.0.1:8080`.
    Address(String),
    /// It cannot listen there.
    Listen {
        /// The address.
        address: std::net::SocketAddr,
        /// The system's error, such as an address in use.
        error: io::Error,
    },
    /// The access log cannot be written.
    AccessLog {
        /// Its path.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The files of https are not right: a sentence with the path.
    Tls(String),
    /// No thread can be started.
    Threads(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Route(error) => error.fmt(f),
            Self::Address(text) => write!(
                f,
                "{text:?} is no address to listen on: write one with its port, such as 127.0.0.1:8080"
            ),
            Self::Listen { address, error } => write!(f, "cannot listen on {address}: {error}"),
            Self::AccessLog { path, error } => {
                write!(f, "cannot write the access log {}: {error}", path.display())
            }
            Self::Tls(what) => write!(f, "cannot serve https: {what}"),
            Self::Threads(error) => write!(f, "cannot start the workers: {error}"),
        }
    }
}

impl std::error::Error for StartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Route(error) => Some(error),
            Self::Address(_) | Self::Tls(_) => None,
            Self::Listen { error, .. } | Self::AccessLog { error, .. } | Self::Threads(error) => {
                Some(error)
            }
        }
    }
}

impl From<RouteError> for StartError {
    fn from(error: RouteError) -> Self {
        Self::Route(error)
    }
}
