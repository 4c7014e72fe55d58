//! What a measuring command shows while it measures: a screen of its own on a terminal, else a line now and then.
//!
//! It is drawn by the thread that waits for the client threads, when they report, which is four times a second: no thread that
//! measures takes part. Standard error carries it, so that standard output stays a result.

mod draw;
mod options;
mod terminal;
mod view;

use std::io::{IsTerminal as _, stderr, stdout};

pub(crate) use options::LiveOptions;
pub(crate) use terminal::restore;
pub(crate) use view::{Place, Steps, doing, remaining};

use millrace_client::Progress as Run;

use crate::output::{Progress, note};
use terminal::Screen;
use view::View;

/// Reports between two lines where there is no terminal: ten seconds of four reports.
const SELDOM: u64 = 40;

/// The view of one command, from its beginning to its end. Dropped, it leaves the terminal as it was.
pub(crate) struct Live {
    view: View,
    how: How,
    reports: u64,
}

enum How {
    /// The whole terminal.
    Screen(Box<Screen>),
    /// One line that is written over.
    Line(Progress),
    /// A line now and then, into a file or a pipe.
    Seldom,
    /// Nothing.
    Quiet,
}

impl Live {
    /// `title` says what is measured; `shares_stdout` that a result will go to standard output as it is.
    pub(crate) fn start(options: &LiveOptions, title: String, shares_stdout: bool) -> Self {
        let how = if options.quiet {
            How::Quiet
        } else if !stderr().is_terminal() {
            How::Seldom
        } else if options.plain || (shares_stdout && stdout().is_terminal()) {
            How::Line(Progress::new())
        } else {
            // A terminal that cannot be had, such as that of a job in the background, still has a line.
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

    /// The steps that will be shown as a table beside the run.
    pub(crate) fn steps(mut self, steps: Steps) -> Self {
        self.view.steps = steps;
        self
    }

    /// Whether anything will be shown: nobody needs to collect it otherwise.
    pub(crate) fn is_watching(&self) -> bool {
        !matches!(self.how, How::Quiet)
    }

    /// The state of things, in a line for where there is no screen. Called four times a second.
    pub(crate) fn show(&mut self, place: Place, run: &Run, line: impl FnOnce() -> String) {
        self.view.report(place, run);
        self.reports += 1;
        match &mut self.how {
            How::Screen(screen) => screen.draw(&self.view),
            How::Line(progress) => progress.show(line()),
            How::Seldom if self.reports.is_multiple_of(SELDOM) => note(line()),
            How::Seldom | How::Quiet => {}
        }
    }

    /// A step is done: a row of the table, and its point in the graph. On a screen `tell` waits for [`Live::finish`].
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

    /// Leaves the terminal as it was; says whether there was a screen, whose steps are to be told again.
    pub(crate) fn finish(self) -> bool {
        matches!(self.how, How::Screen(_))
    }
}
