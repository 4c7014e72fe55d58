//! The start of the process that takes the place of this one, with its sockets.
//!
//! A process in a sandbox can start no program, and what it started would be in the same sandbox.
//! So a small process is forked before the sandbox begins. It holds the listening sockets, waits
//! for one byte, and then starts the program that is on disk by then, with the arguments of this
//! process. The new process gets the sockets as [`Inherited`](crate::Inherited), and answers when
//! it serves. The small process has the user of the server and no more rights, does nothing but
//! this, and ends with the server. It tells the new process whether the server is in a sandbox,
//! which code in there must not turn off by changing the settings.

#![allow(
    unsafe_code,
    reason = "fork, and descriptors at the numbers that the protocol wants"
)]

use std::env;
use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::mem::ManuallyDrop;
use std::net::Shutdown;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{self, Path, PathBuf};
use std::process::{Command, exit};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, kill_process, pidfd_open, test_kill_process, waitpid,
};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR2};

use crate::inherited::{ANSWER, CONFINED, FIRST};

/// The order to start a successor.
const START: [u8; 1] = *b"!";
/// How long a process must serve before it may take the place of this one.
const PROBATION: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};

/// Why no process can be started without the small one.
const MISSING: &str = "the process that starts it has ended; a restart mends that";

/// The small process, which can start a successor.
#[derive(Debug)]
pub struct Successor {
    orders: UnixStream,
    starter: Option<Pid>,
    answers: Option<JoinHandle<()>>,
}

impl Successor {
    /// Forks the small process, which is to hand `sockets` over by these names; the process that it
    /// starts keeps the sandbox if this one `is_confined`. To be called while this process has one
    /// thread.
    ///
    /// # Errors
    /// There is no memory for a process, or no descriptor.
    pub fn prepare(sockets: &[(&str, BorrowedFd<'_>)], is_confined: bool) -> io::Result<Self> {
        let program = program()?;
        let (orders, of_starter) = UnixStream::pair()?;
        // SAFETY: there is one thread, so no lock is held by another that the child would lack.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                drop(orders);
                // Its number may be one of those that are taken.
                let of_starter = ManuallyDrop::new(of_starter);
                match arrange(sockets, &of_starter) {
                    Ok(held) => attend(&program, is_confined, sockets, &held),
                    Err(_) => exit(1),
                }
            }
            starter => Ok(Self {
                orders,
                starter: Pid::from_raw(starter),
                answers: None,
            }),
        }
    }

    /// Calls `on_answer` for each answer: the number of the process that serves now, and has not
    /// ended right after its start, or why there is none.
    ///
    /// # Errors
    /// There is no thread for it.
    pub fn listen(
        &mut self,
        on_answer: impl Fn(Result<u32, String>) + Send + 'static,
    ) -> io::Result<()> {
        let answers = BufReader::new(self.orders.try_clone()?);
        let work = move || {
            for line in answers.lines().map_while(Result::ok) {
                match line.strip_prefix("ready ").map(str::parse) {
                    Some(Ok(process)) if lasts(process) => on_answer(Ok(process.cast_unsigned())),
                    // The small process says how it ended.
                    Some(Ok(_)) => {}
                    _ => on_answer(Err(line)),
                }
            }
            on_answer(Err(MISSING.to_owned()));
        };
        let thread = thread::Builder::new().name("successor".to_owned());
        self.answers = Some(thread.spawn(work)?);
        Ok(())
    }

    /// Starts the successor.
    ///
    /// # Errors
    /// The small process is gone.
    pub fn start(&mut self) -> io::Result<()> {
        self.orders.write_all(&START)
    }

    /// Lets the successor that serves go on without this process. One that is still starting when
    /// this process ends is ended too.
    pub fn release(&mut self) {
        // If the small process is gone, nothing ends the successor.
        let _ = self.orders.write_all(b".");
    }
}

impl Drop for Successor {
    /// Ends the small process, so that nothing but this process and a successor holds the sockets.
    fn drop(&mut self) {
        let _ = self.orders.shutdown(Shutdown::Both);
        if let Some(starter) = self.starter {
            while matches!(
                waitpid(Some(starter), WaitOptions::empty()),
                Err(Errno::INTR)
            ) {}
        }
        if let Some(answers) = self.answers.take() {
            let _ = answers.join();
        }
    }
}

/// Returns the path by which this process was started, links in it included: they may lead to
/// another file by the time of an upgrade. Where it cannot be told, returns what they led to.
fn program() -> io::Result<PathBuf> {
    let found = env::current_exe()?;
    let is_this = |path: &PathBuf| {
        let files = [path.as_path(), Path::new("/proc/self/exe")].map(fs::metadata);
        matches!(files, [Ok(a), Ok(b)] if (a.dev(), a.ino()) == (b.dev(), b.ino()))
    };
    let name = env::args_os().next().unwrap_or_default();
    let folders = match name.to_string_lossy().contains('/') {
        true => vec![PathBuf::new()],
        false => env::split_paths(&env::var_os("PATH").unwrap_or_default()).collect(),
    };
    let mut named = folders.iter().map(|folder| folder.join(&name));
    if let Some(path) = named.find(is_this) {
        return path::absolute(path);
    }
    // What the kernel adds if the file was replaced before this process looked.
    let found = found.to_string_lossy();
    Ok(found.trim_end_matches(" (deleted)").into())
}

