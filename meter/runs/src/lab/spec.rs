//! The tables of an experiment's file, as they are written.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use serde::Deserialize;
use serde::de::{self, Deserializer};
use toml::Spanned;

use super::outcome::LabMetric;
use super::spec_values::{CommandLine, Ending, Time};
use crate::Ladder;
use millrace_client::{Bandwidth, Think};

/// In which order the servers are measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Sequence {
    /// Forwards, then backwards, and so on: A B B A. A drift of the machine affects all alike.
    #[default]
    Interleaved,
    /// All repeats of one server after another.
    #[serde(rename = "sequence")]
    OneByOne,
    /// In each repeat all servers are started and stay up. At each level they have their turns
    /// forwards, backwards, forwards and backwards, close together. Limits need this order.
    Blocks,
}

/// The program of the other client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum OtherProgram {
    Wrk,
    H2load,
}

impl OtherProgram {
    /// The name of the program.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Wrk => "wrk",
            Self::H2load => "h2load",
        }
    }

    /// Returns the program in the form of `needs`.
    pub(super) fn need(self) -> &'static str {
        match self {
            Self::Wrk => "wrk",
            Self::H2load => "h2load:nghttp2-client",
        }
    }
}

/// Passes over the servers in a block: with four, the outer two runs of a server can be compared
/// with the inner two.
pub(super) const PASSES: usize = 4;

/// A limit on a server's figure against another server, or on this client's against the other.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LimitSpec {
    pub(super) server: Spanned<String>,
    /// A server, or `best`: every other server except the baseline. For a figure of the client: the
    /// other client.
    pub(super) against: Spanned<String>,
    pub(super) metric: LabMetric,
    /// Connections, or with a ladder of rates these; every level if there are none.
    #[serde(default)]
    pub(super) at: Vec<Spanned<f64>>,
    /// A ratio.
    pub(super) at_most: Option<f64>,
    /// A ratio.
    pub(super) at_least: Option<f64>,
    /// A difference in microseconds for one request.
    pub(super) more_at_most_us: Option<f64>,
}

/// The word in `against` for each of the other servers.
pub(super) const BEST: &str = "best";

/// The requests to every server.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WorkloadSpec {
    #[serde(default = "root")]
    pub(super) path: Spanned<String>,
    /// Number of paths; their `{n}` is a number from 0, chosen uniformly at random.
    pub(super) count: Option<usize>,
    /// A plan file, whose sessions are sent instead of requests for the path.
    pub(super) plan: Option<Spanned<String>>,
    #[serde(default = "one")]
    pub(super) connections: usize,
    #[serde(default = "one")]
    pub(super) depth: usize,
    pub(super) rate: Option<f64>,
    #[serde(default)]
    pub(super) arrivals: ArrivalSpec,
    #[serde(default = "second")]
    pub(super) warmup: Time,
    /// Five seconds if it is not given; a replay then lasts as long as its log.
    pub(super) duration: Option<Time>,
    /// Ends a run after this number of requests instead.
    pub(super) requests: Option<u64>,
    #[serde(default = "five_seconds")]
    pub(super) timeout: Time,
    #[serde(default)]
    pub(super) headers: Vec<Spanned<String>>,
    pub(super) method: Option<String>,
    pub(super) body: Option<String>,
    #[serde(default = "yes")]
    pub(super) keep_alive: bool,
    /// The pause after each answer.
    #[serde(default, deserialize_with = "parsed")]
    pub(super) think: Option<Think>,
    /// Requests of a session; rates are then sessions a second.
    pub(super) session: Option<u64>,
    #[serde(default, deserialize_with = "parsed")]
    pub(super) throttle_down: Option<Bandwidth>,
    #[serde(default, deserialize_with = "parsed")]
    pub(super) throttle_up: Option<Bandwidth>,
    /// An access log whose requests are sent at their own times.
    pub(super) replay: Option<Spanned<String>>,
    /// How many times as fast as the log.
    pub(super) speed: Option<Spanned<f64>>,
    /// Over TLS. Every certificate is accepted, because the experiment starts the servers itself.
    #[serde(default)]
    pub(super) https: bool,
    /// HTTP/2, over TLS by ALPN and in clear text with prior knowledge.
    #[serde(default)]
    pub(super) http2: bool,
    /// No TLS session is resumed.
    #[serde(default)]
    pub(super) full_handshakes: bool,
    /// Requests that a connection serves before a new one takes its place.
    pub(super) per_connection: Option<u64>,
    /// Idle connections to each server that does not say how many itself.
    pub(super) idle: Option<Spanned<usize>>,
    #[serde(default)]
    pub(super) expect: Vec<u16>,
    pub(super) cores: Option<Spanned<Vec<usize>>>,
    /// The client never sleeps.
    pub(super) spin: Option<Spanned<bool>>,
}

impl WorkloadSpec {
    pub(super) fn spins(&self) -> bool {
        self.spin.as_ref().is_some_and(|spin| *spin.get_ref())
    }

