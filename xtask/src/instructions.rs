//! `cargo xtask instructions`: the instructions of the steps of a hit, counted by valgrind and held against budgets.
//!
//! Clocks are noisy where CI runs; instructions of user space are not. They say nothing of the kernel, of caches and of
//! waiting, so a budget that holds is no proof of speed; one that is passed is work that somebody has added to each hit.

mod budget;
mod callgrind;

use std::{fs, path::PathBuf, process::Command};

use crate::{root, step::Step};
use budget::{Budgets, Count};
use callgrind::Valgrind;

/// The budgets, from the workspace's root.
const BUDGETS: &str = "bench/instructions/budgets.toml";
/// What is counted.
const BINARY: &str = "target/release/bench-instructions";

/// Counts and compares; an `Err` says which budgets are passed, and what to do.
pub(crate) fn check() -> Result<(), String> {
    let Some(counted) = count()? else {
        return Ok(());
    };
    let text = fs::read_to_string(root().join(BUDGETS)).map_err(|error| {
        format!("{BUDGETS}: {error}; to make what was counted the budgets:\n  cargo xtask instructions --accept")
    })?;
    let budgets = Budgets::read(&text).map_err(|error| format!("{BUDGETS}: {error}"))?;
    if budgets.processor != counted.processor {
        println!(
            "not compared: the budgets are of {}, this is {}",
            budgets.processor, counted.processor
        );
        return Ok(());
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
    let counted = count()?.ok_or("nothing was counted, so nothing is accepted")?;
    fs::write(root().join(BUDGETS), counted.text())
        .map_err(|error| format!("{BUDGETS}: {error}"))?;
    print!("{}", counted.text());
    println!("written to {BUDGETS}");
    Ok(())
}

/// None where nothing can be counted, which is said.
fn count() -> Result<Option<Budgets>, String> {
    let valgrind = match Valgrind::find() {
        Ok(valgrind) => valgrind,
        Err(reason) => {
            println!("skipped, because instructions cannot be counted here: {reason}");
            return Ok(None);
        }
    };
    Step::cargo("build", "build --release --package bench-instructions").run()?;
    fs::create_dir_all(out_file("").with_file_name(""))
        .map_err(|error| format!("target/instructions: {error}"))?;
    let mut counts = Vec::new();
    for case in cases()? {
        let out = out_file(&case.name);
        let run = |times| valgrind.count(&root().join(BINARY), &case.name, times, &out);
        let (few, many) = (run(case.few)?, run(case.many)?);
        let each = many.saturating_sub(few) / u64::from(case.many - case.few);
        println!("{:>8}  {}: {}", each, case.name, case.what);
        counts.push(Count {
            case: case.name,
            instructions: each,
        });
    }
    Ok(Some(Budgets {
        processor: callgrind::processor(),
        tools: callgrind::tools(&valgrind),
        counts,
    }))
}

/// Where callgrind leaves what it has counted of a case.
fn out_file(case: &str) -> PathBuf {
    root().join(format!("target/instructions/{case}.callgrind"))
}

struct Case {
    name: String,
    few: u32,
    many: u32,
    what: String,
}

/// What the binary has to offer.
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
    use super::case;

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
