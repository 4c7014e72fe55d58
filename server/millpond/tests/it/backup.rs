//! `millpond backup`: whole, of one state, beside writers, and restored.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use lab_testkit::Response;
use rusqlite::Connection as Database;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::support::{Connection, fail, millpond, run, serve, text, write};

const FILES: &[(&str, &str)] = &[
    ("millpond.toml", "[database]\nfeed = \"triggers\"\n"),
    (
        "migrations/0001_all.sql",
        "create table picture (id integer primary key, title text not null, file text not null);\n\
         create table word (word text primary key) without rowid;\n\
         create virtual table found using fts5 (title, content = 'picture', content_rowid = 'id');\n\
         create trigger finds after insert on picture begin\n\
         insert into found (rowid, title) values (new.id, new.title); end;\n",
    ),
    (
        "pages/index.sql",
        "-- name: pictures :many\nselect id, title, file from picture order by id desc limit 10;\n",
    ),
    (
        "pages/words.sql",
        "-- name: words :many\nselect word from word order by word;\n",
    ),
    (
        "pages/add.post.sql",
        "-- param: title text\n-- file: picture into uploads/pictures\n-- name: picture :exec\n\
         insert into picture (title, file) values (:title, :picture);\n-- redirect: /\n",
    ),
];

/// A site on disk, for it is killed and moved.
fn site() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, contents) in FILES {
        write(dir.path(), name, contents);
    }
    dir
}

