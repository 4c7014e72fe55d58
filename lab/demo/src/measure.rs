//! The experiment: what a page costs when the database makes it, and what it costs from memory.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;

use millrace_runs::Run;

use crate::articles::Article;
use crate::client::{TimedResponse, TimingClient};
use crate::experiment::Experiment;
use crate::failure::{DemoFailure, DemoResult};
use crate::signals::check;

/// Requests of which the median is taken, for a page that the database makes.
const UNCACHED: usize = 30;
/// Requests of which the median is taken, for a page from memory, where one request is too short to
/// be told from noise.
const CACHED: usize = 300;
/// How often that is tried while commits come in between.
const TRIES: usize = 10;
/// Requests in one run.
pub(crate) const REQUESTS: u64 = 1000;
/// Runs of each kind, taken in turn; the one with the median rate counts.
pub(crate) const ROUNDS: usize = 5;
/// Connections of the runs.
pub(crate) const CONNECTIONS: [usize; 2] = [1, 10];
/// Name of the page of an article.
pub(crate) const ARTICLE: &str = "article";
/// Name of the small page with the same queries.
pub(crate) const BRIEF: &str = "under 1 KB";
/// Places in the order of their lengths from which the articles are taken.
const QUANTILES: [f64; 5] = [0.1, 0.3, 0.5, 0.7, 0.9];

/// The servers that are compared: the same site on the same database, with a cache and without.
#[derive(Clone, Copy)]
pub(crate) struct Servers {
    /// Keeps pages.
    pub(crate) cached: SocketAddr,
    /// Keeps nothing.
    pub(crate) uncached: SocketAddr,
}

/// An article that the measurement requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChosenArticle {
    /// Its number in the database.
    pub(crate) id: usize,
    pub(crate) title: String,
}

/// Cost of one article; times in microseconds, as medians.
pub(crate) struct ArticleCost {
    /// Article that was measured.
    pub(crate) article: ChosenArticle,
    /// Bytes of the page.
    pub(crate) bytes: usize,
    /// The database's part of an uncached request.
    pub(crate) database_us: Option<f64>,
    /// An uncached request as the client sees it.
    pub(crate) uncached_us: f64,
    /// A cached request as the client sees it.
    pub(crate) cached_us: f64,
}

/// One page under load, at one number of connections.
pub(crate) struct LoadComparison {
    /// Name of the page.
    pub(crate) page: &'static str,
    pub(crate) connections: usize,
    /// The run against the database.
    pub(crate) uncached: Run,
    /// The run against memory.
    pub(crate) cached: Run,
}

/// Five articles from short to long.
pub(crate) fn choose(articles: &[Article]) -> DemoResult<Vec<ChosenArticle>> {
    let mut all: Vec<&Article> = articles.iter().collect();
    all.sort_by_key(|article| (article.html.len(), article.id));
    let Some(last) = all.len().checked_sub(1) else {
        return Err(DemoFailure::new(
            "the documentation has no article to measure with",
        ));
    };
    let mut chosen: Vec<ChosenArticle> = Vec::new();
    for quantile in QUANTILES {
        let article = all[(last as f64 * quantile).round() as usize];
        let article = ChosenArticle {
            id: article.id,
            title: article.title.clone(),
        };
        if !chosen.contains(&article) {
            chosen.push(article);
        }
    }
    Ok(chosen)
}

/// Measures the cost of `article` on both servers, one request at a time.
pub(crate) fn cost(
    servers: Servers,
    article: &ChosenArticle,
    stop: &AtomicBool,
) -> DemoResult<ArticleCost> {
    let path = format!("/read?id={}", article.id);
    let uncached = ask(servers.uncached, &path, UNCACHED, stop)?;
    let cached = ask_memory(servers.cached, &path, stop)?;
    Ok(ArticleCost {
        article: article.clone(),
        bytes: uncached[0].bytes,
        database_us: median(uncached.iter().filter_map(|response| response.database_us)),
        uncached_us: median(uncached.iter().map(|response| response.total_us)).unwrap_or(0.0),
        cached_us: median(cached.iter().map(|response| response.total_us)).unwrap_or(0.0),
    })
}

