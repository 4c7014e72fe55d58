//! `millpond demo`: the article site with load, in one command.

use std::env;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use millpond_site::{Config, Options, Site, Sites};

use super::database_option::DatabaseOption;
use crate::access::AccessSlot;
use crate::command_line;
use crate::demo::files::{Folder, manifest_above};
use crate::demo::measure::{self, Article, CONNECTIONS, Contest, Cost, Servers};
use crate::demo::show::{self, Growing};
use crate::events::{Event, Events};
use crate::failure::{Failure, Outcome};
use crate::import::{self, Target};
use crate::output::{Progress, note, say};
use crate::server::{Server, bind, worker_count};

/// Where the report goes, in the current folder.
const REPORT: &str = "report.html";
/// Ports that are tried after the one asked for.
const PORTS: u16 = 100;

/// Build a magazine from the crates of the Rust workspace here, serve it, and measure it
#[derive(Args)]
pub(crate) struct Demo {
    /// End after the experiment instead of serving on
    #[arg(long)]
    exit: bool,
    /// Keep the site in this folder instead of a temporary one
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Answer on this address, or on the next free port
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    #[command(flatten)]
    database: DatabaseOption,
}

impl Demo {
    pub(crate) fn run(self) -> Outcome {
        let events = Events::listen()?;
        let manifest = self.manifest()?;
        let folder = Folder::prepare(self.dir.as_deref())?;
        let config = self.database.read(folder.path())?;
        let mut magazine = Magazine::open(&folder, &config, self.listen, &events)?;
        let result = magazine
            .fill(&manifest, &config)
            .and_then(|about| magazine.experiment(&about, &config, &events))
            .and_then(|()| match self.exit {
                true => Ok(()),
                false => magazine.serve_on(&folder, &events),
            });
        magazine.stop();
        result
    }

    /// The workspace that the articles are about.
    fn manifest(&self) -> Outcome<PathBuf> {
        let here = env::current_dir()
            .map_err(|error| Failure::new(format!("the current folder is gone: {error}")))?;
        if let Some(manifest) = manifest_above(&here) {
            return Ok(manifest);
        }
        let nothing = Failure::new(
            "there is no Cargo.toml here or above: the demo's articles are the crates that a Rust workspace is built from",
        );
        match &self.dir {
            Some(dir) => {
                let folder = Folder::prepare(Some(dir))?;
                let dir = folder.path().display();
                Err(nothing.hint(format!(
                    "the site is in {dir} now, still without articles. With Markdown of yours: \
                     `millpond import YOUR-FOLDER --site {dir}`, then `millpond serve {dir}`"
                )))
            }
            None => Err(nothing.hint(
                "run it in a Rust project; or `millpond demo --dir magazine` writes the site, and \
                 `millpond import YOUR-FOLDER --site magazine` brings Markdown of yours into it",
            )),
        }
    }
}

/// The site, served twice: with its cache, and without.
struct Magazine {
    cached: (Arc<Site>, Server),
    uncached: (Arc<Site>, Server),
    workers: usize,
}

impl Magazine {
    fn open(
        folder: &Folder,
        config: &Config,
        listen: SocketAddr,
        events: &Events,
    ) -> Outcome<Self> {
        let workers = worker_count(config.workers);
        let log = Arc::<AccessSlot>::default();
        let start = |cache: bool, listeners| -> Outcome<(Arc<Site>, Server)> {
            let options = Options {
                cache,
                workers,
                ..Options::default()
            };
            let site = Site::open(folder.path(), config, options)?;
            let sites = Arc::new(Sites::from(Arc::clone(&site)));
            let server = Server::start(&sites, listeners, &config.limits, &log, &events.sender)
                .map_err(|error| Failure::new(format!("cannot start the workers: {error}")))?;
            Ok((site, server))
        };
        let cached = start(true, bind_near(listen, workers)?)?;
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let uncached = start(false, bind(any, workers)?)?;
        Ok(Self {
            cached,
            uncached,
            workers,
        })
    }

    /// Brings the articles in; says what the site is made of.
    fn fill(&self, manifest: &Path, config: &Config) -> Outcome<String> {
        let mut database = Target::open(&config.database).map_err(Failure::new)?;
        let progress = Progress::new();
        let summary = import::crates(&mut database, manifest, &mut |what| progress.show(what))
            .map_err(|error| {
                let hint = match &error {
                    import::Error::Cargo(_) => Some(
                        "the demo asks cargo for the crates of the workspace here, and `cargo fetch` makes sure that it can answer; with Markdown \
                         of your own, `millpond demo --dir magazine` and `millpond import DIR --site magazine` do without cargo",
                    ),
                    _ => None,
                };
                let failure = Failure::new(error);
                match hint {
                    Some(hint) => failure.hint(hint),
                    None => failure,
                }
            })?;
        progress.clear();
        let articles = summary.added + summary.updated + summary.unchanged;
        say(format_args!("{summary}\n"));
        Ok(format!(
            "a magazine of {articles} articles about the crates of one build"
        ))
    }

