//! `cargo xtask flame`: a flame graph of static hits, from samples of the worker's stacks.
//!
//! The server is built with frame pointers, in a target folder of its own, and stands on core 0;
//! `millpond load` drives it from core 1. What is sampled is time on the processor, so that it
//! works in virtual machines, which rarely have the processor's counters. If the
//! kernel shows its addresses to root only (`kernel.perf_event_paranoid`), its part is one box.

mod draw;
mod stacks;

use std::{
    env, fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use crate::{root, step::Step};
use stacks::Tree;

/// Files that are asked for at random, each of 8 KiB.
const FILES: usize = 1000;
/// How long the load lasts. 1,999 samples a second: no multiple of the kernel's tick.
const SECONDS: u32 = 10;
const SAMPLES: &str = "1999";

/// Plan of the load.
const PLAN: &str = "[choice.file]\nrange = [0, 999]\n\n[[class]]\nname = \"file\"\ntarget = \"/files/{{file}}.txt\"\n";

/// Builds, serves, drives, samples, draws.
pub(crate) fn draw() -> Result<(), String> {
    Step::cargo(
        "build",
        "build --release --package millpond --target-dir target/flame/build",
    )
    .with_flags("RUSTFLAGS", "-C force-frame-pointers=yes")
    .run()?;
    let folder = root().join("target/flame");
    let millpond = folder.join("build/release/millpond");
    let site = folder.join("site");
    write_site(&site).map_err(|error| format!("{}: {error}", site.display()))?;
    let plan = folder.join("plan.toml");
    fs::write(&plan, PLAN).map_err(|error| format!("{}: {error}", plan.display()))?;

    let server = Server::start(&millpond, &site)?;
    let samples = folder.join("perf.data");
    record(&server, &millpond, &plan, &samples)?;
    drop(server);

    let script = output(
        Command::new("perf")
            .args(["script", "--fields", "comm,ip,sym,dso", "--input"])
            .arg(&samples),
    )?;
    let tree = Tree::of_thread(&script, "worker-0");
    if tree.samples() == 0 {
        return Err("perf has no sample of the worker; may this user sample processes? sysctl kernel.perf_event_paranoid=1".to_owned());
    }
    let svg = folder.join("hit.svg");
    let title = format!("Static hits, 8 KiB, {} samples", tree.samples());
    fs::write(&svg, draw::svg(&tree, &title))
        .map_err(|error| format!("{}: {error}", svg.display()))?;
    print!("{}", tree.table(30));
    println!("{} has the graph", svg.display());
    Ok(())
}

fn write_site(site: &Path) -> std::io::Result<()> {
    let files = site.join("static/files");
    fs::create_dir_all(&files)?;
    fs::create_dir_all(site.join("pages"))?;
    fs::write(
        site.join("pages/index.html"),
        "Files are at /files/0.txt and so on.",
    )?;
    fs::write(
        site.join("millpond.toml"),
        "[database]\nurl = \"sqlite:site.db\"\n",
    )?;
    for number in 0..FILES {
        let mut text = format!("file {number}\n");
        text.extend(std::iter::repeat_n('x', (8 << 10) - text.len()));
        fs::write(files.join(format!("{number}.txt")), text)?;
    }
    Ok(())
}

/// Samples the server for as long as the load lasts.
fn record(server: &Server, millpond: &Path, plan: &Path, samples: &Path) -> Result<(), String> {
    let mut perf = Command::new("perf");
    perf.args([
        "record",
        "--quiet",
        "--event",
        "cpu-clock",
        "--call-graph",
        "fp",
    ])
    .args([
        "--freq",
        SAMPLES,
        "--pid",
        &server.child.id().to_string(),
        "--output",
    ])
    .arg(samples)
    .arg("--")
    .args(on_core(1))
    .arg(millpond)
    .args([
        "load",
        &server.url,
        "--connections",
        "32",
        "--no-calibration",
        "--plain",
    ])
    .args(["--duration", &format!("{SECONDS}s"), "--plan"])
    .arg(plan);
    // What an earlier run has left is not this run's.
    let _ = fs::remove_file(samples);
    match output(&mut perf) {
        // Perf ends as the load does, which says by its status that a run was disturbed; the
        // samples are there.
        Err(reason) if !samples.exists() => Err(reason),
        _ => Ok(()),
    }
}

/// Runs to the end; gives standard output.
fn output(command: &mut Command) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().map_err(|error| {
        format!("{program} does not start: {error} (apt-get install linux-perf)")
    })?;
    let (text, said) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    if output.status.success() {
        Ok(text.into_owned())
    } else {
        Err(format!("{program}: {}\n{text}{said}", output.status))
    }
}

/// Returns the words before a command by which it stays on a core; none on a machine with one, or
/// without `taskset`.
fn on_core(core: u32) -> Vec<String> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let path = env::var_os("PATH").unwrap_or_default();
    let there = env::split_paths(&path).any(|folder| folder.join("taskset").is_file());
    if cores < 2 || !there {
        return vec!["env".to_owned()];
    }
    ["taskset", "--cpu-list", &core.to_string()]
        .map(str::to_owned)
        .to_vec()
}

/// `millpond serve`, which ends with this value.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    /// On core 0, with one worker, at any free port.
    fn start(millpond: &Path, site: &Path) -> Result<Self, String> {
        let before = on_core(0);
        let (program, arguments) = before.split_first().ok_or("no program")?;
        let child = Command::new(program)
            .args(arguments)
            .arg::<PathBuf>(millpond.into())
            .args(["serve", "--listen", "127.0.0.1:0", "--workers", "1"])
            .arg(site)
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{program}: {error}"))?;
        let mut server = Self {
            child,
            url: String::new(),
        };
        let stdout = server.child.stdout.take().ok_or("no standard output")?;
        let mut line = String::new();
        let read = BufReader::new(stdout).read_line(&mut line);
        read.map_err(|error| format!("the server's first line: {error}"))?;
        let at = line.find("http://").ok_or("the server did not start")?;
        server.url = format!("{}/", line[at..].trim());
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself; either way nothing of it is left.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
