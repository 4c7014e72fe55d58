//! The steps of a hit, each repeated, so that valgrind can count their instructions.
//!
//! `cargo xtask instructions` builds this, runs each case under callgrind with two numbers of
//! repetitions, and compares the difference with `budgets.toml`. Preparation and one-time work of a
//! case are not counted.

mod cases;
mod counted;

use std::process::ExitCode;

use cases::CASES;

const USAGE: &str = "\
usage: lab-instructions COMMAND

  list            the cases, one a line: its name, its two numbers of repetitions, what it is
  run CASE N      does what the case does N times
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["list"] => {
            for case in CASES {
                let (few, many) = case.repetitions();
                println!("{}\t{few}\t{many}\t{}", case.name, case.what);
            }
            ExitCode::SUCCESS
        }
        ["run", name, times] => match (find(name), times.parse()) {
            (Some(case), Ok(times)) => {
                case.run(times);
                ExitCode::SUCCESS
            }
            _ => refuse(),
        },
        _ => refuse(),
    }
}

fn find(name: &str) -> Option<&'static cases::Case> {
    CASES.iter().find(|case| case.name == name)
}

fn refuse() -> ExitCode {
    eprint!("{USAGE}");
    ExitCode::from(2)
}

#[cfg(test)]
mod tests {
    use super::{CASES, find};

    #[test]
    fn every_case_runs_and_has_a_unique_name() {
        for case in CASES {
            assert!(std::ptr::eq(find(case.name).expect("a case"), case));
            case.run(20);
        }
    }
}
