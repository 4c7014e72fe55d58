//! Steps: one after the other, each with its time, until one fails.

use std::{
    env,
    fmt::Write as _,
    fs,
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
    let mut done: Vec<Cost> = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        println!("{bold}== {} ({} of {count}){plain}", step.name, number + 1);
        let (start, cpu_before) = (Instant::now(), cpu_time());
        let outcome = step.run();
        done.push(Cost {
            name: step.name,
            wall: start.elapsed(),
            cpu: cpu_time().saturating_sub(cpu_before),
        });
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

/// Times of a step.
struct Cost {
    name: &'static str,
    wall: Duration,
    /// Of all processors. Other programs that compute at the same time hardly change it.
    cpu: Duration,
}

/// The time of processors for this process and for all processes of its that have ended; zero
/// where `/proc` is not there.
fn cpu_time() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Behind the program's name, which may have spaces; hundredths of a second (proc(5)).
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let times = fields.split_ascii_whitespace().skip(11).take(4);
    let hundredths: u64 = times.filter_map(|time| time.parse::<u64>().ok()).sum();
    Duration::from_millis(hundredths * 10)
}

fn summary(done: &[Cost], count: usize) -> String {
    let mut text = String::from("==\n");
    let mut line = |name: &str, wall: Duration, cpu: Duration, end: &str| {
        let (wall, cpu) = (wall.as_secs_f64(), cpu.as_secs_f64());
        let _ = writeln!(text, "{name:12} {wall:>7.1} s {cpu:>8.1} s CPU{end}");
    };
    for Cost { name, wall, cpu } in done {
        line(name, *wall, *cpu, "");
    }
    let wall = done.iter().map(|cost| cost.wall).sum();
    let cpu = done.iter().map(|cost| cost.cpu).sum();
    let end = format!(", {} of {count} steps", done.len());
    line("total", wall, cpu, &end);
    text
}

#[cfg(test)]
mod tests {
    use super::{Check, Cost, Step, cpu_time, has_tests, run_all, summary};
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
        let cost = |name, wall, cpu| Cost {
            name,
            wall: Duration::from_millis(wall),
            cpu: Duration::from_millis(cpu),
        };
        let text = summary(&[cost("a", 1500, 2900), cost("b", 2000, 40)], 3);
        assert!(
            text.ends_with("total            3.5 s      2.9 s CPU, 2 of 3 steps\n"),
            "{text}"
        );
    }

    #[test]
    fn the_time_of_processors_grows_with_work() {
        let before = cpu_time();
        while cpu_time() == before {
            std::hint::black_box((0..1000_u64).sum::<u64>());
        }
    }
}
