//! A program that an experiment starts: on given cores, in its own group, and always ended.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use super::output::Output;
use super::spec_values::CommandLine;
use super::{process_tree, programs};
use base_clock::Nanos;
use millrace_client::limits;

/// How long a program may take to end before it is killed.
const PATIENCE: Duration = Duration::from_secs(5);
/// Kills its own process group when this process ends without running any more code, because then
/// its pipe is closed. The guard starts before the program, so the program is guarded from its
/// first moment.
const KILLER: &str = "read -r _; kill -s KILL 0";
/// Removes a folder in the same case; a second time if a process that is being killed still wrote
/// into it.
const REMOVER: &str = r#"read -r _; rm -rf -- "$1" || rm -rf -- "$1""#;

/// Program to start. All placeholders are filled.
#[derive(Clone, Debug)]
pub(super) struct Launch {
    pub(super) line: CommandLine,
    pub(super) cwd: PathBuf,
    pub(super) env: Vec<(String, String)>,
    /// Empty: all cores of this process.
    pub(super) cores: Vec<usize>,
}

/// A running program and all its processes, which are killed when it is dropped.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    guard: Child,
    status: Option<ExitStatus>,
    output: Arc<Output>,
}

impl Process {
    /// Starts a program; the error names the program and the cause.
    pub(super) fn start(launch: &Launch) -> Result<Self, String> {
        let mut command = command(launch)?;
        let shown = command.get_program().to_string_lossy().into_owned();
        let cannot = |error: io::Error| format!("{shown} does not start: {error}");
        let (reader, writer) = io::pipe().map_err(cannot)?;
        command
            .current_dir(&launch.cwd)
            .env("PATH", programs::search_path())
            .envs(launch.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(writer.try_clone().map_err(cannot)?)
            .stderr(writer);
        let mut guard = guard(KILLER, OsStr::new(""))
            .map_err(|error| format!("/bin/sh does not start: {error}"))?;
        command.process_group(guard.id() as i32);
        let child = spawn(&mut command, &launch.cores).map_err(|error| {
            let _ = guard.kill();
            let _ = guard.wait();
            cannot(error)
        })?;
        // `command` holds ends of the pipe, which would keep the pipe open.
        drop(command);
        let output = Arc::<Output>::default();
        let collector = Arc::clone(&output);
        let collected = std::thread::Builder::new()
            .name("lab-output".to_owned())
            .spawn(move || collector.collect(reader));
        let process = Self {
            child,
            guard,
            status: None,
            output,
        };
        // Without a thread the process is dropped, and so ended.
        collected.map(|_| process).map_err(cannot)
    }

    /// All its processes.
    pub(super) fn pids(&self) -> Vec<u32> {
        process_tree::family(self.guard.id(), self.child.id())
    }

    /// How it ended, if it has.
    pub(super) fn exited(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status
    }

    /// Waits for its end, at most for `longest`.
    pub(super) fn wait(&mut self, longest: Duration) -> Option<ExitStatus> {
        if self.exited().is_none() {
            wait_for(&[self.child.id()], base_clock::after(longest));
        }
        self.exited()
    }

    /// Its output.
    pub(super) fn output(&self) -> &Output {
        &self.output
    }

    /// Asks all its processes with `signal` to end, if one is given, waits, and kills what is left.
    pub(super) fn stop(&mut self, signal: Option<Signal>) {
        let family = self.pids();
        if let Some(signal) = signal {
            send(&family, signal);
        }
        if !wait_for(&family, base_clock::after(PATIENCE)) {
            send(&family, Signal::KILL);
        }
        self.end();
    }

    /// Kills what is left, and waits for it.
    fn end(&mut self) {
        let family = self.pids();
        send(&family, Signal::KILL);
        wait_for(&family, base_clock::after(PATIENCE));
        if self.status.is_none() {
            self.status = self.child.wait().ok();
        }
        // Errors mean that it has ended already.
        let _ = self.guard.kill();
        let _ = self.guard.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

fn command(launch: &Launch) -> Result<Command, String> {
    match &launch.line {
        CommandLine::Shell(line) => {
            let mut command = Command::new("/bin/sh");
            command.arg("-c").arg(line);
            Ok(command)
        }
        CommandLine::Program(words) => {
            let (name, arguments) = words.split_first().ok_or("the command is empty")?;
            let program = programs::find(name, &launch.cwd)
                .ok_or_else(|| format!("there is no program {name}"))?;
            let mut command = Command::new(program);
            command.args(arguments);
            Ok(command)
        }
    }
}

/// Starts `command` on `cores`. A child inherits the cores of its parent thread and passes them on
/// to its own children, so a thread that is bound to the cores starts it.
fn spawn(command: &mut Command, cores: &[usize]) -> io::Result<Child> {
    std::thread::scope(|scope| {
        let body = || {
            if !cores.is_empty() {
                limits::confine(cores).map_err(io::Error::other)?;
            }
            command.spawn()
        };
        std::thread::Builder::new()
            .spawn_scoped(scope, body)?
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("a thread panicked")))
    })
}

/// Runs `script` with `argument` when this process has ended.
fn guard(script: &str, argument: &OsStr) -> io::Result<Child> {
    Command::new("/bin/sh")
        .args(["-c", script, "sh"])
        .arg(argument)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Ctrl-C on the terminal must not reach it.
        .process_group(0)
        .spawn()
}

/// Removes a folder if this process is killed before it does so itself.
#[derive(Debug)]
pub(super) struct Remover(Child);

impl Remover {
    /// Watches over `folder` until it is dropped.
    pub(super) fn of(folder: &Path) -> io::Result<Self> {
        guard(REMOVER, folder.as_os_str()).map(Self)
    }
}

impl Drop for Remover {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn send(pids: &[u32], signal: Signal) {
    for pid in pids.iter().filter_map(|&pid| Pid::from_raw(pid as i32)) {
        // A process that has just ended needs no signal.
        let _ = kill_process(pid, signal);
    }
}

/// Waits until all have ended; `false` if some have not at `deadline`.
fn wait_for(pids: &[u32], deadline: Nanos) -> bool {
    pids.iter().all(|&pid| {
        let opened =
            Pid::from_raw(pid as i32).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        // A process that cannot be opened has ended.
        opened.is_none_or(|process| ended(&process, deadline))
    })
}

fn ended(pidfd: &OwnedFd, deadline: Nanos) -> bool {
    loop {
        let timeout = Timespec::try_from(base_clock::until(deadline)).ok();
        match poll(&mut [PollFd::new(pidfd, PollFlags::IN)], timeout.as_ref()) {
            Ok(ready) => return ready > 0,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::output::TAIL;

    fn start(script: &str) -> Process {
        Process::start(&Launch {
            line: CommandLine::Shell(script.to_owned()),
            cwd: std::env::temp_dir(),
            env: vec![("WHO".to_owned(), "me".to_owned())],
            cores: Vec::new(),
        })
        .unwrap()
    }

    fn wait_for_text(process: &Process, text: &str) {
        process.output().await_text(text);
        let deadline = base_clock::after(Duration::from_secs(30));
        while !process.output().has_awaited_text() {
            assert!(
                base_clock::now() < deadline,
                "{}",
                process.output().last_lines()
            );
            process.output().wait_for_output(Duration::from_millis(50));
        }
    }

    #[test]
    fn processes_of_a_program_end_with_it() {
        let mut process = start("trap '' TERM; sleep 1000 & sleep 1000 & echo up $WHO; wait; wait");
        wait_for_text(&process, "up me");
        let family = process.pids();
        assert_eq!(family.len(), 3, "{family:?}");
        // Nothing here may wait for `PATIENCE`: the children obey, and the kill ends the shell.
        send(&family, Signal::KILL);
        process.stop(Some(Signal::TERM));
        assert!(
            family
                .iter()
                .all(|&pid| !process_tree::family(0, pid).contains(&pid))
        );
        assert!(process.exited().is_some());
    }

    #[test]
    fn a_panic_or_an_early_return_kills_it_too() {
        let process = start("sleep 1000 & echo up; wait");
        wait_for_text(&process, "up");
        let family = process.pids();
        drop(process);
        assert!(!family.is_empty());
        assert!(
            family
                .iter()
                .all(|&pid| !process_tree::family(0, pid).contains(&pid))
        );
    }

    #[test]
    fn output_is_bounded_and_its_end_is_reported() {
        let mut process =
            start("i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done; exit 3");
        assert_eq!(
            process.wait(Duration::from_secs(60)).and_then(|s| s.code()),
            Some(3)
        );
        assert!(process.output().all_output().len() <= TAIL);
        let words = process.output().last_lines();
        assert!(
            words.ends_with("line 19999") && words.lines().count() == 13,
            "{words}"
        );
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = Process::start(&Launch {
            line: CommandLine::Program(vec!["no-such-program-here".to_owned()]),
            cwd: PathBuf::from("/"),
            env: Vec::new(),
            cores: Vec::new(),
        })
        .unwrap_err();
        assert_eq!(error, "there is no program no-such-program-here");
    }
}
