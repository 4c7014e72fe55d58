//! `cargo ci`: everything that the project checks, the quick things first.

use crate::{
    instructions, programs,
    step::{Step, run_all},
    tidy as rules,
};

/// Runs all steps.
pub(crate) fn run() -> bool {
    run_all(&[
        tidy(),
        Step::ours("programs", programs::provide),
        Step::cargo("format", "fmt --all --check"),
        Step::cargo(
            "clippy",
            "clippy --locked --workspace --all-targets -- -D warnings",
        ),
        Step::cargo("test", "test --locked --workspace"),
        fuzz("test").with(FUZZ_TIME, "8000"),
        model(),
        instructions(),
        Step::cargo("docs", "doc --locked --workspace --no-deps")
            .with_flags("RUSTDOCFLAGS", "-D warnings"),
    ])
}

/// The rules that no compiler checks.
pub(crate) fn tidy() -> Step {
    Step::ours("tidy", rules::check)
}

/// How long each fuzz target looks for inputs that break it, in milliseconds; one second if it is
/// not set. Fifteen of them at eight seconds take a minute on two cores.
pub(crate) const FUZZ_TIME: &str = "BOLERO_RANDOM_TEST_TIME_MS";

/// The fuzz targets, which are tests with `fuzz` in their paths; `test` is cargo's command for
/// them.
pub(crate) fn fuzz(test: &str) -> Step {
    let packages = "--package millpond-http --package millpond-site";
    Step::cargo(
        "fuzz",
        &format!("{test} {packages} --locked --lib --test it fuzz::"),
    )
    .with_tests()
}

/// Counts the instructions of the steps of a hit.
pub(crate) fn instructions() -> Step {
    Step::ours("instructions", instructions::check)
}

/// The store under a model checker's schedules. Its locks are other types then, so it is built
/// apart.
pub(crate) fn model() -> Step {
    let step = Step::cargo(
        "model",
        "test --locked --package millpond-store --lib --target-dir target/shuttle model",
    );
    step.with_flags("RUSTFLAGS", "--cfg shuttle").with_tests()
}
