//! The project's automation.
//!
//! `cargo ci` is everything that the project checks, here and on the CI machine alike; `cargo xtask
//! tidy` is its quick first part; `cargo xtask soak` runs the property, model and fuzz tests for as
//! long as one has patience; `cargo xtask instructions` counts what the steps of a hit cost.

#![allow(
    clippy::disallowed_methods,
    reason = "a tool, not a part of the product"
)]

mod ci;
mod demo;
mod instructions;
mod limits;
mod package;
mod programs;
mod release;
mod results;
mod soak;
mod step;
mod tidy;

use std::{path::PathBuf, process::ExitCode};

const USAGE: &str = "\
usage: cargo xtask COMMAND

  ci      everything that must hold: tidy, format, clippy, tests, fuzz targets, model tests, docs (also: cargo ci)
  demo [OPTIONS]
          builds and runs the demo (also: cargo demo); its options: cargo demo --help
  tidy    the rules that no compiler checks, each in a module of xtask/src/tidy
  programs
          installs the programs that tests use, as root where there is apt; prints the command to all others
  release builds target/release/millpond and millrace as they are shipped: symbols and lines are in NAME.debug beside each
  soak    the property, model and fuzz tests, a hundred times longer; MILLPOND_PROPTEST_CASES,
          MILLPOND_SHUTTLE_ITERATIONS and MILLPOND_FUZZ_SECONDS (for each target) say how long
  soak fuzz
          the fuzz targets alone
  soak backup
          the tests of backups, with a Litestream that Go compiles
  soak package
          installs, upgrades, removes and purges the Debian package in a bare system, as root where there is debootstrap
  soak postgres [VERSION]
          the tests of the database on PostgreSQL 14, 16, 17 and 18, or on one of them (packages of npm)
  soak adversary [--minutes N | --seconds N] [--seed N] [--feed logical|triggers|sqlite]
          nodes on PostgreSQL while everything fails, for an hour: no page may be late or mixed; a seed makes the same
          choices again; packets are lost for real where a network namespace may be had and nft is installed
  instructions
          counts the instructions of the steps of a hit under valgrind and holds them against
          lab/instructions/budgets.toml; --accept makes the counts the budgets
  package [--profile NAME]
          makes the Debian package with both programs, their man pages, completions and a unit in target/package
  limits  writes docs/reference/limits.md from the values in the code
  results writes docs/results/DATE-NAME.md from each stored lab/results/DATE-NAME.json
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let good = match words[..] {
        ["ci"] => ci::run(),
        ["demo", ref options @ ..] => match demo::run(options) {
            Ok(()) => true,
            Err(reason) => {
                eprintln!("{reason}");
                false
            }
        },
        ["tidy"] => step::run_all(&[ci::tidy()]),
        ["programs"] => step::run_all(&[step::Step::ours("programs", programs::provide)]),
        ["release"] => succeeds(&release::run()),
        ["soak"] => soak::run(),
        ["soak", "fuzz"] => soak::run_fuzz(),
        ["soak", "backup"] => soak::run_backup(),
        ["soak", "package"] => soak::run_package(),
        ["soak", "postgres"] => soak::run_postgres(None),
        ["soak", "postgres", major] => soak::run_postgres(Some(major)),
        ["soak", "adversary", ref options @ ..] => match soak::Adversary::read(options) {
            Ok(adversary) => adversary.run(),
            Err(reason) => {
                eprintln!("{reason}");
                return ExitCode::from(2);
            }
        },
        ["package", ref options @ ..] => match package::run(options) {
            Ok(good) => good,
            Err(reason) => {
                eprintln!("{reason}");
                return ExitCode::from(2);
            }
        },
        ["instructions"] => step::run_all(&[ci::instructions()]),
        ["instructions", "--accept"] => {
            step::run_all(&[step::Step::ours("instructions", instructions::accept)])
        }
        ["limits"] => succeeds(&tidy::write_limits()),
        ["results"] => succeeds(&results::write()),
        ["help" | "--help" | "-h"] => {
            print!("{USAGE}");
            true
        }
        [] => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
        _ => {
            eprint!("{:?} is not understood\n\n{USAGE}", words.join(" "));
            return ExitCode::from(2);
        }
    };
    if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Prints the reason of a failure.
fn succeeds(result: &Result<(), String>) -> bool {
    if let Err(reason) = result {
        eprintln!("{reason}");
    }
    result.is_ok()
}

/// The workspace.
fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map_or(here.clone(), PathBuf::from)
}
