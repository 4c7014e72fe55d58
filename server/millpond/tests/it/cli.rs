//! Mistakes, each with its place and a way out.

use std::net::TcpListener;

use crate::support::{fail, millpond, new_site, run, serve, site_with, text, write};

#[test]
fn help_lists_the_commands_that_exist() {
    let here = lab_testkit::fast_dir();
    let output = run(here.path(), &["--help"]);
    assert!(output.status.success());
    let help = text(&output.stdout);
    let commands = lab_testkit::commands_in_help(&help);
    assert_eq!(
        commands,
        [
            "serve", "new", "check", "explain", "top", "stats", "backup", "unit", "help"
        ]
    );
    for command in commands.iter().filter(|command| **command != "help") {
        let output = run(here.path(), &[command, "--help"]);
        assert!(output.status.success(), "{command}");
    }
}

#[test]
fn a_misspelt_command_or_flag_is_a_usage_error_with_a_suggestion() {
    let here = lab_testkit::fast_dir();
    for (args, near) in [
        (&["srve"][..], "'serve'"),
        (&["serve", "--lisen", "x"], "'--listen'"),
        (&["serve", "--listen", "nowhere"], "--listen"),
        (
            &["serve", "--listen", "8099"],
            "did you mean 127.0.0.1:8099?",
        ),
        (
            &["serve", "--tls-listen", "443"],
            "did you mean 127.0.0.1:443?",
        ),
        (&["serve", "--workers", "5000"], "--workers"),
    ] {
        let (status, said) = fail(here.path(), args);
        assert_eq!(status, 2, "{args:?}: {said}");
        assert!(said.contains(near), "{args:?}: {said}");
    }
}

#[test]
fn what_is_no_site_says_how_to_make_one() {
    let here = lab_testkit::fast_dir();
    for command in ["serve", "check"] {
        let (status, said) = fail(here.path(), &[command]);
        assert_eq!(status, 1);
        assert!(said.contains("millpond new"), "{said}");
    }
    let (status, said) = fail(here.path(), &["serve", "elsewhere"]);
    assert!(status == 1 && said.contains("no such folder"), "{said}");
}

/// Changes one file of a good site, and expects `check` and `serve` to find the same fault.
fn fault(name: &str, contents: &str, expected: &[&str]) {
    fault_in(&new_site(), name, contents, expected);
}

fn fault_in(site: &tempfile::TempDir, name: &str, contents: &str, expected: &[&str]) {
    write(site.path(), name, contents);
    for args in [&["check"][..], &["serve", "--listen", "127.0.0.1:0"]] {
        let (status, said) = fail(site.path(), args);
        assert_eq!(status, 1, "{said}");
        for part in expected {
            assert!(said.contains(part), "{args:?}: no {part:?} in:\n{said}");
        }
    }
}

#[test]
fn a_misspelt_key_has_file_line_column_and_the_right_one() {
    fault(
        "millpond.toml",
        "[server]\n\nlisten = \"127.0.0.1:0\"\n  workes = 1\n",
        &[
            "error: millpond.toml:4:3: ",
            "workes",
            "did you mean `workers`?",
        ],
    );
}

#[test]
fn a_bad_value_has_file_line_column_and_a_good_one() {
    fault(
        "millpond.toml",
        "[cache]\nmemory = \"lots\"\n",
        &["millpond.toml:2:10: ", "`lots`", "memory = \"256MB\""],
    );
    fault(
        "millpond.toml",
        "[database]\nurl = \"mysql://h/d\"\n",
        &["millpond.toml:2:7: ", "PostgreSQL", "sqlite:site.db"],
    );
}

#[test]
fn a_broken_query_has_file_line_column_and_a_hint() {
    fault(
        "pages/index.sql",
        "-- name: notes :many\nselect id\nfrom nots;\n",
        &["pages/index.sql:3:6: ", "no such table", "hint: ", "note"],
    );
}

#[test]
fn a_missing_template_has_file_line_column_and_a_hint() {
    fault(
        "pages/index.html",
        "{% extends \"layuot.html\" %}\n",
        &[
            "pages/index.html:1:",
            "layuot.html",
            "hint: ",
            "layout.html",
        ],
    );
}

#[test]
fn a_broken_migration_has_its_place() {
    fault(
        "migrations/0002_more.sql",
        "create table a (b);\ncreate tble c (d);\n",
        &["migrations/0002_more.sql:2:", "tble"],
    );
}

