//! `millpond load` with plans, file sets and access logs.

use std::fs;

use crate::support::{fail, run, text, write};

#[test]
fn a_file_set_is_written_and_nothing_else_is_written_over() {
    let dir = tempfile::tempdir().unwrap();
    let output = run(
        dir.path(),
        &["load", "fileset", "set", "--directories", "1"],
    );
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("millpond load URL --plan set/plan.toml"));
    assert_eq!(
        fs::metadata(dir.path().join("set/dir0/class2_9"))
            .unwrap()
            .len(),
        92_160
    );
    write(dir.path(), "mine/notes", "");
    let (status, said) = fail(dir.path(), &["load", "fileset", "mine"]);
    assert!(
        status == 1 && said.contains("mine/notes is not of a file set"),
        "{said}"
    );
    let (status, said) = fail(
        dir.path(),
        &["load", "fileset", "set", "--directories", "0"],
    );
    assert!(status == 1 && said.contains("from 1 to 10000"), "{said}");
}

#[test]
fn what_a_log_teaches_is_said_without_a_server() {
    let dir = tempfile::tempdir().unwrap();
    let line = "h - - [10/Oct/2000:13:55:36 -0700] \"GET /a/b.css HTTP/1.0\" 200 1\n";
    write(dir.path(), "access.log", &line.repeat(30));
    let output = run(
        dir.path(),
        &["load", "--from-log", "access.log", "--learn-only"],
    );
    let said = text(&output.stdout);
    assert!(
        output.status.success() && said.contains("100.00%") && said.contains("/a/*.css"),
        "{said}"
    );
    write(dir.path(), "access.log", "no log\n");
    let (status, said) = fail(
        dir.path(),
        &["load", "--from-log", "access.log", "--learn-only"],
    );
    assert!(
        status == 1 && said.contains("access.log:1: not in the common"),
        "{said}"
    );
}
