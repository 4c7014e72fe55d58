//! `cargo xtask package`: programs, man pages, completions, a unit, and a Debian package of them.

use std::{env, fs, path::Path, process::Command};

use crate::{
    root,
    step::{Step, run_all},
};

/// The profile that is built unless another is asked for.
const PROFILE: &str = "release";
/// The folder of what is made, in the workspace.
pub(crate) const FOLDER: &str = "target/package";

/// Makes the package from `--profile NAME`, or from the release profile.
pub(crate) fn run(options: &[&str]) -> Result<bool, String> {
    let profile = match options {
        [] => PROFILE,
        ["--profile", profile] => *profile,
        _ => return Err("cargo xtask package [--profile NAME]".to_owned()),
    };
    let folder = root().join(FOLDER);
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|error| format!("{FOLDER}: {error}"))?;
    }
    let programs = "--package millpond --package millrace --bins";
    let build = format!("build --locked --profile {profile} {programs}");
    let manuals = format!("test --locked {programs} manuals_have_every_command_and_flag");
    let manuals = Step::cargo("manuals", &manuals)
        .with("MILLPOND_MANUALS", folder.to_string_lossy())
        .with_tests();
    let deb = format!(
        "deb --locked --package millpond --no-build --quiet --profile {profile} --output {FOLDER}"
    );
    Ok(run_all(&[
        Step::cargo("build", &build),
        manuals,
        Step::ours("unit", write_unit),
        Step::ours("cargo-deb", provide_cargo_deb),
        Step::cargo("deb", &deb),
    ]))
}

/// Writes the template unit with the lines that `millpond unit` writes as well.
fn write_unit() -> Result<(), String> {
    let read = |name: &str| {
        let path = root().join("packaging").join(name);
        fs::read_to_string(path).map_err(|error| format!("packaging/{name}: {error}"))
    };
    let unit = read("deb/millpond@.service")?;
    let unit = unit.replace(
        "\n[Install]",
        &format!("{}\n[Install]", read("hardened.conf")?),
    );
    let path = Path::new(FOLDER).join("millpond@.service");
    fs::write(root().join(&path), unit).map_err(|error| format!("{}: {error}", path.display()))
}

/// Sees to it that there is `cargo deb`.
fn provide_cargo_deb() -> Result<(), String> {
    let cargo = || Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let is_there = |output: std::process::Output| output.status.success();
    if cargo()
        .args(["deb", "--version"])
        .output()
        .is_ok_and(is_there)
    {
        return Ok(());
    }
    let line = ["install", "cargo-deb", "--locked"];
    match cargo().args(line).status() {
        Ok(status) if status.success() => Ok(()),
        _ => Err(format!("this did not work:\n  cargo {}", line.join(" "))),
    }
}