/// Returns whether the process goes on through its [`PROBATION`].
fn lasts(process: i32) -> bool {
    let process = Pid::from_raw(process).ok_or(Errno::SRCH);
    let ended = process.and_then(|process| pidfd_open(process, PidfdFlags::empty()));
    let polled = ended.and_then(|ended| {
        loop {
            match poll(&mut [PollFd::new(&ended, PollFlags::IN)], Some(&PROBATION)) {
                Err(Errno::INTR) => {}
                polled => return polled,
            }
        }
    });
    match (process, polled) {
        (_, Ok(ended)) => ended == 0,
        (_, Err(Errno::SRCH)) | (Err(_), _) => false,
        // For want of a descriptor it cannot be watched; whether it is there is known all the same.
        (Ok(process), Err(_)) => {
            thread::sleep(Duration::from_secs(PROBATION.tv_sec.unsigned_abs()));
            test_kill_process(process).is_ok()
        }
    }
}

/// Puts the sockets and the end for the answer where a program that is started expects them.
fn arrange(sockets: &[(&str, BorrowedFd<'_>)], answer: &UnixStream) -> io::Result<Vec<OwnedFd>> {
    let count = sockets.len() + 1;
    let past = FIRST + i32::try_from(count).map_err(io::Error::other)?;
    // First out of the way, because some may be where others belong.
    let all = sockets
        .iter()
        .map(|(_, socket)| fcntl_dupfd_cloexec(socket, past));
    let all = all.chain([fcntl_dupfd_cloexec(answer, past)]);
    let all = all.collect::<Result<Vec<_>, _>>()?;
    for (fd, number) in all.iter().zip(FIRST..) {
        // SAFETY: what is replaced belongs to the process from which this one was forked; nothing
        // here uses it again.
        if unsafe { libc::dup2(fd.as_raw_fd(), number) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(all)
}

/// Waits for orders until the server is gone. `held` has other descriptors of the same sockets.
fn attend(
    program: &Path,
    is_confined: bool,
    sockets: &[(&str, BorrowedFd<'_>)],
    held: &[OwnedFd],
) -> ! {
    let _ = rustix::thread::set_name(c"millpond-next");
    for signal in [SIGHUP, SIGINT, SIGTERM, SIGUSR2] {
        // They are for the server, with which this process ends, also if they are sent to all
        // processes of a unit.
        let _ = signal_hook::flag::register(signal, Arc::default());
    }
    let orders = held.last().and_then(|orders| orders.try_clone().ok());
    let Some(mut orders) = orders.map(UnixStream::from) else {
        exit(1)
    };
    let names: Vec<_> = sockets
        .iter()
        .map(|(name, _)| *name)
        .chain([ANSWER])
        .collect();
    let mut order = [0];
    while orders.read_exact(&mut order).is_ok() {
        if order != START {
            // A successor is released that has ended meanwhile.
            continue;
        }
        let ended = start(program, is_confined, &names, &orders);
        let ended = ended.unwrap_or_else(|error| Some(error.to_string()));
        match ended {
            Some(reason) => drop(writeln!(orders, "{}: {reason}", program.display())),
            None => break,
        }
    }
    exit(0)
}

/// Starts the program and waits: for its end, which is returned, for its release, or for the end of
/// the server, which is then its end too.
fn start(
    program: &Path,
    is_confined: bool,
    names: &[&str],
    mut orders: &UnixStream,
) -> io::Result<Option<String>> {
    let mut arguments = env::args_os();
    let mut command = Command::new(program);
    command
        .arg0(arguments.next().unwrap_or_else(|| program.into()))
        .args(arguments)
        .env("LISTEN_PID", std::process::id().to_string())
        .env("LISTEN_FDS", names.len().to_string())
        .env("LISTEN_FDNAMES", names.join(":"))
        .env(CONFINED, u8::from(is_confined).to_string())
        // It names the process whose place is taken.
        .env_remove("WATCHDOG_PID");
    let mut child = command.spawn()?;
    let ended = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?;
    loop {
        let mut waits = [
            PollFd::new(&ended, PollFlags::IN),
            PollFd::new(orders, PollFlags::IN),
        ];
        match poll(&mut waits, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if !waits[0].revents().is_empty() {
            let status = child.wait()?;
            return Ok(Some(format!("it ended ({status})")));
        }
        if !waits[1].revents().is_empty() {
            if orders.read_exact(&mut [0]).is_err() {
                let _ = kill_process(Pid::from_child(&child), Signal::TERM);
            }
            return Ok(None);
        }
    }
}
