//! What the log and `check` say of broken files: all that is wrong, and once for each change of a
//! file.

use std::{
    fs,
    sync::{Mutex, PoisonError},
};

use millpond_site::{Config, Problem, SiteOptions, check};

use crate::support::{self, TestSite};

const POSTS: &str = "create table posts (slug text primary key, title text, draft integer, menu integer,
    date text constraint \"the date is a day\" check (date is null or date(date) is not null), body text, _file text not null);";

fn found(files: &[(&str, &str)]) -> Vec<String> {
    let dir = support::folder(files);
    let config = Config::read(dir.path()).unwrap();
    let problems = check(dir.path(), &config).unwrap_err();
    problems.iter().map(Problem::to_string).collect()
}

/// Lists the faults, without the hints.
fn faults(files: &[(&str, &str)]) -> Vec<String> {
    let found = found(files).into_iter();
    let first = found.map(|fault| fault.lines().next().unwrap_or_default().to_owned());
    first.collect()
}

static LOG: Mutex<String> = Mutex::new(String::new());

#[test]
fn a_broken_file_is_told_once_for_each_change_of_it() {
    let dir = support::folder(&[
        ("migrations/0002_data_posts.sql", POSTS),
        ("data/posts/a.md", "---\ndate: 2026-01-31\n---\n"),
        ("data/posts/b.md", "---\ndate: 2026-01-31\n---\n"),
    ]);
    let options = SiteOptions {
        log: |line| *LOG.lock().unwrap_or_else(PoisonError::into_inner) += &format!("{line}\n"),
        ..SiteOptions::default()
    };
    let site = TestSite::open(dir, options);
    let count = |file: &str| {
        let line = format!(
            "data/posts/{file}.md:2:1: the rows stay as they were: the table checks that the date is a day"
        );
        let log = LOG.lock().unwrap_or_else(PoisonError::into_inner);
        log.matches(&line).count()
    };
    let write = |file: &str, date: &str| {
        let path = site.dir.path().join(format!("data/posts/{file}.md"));
        fs::write(path, format!("---\ndate: {date}\n---\n")).unwrap();
    };
    let told = |a: usize, b: usize| {
        site.until(&format!("a is told {a} and b {b} times"), || {
            (count("a"), count("b")) == (a, b)
        });
    };
    write("a", "soon");
    told(1, 0);
    write("b", "soon");
    told(1, 1);
    // The first try to mend it fails in the same way.
    write("a", "very soon");
    told(2, 1);
    write("a", "2026-02-01");
    let is_mended = || LOG.lock().unwrap().contains("data/posts/a.md: is mended");
    site.until("it is mended", is_mended);
    write("a", "soon");
    told(3, 1);
    // What another file becomes is no news of these.
    let other = site.dir.path().join("data/posts/c.md");
    fs::write(other, "---\ntitle: C\n---\n").unwrap();
    let has_c = || LOG.lock().unwrap().contains("data/posts/c.md: table posts");
    site.until("the other one is there", has_c);
    told(3, 1);
    // What is removed is not mended.
    fs::remove_file(site.dir.path().join("data/posts/b.md")).unwrap();
    write("a", "2026-02-01");
    let lines = || LOG.lock().unwrap().clone();
    site.until("a is mended again", || {
        lines().matches("data/posts/a.md: is mended").count() == 2
    });
    assert!(
        !lines().contains("data/posts/b.md: is mended"),
        "{}",
        lines()
    );
}

#[test]
fn one_fault_hides_no_other() {
    let files = [
        ("migrations/0002_data_posts.sql", POSTS),
        (
            "data/posts/a.md",
            "---\ndarft: true\nmenu: first\ntitel: A\n---\n",
        ),
        ("data/posts/b.md", "---\ndate: soon\n---\n"),
        ("data/posts/c.md", "---\ntitle: [\n---\n"),
        ("data/posts/d.md", "---\nslug: e\n---\n"),
        ("data/posts/e.md", "E"),
        ("pages/x.html", "{{ y }}"),
    ];
    let found = faults(&files);
    let expected = [
        "data/posts/c.md:3:1: ",
        "data/posts/a.md:2:1: the table posts has no column darft",
        "data/posts/a.md:3:1: menu is \"first\", not an integer",
        "data/posts/a.md:4:1: the table posts has no column titel",
        "data/posts/b.md:2:1: the rows stay as they were: the table checks that the date is a day",
        "data/posts/e.md:1:1: the rows stay as they were: data/posts/d.md is a row with the same slug",
        "pages/x.html:1:4: ",
    ];
    let is_said = |(found, expected): (&String, &&str)| found.starts_with(expected);
    assert!(
        found.len() == expected.len() && found.iter().zip(&expected).all(is_said),
        "{found:#?}"
    );
}

#[test]
fn misspelt_fields_are_no_more_than_twenty() {
    let names: Vec<String> = ('a'..='z')
        .map(|letter| format!("{letter}aaaaaa"))
        .collect();
    let columns: String = names.iter().map(|name| format!("{name}1 text, ")).collect();
    let table = format!("create table t (slug text primary key, {columns}_file text not null);");
    let fields: String = names.iter().map(|name| format!("{name}s1: x\n")).collect();
    let text = format!("---\n{fields}---\n");
    let found = faults(&[
        ("migrations/0002_data_t.sql", &*table),
        ("data/t/a.md", &text),
    ]);
    assert_eq!(found.len(), 21, "{found:#?}");
    assert_eq!(
        found[20],
        "data/t/a.md: there may be more faults in the file"
    );
}

#[test]
fn of_many_faults_the_first_are_told_and_the_rest_are_counted() {
    let rows = "1,x\n".repeat(1_000);
    let csv = format!("id,rate\n{rows}");
    let table = "create table rates (id integer primary key, rate real, _file text not null);";
    let migration = ("migrations/0003_data_rates.sql", table);
    let found = faults(&[migration, ("data/rates.csv", &csv)]);
    assert_eq!(found.len(), 21);
    assert_eq!(found[0], "data/rates.csv:2:1: rate is \"x\", not a number");
    assert_eq!(
        found[20],
        "data/rates.csv: there may be more faults in the file"
    );
    let names: Vec<String> = (100..400)
        .map(|number| format!("data/posts/{number}.md"))
        .collect();
    let mut files = vec![("migrations/0002_data_posts.sql", POSTS)];
    files.extend(
        names
            .iter()
            .map(|name| (&**name, "---\ndraft: maybe\n---\n")),
    );
    let found = faults(&files);
    assert_eq!(found.len(), 51);
    assert_eq!(
        found[49],
        "data/posts/149.md:2:1: draft is \"maybe\", not an integer"
    );
    assert_eq!(found[50], "data: and 250 more faults in files of data");
}
