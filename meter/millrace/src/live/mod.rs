//! What a measuring command shows during a measurement: a full screen on a terminal, else a line
//! now and then.
//!
//! The thread that waits for the client threads draws it four times a second, when they report. No
//! thread that measures takes part. It goes to standard error; standard output is for the result.

mod draw;
mod options;
mod terminal;
mod view;

use std::io::{IsTerminal as _, stderr, stdout};

pub(crate) use options::LiveOptions;
pub(crate) use terminal::restore;
pub(crate) use view::{Steps, ViewPosition, doing, remaining};

use millrace_client::Progress as Run;

use crate::output::{Progress, note};
use terminal::Screen;
use view::View;

/// Reports between two lines where there is no terminal: ten seconds of four reports.
const SELDOM: u64 = 40;

/// The view of one command, from its beginning to its end. Its drop restores the terminal.
pub(crate) struct Live {
    view: View,
    how: How,
    reports: u64,
}

enum How {
    /// The whole terminal.
    Screen(Box<Screen>),
    /// One line that is overwritten.
    Line(Progress),
    /// A line now and then, into a file or a pipe.
    Seldom,
    /// Nothing.
    Quiet,
}

impl Live {
    /// `title` says what is measured; `shares_stdout` says that a result goes to standard output.
    pub(crate) fn start(options: &LiveOptions, title: String, shares_stdout: bool) -> Self {
        let how = if options.quiet {
            How::Quiet
        } else if !stderr().is_terminal() {
            How::Seldom
        } else if options.plain || (shares_stdout && stdout().is_terminal()) {
            How::Line(Progress::new())
        } else {
            // The terminal of a job in the background cannot become a screen, but shows a line.
            Screen::open().map_or_else(
                || How::Line(Progress::new()),
                |screen| How::Screen(Box::new(screen)),
            )
        };
        Self {
            view: View::new(title),
            how,
            reports: 0,
        }
    }

    /// Shows these steps as a table beside the run.
    pub(crate) fn steps(mut self, steps: Steps) -> Self {
        self.view.steps = steps;
        self
    }

    /// True if anything is shown. If not, the caller need not collect it.
    pub(crate) fn is_watching(&self) -> bool {
        !matches!(self.how, How::Quiet)
    }

    /// Shows the progress; `line` is its form without a screen. Called four times a second.
    pub(crate) fn show(&mut self, place: ViewPosition, run: &Run, line: impl FnOnce() -> String) {
        self.view.report(place, run);
        self.reports += 1;
        match &mut self.how {
            How::Screen(screen) => screen.draw(&self.view),
            How::Line(progress) => progress.show(line()),
            How::Seldom if self.reports.is_multiple_of(SELDOM) => note(line()),
            How::Seldom | How::Quiet => {}
        }
    }

    /// Shows a finished step: a row of the table, and its point in the graph. On a screen `tell`
    /// waits for [`Live::finish`].
    pub(crate) fn step(
        &mut self,
        row: Vec<String>,
        point: Option<(f64, f64)>,
        tell: impl FnOnce(),
    ) {
        self.view.steps.push(row, point);
        match &mut self.how {
            How::Screen(screen) => screen.draw(&self.view),
            How::Line(progress) => {
                progress.clear();
                tell();
            }
            How::Seldom | How::Quiet => tell(),
        }
    }

    /// Restores the terminal. True if there was a screen: its steps must be printed again.
    pub(crate) fn finish(self) -> bool {
        matches!(self.how, How::Screen(_))
    }
}
