//! `millpond new`: a small site to start from.

use std::path::PathBuf;

use clap::Args;

use crate::failure::{Failure, Outcome};
use crate::new_site;
use crate::output::say;

/// Make a small site to start from
#[derive(Args)]
pub(crate) struct New {
    /// The folder to make; it may exist if it is empty
    dir: PathBuf,
}

impl New {
    pub(crate) fn run(self) -> Outcome {
        let dir = self.dir.display();
        let files = new_site::create(&self.dir).map_err(Failure::new)?;
        say(format_args!(
            "{dir}: a site of {} files. Serve it:\n\n    cd {dir} && millpond serve\n",
            files.len()
        ));
        Ok(())
    }
}
