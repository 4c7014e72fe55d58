//! The options that say how a measuring command asks: the same names in each.

use std::fs;
use std::path::Path;
use std::time::Duration;

use clap::{Args, ValueEnum};
use millrace_client::{Plan, Process};

use super::headings::{CLIENT, REQUEST};
use super::transport_options::TransportOptions;
use super::values::{self, status, whole};
use crate::failure::{Failure, Outcome};
use crate::output::note;

/// How requests are made.
#[derive(Args)]
#[command(next_help_heading = REQUEST)]
pub(crate) struct RequestOptions {
    /// A request field, as 'Name: value'; may be repeated
    #[arg(short = 'H', long = "header", value_name = "FIELD", value_parser = header)]
    headers: Vec<(String, String)>,
    /// The request method; POST if there is a body, else GET
    #[arg(short, long, value_name = "METHOD")]
    method: Option<String>,
    /// The request body, or @FILE
    #[arg(short = 'd', long = "data", value_name = "BODY")]
    body: Option<String>,
    /// Statuses that count as good, such as 200,304; without it 200 to 399
    #[arg(long, value_name = "STATUS", value_delimiter = ',', value_parser = status)]
    expect: Vec<u16>,
    /// Longest wait for a connection, and for an answer
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = values::duration)]
    timeout: Duration,
    /// A new connection for each request
    #[arg(long, hide_short_help = true)]
    no_keep_alive: bool,
    /// Requests that a connection serves before a new one takes its place
    #[arg(
        long,
        value_name = "N",
        conflicts_with = "no_keep_alive",
        hide_short_help = true
    )]
    per_connection: Option<u64>,
    /// HTTP/2: over TLS by ALPN, in clear text with prior knowledge
    #[arg(long)]
    http2: bool,
    /// Requests in flight on one connection (pipelining); with --http2 streams at a time
    #[arg(long, value_name = "N", default_value_t = 1, hide_short_help = true)]
    depth: usize,
    #[command(flatten)]
    transport: TransportOptions,
    /// Client threads; 0 is one for each core
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = CLIENT, hide_short_help = true)]
    threads: usize,
    /// Cores to pin the client threads to, such as 1,2
    #[arg(long, value_name = "CORES", value_delimiter = ',', value_parser = whole::<usize>, help_heading = CLIENT, hide_short_help = true)]
    cores: Option<Vec<usize>>,
    /// Never sleep while waiting for answers, so that the server has nobody to wake; each thread takes a whole core
    #[arg(long, help_heading = CLIENT, hide_short_help = true)]
    spin: bool,
}

/// How arrivals are spread over time.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Spread {
    Constant,
    Poisson,
}

impl Spread {
    /// The process; `seed` is for one that is random.
    pub(crate) fn process(self, seed: u64) -> Process {
        match self {
            Self::Constant => Process::Constant,
            Self::Poisson => Process::Poisson(seed),
        }
    }
}

impl RequestOptions {
    /// A plan for `url` with these options, and the defaults of what they do not say.
    pub(crate) fn plan(&self, url: &str) -> Outcome<Plan> {
        let body = match &self.body {
            Some(body) => match body.strip_prefix('@').map(Path::new) {
                Some(path) => fs::read(path).map_err(|error| {
                    Failure::new(format!("cannot read {}: {error}", path.display()))
                })?,
                None => body.clone().into_bytes(),
            },
            None => Vec::new(),
        };
        if let Some(time) = self.mistaken() {
            note(format_args!(
                "note: -d sends {time:?} as the body of a POST; how long to measure is said by --duration"
            ));
        }
        let usual = if self.body.is_some() { "POST" } else { "GET" };
        Ok(self.transport.apply(Plan::new(url).with(|plan| {
            plan.request.keep_alive = !self.no_keep_alive;
            plan.request.per_connection = self.per_connection;
            plan.target.http2 = self.http2;
            plan.load.depth = self.depth;
            plan.load.threads = self.threads;
            plan.request.timeout = self.timeout;
            plan.request.headers = self.headers.clone();
            plan.request.method = self.method.clone().unwrap_or_else(|| usual.to_owned());
            plan.request.body = body;
            plan.request.expect = self.expect.clone();
            plan.load.cores = self.cores.clone();
            plan.load.spin = self.spin;
        })))
    }

    /// A body that looks like a time, as `-d` means one to other load generators.
    fn mistaken(&self) -> Option<&str> {
        let body = self.body.as_deref().filter(|_| self.method.is_none())?;
        let unit = body.trim_start_matches(|digit: char| digit.is_ascii_digit());
        let is_time = unit.len() < body.len() && ["", "ms", "s", "m", "min", "h"].contains(&unit);
        is_time.then_some(body)
    }
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once(':')
        .ok_or("a field is written as 'Name: value'")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::header;

    #[test]
    fn a_field_has_a_name_and_a_value() {
        assert_eq!(header("A:  b: c "), Ok(("A".into(), "b: c".into())));
        assert!(header("A").is_err());
    }
}
