//! `millrace load --pg`: the database behind a server.

use std::fs;
use std::path::Path;

use lab_pgtest::Postgres;

use crate::support::{fail, new_site, run, serve, text};

#[test]
fn a_watched_database_is_in_the_table_the_json_and_the_report_without_its_password() {
    let site = new_site();
    let server = serve(site.path());
    let database = Postgres::start().unwrap();
    let url = format!("http://{}/", server.address());
    let watched = database.url().replace("postgres@", "postgres:hush@");
    let args = [
        "load", &url, "-n", "300", "--pg", &watched, "--json", "run.json", "--report", "run.html",
    ];
    let said = successful(site.path(), &args);
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
    let diagnosis = [
        "load",
        &url,
        "--diagnose",
        "--duration",
        "1s",
        "--pg",
        &watched,
        "--report",
        "why.html",
    ];
    let said = successful(site.path(), &diagnosis);
    assert!(
        said.contains("PostgreSQL") && said.contains(" in flight"),
        "{said}"
    );
    let page = fs::read_to_string(site.path().join("why.html")).unwrap();
    assert!(page.contains("PostgreSQL") && !page.contains("hush"));
}

fn successful(dir: &Path, args: &[&str]) -> String {
    let output = run(dir, args);
    let said = text(&output.stdout);
    assert!(output.status.success(), "{said}{}", text(&output.stderr));
    said
}

#[test]
fn a_database_that_is_not_there_is_an_error_before_the_first_request() {
    let site = new_site();
    let server = serve(site.path());
    let url = format!("http://{}/", server.address());
    let nobody = "postgres://postgres@127.0.0.1:1/postgres";
    let (status, said) = fail(site.path(), &["load", &url, "--pg", nobody]);
    assert_eq!(status, 1);
    assert!(said.contains("cannot watch PostgreSQL"), "{said}");
}