    /// The scheme of every URL.
    pub(super) fn scheme(&self) -> &'static str {
        if self.https { "https" } else { "http" }
    }

    /// Names the protocol, for the report.
    pub(super) fn protocol(&self) -> &'static str {
        match (self.http2, self.https) {
            (false, false) => "HTTP/1.1",
            (false, true) => "HTTP/1.1 over TLS",
            (true, false) => "HTTP/2",
            (true, true) => "HTTP/2 over TLS",
        }
    }
}

/// How arrivals of an open loop are spread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ArrivalSpec {
    #[default]
    Constant,
    Poisson,
}

/// The levels at which each server is measured.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LadderSpec {
    #[serde(default, deserialize_with = "parsed")]
    pub(super) connections: Option<Ladder>,
    #[serde(default, deserialize_with = "parsed")]
    pub(super) rates: Option<Ladder>,
    /// Numbers of paths.
    #[serde(default, deserialize_with = "parsed")]
    pub(super) counts: Option<Ladder>,
    /// The name of a placeholder that has another value at each level.
    pub(super) variable: Option<Spanned<String>>,
    pub(super) values: Option<Spanned<Vec<f64>>>,
}

impl LadderSpec {
    /// Names the quantity that the levels raise.
    pub(super) fn kind(&self) -> &'static str {
        match (&self.rates, &self.counts, &self.values) {
            (Some(_), ..) => "rates",
            (_, Some(_), _) => "numbers of paths",
            (.., Some(_)) => "values of a variable",
            _ => "connections",
        }
    }
}

/// A file that is written before the experiment, or before a server starts.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileSpec {
    /// Within the folder that it belongs to.
    pub(super) path: Spanned<String>,
    pub(super) content: Option<Spanned<String>>,
    /// Length of generated text, instead of `text`.
    pub(super) bytes: Option<usize>,
    /// Number of such files; the `{n}` in their path is a number from 0.
    pub(super) count: Option<usize>,
}

/// A step that is done once before anything is measured.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PrepareStep {
    pub(super) run: Spanned<CommandLine>,
    /// Servers that are up while it runs.
    #[serde(default)]
    pub(super) with: Vec<Spanned<String>>,
    #[serde(default)]
    pub(super) needs: Vec<Spanned<String>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ServerSpec {
    pub(super) name: Spanned<String>,
    /// A word for the report.
    #[serde(default)]
    pub(super) about: String,
    pub(super) start: Spanned<CommandLine>,
    /// URL that is requested until it answers; by default the workload's URL, without `ready_log`.
    pub(super) ready: Option<Spanned<String>>,
    /// Text in its output that says that it is ready.
    pub(super) ready_log: Option<String>,
    #[serde(default = "half_a_minute")]
    pub(super) ready_timeout: Time,
    pub(super) stop: Option<Spanned<Ending>>,
    pub(super) cwd: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) env: BTreeMap<String, Spanned<String>>,
    #[serde(default)]
    pub(super) files: Vec<FileSpec>,
    pub(super) cores: Option<Spanned<Vec<usize>>>,
    #[serde(default)]
    pub(super) needs: Vec<Spanned<String>>,
    /// Prints its version.
    pub(super) version: Option<Spanned<CommandLine>>,
    /// Instead of the kernel's choice.
    pub(super) port: Option<u16>,
    /// Instead of the workload's.
    pub(super) path: Option<Spanned<String>>,
    /// Addresses to which the client connects instead of `127.0.0.1` and the port: each new
    /// connection to the next one.
    #[serde(default)]
    pub(super) addresses: Vec<Spanned<String>>,
    /// Idle connections that are open during the runs.
    pub(super) idle: Option<Spanned<usize>>,
    /// Stays up throughout.
    #[serde(default)]
    pub(super) keep: bool,
    /// Servers that are up while it is.
    #[serde(default)]
    pub(super) with: Vec<Spanned<String>>,
    /// `false` for a server behind others whose CPU time is not theirs, such as one that makes
    /// changes.
    #[serde(default = "yes")]
    pub(super) counted: bool,
    /// `false` for a server that only serves other servers.
    #[serde(default = "yes")]
    pub(super) measured: bool,
}

impl ServerSpec {
    /// True if what it is started with has the placeholder `name`.
    pub(super) fn mentions(&self, name: &str) -> bool {
        let placeholder = format!("{{{name}}}");
        let files = self.files.iter().filter_map(|file| file.content.as_ref());
        let texts = files.chain(self.env.values()).map(Spanned::get_ref);
        let mut all = self.start.get_ref().texts().iter().chain(texts);
        all.any(|text| text.contains(&placeholder))
    }
}

fn root() -> Spanned<String> {
    Spanned::new(0..0, "/".to_owned())
}

fn one() -> usize {
    1
}

fn yes() -> bool {
    true
}

fn second() -> Time {
    Time(Duration::from_secs(1))
}

fn five_seconds() -> Time {
    Time(Duration::from_secs(5))
}

fn half_a_minute() -> Time {
    Time(Duration::from_secs(30))
}

/// A text that is read as another kind of value.
fn parsed<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: Display>,
{
    let text = String::deserialize(from)?;
    text.parse().map(Some).map_err(de::Error::custom)
}
