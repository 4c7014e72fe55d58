//! `millrace null`: a server that does nothing, for measuring what measures.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use millrace_client::{Delay, NullAnswer, NullLog, NullPlan, NullServer};

use crate::events::Events;
use crate::failure::{CommandResult, Failure};
use crate::output::say;

/// Answers that each thread keeps for --log.
const LOGGED: usize = 1_000_000;

/// Answer every request with the same bytes: a server to measure load generators with
#[derive(Args)]
pub(crate) struct Null {
    /// Address to listen at; port 0 lets the kernel choose
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0", value_parser = address)]
    listen: SocketAddr,
    /// Size of the body of each answer, such as 200, 8KB or 1MB
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = size)]
    size: usize,
    /// How long to wait before each answer: 2ms for all, or exp:2ms for exponentially distributed
    /// times of that mean
    #[arg(long, value_name = "DELAY", value_parser = delay)]
    delay: Option<Delay>,
    /// How long a thread is then busy with each answer, by the clock: with 100us it is full below
    /// 10,000 a second, by what the system calls take
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = span)]
    work: Duration,
    /// Seed of random delays: an equal seed gives equal delays
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Threads, each with its share of the connections
    #[arg(long, value_name = "N", default_value_t = 1)]
    threads: usize,
    /// Cores to pin the threads to, such as 0,1
    #[arg(long, value_name = "CORES", value_delimiter = ',')]
    cores: Vec<usize>,
    /// Never sleep: what --log says was read is read when it comes, and not when the core has woken
    /// up. Takes a core for each thread
    #[arg(long)]
    spin: bool,
    /// At the end, write when the last million requests of each thread were read, were answered,
    /// and had been received by the kernel, as comma-separated nanoseconds of CLOCK_MONOTONIC
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
}

impl Null {
    pub(crate) fn run(self) -> CommandResult {
        // A file that cannot be written is reported before the measurement.
        let log = self.log.as_deref().map(create).transpose()?;
        let events = Events::listen()?;
        let server = NullServer::start(&NullPlan {
            listen: self.listen,
            body: self.size,
            delay: self
                .delay
                .map_or(Delay::None, |delay| seeded(delay, self.seed)),
            work: self.work,
            threads: self.threads,
            cores: self.cores,
            spin: self.spin,
            log: if log.is_some() { LOGGED } else { 0 },
        })
        .map_err(Failure::new)?;
        say(format_args!("answering on http://{}", server.address()));
        events.stopped();
        let answers = server.stop().map_err(Failure::new)?;
        match log {
            Some((file, path)) => write(file, &answers)
                .map_err(|error| Failure::new(format!("cannot write {}: {error}", path.display()))),
            None => Ok(()),
        }
    }
}

fn create(path: &Path) -> CommandResult<(File, PathBuf)> {
    let file = File::create(path)
        .map_err(|error| Failure::new(format!("cannot write {}: {error}", path.display())))?;
    Ok((file, path.to_owned()))
}

fn write(file: File, log: &NullLog) -> std::io::Result<()> {
    let mut out = BufWriter::new(file);
    writeln!(out, "arrived_ns,answered_ns,received_ns")?;
    for answer in &log.answers {
        let NullAnswer {
            arrived_ns,
            answered_ns,
            received_ns,
        } = answer;
        let received_ns = received_ns.map_or_else(String::new, |time| time.to_string());
        writeln!(out, "{arrived_ns},{answered_ns},{received_ns}")?;
    }
    out.flush()
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| match text.parse::<u16>() {
        Ok(port) => format!("an address is written as IP:PORT; did you mean 127.0.0.1:{port}?"),
        Err(_) => "an address is written as IP:PORT, such as 127.0.0.1:8090".to_owned(),
    })
}

fn size(text: &str) -> Result<usize, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" | "B" => Some(1),
        "KB" => Some(1_000),
        "KiB" => Some(1 << 10),
        "MB" => Some(1_000_000),
        "MiB" => Some(1 << 20),
        _ => None,
    };
    let number: Option<usize> = digits.parse().ok();
    number
        .zip(unit)
        .and_then(|(number, unit)| number.checked_mul(unit))
        .ok_or_else(|| "a size is written as 200, 8KB, 8KiB, 1MB or 1MiB".to_owned())
}

/// The seed is set later: it is the value of another flag.
fn delay(text: &str) -> Result<Delay, String> {
    match text.strip_prefix("exp:") {
        Some(mean) => Ok(Delay::Exponential {
            mean: span(mean)?,
            seed: 0,
        }),
        None => span(text).map(fixed),
    }
}

fn span(text: &str) -> Result<Duration, String> {
    millrace_stats::duration(text)
        .ok_or_else(|| format!("`{text}` is no length of time, such as 100us, 2ms or 1.5s"))
}

fn fixed(delay: Duration) -> Delay {
    if delay.is_zero() {
        Delay::None
    } else {
        Delay::Fixed(delay)
    }
}

fn seeded(delay: Delay, seed: u64) -> Delay {
    match delay {
        Delay::Exponential { mean, .. } => Delay::Exponential { mean, seed },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_delays_are_written_with_their_unit() {
        assert_eq!(size("200"), Ok(200));
        assert_eq!(size("8KB"), Ok(8_000));
        assert_eq!(size("1MiB"), Ok(1_048_576));
        for wrong in [
            "",
            "KB",
            "1.5KB",
            "8kilo",
            "-1",
            "99999999999999999999",
            "20000000000000MB",
        ] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
        let two = Duration::from_millis(2);
        assert_eq!(delay("2ms"), Ok(Delay::Fixed(two)));
        assert_eq!(delay("0s"), Ok(Delay::None));
        assert_eq!(
            delay("exp:2ms"),
            Ok(Delay::Exponential { mean: two, seed: 0 })
        );
        assert_eq!(span("100us"), Ok(Duration::from_micros(100)));
        assert!(span("100").is_err() && span("us").is_err() && span("-1us").is_err());
        assert!(address("8090").is_err() && address("[::1]:0").is_ok());
        assert!(delay("exp:").is_err() && delay("soon").is_err());
    }
}
