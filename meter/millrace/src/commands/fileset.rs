//! `millrace load fileset`: files to serve, and the plan that asks for them.

use std::path::PathBuf;

use clap::Args;
use millrace_client::{DIRECTORY_BYTES, FileSet};

use crate::failure::{CommandResult, Failure};
use crate::output::{Progress, say};

/// Write the SPECweb96 file set and the plan that asks for it
///
/// Each directory has 36 files of 102 bytes to 900 KiB, 5.1 MB together; 35, 50, 14 and 1 % of the
/// requests go to files of up to 1, 10, 100 and 1000 KB. The folder must be new, empty, or hold the
/// file set already: nothing else is written over.
#[derive(Args)]
pub(crate) struct Fileset {
    /// The folder to write, which the server then serves
    dir: PathBuf,
    /// Directories of 36 files, 5.1 MB each
    #[arg(long, value_name = "N", default_value_t = 10)]
    directories: u32,
}

impl Fileset {
    pub(crate) fn run(self) -> CommandResult {
        let set = FileSet {
            folder: self.dir,
            directories: self.directories,
        };
        let line = Progress::new();
        set.write(|done| line.show(format!("{done} of {} directories", set.directories)))
            .map_err(Failure::new)?;
        line.clear();
        let megabytes = u64::from(set.directories) * DIRECTORY_BYTES / 1_000_000;
        say(format!(
            "{} files in {}, {megabytes} MB. Serve the folder, then:\n  millrace load URL --plan {}",
            36 * set.directories,
            set.folder.display(),
            set.folder.join("plan.toml").display()
        ));
        Ok(())
    }
}
