//! The demo as a whole.

use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use lab_testkit::{Server, program_beside, text};
use rustix::process::Signal;

/// The page of the first article.
const ARTICLE: &str = "/read?id=50000001";

/// The folder with the programs that the demo starts.
fn programs() -> &'static Path {
    let demo = Path::new(env!("CARGO_BIN_EXE_lab-demo"));
    for name in ["millpond", "millrace"] {
        program_beside(demo, name);
    }
    demo.parent().unwrap()
}

/// The demo in `dir` with arguments, not yet started.
fn demo(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lab-demo"));
    command.current_dir(dir).args(["--listen", "127.0.0.1:0"]);
    programs();
    command.args(args);
    command
}

#[test]
fn the_experiment_is_printed_and_reported() {
    let here = lab_testkit::fast_dir();
    let output = demo(here.path(), &["--exit", "--dir", "magazine"])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    let table = text(&output.stdout);
    for part in ["uncached", "under 1 KB", "report.html"] {
        assert!(table.contains(part), "no {part} in:\n{table}");
    }
    let report = fs::read_to_string(here.path().join("magazine/report.html")).unwrap();
    assert!(report.contains("<svg"));
    assert!(!here.path().join("report.html").exists());
    // The command, with each of its words in one piece.
    let command = "<span>cargo</span> <span>demo</span> <span>--listen</span>";
    assert!(report.contains(command), "no {command} in the report");
    // The folder is a site like any other.
    let mut serve = Command::new(programs().join("millpond"));
    serve.args(["serve", "--listen", "127.0.0.1:0"]);
    serve.arg(here.path().join("magazine"));
    let server = Server::spawn(serve);
    assert_eq!(server.get(ARTICLE).status, 200);
    assert_eq!(server.get("/style.css").status, 200);
    assert!(server.stop().0.success());
}

#[test]
fn a_signal_ends_the_servers_and_removes_the_folder() {
    let (here, temporary) = (lab_testkit::fast_dir(), lab_testkit::fast_dir());
    let mut command = demo(here.path(), &[]);
    command.env("TMPDIR", temporary.path());
    let server = Server::spawn(command);
    let front = server.get("/");
    assert_eq!(front.status, 200);
    assert!(front.text().contains("/read?id="), "{}", front.text());
    let address = server.address();
    server.signal(Signal::INT);
    let (status, notes) = server.wait();
    assert!(TcpStream::connect(address).is_err());
    assert!(status.success(), "{notes}");
    assert!(here.path().join("report.html").is_file());
    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0);
}
