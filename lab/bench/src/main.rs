//! Measures what no experiment in `lab/experiments` can: the store beside published eviction
//! policies, and what changes of a database cost and when they show.
//!
//! Not part of the product. `cargo ci` runs only the unit tests. `lab/README.md` says how to read
//! the results.

#![allow(
    clippy::disallowed_methods,
    reason = "a tool, not a part of the product"
)]

mod arguments;
mod cpu;
mod drive;
mod files;
mod fill;
mod hit_ratio;
mod import;
mod joins;
mod libcachesim;
mod postgres;
mod server;
mod spread;
mod traces;

use std::process::ExitCode;

use arguments::Arguments;

const USAGE: &str = "\
usage: lab-bench COMMAND

  traces               brings the three traces to target/traces by mvn; --jar FILE takes them from a jar that is there
  hit-ratio            the store's hit ratios on the traces beside libcachesim's
      --python FILE      the interpreter that has libcachesim (default python3)
      --json FILE
  import               a large CSV file as a table of a site, beside .import of the sqlite3 shell
      --mib N            size of the file (default 1024)
      --runs N           of each (default 6)
      --millpond FILE    (default target/release/millpond)
      --json FILE
  visible              how long after its acknowledgement a commit in PostgreSQL shows on its page
      --commits N        (default 2000)
      --millpond FILE    (default target/release/millpond)
      --json FILE
  updates              server CPU per hit while another table of PostgreSQL is written, and while not
      --rate R           updates a second (default 1000)
      --connections N    keep-alive connections (default 32)
      --seconds S        length of one run (default 2)
      --blocks N         ABBA blocks (default 10)
      --millpond FILE    (default target/release/millpond)
      --json FILE
  churn                hits of articles behind a view with a join while single rows change, on both databases
      --updates R        a second (default 200)
      --reads R          a second (default 4000)
      --seconds S        for each page (default 20)
      --millpond FILE    (default target/release/millpond)
      --json FILE
  witnesses            CPU of server and database for a page of three tables, with witnesses and with whole tables, both databases
      --pages N          in one run (default 400)
      --blocks N         ABBA blocks, two runs of each page in each (default 10)
      --millpond FILE    (default target/release/millpond)
      --json FILE
  invalidation         server CPU of a change in PostgreSQL with few and with many results in memory
      --objects N        many (default 100000; few are 1000)
      --updates N        changes in one round (default 500)
      --joined           of pages that join five tables along keys, instead of pages of one table
      --blocks N         ABBA blocks, two rounds of each in each (default 10)
      --millpond FILE    (default target/release/millpond)
      --json FILE
";

/// Errors are sentences for the person who measures; no code decides by their type.
type Result<T> = std::result::Result<T, String>;

fn main() -> ExitCode {
    let mut arguments = Arguments::new(std::env::args().skip(1));
    let outcome = match arguments.word().as_deref() {
        Some("traces") => traces::run(arguments),
        Some("hit-ratio") => hit_ratio::run(arguments),
        Some("import") => import::run(arguments),
        Some("visible") => postgres::visible(arguments),
        Some("updates") => postgres::updates(arguments),
        Some("churn") => joins::churn(arguments),
        Some("witnesses") => joins::witnesses(arguments),
        Some("invalidation") => postgres::invalidation(arguments),
        Some("--help" | "-h" | "help") => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(3),
        Err(reason) => {
            eprintln!("lab-bench: {reason}");
            ExitCode::FAILURE
        }
    }
}