/// TimedResponses for `path` that all came from memory.
fn ask_memory(server: SocketAddr, path: &str, stop: &AtomicBool) -> DemoResult<Vec<TimedResponse>> {
    let mut missed = String::new();
    for _ in 0..TRIES {
        let responses = ask(server, path, CACHED, stop)?;
        let miss = responses
            .iter()
            .find(|response| !response.cache_status.contains("hit"));
        match miss {
            // Another program's commit has invalidated the page.
            Some(miss) => miss.cache_status.clone_into(&mut missed),
            None => return Ok(responses),
        }
    }
    Err(DemoFailure::new(format!(
        "{path} does not stay in memory ({missed}): does another program write to the database?"
    )))
}

/// `times` responses for `path`, after one that is not counted.
fn ask(
    server: SocketAddr,
    path: &str,
    times: usize,
    stop: &AtomicBool,
) -> DemoResult<Vec<TimedResponse>> {
    let failed = |error| DemoFailure::new(format!("GET {path}: {error}"));
    let mut client = TimingClient::connect(server).map_err(failed)?;
    client.get(path).map_err(failed)?;
    let mut responses = Vec::with_capacity(times);
    for _ in 0..times {
        check(stop)?;
        let response = client.get(path).map_err(failed)?;
        if response.status != 200 {
            return Err(DemoFailure::new(format!(
                "GET {path} was answered with {}",
                response.status
            )));
        }
        responses.push(response);
    }
    Ok(responses)
}

/// `path` under load on both servers, in turn.
pub(crate) fn compare(
    experiment: &Experiment<'_>,
    page: &'static str,
    path: &str,
    connections: usize,
) -> DemoResult<LoadComparison> {
    let Experiment {
        servers,
        millrace,
        stop,
    } = experiment;
    let (mut uncached, mut cached) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        for (server, runs) in [
            (servers.uncached, &mut uncached),
            (servers.cached, &mut cached),
        ] {
            // The first request of the run finds what the later ones find.
            ask(server, path, 1, stop)?;
            runs.push(load(millrace, server, path, connections)?);
            check(stop)?;
        }
    }
    Ok(LoadComparison {
        page,
        connections,
        uncached: middle(uncached)?,
        cached: middle(cached)?,
    })
}

fn load(millrace: &Path, server: SocketAddr, path: &str, connections: usize) -> DemoResult<Run> {
    let output = Command::new(millrace)
        .args(["load", &format!("http://{server}{path}")])
        .args(["--connections", &connections.to_string()])
        .args(["--requests", &REQUESTS.to_string()])
        .args(["--threads", "1", "--no-probe", "--json", "-"])
        .output()
        .map_err(|error| {
            DemoFailure::new(format!("{} cannot be run: {error}", millrace.display()))
        })?;
    if !output.status.success() {
        return Err(DemoFailure::new(format!(
            "millrace load failed ({}):\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim_end()
        )));
    }
    let run: Run = serde_json::from_slice(&output.stdout)
        .map_err(|error| DemoFailure::new(format!("the result of millrace load: {error}")))?;
    if run.errors.total() > 0 {
        return Err(DemoFailure::new(format!(
            "{} of {REQUESTS} requests for {path} failed",
            run.errors.total()
        )));
    }
    Ok(run)
}

/// The run with the median rate.
fn middle(mut runs: Vec<Run>) -> DemoResult<Run> {
    runs.sort_by(|a, b| a.achieved_rate.total_cmp(&b.achieved_rate));
    let middle = runs.len() / 2;
    runs.into_iter()
        .nth(middle)
        .ok_or_else(|| DemoFailure::new("nothing was measured"))
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), Some(2.0));
        assert_eq!(median(std::iter::empty()), None);
    }

    #[test]
    fn articles_are_chosen_from_short_to_long() {
        assert!(choose(&[]).is_err());
        let articles: Vec<_> = (1..=11)
            .map(|id| Article::of_length(id, 100 - id))
            .collect();
        let chosen = choose(&articles).unwrap_or_default();
        let ids: Vec<_> = chosen.iter().map(|article| article.id).collect();
        assert_eq!(ids, [10, 8, 6, 4, 2]);
    }
}
