//! Steps: one after the other, each with its time, until one fails.

use std::{
    env,
    fmt::Write as _,
    io::{IsTerminal as _, stdout},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use crate::root;

/// Something that must hold.
pub(crate) struct Step {
    name: &'static str,
    check: Check,
}

enum Check {
    /// Rust of our own: says what is wrong.
    Ours(fn() -> Result<(), String>),
    Command(Invocation),
}

/// A cargo command with its environment.
#[derive(Clone)]
pub(crate) struct Invocation {
    arguments: Vec<String>,
    environment: Vec<(&'static str, String)>,
    /// True if it is a filtered `cargo test` that has to find something: a filter that matches
    /// nothing succeeds.
    finds_tests: bool,
}

impl Step {
    /// A check written here.
    pub(crate) fn ours(name: &'static str, check: fn() -> Result<(), String>) -> Self {
        Self {
            name,
            check: Check::Ours(check),
        }
    }

    /// A cargo command, as one would type it.
    pub(crate) fn cargo(name: &'static str, arguments: &str) -> Self {
        let arguments = arguments
            .split_ascii_whitespace()
            .map(str::to_owned)
            .collect();
        Self {
            name,
            check: Check::Command(Invocation {
                arguments,
                environment: Vec::new(),
                finds_tests: false,
            }),
        }
    }

    /// With a variable set to `value`.
    pub(crate) fn with(mut self, variable: &'static str, value: impl Into<String>) -> Self {
        if let Check::Command(invocation) = &mut self.check {
            invocation.environment.push((variable, value.into()));
        }
        self
    }

    /// With flags added to those that are set already.
    pub(crate) fn with_flags(self, variable: &'static str, flags: &str) -> Self {
        let before = env::var(variable).unwrap_or_default();
        self.with(variable, format!("{before} {flags}").trim().to_owned())
    }

    /// Fails when a `cargo test` command runs no test.
    pub(crate) fn with_tests(mut self) -> Self {
        if let Check::Command(invocation) = &mut self.check {
            invocation.finds_tests = true;
        }
        self
    }

    /// Does it, without a word of its own.
    pub(crate) fn run(&self) -> Result<(), String> {
        match &self.check {
            Check::Ours(check) => check(),
            Check::Command(invocation) => invocation.run(),
        }
    }
}

impl Invocation {
    fn run(&self) -> Result<(), String> {
        let again = |what: String| format!("{what}; to see it again:\n  {}", self.typed());
        if self.finds_tests {
            let list = self
                .command()
                .args(["--", "--list"])
                .stderr(Stdio::inherit())
                .output();
            let list = list.map_err(|error| format!("cargo does not start: {error}"))?;
            if !list.status.success() {
                return Err(again(list.status.to_string()));
            }
            if !has_tests(&String::from_utf8_lossy(&list.stdout)) {
                return Err(again("no test has such a name".to_owned()));
            }
        }
        match self.command().status() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(again(status.to_string())),
            Err(error) => Err(format!("cargo does not start: {error}")),
        }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command
            .args(&self.arguments)
            .envs(self.environment.iter().cloned())
            .current_dir(root());
        if !is_fancy() {
            command
                .env("CARGO_TERM_COLOR", "never")
                .env("CARGO_TERM_PROGRESS_WHEN", "never");
        }
        command
    }

    /// The command as one would type it.
    fn typed(&self) -> String {
        let mut text = String::new();
        for (variable, value) in &self.environment {
            let _ = write!(text, "{variable}='{value}' ");
        }
        text + "cargo " + &self.arguments.join(" ")
    }
}

/// True if `cargo test -- --list` lists any.
fn has_tests(list: &str) -> bool {
    list.lines().any(|line| line.ends_with(": test"))
}

/// True if a person reads the output: only then it has colours and progress bars.
fn is_fancy() -> bool {
    stdout().is_terminal() && env::var_os("CI").is_none() && env::var_os("NO_COLOR").is_none()
}

/// Runs the steps in order and stops at the first that fails; then, and at the end, says what took
/// how long.
pub(crate) fn run_all(steps: &[Step]) -> bool {
    let (bold, plain) = if is_fancy() {
        ("\x1b[1m", "\x1b[0m")
    } else {
        ("", "")
    };
    let count = steps.len();
    let mut done: Vec<(&str, Duration)> = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        println!("{bold}== {} ({} of {count}){plain}", step.name, number + 1);
        let start = Instant::now();
        let outcome = step.run();
        done.push((step.name, start.elapsed()));
        if let Err(reason) = outcome {
            print!("{}", summary(&done, count));
            println!("{bold}{} FAILED{plain}: {reason}", step.name);
            return false;
        }
    }
    print!("{}", summary(&done, count));
    println!("{bold}all good{plain}");
    true
}

fn summary(done: &[(&str, Duration)], count: usize) -> String {
    let mut text = String::from("==\n");
    for (name, took) in done {
        let _ = writeln!(text, "{name:12} {:>7.1} s", took.as_secs_f64());
    }
    let total: Duration = done.iter().map(|(_, took)| *took).sum();
    let _ = writeln!(
        text,
        "{:12} {:>7.1} s, {} of {count} steps",
        "total",
        total.as_secs_f64(),
        done.len()
    );
    text
}

#[cfg(test)]
mod tests {
    use super::{Check, Step, has_tests, run_all, summary};
    use std::time::Duration;

    #[test]
    fn the_first_failure_is_the_last_step() {
        fn fine() -> Result<(), String> {
            Ok(())
        }
        fn broken() -> Result<(), String> {
            Err("broken".to_owned())
        }
        fn never() -> Result<(), String> {
            panic!("a step ran after a failed one")
        }
        assert!(run_all(&[Step::ours("one", fine), Step::ours("two", fine)]));
        assert!(!run_all(&[
            Step::ours("one", fine),
            Step::ours("two", broken),
            Step::ours("three", never)
        ]));
    }

    #[test]
    fn a_command_is_shown_as_one_would_type_it() {
        let step = Step::cargo("docs", "doc  --no-deps").with("FLAGS", "-D warnings");
        let Check::Command(invocation) = step.check else {
            panic!("a command")
        };
        assert_eq!(
            invocation.typed(),
            "FLAGS='-D warnings' cargo doc --no-deps"
        );
    }

    #[test]
    fn a_filter_that_matches_nothing_is_noticed() {
        assert!(has_tests(
            "model::fills_and_changes: test\n\n1 test, 0 benchmarks\n"
        ));
        assert!(!has_tests("0 tests, 0 benchmarks\n"));
    }

    #[test]
    fn times_are_added_up() {
        let text = summary(
            &[
                ("a", Duration::from_millis(1500)),
                ("b", Duration::from_secs(2)),
            ],
            3,
        );
        assert!(
            text.ends_with("total            3.5 s, 2 of 3 steps\n"),
            "{text}"
        );
    }
}
