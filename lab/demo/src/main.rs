//! `cargo demo`: one command fills, measures and serves a magazine about the crates of a build.
//!
//! It knows the example site, the programs `millpond` and `millrace`, Markdown, Cargo's metadata
//! and the tables of the example. It must not know how pages are served or how load is made: both
//! programs run as child processes, and the demo reads their output.
//!
//! `programs` finds the two programs, `site_folder` writes the site, `server_process` serves it
//! twice (with the cache and without), `import` fills its database, `measure` runs the experiment,
//! and `show` makes its tables and its report.

mod client;
mod experiment;
mod failure;
mod import;
mod measure;
mod output;
mod programs;
mod server_process;
mod show;
mod signals;
mod site_folder;

use std::env;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use clap::Parser;
use millpond_site::{Config, DatabaseUrl};

use crate::experiment::Experiment;
use crate::failure::{DemoFailure, DemoResult};
use crate::import::ArticleDatabase;
use crate::measure::Servers;
use crate::output::{ProgressLine, say};
use crate::programs::Programs;
use crate::server_process::{ServerProcess, free_near};
use crate::site_folder::{SiteFolder, manifest_above};

/// Name of the report's file.
const REPORT: &str = "report.html";
/// Time between two looks at the stop flag while the magazine is served.
const TICK: Duration = Duration::from_millis(50);

/// Build a magazine from the crates of the Rust workspace here, serve it, and measure it
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
        let here = env::current_dir()
            .map_err(|error| DemoFailure::new(format!("the current folder is gone: {error}")))?;
        let manifest =
            manifest_above(&here).unwrap_or_else(|| programs::workspace().join("Cargo.toml"));
        let programs = Programs::beside()?;
        signals::check(&stop)?;
        let folder = SiteFolder::prepare(self.dir.as_deref())?;
        let config = self.config(folder.path(), &here)?;
        let mut magazine = Magazine::start(&self, &programs, folder.path())?;
        let mut database = ArticleDatabase::open(&config.database).map_err(DemoFailure::new)?;
        let about = fill(&mut database, &manifest)?;
        signals::check(&stop)?;
        let articles = measure::choose(&mut database)?;
        // An open connection would be one more program on the file while it is measured.
        drop(database);
        let experiment = Experiment {
            servers: magazine.addresses(),
            millrace: &programs.millrace,
            stop: &stop,
        };
        let report = self.dir.as_deref().unwrap_or(Path::new("")).join(REPORT);
        experiment.run(&articles, &about, workers(&config), &report)?;
        if self.exit {
            return Ok(());
        }
        drop(magazine.uncached);
        serve_on(&mut magazine.cached, &folder, &stop)
    }

    /// The configuration of the site, with the database of `--database`.
    fn config(&self, site: &Path, here: &Path) -> DemoResult<Config> {
        let mut config = Config::read(site)?;
        if let Some(url) = &self.database {
            config.database = DatabaseUrl::parse(url, here).map_err(|message| {
                DemoFailure::new(format!("--database: {message}"))
                    .hint("for example: --database sqlite:site.db or --database env:DATABASE_URL")
            })?;
        }
        Ok(config)
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

/// Imports the crates of the workspace at `manifest`. Returns what the magazine consists of.
fn fill(database: &mut ArticleDatabase, manifest: &Path) -> DemoResult<String> {
    let progress = ProgressLine::new();
    let summary =
        import::crates(database, manifest, &mut |what| progress.show(what)).map_err(|error| {
            let is_from_cargo = matches!(error, import::ImportError::Cargo(_));
            let failure = DemoFailure::new(error);
            match is_from_cargo {
                true => failure.hint("`cargo fetch` in this workspace downloads what cargo needs"),
                false => failure,
            }
        })?;
    progress.clear();
    let articles = summary.added + summary.updated + summary.unchanged;
    say(format_args!("{summary}\n"));
    Ok(format!(
        "a magazine of {articles} articles about the crates of one build"
    ))
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