#[test]
fn check_says_what_ends_each_page() {
    let site = new_site();
    add_search(&site);
    let output = run(site.path(), &["check"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    for part in [
        "ends by",
        "note among the first 100 by at desc",
        "any note",
        "note with id = :id",
        "--dependencies says how",
    ] {
        assert!(table.contains(part), "{part}: {table}");
    }
    assert!(!table.contains("remedy"), "{table}");
    let said = text(&output.stderr);
    let name = site.path().file_name().unwrap().to_str().unwrap();
    assert!(
        said.starts_with(&format!(
            "{name}: all is well, 3 pages, 1 form, 3 queries\n"
        )),
        "{said}"
    );
}

#[test]
fn check_shows_what_a_partial_ends_at_the_pages() {
    let site = new_site();
    write(site.path(), "templates/menu.html", "{{ menu | length }}");
    write(
        site.path(),
        "templates/menu.sql",
        "-- name: menu :many\nselect at, datetime('now') as now from note;\n",
    );
    write(site.path(), "pages/a.html", "{% include \"menu.html\" %}");
    let output = run(site.path(), &["check", "--dependencies"]);
    let (said, table) = (text(&output.stderr), text(&output.stdout));
    let why = "not cacheable: datetime() reads the clock";
    for part in [
        format!("  {why} (templates/menu.sql), any note (templates/menu.sql)"),
        "depends on".to_owned(),
        "shown by".to_owned(),
    ] {
        assert!(table.contains(&part), "{part}: {table}");
    }
    assert!(
        said.contains("note: templates/menu.sql:1:1: query `menu` is not kept in memory"),
        "{said}"
    );
}

#[test]
fn check_says_how_many_errors_there_are_before_it_says_which() {
    let site = new_site();
    write(
        site.path(),
        "pages/index.html",
        "{{ notes.titel }}{{ 1 | nofilter }}",
    );
    let folder = site.path().to_str().unwrap();
    let (status, said) = fail(site.path(), &["check", folder]);
    assert_eq!(status, 1);
    assert!(said.starts_with(&format!("{folder}: 2 errors\n")), "{said}");
    for part in [
        "error: pages/index.html:1:10: `notes` is a list: it has no `titel`\n  hint: ",
        "error: pages/index.html:1:25: there is no filter `nofilter`\n  hint: ",
    ] {
        assert!(said.contains(part), "{part}\n{said}");
    }
}

#[test]
fn check_says_what_is_wrong_with_folders_files_and_migrations() {
    let site = new_site();
    // Applied, and deleted afterwards.
    write(
        site.path(),
        "migrations/0009_more.sql",
        "create table more (id integer);\n",
    );
    assert!(serve(site.path()).stop().0.success());
    std::fs::remove_file(site.path().join("migrations/0009_more.sql")).unwrap();
    let output = run(site.path(), &["check"]);
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(
        said.contains("note: migrations/0009_more.sql: this migration was applied to the database, and its file is gone\n  hint: restore the file"),
        "{said}"
    );
    for (name, contents, expected) in [
        (
            "site.db",
            "no database at all",
            &["site.db: ", "hint: the file is no SQLite database"][..],
        ),
        (
            "pages",
            "a file",
            &["pages: is a file, not a folder", "hint: "],
        ),
    ] {
        let site = new_site();
        let _ = std::fs::remove_dir_all(site.path().join(name));
        fault_in(&site, name, contents, expected);
    }
    let site = new_site();
    let settings = "[database]\nurl = \"sqlite:nowhere/site.db\"\n";
    write(site.path(), "millpond.toml", settings);
    let (_, said) = fail(site.path(), &["serve", "--listen", "127.0.0.1:0"]);
    assert!(
        said.contains("hint: the folder of this file does not exist"),
        "{said}"
    );
}

/// A page that every change of a note ends.
fn add_search(site: &tempfile::TempDir) {
    let page =
        "-- name: found :many\nselect id, title from note where title like :q order by id;\n";
    std::fs::write(site.path().join("pages/search.sql"), page).unwrap();
}

#[test]
fn check_says_what_each_query_depends_on() {
    let site = new_site();
    add_search(&site);
    let output = run(site.path(), &["check", "--dependencies"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    assert!(table.contains("pages/notes/[id].sql"), "{table}");
    assert!(table.contains(":id"), "{table}");
    // What the search reads of all notes, why it ends with each of them, and which change would
    // avoid that at which cost.
    for line in [
        "every change to note ends its results: ",
        "  in: pages/search.sql ",
        "  remedy: ",
        "  cost: ",
    ] {
        assert!(table.contains(line), "{line}: {table}");
    }
    assert!(text(&output.stderr).contains("all is well"));
    assert!(
        !site.path().join("site.db").exists(),
        "check has made a database"
    );
}

#[test]
fn a_port_that_is_taken_says_so() {
    let (site, taken) = (new_site(), TcpListener::bind("127.0.0.1:0").unwrap());
    let address = taken.local_addr().unwrap().to_string();
    let (status, said) = fail(site.path(), &["serve", "--listen", &address]);
    assert_eq!(status, 1);
    assert!(
        said.contains(&address) && said.contains("hint: another program"),
        "{said}"
    );
}

#[test]
fn a_log_that_cannot_be_written_says_so() {
    let site = site_with("log.access = \"none/access.log\"\n");
    let (status, said) = fail(site.path(), &["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(status, 1);
    assert!(
        said.contains("access.log") && said.contains("log.access"),
        "{said}"
    );
}

#[test]
fn new_leaves_a_folder_with_something_in_it_alone() {
    let site = new_site();
    let (status, said) = fail(site.path(), &["new", "."]);
    assert!(
        status == 1 && said.contains("choose another name"),
        "{said}"
    );
}

#[test]
fn a_message_without_a_reader_is_no_panic() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let here = lab_testkit::fast_dir();
    let mut command = millpond(&["check", "nowhere"]);
    let status = command.current_dir(here.path()).stderr(writer).status();
    assert_eq!(status.unwrap().code(), Some(1));
}

/// Warns of other programs on the file, by the `sqlite3` that is found.
#[test]
fn a_sqlite3_that_can_damage_a_database_is_named() {
    use std::os::unix::fs::PermissionsExt as _;
    let site = new_site();
    let folder = lab_testkit::fast_dir();
    let program = folder.path().join("sqlite3");
    let said = |version: &str| {
        std::fs::write(
            &program,
            format!("#!/bin/sh\necho '{version} 2026-01-01'\n"),
        )
        .unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let mut command = millpond(&["check", "."]);
        let output = command
            .current_dir(site.path())
            .env("PATH", folder.path())
            .output();
        text(&output.unwrap().stderr)
    };
    let old = said("3.40.1");
    assert!(
        old.contains("warning: sqlite3 on this machine is 3.40.1"),
        "{old}"
    );
    assert!(!said("3.51.3").contains("sqlite3"));
}
