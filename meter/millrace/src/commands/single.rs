//! Flags of `millrace load` that no ladder, search or comparison can have. They are known there
//! only to say why.

use clap::Args;

use crate::failure::{CommandResult, Failure};

#[derive(Args)]
pub(crate) struct SingleRunFlags {
    /// Let the statistics decide when the run is warm and long enough
    #[arg(long, hide = true)]
    auto: bool,
    /// Send the log's own GETs and HEADs at its own times
    #[arg(long, hide = true)]
    replay: bool,
}

impl SingleRunFlags {
    /// Refuses them. `lengths` are the flags that set the length of each run of the command.
    pub(crate) fn refuse(&self, lengths: &str) -> CommandResult {
        let message = if self.auto {
            "--auto lets each run have another length, and runs that are held against each other have the same"
        } else if self.replay {
            "--replay has one rate, its own, and this command sets the rate of each run"
        } else {
            return Ok(());
        };
        let hint = if self.auto {
            format!("say with {lengths} how long each run is, or use --auto in millrace load")
        } else {
            "leave out --replay to ask as the log's visitors did, or use it in millrace load"
                .to_owned()
        };
        Err(Failure::new(message).hint(hint))
    }
}
