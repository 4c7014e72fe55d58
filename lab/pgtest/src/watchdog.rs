//! Ends the server when the test cannot: a process that waits for the end of a pipe.
//!
//! A signal at the parent's death (`PR_SET_PDEATHSIG`) would arrive when the *thread* that started
//! the server ends, and each test is a thread of its own; also, it can be requested only between
//! fork and exec. The kernel closes the write end of a pipe at every end of the process, SIGKILL
//! included, and no other program inherits it.

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use rustix::process::Pid;

use crate::Error;
use crate::error::system;

/// Each line is the process to end at the end of input; an empty line is none. SIGCONT wakes a
/// frozen postmaster; SIGQUIT is PostgreSQL's immediate shutdown, which ends its children too. A
/// process that is alive after ten seconds is killed.
const SCRIPT: &str = r#"
pid=
while read -r line; do pid=$line; done
if [ -n "$pid" ]; then
    kill -CONT "$pid"
    kill -QUIT "$pid"
    n=0
    while kill -0 "$pid" && [ $n -lt 100 ]; do sleep 0.1; n=$((n + 1)); done
    kill -KILL "$pid"
fi 2>/dev/null
rm -rf -- "$1"
"#;

/// Ends a process and removes a folder when this process ends.
#[derive(Debug)]
pub(crate) struct Watchdog {
    child: Child,
    pipe: Option<ChildStdin>,
}

impl Watchdog {
    /// Watches over `folder` from now on.
    pub(crate) fn start(folder: &Path) -> Result<Self, Error> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", SCRIPT, "lab-pgtest"]).arg(folder);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .current_dir("/")
            // Out of reach of the Ctrl-C that ends the test.
            .process_group(0);
        let mut child = command.spawn().map_err(system("start a watchdog"))?;
        let pipe = child.stdin.take();
        Ok(Self { child, pipe })
    }

    /// Sets the process to end; `None` for no process.
    pub(crate) fn watch(&mut self, pid: Option<Pid>) -> Result<(), Error> {
        let line = pid.map_or_else(String::new, |pid| pid.as_raw_nonzero().to_string());
        match &mut self.pipe {
            Some(pipe) => writeln!(pipe, "{line}").map_err(system("reach the watchdog")),
            None => Ok(()),
        }
    }
}

impl Drop for Watchdog {
    /// Lets it do its work now, and waits for it.
    fn drop(&mut self) {
        self.pipe = None;
        let _ = self.child.wait();
    }
}
