//! The project's automation.
//!
//! `cargo ci` is everything that the project checks, here and on the CI machine alike; `cargo xtask tidy` is its quick
//! first part; `cargo xtask soak` runs the property, model and fuzz tests for as long as one has patience.

mod ci;
mod programs;
mod soak;
mod step;
mod tidy;

use std::{path::PathBuf, process::ExitCode};

const USAGE: &str = "\
usage: cargo xtask COMMAND

  ci      everything that must hold: tidy, format, clippy, tests, fuzz targets, model tests, docs (also: cargo ci)
  tidy    the rules that no compiler checks: file sizes, module docs, dependency edges, left-over marks, machine paths
  soak    the property, model and fuzz tests, a hundred times longer; MILLPOND_PROPTEST_CASES,
          MILLPOND_SHUTTLE_ITERATIONS and MILLPOND_FUZZ_SECONDS (for each target) say how long
  soak fuzz
          the fuzz targets alone
";

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1).peekable();
    let command = words.next();
    let part = words.next_if(|word| command.as_deref() == Some("soak") && word == "fuzz");
    if let Some(extra) = words.next() {
        eprint!("{extra:?} is not understood\n\n{USAGE}");
        return ExitCode::from(2);
    }
    let good = match command.as_deref() {
        Some("ci") => ci::run(),
        Some("tidy") => step::run_all(&[ci::tidy()]),
        Some("soak") if part.is_some() => soak::run_fuzz(),
        Some("soak") => soak::run(),
        Some("help" | "--help" | "-h") => {
            print!("{USAGE}");
            true
        }
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// The workspace.
fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map_or(here.clone(), PathBuf::from)
}
