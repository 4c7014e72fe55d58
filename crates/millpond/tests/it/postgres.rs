//! `millpond load --pg`: the database behind a server.

use std::fs;

use millpond_pgtest::{Options, Postgres};

use crate::support::{Server, fail, new_site, run, text};

#[test]
fn a_watched_database_is_in_the_table_the_json_and_the_report_without_its_password() {
    let site = new_site();
    let server = Server::start(site.path());
    let database = Postgres::start().unwrap();
    let url = format!("http://{}/", server.address());
    let watched = database.url().replace("postgres@", "postgres:hush@");
    let args = [
        "load", &url, "-n", "300", "--pg", &watched, "--json", "run.json", "--report", "run.html",
    ];
    let output = run(site.path(), &args);
    let said = text(&output.stdout);
    assert!(output.status.success(), "{said}{}", text(&output.stderr));
    for word in ["PostgreSQL", "CPU of its processes", "commits"] {
        assert!(said.contains(word), "{word}: {said}");
    }
    let json = fs::read_to_string(site.path().join("run.json")).unwrap();
    let page = fs::read_to_string(site.path().join("run.html")).unwrap();
    assert!(page.contains("what it did"));
    assert!(!json.contains("hush") && !page.contains("hush"));
    let run: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(run["postgres"]["server"]["max_connections"], 100);
    assert!(run["postgres"]["summary"]["per_request"]["cpu_us"].is_number());
}

#[test]
fn a_database_that_is_not_there_is_an_error_before_the_first_request() {
    let site = new_site();
    let server = Server::start(site.path());
    let url = format!("http://{}/", server.address());
    let nobody = "postgres://postgres@127.0.0.1:1/postgres";
    let (status, said) = fail(site.path(), &["load", &url, "--pg", nobody]);
    assert_eq!(status, 1);
    assert!(said.contains("cannot watch PostgreSQL"), "{said}");
}

#[test]
fn a_check_mends_what_the_server_lacks_and_only_what_is_there() {
    let server = Options::new().logical().start().unwrap();
    let site = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &str| {
        let path = site.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    };
    write(
        "pages/api/article.sql",
        "-- name: article :many\nselect title from article where id = :id;\n",
    );
    let url = server.url();
    let check = |arguments: &[&str]| {
        let all = [&["check", "--database", &url], arguments].concat();
        let output = run(site.path(), &all);
        (
            output.status.success(),
            text(&output.stdout) + &text(&output.stderr),
        )
    };
    write(
        "migrations/0001_start.sql",
        "create table article (id integer primary key, title text);\n",
    );
    let (good, said) = check(&["--fix"]);
    assert!(
        !good && said.contains("0001_start") && said.contains("millpond serve"),
        "{said}"
    );

    fs::remove_dir_all(site.path().join("migrations")).unwrap();
    let mut client = postgres::Client::connect(&url, postgres::NoTls).unwrap();
    client
        .batch_execute("create table article (id integer primary key, title text)")
        .unwrap();
    let (good, said) = check(&[]);
    assert!(
        good && said.contains("there is no publication millpond"),
        "{said}"
    );
    let (good, said) = check(&["--fix"]);
    assert!(good && said.contains("done: create publication"), "{said}");
    let (good, said) = check(&[]);
    assert!(good && said.contains("all is well"), "{said}");
    assert!(said.contains("article: rows with id = :id"), "{said}");
}
