//! Takes the terminal as a full screen, and restores it.
//!
//! Ctrl-C stays a signal, which the command waits for. Echo, line editing and Ctrl-Z are off: a
//! client that is stopped would measure its own sleep.

use std::io::{Stderr, stderr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once, PoisonError};

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp, tcsetattr,
};

use super::draw::draw;
use super::view::View;

/// True if the screen is taken. The first caller that clears this restores the terminal.
static OURS: AtomicBool = AtomicBool::new(false);
/// The terminal's settings before.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);
/// Sets the panic hook once in a process.
static HOOK: Once = Once::new();

/// The whole terminal. Its drop restores the terminal.
pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<Stderr>>,
}

impl Screen {
    /// Takes the terminal of standard error. None: there is none, or it cannot draw.
    pub(super) fn open() -> Option<Self> {
        if std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb") {
            return None;
        }
        // A job in the background would be stopped for touching the settings.
        if tcgetpgrp(stderr()).ok()? != rustix::process::getpgrp() {
            return None;
        }
        let before = tcgetattr(stderr()).ok()?;
        let mut quiet = before.clone();
        quiet
            .local_modes
            .remove(LocalModes::ECHO | LocalModes::ICANON);
        quiet.special_codes[SpecialCodeIndex::VSUSP] = 0;
        HOOK.call_once(|| {
            let usual = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                restore();
                usual(panic);
            }));
        });
        *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(before);
        OURS.store(true, Ordering::SeqCst);
        let opened = tcsetattr(stderr(), OptionalActions::Now, &quiet).is_ok()
            && execute!(stderr(), EnterAlternateScreen, Hide).is_ok();
        let terminal = Terminal::new(CrosstermBackend::new(stderr())).ok();
        match terminal {
            Some(terminal) if opened => Some(Self { terminal }),
            _ => {
                restore();
                None
            }
        }
    }

    /// Draws everything anew; only differences go to the terminal. Errors are ignored: no
    /// measurement depends on the screen.
    pub(super) fn draw(&mut self, view: &View) {
        if OURS.load(Ordering::SeqCst) {
            let _ = self.terminal.draw(|frame| draw(frame, view));
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Restores the terminal, unless that is done: at the end, in a panic, and before an early exit.
pub(crate) fn restore() {
    if !OURS.swap(false, Ordering::SeqCst) {
        return;
    }
    let _ = execute!(stderr(), LeaveAlternateScreen, Show);
    let before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(before) = before {
        // Drops what was typed during the measurement.
        let _ = tcsetattr(stderr(), OptionalActions::Flush, &before);
    }
}
