//! `cargo xtask soak`: the same property, model and fuzz tests as in CI, for much longer.

use std::{env, time::SystemTime};

use crate::{
    ci,
    step::{Step, run_all},
};

/// Random cases for each property (256 in CI).
const CASES: &str = "25600";
/// Schedules for each model test.
const ITERATIONS: &str = "100000";

/// For each fuzz target (8 s in CI): some two hours in all, on two cores.
const FUZZ_SECONDS: u64 = 900;

/// How long the adversary fights (30 s in CI).
pub(crate) const ADVERSARY_MINUTES: u64 = 60;
/// What it must have checked at least: a million pages in an hour.
const READS_A_MINUTE: u64 = 16_667;

/// Cargo's test command for what takes long: optimised, because the time is in the tests and not in the build; with the
/// assertions that a release leaves out.
const TEST: &str = "test --release --target-dir target/soak";

fn asserting(step: Step) -> Step {
    step.with("CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS", "true")
        .with("CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS", "true")
        .with("CARGO_PROFILE_RELEASE_LTO", "off")
}

/// Runs the fuzz targets alone.
pub(crate) fn run_fuzz() -> bool {
    match fuzz() {
        Ok(step) => run_all(&[step]),
        Err(reason) => {
            eprintln!("{reason}");
            false
        }
    }
}

fn fuzz() -> Result<Step, String> {
    const SECONDS: &str = "MILLPOND_FUZZ_SECONDS";
    let seconds = match env::var(SECONDS) {
        Err(_) => FUZZ_SECONDS,
        Ok(text) => text
            .parse()
            .map_err(|_| format!("{SECONDS}={text}: it wants whole seconds"))?,
    };
    println!("{seconds} s for each fuzz target");
    let milliseconds = seconds.saturating_mul(1000).to_string();
    Ok(asserting(ci::fuzz(TEST)).with(ci::FUZZ_TIME, milliseconds))
}

/// Runs the adversary alone.
pub(crate) fn run_adversary(minutes: u64) -> bool {
    let seed = env::var("MILLPOND_ADVERSARY_SEED").unwrap_or_else(|_| {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        now.map_or(1, |now| now.as_secs()).to_string()
    });
    println!("{minutes} min, MILLPOND_ADVERSARY_SEED={seed}");
    let arguments = "test --release --target-dir target/soak --package millpond --test it adversary:: -- --nocapture";
    let step = Step::cargo("adversary", arguments)
        .with(
            "MILLPOND_ADVERSARY_SECONDS",
            minutes.saturating_mul(60).to_string(),
        )
        .with(
            "MILLPOND_ADVERSARY_READS",
            minutes.saturating_mul(READS_A_MINUTE).to_string(),
        )
        .with("MILLPOND_ADVERSARY_SEED", seed);
    run_all(&[step])
}

/// Runs all kinds.
pub(crate) fn run() -> bool {
    let cases = env::var("MILLPOND_PROPTEST_CASES").unwrap_or_else(|_| CASES.to_owned());
    let iterations =
        env::var("MILLPOND_SHUTTLE_ITERATIONS").unwrap_or_else(|_| ITERATIONS.to_owned());
    println!("{cases} cases for each property, {iterations} schedules for each model");
    let property = asserting(Step::cargo("property", &format!("{TEST} --workspace")))
        .with("MILLPOND_PROPTEST_CASES", cases);
    let model = ci::model().with("MILLPOND_SHUTTLE_ITERATIONS", iterations);
    run_all(&[property, model]) && run_fuzz()
}
