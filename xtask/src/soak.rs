//! `cargo xtask soak`: the same property and model tests as in CI, for much longer.

use std::env;

use crate::{
    ci,
    step::{Step, run_all},
};

/// Random cases for each property (256 in CI).
const CASES: &str = "25600";
/// Schedules for each model test.
const ITERATIONS: &str = "100000";

/// Runs both kinds.
pub(crate) fn run() -> bool {
    let cases = env::var("MILLPOND_PROPTEST_CASES").unwrap_or_else(|_| CASES.to_owned());
    let iterations =
        env::var("MILLPOND_SHUTTLE_ITERATIONS").unwrap_or_else(|_| ITERATIONS.to_owned());
    println!("{cases} cases for each property, {iterations} schedules for each model");
    // Optimised, because the time is in the tests and not in the build; with the assertions that a release leaves out.
    let property = Step::cargo(
        "property",
        "test --workspace --release --target-dir target/soak",
    )
    .with("MILLPOND_PROPTEST_CASES", cases)
    .with("CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS", "true")
    .with("CARGO_PROFILE_RELEASE_LTO", "off");
    run_all(&[
        property,
        ci::model().with("MILLPOND_SHUTTLE_ITERATIONS", iterations),
    ])
}
