//! How much a measuring command shows while it measures.

use clap::Args;

use crate::output::Progress;

/// Choice of the display during a measurement.
#[derive(Args, Clone, Copy)]
pub(crate) struct LiveOptions {
    /// Show progress as one line instead of the whole terminal
    #[arg(long)]
    pub(super) plain: bool,
    /// Show no progress, only the result
    #[arg(long, conflicts_with = "plain")]
    pub(super) quiet: bool,
}

impl LiveOptions {
    /// True if only the result is shown.
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// The progress line of a part without a screen. `--plain` does not change it, `--quiet` hides
    /// it.
    pub(crate) fn line(&self) -> Progress {
        if self.quiet {
            Progress::silent()
        } else {
            Progress::new()
        }
    }
}
