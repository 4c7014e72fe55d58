//! What Cargo says about a workspace: the packages and which of them each is built on.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use super::{ImportError, Result};

/// The output of `cargo metadata --format-version 1`, as far as it is used.
#[derive(Debug, Deserialize)]
pub(super) struct Metadata {
    pub(super) packages: Vec<Package>,
    resolve: Option<Resolve>,
}

/// One version of one component.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Package {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) version: String,
    /// Source of the component; nothing for members of the workspace.
    pub(super) source: Option<String>,
    pub(super) description: Option<String>,
    pub(super) license: Option<String>,
    pub(super) repository: Option<String>,
    pub(super) readme: Option<PathBuf>,
    pub(super) manifest_path: PathBuf,
    #[serde(default)]
    pub(super) authors: Vec<String>,
    #[serde(default)]
    pub(super) categories: Vec<String>,
    #[serde(default)]
    pub(super) keywords: Vec<String>,
    #[serde(default)]
    targets: Vec<PackageTarget>,
}

impl Package {
    /// The folder of its sources.
    pub(super) fn folder(&self) -> &Path {
        self.manifest_path.parent().unwrap_or(Path::new("."))
    }

    /// The root file of its library.
    pub(super) fn library(&self) -> Option<&Path> {
        let library = |kind: &String| kind == "lib" || kind == "proc-macro" || kind == "rlib";
        self.targets
            .iter()
            .find(|target| target.kind.iter().any(library))
            .map(|target| target.src_path.as_path())
    }
}

#[derive(Debug, Clone, Deserialize)]
struct PackageTarget {
    kind: Vec<String>,
    src_path: PathBuf,
}

#[derive(Debug, Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Debug, Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<DependencyKind>,
}

#[derive(Debug, Deserialize)]
struct DependencyKind {
    kind: Option<String>,
}

impl Metadata {
    /// Pairs of package ids, the first built on the second; tests' needs are not among them.
    pub(super) fn needs(&self) -> HashSet<(&str, &str)> {
        let built = |dependency: &&Dependency| {
            dependency
                .dep_kinds
                .iter()
                .any(|kind| kind.kind.as_deref() != Some("dev"))
        };
        let nodes = self.resolve.iter().flat_map(|resolve| &resolve.nodes);
        nodes
            .flat_map(|node| {
                node.deps
                    .iter()
                    .filter(built)
                    .map(|dep| (node.id.as_str(), dep.pkg.as_str()))
            })
            .collect()
    }
}

/// Runs Cargo, first for this platform and without the network, because a build has fetched no more
/// than that; if that fails, with the network.
pub(super) fn metadata(manifest: &Path) -> Result<Metadata> {
    let host = host();
    let mut attempt: Vec<&str> = vec!["--offline"];
    attempt.extend(
        host.iter()
            .flat_map(|host| ["--filter-platform", host.as_str()]),
    );
    let output = run(manifest, &attempt).or_else(|_| run(manifest, &attempt[1..]))?;
    serde_json::from_slice(&output)
        .map_err(|error| ImportError::Cargo(format!("its answer cannot be read: {error}")))
}

fn run(manifest: &Path, options: &[&str]) -> Result<Vec<u8>> {
    let mut command = Command::new(program("CARGO", "cargo"));
    command
        .args([
            "metadata",
            "--format-version",
            "1",
            "--locked",
            "--manifest-path",
        ])
        .arg(manifest)
        .args(options);
    let output = command
        .output()
        .map_err(|error| ImportError::Cargo(format!("cannot be run: {error}")))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    Err(ImportError::Cargo(
        String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    ))
}

fn program(variable: &str, name: &str) -> OsString {
    std::env::var_os(variable).unwrap_or_else(|| name.into())
}

/// The platform that the compiler builds for by default.
fn host() -> Option<String> {
    let output = Command::new(program("RUSTC", "rustc"))
        .arg("-vV")
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines()
        .find_map(|line| line.strip_prefix("host: "))
        .map(|host| host.trim().to_owned())
}
