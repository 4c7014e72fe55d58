//! Pages that are made from PostgreSQL for every request, beside pgbench with the same queries.
//!
//! pgbench discards the rows; Millpond renders them. Both have the database on their own core 0,
//! and eight connections. Millpond is asked from core 1, for another article each time, so no two
//! requests share a fill.

use std::{fmt::Write as _, path::Path, path::PathBuf, process::Command};

use lab_pgtest::Options as PostgresOptions;
use serde_json::{Value, json};

use crate::{
    Result,
    arguments::{Arguments, publish},
    cpu,
    magazine::{self, FIRST, output, write},
    server::{self, BenchServer},
    spread::{Outcome, SampleSpread},
};

/// Millpond's pages per second over pgbench's transactions per second, at least.
const LIMIT: f64 = 0.7;
const QUERIES: &str = include_str!("misses.pgbench");

struct MissesOptions {
    millpond: PathBuf,
    articles: u64,
    connections: usize,
    seconds: u32,
    blocks: usize,
}

/// Subject of the measurement, and the folder of its files.
struct Scene<'a> {
    options: &'a MissesOptions,
    folder: &'a Path,
    database: String,
    millpond: BenchServer,
}

/// Pages and transactions per second, and in each block the one over the other.
struct MissesFinding {
    pgbench: SampleSpread,
    millpond: SampleSpread,
    ratio: SampleSpread,
}

pub(crate) fn run(mut arguments: Arguments) -> Result<bool> {
    let millpond: Option<PathBuf> = arguments.option("--millpond")?;
    let options = MissesOptions {
        millpond: millpond.unwrap_or_else(|| "target/release/millpond".into()),
        articles: arguments.option("--articles")?.unwrap_or(1000).max(100),
        connections: arguments.option("--connections")?.unwrap_or(8).max(1),
        seconds: arguments.option("--seconds")?.unwrap_or(5).max(1),
        blocks: arguments.option("--blocks")?.unwrap_or(20).max(1),
    };
    let json: Option<String> = arguments.option("--json")?;
    arguments.end()?;

    let folder = tempfile::tempdir().map_err(|error| format!("a temporary folder: {error}"))?;
    let postgres = on_core(server::SERVER_CORE, || {
        let options = PostgresOptions::new().logical();
        let started = options.set("shared_buffers", "256MB").start();
        started.map_err(|error| error.to_string())
    })?;
    let database = postgres.database().map_err(|error| error.to_string())?;
    let scene = Scene::new(&options, folder.path(), database.url())?;
    let finding = measure(&scene)?;
    drop(scene);
    drop(database);
    let outcome = finding.ratio.at_least(LIMIT);
    let table = table(&finding, &options, outcome);
    let found = as_json(&finding, &options, outcome);
    publish(&table, &found, json.as_deref())?;
    Ok(outcome == Outcome::Holds)
}

impl<'a> Scene<'a> {
    fn new(options: &'a MissesOptions, folder: &'a Path, database: String) -> Result<Self> {
        write(
            &folder.join("plan.toml"),
            &plan(FIRST, FIRST + options.articles - 1),
        )?;
        write(&folder.join("queries.pgbench"), QUERIES)?;
        let settings = format!("pool = {}\n", options.connections);
        let millpond = magazine::on_postgres(
            &options.millpond,
            folder,
            &database,
            &settings,
            options.articles,
        )?;
        Ok(Self {
            options,
            folder,
            database,
            millpond,
        })
    }

    /// Transactions of pgbench in a second; the time in which it connects does not count.
    fn pgbench(&self) -> Result<f64> {
        let mut command = Command::new("pgbench");
        command
            .args(["-n", "-M", "prepared", "-j", "1", "-c"])
            .arg(self.options.connections.to_string())
            .arg("-T")
            .arg(self.options.seconds.to_string())
            .arg("-D")
            .arg(format!("articles={}", self.options.articles))
            .arg("-f")
            .arg(self.folder.join("queries.pgbench"))
            .arg(&self.database);
        let text = on_core(server::SERVER_CORE, || output(&mut command))?;
        transactions_per_second(&text).ok_or_else(|| format!("pgbench: {text}"))
    }

    /// Pages of Millpond in a second.
    fn pages(&self) -> Result<f64> {
        let mut command = Command::new(crate::drive::millrace(&self.options.millpond));
        command
            .args(["load", &self.millpond.url, "--no-calibration", "--plan"])
            .arg(self.folder.join("plan.toml"))
            .arg("--connections")
            .arg(self.options.connections.to_string())
            .arg("--duration")
            .arg(format!("{}s", self.options.seconds))
            .args(["--json", "-"]);
        // The exit status says whether the run can be trusted; here only good answers matter.
        let run = command
            .output()
            .map_err(|error| format!("millrace load: {error}"))?;
        let text = String::from_utf8_lossy(&run.stdout);
        good_rate(&text).ok_or_else(|| {
            let said = String::from_utf8_lossy(&run.stderr);
            format!("millrace load: {}\n{text}{said}", run.status)
        })
    }
}

