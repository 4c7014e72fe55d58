//! Crates from outside as cargo resolves them: licences, duplicate versions, the size of a program.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

use super::edges::is_ours;
use super::{Offence, licences};
use crate::root;

const LOCK: &str = "Cargo.lock";
const THIS: &str = "xtask/src/tidy/packages.rs";

/// The platform that the programs are made for. Crates for other platforms are never built.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// Crates that are there in several versions, each with the reason.
const DUPLICATES: [(&str, &str); 12] = [
    ("base64", "pem (rcgen) uses 0.23"),
    ("fallible-iterator", "tokio-postgres uses 0.2, rusqlite 0.3"),
    (
        "getrandom",
        "shuttle uses 0.2, bolero an older one than tempfile",
    ),
    ("nom", "x509-parser (rcgen, tests) uses 7, hdrhistogram 8"),
    ("rand", "shuttle uses 0.8, bolero 0.9 (both tests)"),
    ("rand_chacha", "as rand"),
    ("rand_core", "as rand"),
    ("signal-hook", "crossterm (ratatui) uses 0.3"),
    ("syn", "several macro crates still use 2"),
    (
        "toml_datetime",
        "proc-macro-crate (bolero, tests) uses an older toml",
    ),
    ("untrusted", "aws-lc-rs uses 0.7, rustls-webpki 0.9"),
    ("winnow", "as toml_datetime"),
];

/// A crate as `cargo metadata` names it.
struct Package {
    name: String,
    version: String,
    licence: String,
}

/// Licences that are not accepted, and duplicate versions without a reason.
pub(super) fn sources() -> Vec<Offence> {
    let format = ["--format-version", "1", "--filter-platform", PLATFORM];
    match cargo("metadata", &format).and_then(|json| packages(&json)) {
        Ok(packages) => check_sources(&packages, &DUPLICATES),
        Err(reason) => vec![offence(LOCK, reason)],
    }
}

/// Packages that one program may consist of.
struct Program {
    name: &'static str,
    /// Prefix of the packages of the other program.
    other: &'static str,
    /// Crates from outside: those of the project are its own rooms.
    most: Option<usize>,
}

const PROGRAMS: [Program; 2] = [
    Program {
        name: "millpond",
        other: "millrace",
        most: Some(166),
    },
    Program {
        name: "millrace",
        other: "millpond",
        most: None,
    },
];

/// Programs that hold too many crates, or crates of the other program.
pub(super) fn programs() -> Vec<Offence> {
    let mut offences = Vec::new();
    for program in &PROGRAMS {
        let options = ["-e", "normal", "--prefix", "none", "-p", program.name];
        match cargo("tree", &options) {
            Ok(tree) => offences.extend(check_program(program, &tree)),
            Err(reason) => offences.push(offence(LOCK, reason)),
        }
    }
    offences
}

/// A query of cargo: from what is on the machine, or with the network where crates are missing.
fn cargo(query: &str, options: &[&str]) -> Result<String, String> {
    let mut reason = String::new();
    for network in [&["--locked", "--offline"][..], &["--locked"]] {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo)
            .arg(query)
            .args(network)
            .args(options)
            .current_dir(root())
            .output()
            .map_err(|error| format!("cargo does not start: {error}"))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        reason = String::from_utf8_lossy(&output.stderr).into_owned();
    }
    Err(format!("cargo {query} --locked fails: {}", reason.trim()))
}

fn packages(json: &str) -> Result<Vec<Package>, String> {
    let metadata: Value =
        serde_json::from_str(json).map_err(|error| format!("cargo metadata: {error}"))?;
    let all = metadata["packages"].as_array();
    let all = all.ok_or("cargo metadata names no packages")?;
    let text = |package: &Value, key: &str| package[key].as_str().unwrap_or("").to_owned();
    let packages = all.iter().map(|package| Package {
        name: text(package, "name"),
        version: text(package, "version"),
        licence: text(package, "license"),
    });
    Ok(packages.collect())
}

