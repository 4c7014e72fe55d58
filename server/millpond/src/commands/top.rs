//! `millpond top`: what a running server does, in a terminal.

mod figures;
mod screen;

use std::io::{self, IsTerminal as _};
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use base_clock::Boottime;
use clap::Args;

use super::admin_option::{AdminOption, get};
use crate::failure::CommandResult;
use crate::output::write_out;
use figures::MetricValues;
use screen::Screen;

/// Watch a running server: requests, hits, pages made and times, by route
#[derive(Args)]
pub(crate) struct TopArgs {
    #[command(flatten)]
    admin: AdminOption,
    /// Seconds between two looks
    #[arg(long, default_value_t = 2, value_name = "SECONDS", value_parser = clap::value_parser!(u16).range(1..=3600))]
    interval: u16,
    /// Routes that are shown
    #[arg(long, default_value_t = 15, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    routes: u16,
    /// Look once, show what has happened in the interval, and end; the default where the output is
    /// no terminal
    #[arg(long)]
    once: bool,
}

/// Clears the terminal and leaves the cursor in its first place.
const CLEAR: &str = "\x1b[H\x1b[2J";

impl TopArgs {
    pub(crate) fn run(self) -> CommandResult {
        let address = self.admin.address()?;
        let is_once = self.once || !io::stdout().is_terminal();
        let mut before = look(address)?;
        loop {
            thread::sleep(Duration::from_secs(self.interval.into()));
            let now = look(address)?;
            let screen = Screen {
                address,
                seconds: now.at.since(before.at).as_secs_f64(),
                routes: self.routes.into(),
            };
            let text = screen.text(&before.values, &now.values);
            if is_once {
                return write_out(text.trim_end());
            }
            write_out(&format!("{CLEAR}{text}\nCtrl-C ends"))?;
            before = now;
        }
    }
}

/// The metrics at a moment.
struct Look {
    at: Boottime,
    values: MetricValues,
}

fn look(address: SocketAddr) -> CommandResult<Look> {
    let text = get(address, "/metrics", "")?;
    Ok(Look {
        at: Boottime::now(),
        values: MetricValues::read(&text),
    })
}
