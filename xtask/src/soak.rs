//! `cargo xtask soak`: the same property, model, upgrade and fuzz tests as in CI, for much longer.

use std::env;

mod adversary;
mod package;

pub(crate) use adversary::Adversary;
pub(crate) use package::run as run_package;

use crate::{
    ci, programs,
    step::{Step, run_all},
};

/// Tests that start a server, but for those whose subject is not the database.
const POSTGRES_TEST: &str = "test --locked --no-fail-fast -p lab-pgtest -p millpond-db -p millpond-site \
     -- server:: postgres precision:: nodes replicas:: policies:: outages:: both::";

/// Random cases for each property (256 in CI).
const CASES: &str = "25600";
/// Upgrades, restarts and reloads under load (5 in CI).
const UPGRADES: &str = "20";
/// Schedules for each model test.
const ITERATIONS: &str = "100000";

/// For each fuzz target (8 s in CI): some two hours in all, on two cores.
const FUZZ_SECONDS: u64 = 900;

/// Cargo's test command for what takes long: optimised, because the time is in the tests and not in
/// the build; with the assertions that a release leaves out.
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

/// Runs the tests of backups, also that with Litestream.
pub(crate) fn run_backup() -> bool {
    let tests = "test --package millpond --test it backup:: -- --include-ignored";
    run_all(&[
        Step::ours("litestream", programs::provide_litestream),
        Step::cargo("backup", tests),
    ])
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

/// Runs the tests of the database on other versions of PostgreSQL than the installed one: all of
/// them, or that of one major version.
pub(crate) fn run_postgres(major: Option<&str>) -> bool {
    let of_major =
        |version: &&str| major.is_none_or(|major| version.split('.').next() == Some(major));
    let versions: Vec<&str> = programs::POSTGRES_VERSIONS
        .into_iter()
        .filter(of_major)
        .collect();
    if versions.is_empty() {
        let all = programs::POSTGRES_VERSIONS.join(", ");
        eprintln!("no package of that version is known, only of {all}");
        return false;
    }
    versions.into_iter().all(|version| {
        println!("PostgreSQL {version}");
        match programs::fetch_postgres(version) {
            Ok(folder) => run_all(&[Step::cargo("postgres", POSTGRES_TEST)
                .with("MILLPOND_POSTGRES_BIN", folder.display().to_string())]),
            Err(reason) => {
                eprintln!("{reason}");
                false
            }
        }
    })
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
    let upgrades = asserting(Step::cargo(
        "upgrades",
        &format!("{TEST} -p millpond --test it upgrade"),
    ));
    let upgrades = upgrades.with("MILLPOND_UPGRADES", UPGRADES);
    run_all(&[property, model, upgrades]) && run_fuzz()
}
