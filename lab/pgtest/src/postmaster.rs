//! The server's processes: the postmaster, which is our child, and its own children.
//!
//! A process is held by a pidfd, so that a signal cannot meet another that has its number by now.

use std::fs;
use std::os::fd::OwnedFd;
use std::process::{Child, Command};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::Error;
use crate::error::system;

/// How long a fast shutdown may take before an immediate one, and that before SIGKILL.
const PATIENCE: Duration = Duration::from_secs(10);

/// A running postmaster.
#[derive(Debug)]
pub(crate) struct Postmaster {
    child: Child,
    handle: OwnedFd,
}

impl Postmaster {
    pub(crate) fn spawn(command: &mut Command) -> Result<Self, Error> {
        let mut child = command.spawn().map_err(system("start postgres"))?;
        match pidfd_open(Pid::from_child(&child), PidfdFlags::empty()) {
            Ok(handle) => Ok(Self { child, handle }),
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(system("hold the postgres process (Linux 5.3)")(error))
            }
        }
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&mut self) -> Option<String> {
        match self.child.try_wait() {
            Ok(Some(status)) => Some(status.to_string()),
            Ok(None) => None,
            Err(error) => Some(error.to_string()),
        }
    }

    /// Disconnects everybody and ends; harsher after ten seconds, and again after ten more.
    pub(crate) fn shut_down(&mut self) {
        self.thaw();
        for signal in [Signal::INT, Signal::QUIT, Signal::KILL] {
            let _ = pidfd_send_signal(&self.handle, signal);
            if gone_within(&self.handle, PATIENCE) {
                break;
            }
        }
        let _ = self.child.wait();
    }

    /// SIGKILL to all processes at once, as when the machine stops, and waits until none is left.
    pub(crate) fn kill_hard(&mut self) {
        // A stopped postmaster starts no further child while its children are counted.
        let _ = pidfd_send_signal(&self.handle, Signal::STOP);
        let children = self.children();
        for process in children.iter().chain([&self.handle]) {
            let _ = pidfd_send_signal(process, Signal::KILL);
        }
        let _ = self.child.wait();
        for process in &children {
            gone_within(process, PATIENCE);
        }
    }

    /// Freezes every process of the server: connections stay open and get no answer.
    pub(crate) fn freeze(&self) {
        self.signal_all(Signal::STOP);
    }

    /// Lets them go on.
    pub(crate) fn thaw(&self) {
        self.signal_all(Signal::CONT);
    }

    fn signal_all(&self, signal: Signal) {
        let _ = pidfd_send_signal(&self.handle, signal);
        for process in self.children() {
            let _ = pidfd_send_signal(process, signal);
        }
    }

    /// The postmaster's children, from `/proc/PID/task/PID/children`.
    fn children(&self) -> Vec<OwnedFd> {
        let pid = self.pid().as_raw_nonzero();
        let list =
            fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        list.split_ascii_whitespace()
            .filter_map(|word| Pid::from_raw(word.parse().ok()?))
            .filter_map(|pid| pidfd_open(pid, PidfdFlags::empty()).ok())
            .collect()
    }
}

/// Waits for the end of a process: its pidfd becomes readable then.
fn gone_within(process: &OwnedFd, time: Duration) -> bool {
    let mut waiting = [PollFd::new(process, PollFlags::IN)];
    let time = Timespec {
        tv_sec: time.as_secs().cast_signed(),
        tv_nsec: time.subsec_nanos().into(),
    };
    poll(&mut waiting, Some(&time)).is_ok_and(|ready| ready > 0)
}
