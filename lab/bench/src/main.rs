//! Measures Millpond beside its peers: a bare epoll loop, published eviction policies, an
//! allocator's count, and measuring tools against servers that know the truth. Also measures what
//! Millpond withstands from hostile clients.
//!
//! Not part of the product. `cargo ci` runs only the unit tests. `lab/README.md` says how to read
//! the results.

#![allow(
    clippy::disallowed_methods,
    reason = "a tool, not a part of the product"
)]

mod arguments;
mod compared;
mod counting;
mod cpu;
mod drive;
mod fill;
mod floor;
mod fortio;
mod frozen;
mod hit_ratio;
mod hostile;
mod import;
mod joins;
mod lateness;
mod libcachesim;
mod magazine;
mod misses;
mod overhead;
mod planted;
mod postgres;
mod secure;
mod sendfile;
mod server;
mod slow;
mod spread;
mod traces;
mod truth;
mod victim;

use std::process::ExitCode;

use arguments::Arguments;

const USAGE: &str = "\
usage: lab-bench COMMAND

  floor SITE           server CPU per request: the bare epoll loop, a cached page, the same page with --no-cache
      --path PATH        the page (default /)
      --millpond FILE    the server (default target/release/millpond)
      --connections N    keep-alive connections (default 32)
      --seconds S        length of one run (default 2)
      --blocks N         ABBA blocks, two runs of each server in each (default 5)
      --json FILE        the result as JSON; - is stdout, and the table goes to stderr
  sendfile             server CPU per request for static files by size: from memory, by sendfile, from disk
      --kib N            only files of N KiB (default 16 to 4096)
      --millpond FILE    (default target/release/millpond)
      --connections N    keep-alive connections (default 32)
      --seconds S        length of one run (default 1)
      --blocks N         ABBA blocks, two runs of each way in each (default 3)
      --json FILE
  traces               brings the three traces to target/traces by mvn; --jar FILE takes them from a jar that is there
  hit-ratio            the store's hit ratios on the traces beside libcachesim's
      --python FILE      the interpreter that has libcachesim (default python3)
      --json FILE
  import               a large CSV file as a table of a site, beside .import of the sqlite3 shell
      --mib N            size of the file (default 1024)
      --runs N           of each (default 6)
      --millpond FILE    (default target/release/millpond)
      --json FILE
  overhead             bytes of memory for an entry beside its key and value, counted by the allocator
      --entries N        entries to store (default 100000)
      --json FILE
  misses               pages that PostgreSQL is asked for each time, beside pgbench with the same queries
      --articles N       in the database (default 1000)
      --connections N    of pgbench, of the load and of Millpond's pool (default 8)
      --seconds S        length of one run (default 5)
      --blocks N         ABBA blocks, two runs of each in each (default 10)
      --millpond FILE    (default target/release/millpond)
      --json FILE
  planted              whether millrace compare finds a server that needs a little more CPU for each request
      --extra PERCENT    how much more (default 3; 0 asks how often it finds what is not there)
      --runs N           comparisons, each with new processes (default 10)
      --work MICROS      CPU of a request (default 100)
      --rate R           requests a second (default 2000)
      --duration TIME    length of one run of a comparison (default 100ms)
      --blocks N         ABBA blocks of a comparison at least (default 60)
      --most-blocks N    and at most (default ten times as many)
      --millpond FILE    (default target/release/millpond)
      --json FILE
  lateness             how late the client sends, by its own account and by the null server's
      --rate R           requests a second (default 20000)
      --runs N           (default 5)
      --seconds S        length of one run (default 10)
      --json FILE
  truth                the client's percentiles against the delays that a null server made and logged
      --seconds S        (default 10)
      --bound-us N       what the kernel may add (default 300)
      --json FILE
  fortio               the client's proportions and times against the delays of `fortio server`
      --fortio FILE      the program (default: where go install puts it, or on the path)
      --rate R           requests a second (default 500)
      --seconds S        (default 20)
      --json FILE
  frozen               what an open loop says of a server that is stopped for two of ten seconds
      --json FILE
  hostile              a million broken and hostile requests, again and again: errors of a client beside them, panics, memory
      --requests N       in each campaign (default 1000000)
      --campaigns N      (default 2)
      --clients N        hostile clients at once (default 32)
      --seed N           (default 1)
      --millpond FILE    (default target/release/millpond)
      --json FILE
  secure               each attack over TLS and HTTP/2: times of a client beside it, and beside as many honest new connections, in turn
      --attackers N      connections that attack at once (default 10)
      --seconds S        length of one run (default 1)
      --blocks N         ABBA blocks, two runs with and two without in each (default 1)
      --millpond FILE    (default target/release/millpond)
      --json FILE
  slow                 slowhttptest in its four modes, with a client beside it
      --connections N    slow connections (default 1000)
      --rate R           of them opened in a second (default 200)
      --seconds S        length of each mode (default 30)
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
        Some("floor") => floor::run(arguments),
        Some("sendfile") => sendfile::run(arguments),
        Some("traces") => traces::run(arguments),
        Some("hit-ratio") => hit_ratio::run(arguments),
        Some("import") => import::run(arguments),
        Some("overhead") => overhead::run(arguments),
        Some("misses") => misses::run(arguments),
        Some("planted") => planted::run(arguments),
        Some("lateness") => lateness::run(arguments),
        Some("truth") => truth::run(arguments),
        Some("fortio") => fortio::run(arguments),
        Some("frozen") => frozen::run(arguments),
        Some("hostile") => hostile::run(arguments),
        Some("secure") => secure::run(arguments),
        Some("slow") => slow::run(arguments),
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
