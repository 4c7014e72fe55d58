//! `cargo demo`: one build of the demo with the two programs that it starts, then the demo itself.

use std::{os::unix::process::CommandExt as _, process::Command};

use crate::{root, step::Step};

/// Builds the three programs by one command, so that cargo compiles what they share once. Then this
/// process becomes the demo: the function returns only if that fails.
pub(crate) fn run(options: &[&str]) -> Result<(), String> {
    let packages = "--package lab-demo --package millpond --package millrace";
    Step::cargo("demo", &format!("build --locked --profile demo {packages}")).run()?;
    let program = root().join("target/demo/lab-demo");
    let error = Command::new(&program).args(options).exec();
    Err(format!("{}: {error}", program.display()))
}
