//! The programs `millpond` and `millrace`, in the folder of this one.

use std::env;
use std::path::{Path, PathBuf};

use crate::failure::{DemoFailure, DemoResult};

/// The paths of the two programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Programs {
    /// The server.
    pub(crate) millpond: PathBuf,
    /// The meter.
    pub(crate) millrace: PathBuf,
}

impl Programs {
    /// The programs beside this one: cargo builds all three into one folder.
    pub(crate) fn beside() -> DemoResult<Self> {
        let demo = env::current_exe()
            .map_err(|error| DemoFailure::new(format!("cannot find this program: {error}")))?;
        Self::in_folder(demo.parent().unwrap_or(Path::new("")))
    }

    fn in_folder(folder: &Path) -> DemoResult<Self> {
        let program = |name: &str| {
            let path = folder.join(name);
            match path.is_file() {
                true => Ok(path),
                false => Err(
                    DemoFailure::new(format!("there is no program {}", path.display()))
                        .hint("`cargo demo` builds it"),
                ),
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_the_programs_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Programs::in_folder(folder.path()).is_err());
    }
}
