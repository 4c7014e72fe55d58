//! `cargo demo`: one command fills, measures and serves a magazine of this project's documentation.
//!
//! It knows the example site, the programs `millpond` and `millrace`, Markdown and the tables of
//! the example. It must not know how pages are served or how load is made: both programs run as
//! child processes, and the demo reads their output.
//!
//! `programs` finds the two programs, `articles` makes a migration of the documents, `site_folder`
//! writes the site with it, `server_process` serves it twice (with the cache and without),
//! `measure` runs the experiment, and `show` makes its tables and its report.

mod articles;
mod client;
mod experiment;
mod failure;
mod markdown;
mod measure;
mod output;
mod programs;
mod server_process;
mod show;
mod signals;
mod site_folder;

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use clap::Parser;
use millpond_site::Config;

use crate::articles::Articles;
use crate::experiment::Experiment;
use crate::failure::{DemoFailure, DemoResult};
use crate::measure::Servers;
use crate::output::say;
use crate::programs::Programs;
use crate::server_process::{ServerProcess, free_near};
use crate::site_folder::SiteFolder;

/// Name of the report's file.
const REPORT: &str = "report.html";
/// Time between two looks at the stop flag while the magazine is served.
const TICK: Duration = Duration::from_millis(50);

/// Build a magazine from the documentation of this project, serve it, and measure it
#[derive(Parser)]
#[command(
    name = "cargo demo",
    bin_name = "cargo demo",
    version,
    max_term_width = 100
)]
struct Demo {
    /// End after the experiment instead of serving on
    #[arg(long)]
    exit: bool,
    /// Keep the site in this folder instead of a temporary one, and write report.html there
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Answer on this address, or on the next free port
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Use this database instead of database.url: sqlite:FILE (from the current folder),
    /// postgres://… or env:NAME
    #[arg(long, value_name = "URL")]
    database: Option<String>,
}

fn main() -> ExitCode {
    match Demo::parse().run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.print();
            ExitCode::FAILURE
        }
    }
}

impl Demo {
    fn run(self) -> DemoResult {
        let stop = signals::stop_flag()?;
        let programs = Programs::beside()?;
        let docs = programs::workspace().join("docs");
        let articles = Articles::read(&docs)
            .map_err(|error| DemoFailure::new(format!("{}: {error}", docs.display())))?;
        let folder = SiteFolder::prepare(self.dir.as_deref(), &articles.migration())?;
        let config = Config::read(folder.path())?;
        let mut magazine = Magazine::start(&self, &programs, folder.path())?;
        signals::check(&stop)?;
        let experiment = Experiment {
            servers: magazine.addresses(),
            millrace: &programs.millrace,
            stop: &stop,
        };
        let report = self.dir.as_deref().unwrap_or(Path::new("")).join(REPORT);
        let articles = articles.all();
        let about = format!("a magazine of {} articles about itself", articles.len());
        experiment.run(
            &measure::choose(articles)?,
            &about,
            workers(&config),
            &report,
        )?;
        if self.exit {
            return Ok(());
        }
        drop(magazine.uncached);
        serve_on(&mut magazine.cached, &folder, &stop)
    }
}

/// The site, served twice on one database.
struct Magazine {
    cached: ServerProcess,
    uncached: ServerProcess,
}

impl Magazine {
    fn start(demo: &Demo, programs: &Programs, site: &Path) -> DemoResult<Self> {
        let mut arguments = Vec::new();
        if let Some(url) = &demo.database {
            arguments.extend(["--database", url]);
        }
        let program = &programs.millpond;
        // The first server applies the migrations, so the second starts when the first is ready.
        let cached = ServerProcess::start(program, site, free_near(demo.listen)?, &arguments)?;
        arguments.push("--no-cache");
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let uncached = ServerProcess::start(program, site, any, &arguments)?;
        Ok(Self { cached, uncached })
    }

    fn addresses(&self) -> Servers {
        Servers {
            cached: reachable(self.cached.address()),
            uncached: self.uncached.address(),
        }
    }
}

/// Serves with the cache until a signal comes.
fn serve_on(server: &mut ServerProcess, folder: &SiteFolder, stop: &AtomicBool) -> DemoResult {
    server.show_log();
    say(format_args!(
        "The magazine is at http://{}  (Ctrl-C ends)",
        reachable(server.address())
    ));
    if !folder.is_temporary() {
        let dir = folder.path().display();
        say(format_args!(
            "Its folder is {dir}; later `millpond serve {dir}` serves it again."
        ));
    }
    while !stop.load(Ordering::SeqCst) {
        server.check()?;
        thread::sleep(TICK);
    }
    Ok(())
}

/// Worker threads of each server: the configured number, or one for each core of this process.
fn workers(config: &Config) -> usize {
    match config.workers {
        0 => thread::available_parallelism().map_or(1, usize::from),
        workers => workers,
    }
}

/// The address as a client on this machine uses it.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unspecified_address_is_reached_over_loopback() {
        let all = "0.0.0.0:80".parse().unwrap();
        assert_eq!(reachable(all), "127.0.0.1:80".parse().unwrap());
    }
}
