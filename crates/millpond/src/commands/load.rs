//! `millpond load`: one measured run against any HTTP server.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use millpond_load::{Order, Phase, Plan, Process, Run, Schedule, Stop, Verdict};
use millpond_report::{number, run_report, run_table, text_table};
use millpond_site::Config;

use crate::command_line;
use crate::events::Events;
use crate::failure::{Failure, Outcome};
use crate::output::{Progress, note, say, write_out};

/// Measure a server: in a closed loop, or with --rate at a rate that does not depend on the answers
#[derive(Args)]
pub(crate) struct Load {
    /// What to ask for, such as http://127.0.0.1:8080/read?id=1
    url: String,
    /// Connections, all open at the same time
    #[arg(short, long, value_name = "N", default_value_t = 1)]
    connections: usize,
    /// Send this many requests a second, whatever the server does; response times count from when each was due
    #[arg(short, long, value_name = "R")]
    rate: Option<f64>,
    /// How the requests of --rate are spread
    #[arg(long, value_enum, default_value_t = Spread::Constant, requires = "rate")]
    arrivals: Spread,
    /// Do not send a request of --rate that is later than this; it counts as an error
    #[arg(long, value_name = "TIME", requires = "rate", value_parser = Config::duration)]
    deadline: Option<Duration>,
    /// How long to measure, such as 10s, 500ms or 1min
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = Config::duration)]
    duration: Duration,
    /// How many requests to measure, instead of a duration
    #[arg(short = 'n', long, value_name = "N", conflicts_with = "duration")]
    requests: Option<u64>,
    /// Send requests for this long before measuring
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = Config::duration)]
    warmup: Duration,
    /// A new connection for each request
    #[arg(long)]
    no_keep_alive: bool,
    /// Requests in flight on one connection (pipelining)
    #[arg(long, value_name = "N", default_value_t = 1)]
    depth: usize,
    /// A file of paths or URLs on the same server, one a line
    #[arg(long, value_name = "FILE")]
    urls: Option<PathBuf>,
    /// How the next line of --urls is chosen
    #[arg(long, value_enum, default_value_t = Choice::Sequence, requires = "urls")]
    order: Choice,
    /// The same seed chooses the same lines and the same random arrivals
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Client threads; 0 is one for each core
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,
    /// Longest wait for a connection, and for an answer
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = Config::duration)]
    timeout: Duration,
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
    #[arg(long, value_name = "STATUS", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(100..=999))]
    expect: Vec<u16>,
    /// Cores to pin the client threads to, such as 1,2
    #[arg(long, value_name = "CORES", value_delimiter = ',')]
    cores: Option<Vec<usize>>,
    /// Write the run as JSON; - is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the run as one self-contained HTML file
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Choice {
    Random,
    Sequence,
}

/// How arrivals are spread over time.
#[derive(Clone, Copy, ValueEnum)]
enum Spread {
    /// At equal distances
    Constant,
    /// At random, as from many independent visitors
    Poisson,
}

impl Load {
    pub(crate) fn run(self) -> Outcome {
        let plan = self.plan()?;
        let events = Events::listen()?;
        let mut run = {
            let line = Progress::new();
            let mut show = |progress: &millpond_load::Progress| line.show(progress_line(progress));
            millpond_load::run(&plan, Some(&mut show), &events.stop).map_err(Failure::new)?
        };
        run.command = command_line::typed();
        self.write(&run)?;
        if run.verdict == Verdict::Invalid {
            // The table and its note have the reasons.
            return Err(Failure::Said);
        }
        Ok(())
    }

    fn plan(&self) -> Outcome<Plan> {
        let urls = match &self.urls {
            Some(path) => {
                let text =
                    fs::read_to_string(path).map_err(|error| cannot("read", path, &error))?;
                let urls = Plan::urls_from(&text);
                if urls.is_empty() {
                    return Err(Failure::new(format!("{} names no URL", path.display())));
                }
                urls
            }
            None => Vec::new(),
        };
        let body = match &self.body {
            Some(body) => match body.strip_prefix('@').map(Path::new) {
                Some(path) => fs::read(path).map_err(|error| cannot("read", path, &error))?,
                None => body.clone().into_bytes(),
            },
            None => Vec::new(),
        };
        let usual = if self.body.is_some() { "POST" } else { "GET" };
        Ok(Plan {
            urls,
            order: match self.order {
                Choice::Random => Order::Random(self.seed),
                Choice::Sequence => Order::Sequence,
            },
            connections: self.connections,
            stop: self
                .requests
                .map_or(Stop::Duration(self.duration), Stop::Requests),
            warmup: self.warmup,
            keep_alive: !self.no_keep_alive,
            depth: self.depth,
            threads: self.threads,
            timeout: self.timeout,
            headers: self.headers.clone(),
            method: self.method.clone().unwrap_or_else(|| usual.to_owned()),
            body,
            expect: self.expect.clone(),
            cores: self.cores.clone(),
            schedule: self.rate.map(|rate| Schedule {
                rate,
                process: match self.arrivals {
                    Spread::Constant => Process::Constant,
                    Spread::Poisson => Process::Poisson(self.seed),
                },
                deadline: self.deadline,
            }),
            ..Plan::new(self.url.as_str())
        })
    }

    fn write(&self, run: &Run) -> Outcome {
        let table = text_table(&run_table(run));
        match &self.json {
            Some(path) => {
                let json = serde_json::to_string_pretty(run).map_err(Failure::new)?;
                if path == Path::new("-") {
                    // Standard output is the JSON and nothing else.
                    note(table.trim_end());
                    write_out(&json)?;
                } else {
                    say(table.trim_end());
                    fs::write(path, json + "\n").map_err(|error| cannot("write", path, &error))?;
                }
            }
            None => say(table.trim_end()),
        }
        if let Some(path) = &self.report {
            let html = run_report(run).to_html();
            fs::write(path, html).map_err(|error| cannot("write", path, &error))?;
        }
        Ok(())
    }
}

fn cannot(what: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot {what} {}: {error}", path.display()))
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once(':')
        .ok_or("a field is written as 'Name: value'")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

fn progress_line(progress: &millpond_load::Progress) -> String {
    let doing = match progress.phase {
        Phase::Connecting => "connecting",
        Phase::WarmUp => "warming up",
        Phase::Measuring => "measuring",
    };
    format!(
        "{doing} {:.0} %  {} requests  {}  {} errors",
        progress.fraction * 100.0,
        number::count(progress.finished),
        number::rate(progress.rate),
        number::count(progress.errors)
    )
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
