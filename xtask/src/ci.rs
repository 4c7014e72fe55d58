//! `cargo ci`: everything that the project checks, the quick things first.

use crate::{
    programs,
    step::{Step, run_all},
    tidy as rules,
};

/// Runs all steps.
pub(crate) fn run() -> bool {
    run_all(&[
        tidy(),
        Step::ours("programs", programs::provide),
        Step::cargo("format", "fmt --all --check"),
        Step::cargo("clippy", "clippy --workspace --all-targets -- -D warnings"),
        Step::cargo("test", "test --workspace"),
        model(),
        Step::cargo("docs", "doc --workspace --no-deps").with_flags("RUSTDOCFLAGS", "-D warnings"),
    ])
}

/// The rules that no compiler checks.
pub(crate) fn tidy() -> Step {
    Step::ours("tidy", rules::check)
}

/// The store under a model checker's schedules. Its locks are other types then, so it is built apart.
pub(crate) fn model() -> Step {
    let step = Step::cargo(
        "model",
        "test --package millpond-store --lib --target-dir target/shuttle model",
    );
    step.with_flags("RUSTFLAGS", "--cfg shuttle").with_tests()
}
