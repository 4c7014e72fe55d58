//! Programs that an experiment needs, and their packages.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::experiment::Experiment;

/// Folders of servers in Debian, which are not in a user's search path.
const SYSTEM: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// A program that is not installed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Missing {
    /// Its name.
    pub program: String,
    /// The Debian package that has it.
    pub package: String,
    /// The servers that need it; empty if the whole experiment needs it.
    pub servers: Vec<String>,
}

/// A program and its Debian package: `PROGRAM`, or `PROGRAM:PACKAGE` if the names differ.
pub(super) fn need(text: &str) -> (&str, &str) {
    text.split_once(':').unwrap_or((text, text))
}

/// The search path with the folders of servers at its end.
pub(super) fn search_path() -> String {
    let own = std::env::var("PATH").unwrap_or_default();
    let mut folders: Vec<&str> = own.split(':').filter(|folder| !folder.is_empty()).collect();
    for folder in SYSTEM {
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    folders.join(":")
}

/// The path of `program`. A name with a slash is a path relative to `from`.
pub(super) fn find(program: &str, from: &Path) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(from.join(program)).filter(|path| is_program(path));
    }
    search_path()
        .split(':')
        .map(|folder| Path::new(folder).join(program))
        .find(|path| is_program(path))
}

/// True if a need is installed: a program, or, with a slash in its name, any file, such as a
/// module.
fn is_here(needed: &str, from: &Path) -> bool {
    find(needed, from).is_some() || (needed.contains('/') && from.join(needed).is_file())
}

fn is_program(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// Programs that `experiment` needs and that are not installed.
pub(super) fn missing(experiment: &Experiment) -> Vec<Missing> {
    let mut needed = needed(experiment);
    needed.retain(|one| !is_here(&one.program, &experiment.here));
    needed
}

/// Programs that `experiment` needs, installed or not.
pub(super) fn needed(experiment: &Experiment) -> Vec<Missing> {
    let mut found: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    let mut look = |text: &str, server: Option<&str>| {
        let (program, package) = need(text);
        let servers = found.entry((program.to_owned(), package.to_owned()));
        servers
            .or_default()
            .extend(server.into_iter().map(str::to_owned));
    };
    for need in experiment.prepare.iter().flat_map(|step| &step.needs) {
        look(need.get_ref(), None);
    }
    if let Some(checker) = &experiment.cross_check {
        look(checker.get_ref().need(), None);
    }
    for server in &experiment.servers {
        let server = server.get_ref();
        for need in &server.needs {
            look(need.get_ref(), Some(server.name.get_ref()));
        }
    }
    found
        .into_iter()
        .map(|((program, package), servers)| Missing {
            program,
            package,
            servers,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::spec::OtherProgram;
    use super::*;

    #[test]
    fn the_other_client_is_needed_too() {
        let missing = |checker: OtherProgram| {
            let (program, package) = need(checker.need());
            assert_eq!(program, checker.name());
            package
        };
        assert_eq!(missing(OtherProgram::Wrk), "wrk");
        assert_eq!(missing(OtherProgram::H2load), "nghttp2-client");
    }

    #[test]
    fn programs_are_found_where_a_shell_would_and_beside() {
        assert!(find("sh", Path::new("/")).is_some());
        assert!(find("no-such-program-here", Path::new("/")).is_none());
        assert!(find("bin/sh", Path::new("/")).is_some());
        assert!(find("./etc", Path::new("/")).is_none(), "a folder");
        assert!(is_here("etc/passwd", Path::new("/")), "a file is enough");
        assert!(!is_here("hosts", Path::new("/etc")), "but not as a program");
        assert!(!is_here("./etc", Path::new("/")), "nor is a folder");
        assert!(search_path().contains("/usr/sbin"));
        assert_eq!(need("varnishd:varnish"), ("varnishd", "varnish"));
        assert_eq!(need("nginx"), ("nginx", "nginx"));
    }
}