/// All blocks, forwards and backwards (ABBA), after one run of each that does not count.
fn measure(scene: &Scene<'_>) -> Result<MissesFinding> {
    scene.pgbench()?;
    scene.pages()?;
    let (mut transactions, mut pages, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for block in 0..scene.options.blocks {
        eprintln!("block {} of {}", block + 1, scene.options.blocks);
        let first = scene.pgbench()?;
        let (second, third) = (scene.pages()?, scene.pages()?);
        let fourth = scene.pgbench()?;
        ratios.push((second * third / (first * fourth)).sqrt());
        transactions.extend([first, fourth]);
        pages.extend([second, third]);
    }
    let spreads = SampleSpread::new(transactions)
        .zip(SampleSpread::new(pages))
        .zip(SampleSpread::new(ratios));
    let ((pgbench, millpond), ratio) = spreads.ok_or("no block was run")?;
    Ok(MissesFinding {
        pgbench,
        millpond,
        ratio,
    })
}

/// The load: one of the articles for each request, and no answer is good but the page.
fn plan(first: u64, last: u64) -> String {
    format!(
        "[choice.article]\nrange = [{first}, {last}]\n\n\
         [[class]]\nname = \"reader\"\ntarget = \"/read?id={{{{article}}}}\"\nexpect = [200]\n"
    )
}

/// Does something on a core, with all that it starts, and comes back to the client's.
fn on_core<T>(core: usize, work: impl FnOnce() -> Result<T>) -> Result<T> {
    cpu::pin(core)?;
    let done = work();
    cpu::pin(server::CLIENT_CORE)?;
    done
}

/// The line `tps = 346.615940 (without initial connection time)`; a failed transaction makes the
/// run invalid.
fn transactions_per_second(text: &str) -> Option<f64> {
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_ascii_whitespace().next()?.parse::<f64>().ok()
    };
    let failed = value("number of failed transactions: ").unwrap_or(0.0);
    value("tps = ").filter(|&tps| tps > 0.0 && failed == 0.0)
}

/// The rate of a run of `millrace load` in which every answer was good.
fn good_rate(json: &str) -> Option<f64> {
    let run = serde_json::from_str::<Value>(json).ok()?;
    let failed = run.get("accounting")?.get("failed")?.as_u64()?;
    let rate = run.get("good_rate")?.as_f64()?;
    (failed == 0 && rate > 0.0).then_some(rate)
}

fn table(finding: &MissesFinding, options: &MissesOptions, outcome: Outcome) -> String {
    let mut text = format!(
        "one of {} articles from PostgreSQL each time, {} connections, {} blocks of 2 × {} s\n{:32} {:>10} {:>19}\n",
        options.articles,
        options.connections,
        options.blocks,
        options.seconds,
        "",
        "median",
        "min–max"
    );
    for (name, spread) in [
        ("pgbench, transactions/s", &finding.pgbench),
        ("millpond --no-cache, pages/s", &finding.millpond),
    ] {
        let range = format!("{:.0}–{:.0}", spread.min(), spread.max());
        let _ = writeln!(text, "{name:32} {:>10.0} {range:>19}", spread.median());
    }
    let ratio = finding.ratio.shown(3);
    let _ = writeln!(
        text,
        "pages for each transaction of pgbench: {ratio}; at least {LIMIT}: {}",
        outcome.as_str()
    );
    text
}

fn as_json(finding: &MissesFinding, options: &MissesOptions, outcome: Outcome) -> Value {
    let spread = |spread: &SampleSpread| json!({ "min": spread.min(), "median": spread.median(), "max": spread.max() });
    json!({
        "articles": options.articles,
        "connections": options.connections,
        "run_s": options.seconds,
        "blocks": options.blocks,
        "pgbench_transactions_per_s": spread(&finding.pgbench),
        "millpond_pages_per_s": spread(&finding.millpond),
        "over_pgbench": spread(&finding.ratio),
        "over_pgbench_95": finding.ratio.interval(),
        "limit": LIMIT,
        "limit_outcome": outcome.as_str(),
    })
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::{QUERIES, good_rate, plan, transactions_per_second};

    #[test]
    fn rates_are_read_from_what_the_programs_print() {
        let said = "number of transactions actually processed: 293\nnumber of failed transactions: 0 (0.000%)\n\
                    initial connection time = 2203.280 ms\ntps = 346.5 (without initial connection time)\n";
        assert_eq!(transactions_per_second(said), Some(346.5));
        let failed = said.replace("transactions: 0 (", "transactions: 1 (");
        assert_eq!(transactions_per_second(&failed), None);
        assert_eq!(transactions_per_second(""), None);
        let run = r#"{"accounting":{"failed":0},"good_rate":2959.0}"#;
        assert_eq!(good_rate(run), Some(2959.0));
        assert_eq!(good_rate(&run.replace(":0}", ":1}")), None);
        assert_eq!(good_rate("{}"), None);
    }

    #[test]
    fn every_article_can_be_requested() {
        let plan = plan(50_000_001, 50_001_000);
        assert!(plan.contains("range = [50000001, 50001000]"));
        assert!(plan.contains("\"/read?id={{article}}\""));
    }

    /// Compares the queries of pgbench and of PHP with those of the site's page.
    #[test]
    fn the_queries_are_those_of_the_page() {
        let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let read = |path: &str| fs::read_to_string(project.join(path)).expect(path);
        let queries = |text: &str, parameter: &str| {
            let lines = text.lines().filter(|line| !line.starts_with("--"));
            let text = lines.collect::<Vec<_>>().join(" ");
            let text = text.replace(parameter, "?");
            text.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
        };
        let page = queries(&read("examples/articles/pages/read.sql"), ":id");
        let pgbench = queries(QUERIES, ":id");
        let php = queries(&read("lab/magazine-php/queries.php"), "$1");
        let all: Vec<&str> = page.split(';').map(str::trim).collect();
        assert_eq!(all.len(), 9, "eight, and nothing after the last: {page}");
        for query in all {
            assert!(pgbench.contains(query), "pgbench has no {query}");
            assert!(php.contains(query), "PHP has no {query}");
        }
    }
}
