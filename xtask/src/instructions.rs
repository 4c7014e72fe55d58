//! `cargo xtask instructions`: the instructions of the steps of a hit, counted by valgrind and held
//! against budgets.
//!
//! Clocks are noisy where CI runs; instructions of user space are not. They say nothing of the
//! kernel, of caches and of waiting, so a budget that holds is no proof of speed; one that is
//! passed is work that a change has added to each hit.

mod budget;
mod callgrind;

use std::{fs, path::PathBuf, process::Command};

use crate::{root, step::Step};
use budget::{Budgets, Count};
use callgrind::Valgrind;

/// The budgets, from the workspace's root.
const BUDGETS: &str = "lab/instructions/budgets.toml";
/// How often each number of repetitions of a case is run, where one run has counted too much or a
/// budget is made.
const RUNS: usize = 3;
/// Program whose instructions are counted.
const BINARY: &str = "target/release/lab-instructions";

/// Counts and compares; an `Err` says which budgets are passed, and what to do.
pub(crate) fn check() -> Result<(), String> {
    let text = fs::read_to_string(root().join(BUDGETS)).map_err(|error| {
        format!("{BUDGETS}: {error}; to make what was counted the budgets:\n  cargo xtask instructions --accept")
    })?;
    let budgets = Budgets::read(&text).map_err(|error| format!("{BUDGETS}: {error}"))?;
    let Some(bench) = Bench::prepare()? else {
        return Ok(());
    };
    if budgets.processor != callgrind::processor() {
        println!(
            "not compared: the budgets are of {}, this is {}",
            budgets.processor,
            callgrind::processor()
        );
        return Ok(());
    }
    let mut counted = bench.count(&cases()?, 1)?;
    let (_, passed) = budgets.compare(&counted);
    if !passed.is_empty() {
        let again = |case: &Case| passed.contains(&case.name);
        let again: Vec<Case> = cases()?.into_iter().filter(again).collect();
        println!("counted again, because a disturbed run counts too much:");
        counted.replace(&bench.count(&again, RUNS)?);
    }
    let (table, passed) = budgets.compare(&counted);
    print!("{table}");
    if passed.is_empty() {
        return Ok(());
    }
    Err(format!(
        "more instructions than allowed: {}; where they are:\n  callgrind_annotate {}\n\
         if they are worth it, make them the budget and say why in the commit:\n  cargo xtask instructions --accept",
        passed.join(", "),
        out_file(&passed[0]).display()
    ))
}

/// Counts, and makes what was counted the budgets.
pub(crate) fn accept() -> Result<(), String> {
    let bench = Bench::prepare()?.ok_or("nothing was counted, so nothing is accepted")?;
    let counted = bench.count(&cases()?, RUNS)?;
    fs::write(root().join(BUDGETS), counted.text())
        .map_err(|error| format!("{BUDGETS}: {error}"))?;
    print!("{}", counted.text());
    println!("written to {BUDGETS}");
    Ok(())
}

/// A binary that is built, and the valgrind that counts it.
struct Bench(Valgrind);

impl Bench {
    /// None where nothing can be counted, which is said.
    fn prepare() -> Result<Option<Self>, String> {
        let valgrind = match Valgrind::find() {
            Ok(valgrind) => valgrind,
            Err(reason) => {
                println!("skipped, because instructions cannot be counted here: {reason}");
                return Ok(None);
            }
        };
        Step::cargo(
            "build",
            "build --locked --release --package lab-instructions",
        )
        .run()?;
        fs::create_dir_all(out_file("").with_file_name(""))
            .map_err(|error| format!("target/instructions: {error}"))?;
        Ok(Some(Self(valgrind)))
    }

    /// Counts each case; each of its two numbers of repetitions is the least of several runs.
    fn count(&self, cases: &[Case], runs: usize) -> Result<Budgets, String> {
        let mut counts = Vec::new();
        for case in cases {
            let out = out_file(&case.name);
            let of = |times| self.0.count(&root().join(BINARY), &case.name, times, &out);
            let (few, many) = (
                least(runs, || of(case.few))?,
                least(runs, || of(case.many))?,
            );
            let each = many.saturating_sub(few) / u64::from(case.many - case.few);
            println!("{each:>8}  {}: {}", case.name, case.what);
            counts.push(Count {
                case: case.name.clone(),
                instructions: each,
            });
        }
        Ok(Budgets {
            processor: callgrind::processor(),
            tools: callgrind::tools(&self.0),
            counts,
        })
    }
}

/// The least of several counts: what disturbs a program (a send that the kernel cuts in two, a
/// timer that comes) adds to the work and never takes from it.
fn least(runs: usize, count: impl Fn() -> Result<u64, String>) -> Result<u64, String> {
    let mut least = count()?;
    for _ in 1..runs {
        least = least.min(count()?);
    }
    Ok(least)
}

/// Returns the file in which callgrind leaves the counts of a case.
fn out_file(case: &str) -> PathBuf {
    root().join(format!("target/instructions/{case}.callgrind"))
}

struct Case {
    name: String,
    few: u32,
    many: u32,
    what: String,
}

/// Lists the cases of the binary.
fn cases() -> Result<Vec<Case>, String> {
    let list = Command::new(root().join(BINARY)).arg("list").output();
    let list = list.map_err(|error| format!("{BINARY}: {error}"))?;
    let text = String::from_utf8_lossy(&list.stdout).into_owned();
    text.lines()
        .map(|line| case(line).ok_or_else(|| format!("{BINARY} list: {line:?} is no case")))
        .collect()
}

fn case(line: &str) -> Option<Case> {
    let mut parts = line.split('\t');
    let name = parts.next()?.to_owned();
    let (few, many) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let what = parts.next()?.to_owned();
    (few < many).then_some(Case {
        name,
        few,
        many,
        what,
    })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::{case, least};

    #[test]
    fn the_least_disturbed_run_counts() {
        let counts = Cell::new([900, 850, 878].as_slice());
        let next = || {
            let (first, rest) = counts.get().split_first().ok_or("no more runs")?;
            counts.set(rest);
            Ok(*first)
        };
        assert_eq!(least(3, next), Ok(850));
        assert!(least(3, next).is_err(), "an error is no count");
    }

    #[test]
    fn a_case_has_two_numbers_of_repetitions() {
        let read = case("a-b\t10\t110\tsomething done").expect("a case");
        assert_eq!((read.name.as_str(), read.few, read.many), ("a-b", 10, 110));
        assert_eq!(read.what, "something done");
        for line in ["", "a\t10\t10\tx", "a\t10\tmany\tx", "a\t10\t20"] {
            assert!(case(line).is_none(), "{line}");
        }
    }
}
