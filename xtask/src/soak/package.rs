//! `cargo xtask soak package`: the life of the Debian package in a bare system.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    package::{self, FOLDER},
    root,
    step::{Step, run_all},
};

/// Programs that compile in less time than those of a release.
const PROFILE: &str = "demo";

/// Lines for the shell of the bare system; each must succeed.
const LIFE: &[&str] = &[
    "dpkg -i /old.deb",
    "millpond --version && millrace --version && zcat /usr/share/man/man1/millpond-serve.1.gz | grep -q domain",
    "bash -n /usr/share/bash-completion/completions/millpond.bash",
    "id millpond && test $(stat -c %a:%U /etc/millpond) = 700:root",
    "test $(stat -c %a:%U /var/lib/millpond) = 750:millpond",
    "millpond new /var/lib/millpond/blog && chown -R millpond: /var/lib/millpond/blog",
    "runuser -u millpond -- millpond check /var/lib/millpond/blog",
    "dpkg -i /new.deb && dpkg -s millpond | grep -q '^Version: 9'",
    "dpkg -r millpond && ! test -e /usr/bin/millpond && test -d /var/lib/millpond/blog/pages",
    "dpkg -P millpond && id millpond && test -d /var/lib/millpond/blog/pages",
    "dpkg -i /new.deb && rm -r /var/lib/millpond/blog && dpkg -P millpond && ! id millpond",
    "test -z \"$(find / -xdev -name '*millpond*' -not -path '/proc/*')\"",
];

/// Makes the package and lives through it.
pub(crate) fn run() -> bool {
    package::run(&["--profile", PROFILE]).is_ok_and(|good| good)
        && run_all(&[Step::ours("life", live)])
}

fn live() -> Result<(), String> {
    let system = root().join("target/programs/bare-debian");
    if !system.join("etc/debian_version").exists() {
        println!("debootstrap, which needs root and a mirror of Debian");
        shell(
            "debootstrap",
            &["--variant=minbase", "stable", &system.to_string_lossy()],
        )?;
    }
    let package = made_package()?;
    let (old, new) = (system.join("old.deb"), system.join("new.deb"));
    fs::copy(&package, &old).map_err(|error| format!("{}: {error}", package.display()))?;
    raise_version(&old, &new)?;
    for line in LIFE {
        shell("chroot", &[&system.to_string_lossy(), "sh", "-c", line])?;
    }
    Ok(())
}

fn made_package() -> Result<PathBuf, String> {
    let files = fs::read_dir(root().join(FOLDER))
        .into_iter()
        .flatten()
        .flatten();
    let mut packages = files.map(|file| file.path());
    let found = packages.find(|path| path.extension().is_some_and(|ending| ending == "deb"));
    found.ok_or_else(|| format!("there is no package in {FOLDER}"))
}

/// Packs the same files again with a higher version.
fn raise_version(old: &Path, new: &Path) -> Result<(), String> {
    let folder = root().join(FOLDER).join("raised");
    let [old, new, folder] = [old, new, &folder].map(|path| path.to_string_lossy());
    shell("dpkg-deb", &["-R", &old, &folder])?;
    let control = format!("{folder}/DEBIAN/control");
    shell("sed", &["-i", "s/^Version: .*/Version: 9-1/", &control])?;
    shell(
        "dpkg-deb",
        &["-Zgzip", "--root-owner-group", "-b", &folder, &new],
    )
}

fn shell(program: &str, arguments: &[&str]) -> Result<(), String> {
    let line = || format!("{program} {}", arguments.join(" "));
    match Command::new(program).args(arguments).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{status}:\n  {}", line())),
        Err(error) => Err(format!("{error}:\n  {}", line())),
    }
}