/// Posts a picture whose content is its title.
fn add(connection: &mut Connection, host: impl std::fmt::Display, title: &str) -> Response {
    let part = |head: &str, body: &str| {
        format!("--x\r\nContent-Disposition: form-data; {head}\r\n\r\n{body}\r\n")
    };
    let body = part("name=\"title\"", title)
        + &part("name=\"picture\"; filename=\"p.txt\"", title)
        + "--x--\r\n";
    connection.send(format!(
        "POST /add HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nContent-Type: multipart/form-data; boundary=x\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    ));
    connection.receive()
}

/// Rows of the pictures: title and the address of the file.
fn pictures(site: &Path) -> Vec<(String, String)> {
    let database = Database::open(site.join("site.db")).unwrap();
    let mut statement = database
        .prepare("select title, file from picture order by id")
        .unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
    rows.unwrap().map(Result::unwrap).collect()
}

/// Holds a backup to its promise: whole, each row with its file.
fn assert_whole(backup: &Path) -> Vec<(String, String)> {
    let database = Database::open(backup.join("site.db")).unwrap();
    let fault: String = database
        .query_row("pragma integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(fault, "ok");
    let search = "insert into found (found) values ('integrity-check')";
    database.execute_batch(search).unwrap();
    let pictures = pictures(backup);
    for (title, file) in &pictures {
        let content = fs::read_to_string(backup.join(file.trim_start_matches('/')));
        assert_eq!(content.as_ref().ok(), Some(title), "{file}");
    }
    pictures
}

#[test]
fn a_backup_beside_writers_without_a_pause_has_all_that_was_acknowledged() {
    let (site, to) = (site(), tempfile::tempdir().unwrap());
    for damaged in ["site.history.damaged.db", "site.history.damaged.db-wal"] {
        write(site.path(), damaged, "figures of the past");
    }
    let server = serve(site.path());
    let acknowledged = AtomicUsize::new(0);
    let ended = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let (acknowledged, ended, address) = (&acknowledged, &ended, server.address());
            scope.spawn(move || {
                let mut connection = Connection::open(address);
                while ended.load(Ordering::SeqCst) == 0 {
                    let number = acknowledged.load(Ordering::SeqCst);
                    let answer = add(
                        &mut connection,
                        address,
                        &format!("{writer} after {number}"),
                    );
                    assert_eq!(answer.status, 303, "{answer:?}");
                    acknowledged.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        let mut output = None;
        for number in 1..=3 {
            while acknowledged.load(Ordering::SeqCst) < 20 * number {
                std::thread::yield_now();
            }
            let before = acknowledged.load(Ordering::SeqCst);
            let name = to.path().join(number.to_string());
            let made = millpond(&["backup", "--to"])
                .arg(&name)
                .arg(site.path())
                .output();
            let said = made.unwrap();
            if !said.status.success() || pictures(&name).len() < before {
                output = Some(format!("{before}: {}", text(&said.stderr)));
            }
        }
        ended.store(1, Ordering::SeqCst);
        assert_eq!(output, None);
    });
    for number in 1..=3 {
        let backup = to.path().join(number.to_string());
        assert_whole(&backup);
        assert_eq!(
            backup.metadata().unwrap().permissions().mode() & 0o777,
            0o700
        );
        for left_out in [
            "site.db-wal",
            "site.db-shm",
            "site.db.warm",
            "site.history.damaged.db",
            "site.history.damaged.db-wal",
            "uploads/.parts",
        ] {
            assert!(!backup.join(left_out).exists(), "{left_out}");
        }
    }
}

#[test]
fn a_backup_ends_no_page_and_is_restored_in_the_place_of_the_site() {
    let (site, to) = (site(), tempfile::tempdir().unwrap());
    let backup = to.path().join("backup");
    let server = serve(site.path());
    add(
        &mut Connection::open(server.address()),
        server.address(),
        "sea",
    );
    let is_hit = |answer: &Response| answer.field("cache-status") == Some("millpond; hit");
    let before = (server.get("/"), server.get("/words"));
    let made = run(site.path(), &["backup", "--to", backup.to_str().unwrap()]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    assert!(is_hit(&server.get("/")) && is_hit(&server.get("/words")));
    // What is written after the backup goes with the site.
    add(
        &mut Connection::open(server.address()),
        server.address(),
        "lost",
    );
    server.signal(Signal::KILL);
    drop(server);
    fs::remove_dir_all(site.path()).unwrap();
    let copied = Command::new("cp")
        .arg("-a")
        .args([&backup, site.path()])
        .status();
    assert!(copied.unwrap().success());

    let server = serve(site.path());
    assert_eq!(server.get("/").body, before.0.body);
    assert_eq!(server.get("/words").body, before.1.body);
    let [(_, file)] = &pictures(site.path())[..] else {
        panic!("one picture");
    };
    assert_eq!(server.get(file).text(), "sea");
    // The triggers of the copy tell what another program changes, and what it does not.
    assert!(is_hit(&server.get("/")) && is_hit(&server.get("/words")));
    let other = Database::open(site.path().join("site.db")).unwrap();
    other
        .execute("insert into word values ('tide')", [])
        .unwrap();
    while !server.get("/words").text().contains("tide") {}
    assert!(is_hit(&server.get("/")), "{:?}", server.get("/"));
    let added = add(
        &mut Connection::open(server.address()),
        server.address(),
        "moon",
    );
    assert_eq!(added.status, 303);
    assert!(server.get("/").text().contains("moon"));
}

#[test]
fn a_site_that_was_killed_is_copied_with_what_is_in_its_log() {
    let (site, to) = (site(), tempfile::tempdir().unwrap());
    let server = serve(site.path());
    add(
        &mut Connection::open(server.address()),
        server.address(),
        "sea",
    );
    server.signal(Signal::KILL);
    drop(server);
    assert!(site.path().join("site.db-wal").metadata().unwrap().len() > 0);
    let backup = to.path().join("backup");
    let made = run(
        site.path(),
        &["backup", ".", "--to", backup.to_str().unwrap()],
    );
    assert!(made.status.success(), "{}", text(&made.stderr));
    assert_eq!(assert_whole(&backup).len(), 1);
}

/// Makes the database large enough that a backup takes some steps.
fn fill(site: &Path) {
    serve(site).stop();
    let database = Database::open(site.join("site.db")).unwrap();
    let fill = "create table filler (b); with recursive k (i) as (select 1 union all select i + 1 from k where i < 64) \
                insert into filler select randomblob(1048576) from k";
    database.execute_batch(fill).unwrap();
}

#[test]
fn an_interrupted_backup_leaves_nothing_under_its_name() {
    let (site, to) = (site(), tempfile::tempdir().unwrap());
    fill(site.path());
    let (name, partial) = (to.path().join("backup"), to.path().join("backup.partial"));
    for signal in [Signal::TERM, Signal::KILL] {
        // The signal may come when all is done; then the backup is whole, and it is tried again.
        loop {
            let mut command = millpond(&["backup", "--to"]);
            command.arg(&name).arg(site.path()).stderr(Stdio::piped());
            let mut child = command.spawn().unwrap();
            while !partial.join("site.db").exists() && child.try_wait().unwrap().is_none() {
                std::thread::yield_now();
            }
            let _ = kill_process(Pid::from_child(&child), signal);
            let output = child.wait_with_output().unwrap();
            if output.status.success() {
                assert_whole(&name);
                fs::remove_dir_all(&name).unwrap();
                continue;
            }
            assert!(!name.exists());
            assert_eq!(
                partial.exists(),
                signal == Signal::KILL,
                "{}",
                text(&output.stderr)
            );
            break;
        }
    }
    let (status, said) = fail(site.path(), &["backup", "--to", name.to_str().unwrap()]);
    assert!(status == 1 && said.contains("remove this folder"), "{said}");
    fs::remove_dir_all(partial).unwrap();
    let made = run(site.path(), &["backup", "--to", name.to_str().unwrap()]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    assert_whole(&name);
}

#[test]
fn what_is_no_backup_says_why_and_changes_nothing() {
    let (site, to) = (site(), tempfile::tempdir().unwrap());
    let name = to.path().join("backup");
    let name = name.to_str().unwrap();
    let refused = |args: &[&str], parts: &[&str]| {
        let (status, said) = fail(site.path(), &[&["backup", "--to"], args].concat());
        assert_eq!(status, 1, "{said}");
        for part in parts {
            assert!(said.contains(part), "{args:?}: no {part:?} in:\n{said}");
        }
        assert_eq!(fs::read_dir(to.path()).unwrap().count(), 0, "{said}");
    };
    refused(&[name], &["site.db", "no such database yet"]);
    serve(site.path()).stop();
    refused(&["copies/1"], &["make this folder first"]);
    refused(&["copy"], &["the folder of the site itself"]);
    refused(&["pages"], &["is there already", "with the date"]);
    let postgres = "postgres://me:secret@db.example/shop";
    refused(
        &[name, "--database", postgres],
        &["db.example:5432", "pg_dump", "one state"],
    );
    // A damaged database is no backup.
    let database = site.path().join("site.db");
    let mut bytes = fs::read(&database).unwrap();
    // The second page is a table's.
    bytes[4096..4128].fill(0x55);
    fs::write(&database, bytes).unwrap();
    refused(&[name], &["damaged"]);
}

#[test]
fn a_backup_holds_what_links_and_settings_lead_to() {
    let (site, elsewhere) = (site(), tempfile::tempdir().unwrap());
    let outside = |name: &str| elsewhere.path().join(name);
    let settings = format!(
        "[database]\nurl = \"sqlite:{0}/data/it.db\"\n[tls]\nstorage = \"{0}/tls\"\n[log]\naccess = \"access.log\"\n",
        elsewhere.path().display()
    );
    write(site.path(), "millpond.toml", &settings);
    write(elsewhere.path(), "files/deep/a.txt", "a");
    symlink(outside("files"), outside("files/loop")).unwrap();
    fs::create_dir_all(site.path().join("static")).unwrap();
    fs::create_dir_all(outside("data")).unwrap();
    let link =
        |to: PathBuf, name: &str| symlink(to, site.path().join("static").join(name)).unwrap();
    link(outside("files"), "files");
    link(outside("files/deep/a.txt"), "one.txt");
    link("../pages/index.sql".into(), "inside");
    link("nowhere".into(), "dangling");
    fs::create_dir(site.path().join("empty")).unwrap();
    let server = serve(site.path());
    server.get("/");
    server.stop();
    write(elsewhere.path(), "data/session.key", "key\n");
    fs::set_permissions(
        outside("data/session.key"),
        fs::Permissions::from_mode(0o600),
    )
    .unwrap();
    let backup = outside("backup");
    let made = run(site.path(), &["backup", "--to", backup.to_str().unwrap()]);
    let said = text(&made.stderr);
    assert!(made.status.success(), "{said}");
    assert!(said.contains("tls is outside of the site"), "{said}");
    let read = |name: &str| fs::read_to_string(backup.join(name)).ok();
    assert_eq!(read("static/files/deep/a.txt").as_deref(), Some("a"));
    assert_eq!(read("static/one.txt").as_deref(), Some("a"));
    assert!(backup.join("static/inside").is_symlink() && read("static/inside").is_some());
    assert!(backup.join("static/dangling").is_symlink() && backup.join("empty").is_dir());
    let key = backup.join("session.key").metadata().unwrap();
    assert_eq!(key.permissions().mode() & 0o777, 0o600);
    assert!(backup.join("it.db").exists() && !backup.join("access.log").exists());
    let (original, copy) = (
        site.path().join("pages/index.sql"),
        backup.join("pages/index.sql"),
    );
    let changed = |path: &Path| path.metadata().unwrap().modified().unwrap();
    assert_eq!(changed(&original), changed(&copy));
}

#[test]
fn a_folder_of_several_sites_is_copied_with_each_database() {
    let (all, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let hosts = ["one", "two"]
        .map(|name| format!("[[host]]\nnames = [\"{name}.test\"]\nsite = \"{name}\"\n"));
    write(all.path(), "millpond.toml", &hosts.concat());
    for host in ["one", "two"] {
        for (name, contents) in FILES {
            write(&all.path().join(host), name, contents);
        }
    }
    let server = serve(all.path());
    let added = add(&mut Connection::open(server.address()), "two.test", "moon");
    assert_eq!(added.status, 303, "{added:?}");
    let backup = to.path().join("backup");
    let made = run(all.path(), &["backup", "--to", backup.to_str().unwrap()]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    assert_eq!(assert_whole(&backup.join("one")).len(), 0);
    assert_eq!(assert_whole(&backup.join("two")).len(), 1);
}

/// Programs that the test has started, ended with it.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "it needs Litestream: cargo xtask soak backup"]
fn a_second_machine_has_what_litestream_has_sent() {
    let litestream = lab_testkit::installed_program("litestream").expect("cargo xtask soak backup");
    let (site, elsewhere) = (site(), tempfile::tempdir().unwrap());
    let server = serve(site.path());
    let database = site.path().join("site.db");
    let replica = format!("file://{}", elsewhere.path().join("replica").display());
    let child = Command::new(&litestream)
        .args(["replicate", "-log-level", "warn"])
        .args([database.as_os_str(), replica.as_ref()])
        .spawn();
    let replicating = Ended(child.unwrap());
    let mut connection = Connection::open(server.address());
    for number in 0..200 {
        let answer = add(&mut connection, server.address(), &number.to_string());
        assert_eq!(answer.status, 303, "{answer:?}");
    }
    let expected = pictures(site.path());
    let restored = elsewhere.path().join("restored.db");
    let restore = || {
        let command = Command::new(&litestream)
            .args(["restore", "-force", "-o"])
            .args([restored.as_os_str(), replica.as_ref()])
            .output();
        command.unwrap().status.success()
            && Database::open(&restored)
                .unwrap()
                .query_row("select count(*) from picture", [], |row| {
                    row.get::<_, i64>(0)
                })
                .is_ok_and(|count| count == expected.len() as i64)
    };
    while !restore() {}
    // It writes to the database itself when it begins; then pages stay in memory beside it.
    while server.get("/").field("cache-status") != Some("millpond; hit") {}
    drop(replicating);
    let page = server.get("/");
    assert!(server.stop().0.success());
    let second = elsewhere.path().join("second");
    let copied = Command::new("cp")
        .arg("-a")
        .args([site.path(), &second])
        .status();
    assert!(copied.unwrap().success());
    for ending in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(second.join(format!("site.db{ending}")));
    }
    fs::rename(&restored, second.join("site.db")).unwrap();
    assert_eq!(assert_whole(&second), expected);
    assert_eq!(serve(&second).get("/").body, page.body);
}
