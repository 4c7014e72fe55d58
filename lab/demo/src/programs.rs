//! The programs `millpond` and `millrace`: built by cargo, or taken from a folder.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use crate::failure::{DemoResult, Failure};

/// The profile of the root manifest that builds the programs, and this one by `cargo demo`. One
/// profile lets cargo compile the crates that the three programs share once.
const PROFILE: &str = "demo";

/// The paths of the two programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Programs {
    /// The server.
    pub(crate) millpond: PathBuf,
    /// The meter.
    pub(crate) millrace: PathBuf,
}

impl Programs {
    /// The programs in `folder`.
    pub(crate) fn in_folder(folder: &Path) -> DemoResult<Self> {
        // A child's working folder may differ from this program's.
        let folder = folder
            .canonicalize()
            .map_err(|error| Failure::new(format!("{}: {error}", folder.display())))?;
        let program = |name: &str| {
            let path = folder.join(name);
            match path.is_file() {
                true => Ok(path),
                false => Err(
                    Failure::new(format!("there is no program {}", path.display()))
                        .hint("build it, or leave --programs out: the demo then builds it"),
                ),
            }
        };
        Ok(Self {
            millpond: program("millpond")?,
            millrace: program("millrace")?,
        })
    }

    /// Builds both programs. Cargo's progress and errors go to standard error.
    pub(crate) fn build() -> DemoResult<Self> {
        let output = Command::new(env!("CARGO"))
            .args(["build", "--profile", PROFILE])
            .args(["--package", "millpond", "--package", "millrace"])
            .args(["--message-format", "json-render-diagnostics"])
            .arg("--manifest-path")
            .arg(workspace().join("Cargo.toml"))
            .stderr(Stdio::inherit())
            .output()
            .map_err(|error| Failure::new(format!("cargo cannot be run: {error}")))?;
        if !output.status.success() {
            return Err(Failure::new("cargo could not build millpond and millrace"));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let program = |name: &str| {
            executable(&text, name)
                .ok_or_else(|| Failure::new(format!("cargo did not say where it built {name}")))
        };
        Ok(Self {
            millpond: program("millpond")?,
            millrace: program("millrace")?,
        })
    }
}

/// The folder of the workspace that this program belongs to.
pub(crate) fn workspace() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().unwrap_or(root)
}

/// A message of cargo, as far as it is read.
#[derive(Deserialize)]
struct CargoMessage {
    target: Option<CargoTarget>,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct CargoTarget {
    name: String,
}

/// The executable named `name` in cargo's messages, one JSON object on each line.
fn executable(messages: &str, name: &str) -> Option<PathBuf> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<CargoMessage>(line).ok())
        .filter(|message| {
            message
                .target
                .as_ref()
                .is_some_and(|target| target.name == name)
        })
        .find_map(|message| message.executable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_executable_is_found_in_cargos_messages() {
        let messages = r#"{"reason":"compiler-artifact","target":{"name":"millpond"},"executable":null}
{"reason":"compiler-artifact","target":{"name":"millrace"},"executable":"/t/demo/millrace"}
{"reason":"compiler-artifact","target":{"name":"millpond"},"executable":"/t/demo/millpond"}
{"reason":"build-finished","success":true}"#;
        let found = executable(messages, "millpond");
        assert_eq!(found.as_deref(), Some(Path::new("/t/demo/millpond")));
        assert_eq!(executable(messages, "other"), None);
    }

    #[test]
    fn a_folder_without_the_programs_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Programs::in_folder(folder.path()).is_err());
    }
}