    /// Measures, prints, and writes the report.
    fn experiment(&self, about: &str, config: &Config, events: &Events) -> Outcome {
        let servers = Servers {
            cached: reachable(self.cached.1.address()),
            uncached: self.uncached.1.address(),
        };
        let mut database = Target::open(&config.database).map_err(Failure::new)?;
        let articles = measure::choose(&mut database)?;
        // It would be one more program on the file.
        drop(database);
        let costs = costs(servers, &articles, events)?;
        let contests = contests(servers, articles[articles.len() / 2].id, events)?;
        let command = command_line::typed();
        let html = show::report(&costs, &contests, about, self.workers, &command);
        fs::write(REPORT, html)
            .map_err(|error| Failure::new(format!("cannot write {REPORT}: {error}")))?;
        say(format_args!("The same with graphs: {REPORT}"));
        Ok(())
    }

    /// Serves until Ctrl-C.
    fn serve_on(&mut self, folder: &Folder, events: &Events) -> Outcome {
        self.uncached.1.stop();
        self.uncached.0.stop();
        say(format_args!(
            "The magazine is at http://{}  (Ctrl-C ends)",
            reachable(self.cached.1.address())
        ));
        if !folder.is_temporary() {
            let dir = folder.path().display();
            say(format_args!(
                "Its folder is {dir}; later `millpond serve {dir}` serves it again."
            ));
        }
        while !events.is_stopping() {
            match events.receiver.recv() {
                Ok(Event::Reload) => match self.cached.0.reload() {
                    Ok(()) => note("note: the site was read again"),
                    Err(problems) => Failure::Problems(problems).print(),
                },
                Ok(Event::WorkerEnded(Some(reason))) => {
                    return Err(Failure::new(format!("a worker ended: {reason}")));
                }
                Ok(Event::WorkerEnded(None)) => {}
                Ok(Event::Stop) | Err(_) => break,
            }
        }
        Ok(())
    }

    fn stop(&mut self) {
        for (site, server) in [&mut self.cached, &mut self.uncached] {
            server.stop();
            site.stop();
        }
    }
}

/// What each article costs, printed as it is found.
fn costs(servers: Servers, articles: &[Article], events: &Events) -> Outcome<Vec<Cost>> {
    let progress = Progress::new();
    let mut costs = Vec::new();
    let mut table = Growing::start(&show::costs_table(&costs), show::TITLE);
    for (number, article) in (1..).zip(articles) {
        progress.show(format_args!(
            "article {number} of {}: {}",
            articles.len(),
            article.title
        ));
        let cost = measure::cost(servers, article, &events.stop)?;
        progress.clear();
        costs.push(cost);
        table.grow(&show::costs_table(&costs));
    }
    say(format_args!("{}\n", show::costs_table(&costs).note));
    Ok(costs)
}

/// `/read` and `/brief` at every number of connections, printed as they are found.
fn contests(servers: Servers, article: i64, events: &Events) -> Outcome<Vec<Contest>> {
    let progress = Progress::new();
    let mut contests = Vec::new();
    let mut table = Growing::start(&show::contests_table(&contests), measure::BRIEF.len());
    for (page, path) in [
        (measure::ARTICLE, format!("/read?id={article}")),
        (measure::BRIEF, format!("/brief?id={article}")),
    ] {
        for connections in CONNECTIONS {
            progress.show(format_args!(
                "{} requests for {path}, {connections} at a time",
                measure::REQUESTS
            ));
            let contest = measure::contest(servers, page, &path, connections, &events.stop)?;
            progress.clear();
            contests.push(contest);
            table.grow(&show::contests_table(&contests));
        }
    }
    say(format_args!("{}\n", show::contests_table(&contests).note));
    Ok(contests)
}

/// Listeners on `address`, or on the next port that is free.
fn bind_near(address: SocketAddr, workers: usize) -> Outcome<Vec<std::net::TcpListener>> {
    let last = address.port().saturating_add(PORTS);
    let mut result = bind(address, workers);
    let mut next = address;
    while result.is_err() && address.port() != 0 && next.port() < last {
        next.set_port(next.port() + 1);
        result = bind(next, workers);
    }
    if result.is_ok() && next != address {
        note(format_args!(
            "note: {address} is in use; the magazine is on port {} instead",
            next.port()
        ));
    }
    result
}

/// The address as a client on this machine uses it.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_port_is_passed_over() {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let taken = std::net::TcpListener::bind(any).unwrap();
        let address = taken.local_addr().unwrap();
        let Ok(listeners) = bind_near(address, 1) else {
            panic!("no free port among the next hundred");
        };
        assert!(listeners[0].local_addr().unwrap().port() > address.port());
    }

    #[test]
    fn an_unspecified_address_is_reached_over_loopback() {
        let all = "0.0.0.0:80".parse().unwrap();
        assert_eq!(reachable(all), "127.0.0.1:80".parse().unwrap());
    }
}