fn check_sources(packages: &[Package], accepted: &[(&str, &str)]) -> Vec<Offence> {
    let mut offences = Vec::new();
    let mut versions = BTreeMap::<&str, BTreeSet<&str>>::new();
    for package in packages {
        let Package {
            name,
            version,
            licence,
        } = package;
        if !licences::is_accepted(licence) {
            let what = format!(
                "{name} {version} is under \"{licence}\"; use another crate, or accept the licence in xtask/src/tidy/licences.rs"
            );
            offences.push(offence(LOCK, what));
        }
        versions.entry(name).or_default().insert(version);
    }
    versions.retain(|_, versions| versions.len() > 1);
    for (name, reason) in accepted {
        if versions.remove(name).is_none() {
            let what = format!("{name} has one version now; remove its line from DUPLICATES");
            offences.push(offence(THIS, what));
        }
        if reason.is_empty() {
            let what = format!("{name} has no reason; say which crate needs the other version");
            offences.push(offence(THIS, what));
        }
    }
    for (name, versions) in versions {
        let versions: Vec<&str> = versions.into_iter().collect();
        let what = format!(
            "{name} is there as {}; use one version, or give DUPLICATES in {THIS} the reason",
            versions.join(" and ")
        );
        offences.push(offence(LOCK, what));
    }
    offences
}

/// `tree` has a crate on each line, as `name v1.2.3 (…)`; crates with several users come again.
fn check_program(program: &Program, tree: &str) -> Vec<Offence> {
    let Program { name, other, most } = *program;
    let crates: BTreeSet<(&str, &str)> = tree
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            Some((words.next()?, words.next()?))
        })
        .filter(|(krate, _)| *krate != name)
        .collect();
    let mut offences = Vec::new();
    let from_outside = crates.iter().filter(|(krate, _)| !is_ours(krate)).count();
    if let Some(most) = most.filter(|most| from_outside > *most) {
        let what = format!(
            "{name} needs {from_outside} crates from outside; leave some out until {most} are enough (cargo tree -e normal -p {name})"
        );
        offences.push(offence(LOCK, what));
    }
    for (krate, _) in crates {
        let is_other = krate.split('-').next() == Some(other);
        if is_ours(krate) && is_other {
            let what = format!("{name} holds {krate}; what both programs need belongs in base/");
            offences.push(offence(LOCK, what));
        }
    }
    offences
}

fn offence(file: &str, what: String) -> Offence {
    Offence {
        file: file.into(),
        line: 0,
        what,
    }
}

#[cfg(test)]
mod tests {
    use super::{Package, Program, check_program, check_sources};
    use crate::tidy::Offence;

    fn package(name: &str, version: &str, licence: &str) -> Package {
        let [name, version, licence] = [name, version, licence].map(str::to_owned);
        Package {
            name,
            version,
            licence,
        }
    }

    fn said(offences: &[Offence]) -> Vec<&str> {
        offences
            .iter()
            .map(|offence| offence.what.as_str())
            .collect()
    }

    #[test]
    fn licences_and_duplicates_are_found() {
        let packages = [
            package("a", "1.0.0", "MIT"),
            package("a", "2.0.0", "MIT"),
            package("b", "1.0.0", "GPL-3.0-only"),
        ];
        let offences = check_sources(&packages, &[("c", "")]);
        let said = said(&offences);
        assert_eq!(said.len(), 4, "{said:?}");
        assert!(said[0].starts_with("b 1.0.0 is under \"GPL-3.0-only\"; use another"));
        assert!(said[1].starts_with("c has one version now"));
        assert!(said[2].starts_with("c has no reason"));
        assert!(said[3].starts_with("a is there as 1.0.0 and 2.0.0; use one version"));
    }

    #[test]
    fn good_licences_and_accepted_duplicates_pass() {
        let packages = [
            package("a", "1.0.0", "MIT OR Apache-2.0"),
            package("a", "2.0.0", "MIT"),
            package("b", "1.0.0", "MIT"),
        ];
        assert!(check_sources(&packages, &[("a", "b needs 1")]).is_empty());
    }

    const PROGRAM: Program = Program {
        name: "millpond",
        other: "millrace",
        most: Some(2),
    };

    #[test]
    fn large_programs_and_crates_of_the_other_program_are_found() {
        let tree =
            "millpond v0.1.0 (a/b)\nmillrace-load v0.1.0 (a/c)\nx v1.0.0\nx v2.0.0 (*)\ny v1.0.0\n";
        let offences = check_program(&PROGRAM, tree);
        let said = said(&offences);
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(
            said[0].starts_with("millpond needs 3 crates from outside; leave some out until 2")
        );
        assert!(said[1].starts_with("millpond holds millrace-load; what both"));
    }

    #[test]
    fn small_programs_pass() {
        let tree = "millpond v0.1.0 (a/b)\nmillpond-db v0.1.0 (a/c)\nx v1.0.0\nx v1.0.0 (*)\n";
        assert!(check_program(&PROGRAM, tree).is_empty());
    }
}
