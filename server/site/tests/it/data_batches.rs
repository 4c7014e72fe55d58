//! Many small files of a table at once, on both databases: each is whole in it, or not at all.

use std::{
    fmt::Write as _,
    fs,
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use millpond_site::SiteOptions;

use crate::{
    both::{Housed, Kind, on_both},
    postgres,
    support::TestSite,
};

on_both!(
    of_many_files_only_the_broken_ones_stay_out,
    the_halves_of_many_files_are_never_seen,
    of_many_changed_files_other_pages_stay_in_memory,
    many_files_come_before_those_that_they_refer_to,
);

const POSTS: &str =
    "create table post (slug text primary key, title text not null check (title <> 'bad'),
    rank integer unique, body text, _file text not null);
    create index post_by_file on post (_file);";
/// More than one batch.
const MANY: usize = 600;

fn post(number: usize, title: &str) -> (String, String) {
    let text = format!("---\ntitle: {title}\nrank: {number}\n---\nText of {number}.\n");
    (format!("data/post/p{number:03}.md"), text)
}

fn borrowed(files: &[(String, String)]) -> Vec<(&str, &str)> {
    let files = files.iter();
    files.map(|(name, text)| (&**name, &**text)).collect()
}

fn path(site: &TestSite, name: &str) -> PathBuf {
    site.dir.path().join(name)
}

fn holds(site: &Housed, sql: &str, value: &str) {
    site.until(&format!("{sql} is {value:?}"), || site.text(sql) == value);
}

fn of_many_files_only_the_broken_ones_stay_out(kind: Kind) {
    static LOG: Mutex<String> = Mutex::new(String::new());
    let log = || LOG.lock().unwrap_or_else(PoisonError::into_inner);
    // The log is that of both tests.
    let table = match kind {
        Kind::Sqlite => "lite",
        Kind::Postgres => "post",
    };
    let mut files: Vec<_> = (0..MANY).map(|number| post(number, "good")).collect();
    files[100].1 = "---\ntitle: [\n---\n".to_owned();
    files[200] = post(200, "bad");
    files[300].1 = files[299].1.clone();
    files[400].1 = "---\ntitle: many\nrank: x\n---\n".to_owned();
    for (name, _) in &mut files {
        *name = name.replace("post/", &format!("{table}/"));
    }
    let sql = POSTS.replace("post", table);
    let mut all = vec![("migrations/0002_data.sql", &*sql)];
    all.extend(borrowed(&files));
    let options = SiteOptions {
        log: |line| *LOG.lock().unwrap_or_else(PoisonError::into_inner) += &format!("{line}\n"),
        ..SiteOptions::default()
    };
    let database = matches!(kind, Kind::Postgres).then(postgres::database);
    let site = match &database {
        None => TestSite::with(&all, options),
        Some(database) => TestSite::open(postgres::folder(database, &all), options),
    };
    let read = format!("select count(*) from {table}");
    let count = || -> i64 {
        match &database {
            None => site
                .foreign()
                .query_row(&read, [], |row| row.get(0))
                .unwrap(),
            Some(database) => {
                let row = postgres::client(database).query_one(&read, &[]).unwrap();
                row.get(0)
            }
        }
    };
    assert_eq!(count(), 596);
    let said = log().clone();
    for (file, fault) in [
        (100, ""),
        (200, "the rows stay as they were"),
        (300, "p299.md is a row with the same rank"),
        (400, "rank is \"x\", not an integer"),
    ] {
        let start = format!("data/{table}/p{file}.md:");
        let mut lines = said.lines().filter(|line| line.starts_with(&start));
        assert!(
            lines.any(|line| line.contains(fault)),
            "{start} {fault} is not in:\n{said}"
        );
    }
    assert!(said.contains(&format!("data/{table}/: ")), "{said}");
    let lines = said
        .lines()
        .filter(|line| line.contains(&format!("table {table},")));
    assert!(lines.count() < 60, "{said}");
    if let Some(database) = &database {
        let transactions = "select count(distinct xmin::text) from post";
        let row = postgres::client(database)
            .query_one(transactions, &[])
            .unwrap();
        let transactions: i64 = row.get(0);
        assert!(transactions <= 40, "{transactions} transactions");
    }
    // They are mended one by one.
    for number in [100, 200, 300, 400] {
        let (name, text) = post(number, "mended");
        fs::write(
            path(&site, &name.replace("post/", &format!("{table}/"))),
            text,
        )
        .unwrap();
    }
    site.until("all are there", || count() == 600);
    fs::remove_dir_all(path(&site, &format!("data/{table}"))).unwrap();
    fs::create_dir(path(&site, &format!("data/{table}"))).unwrap();
    site.until("all are gone", || count() == 0);
}

fn the_halves_of_many_files_are_never_seen(kind: Kind) {
    let table =
        "create table line (id integer primary key, v integer not null, _file text not null);
        create index line_by_file on line (_file);";
    let file = |number: usize, value: usize| {
        let mut csv = "id,v\n".to_owned();
        for row in 0..3 {
            let _ = writeln!(csv, "{},{value}", 3 * number + row);
        }
        (format!("data/line/f{number:03}.csv"), csv)
    };
    let files: Vec<_> = (0..MANY).map(|number| file(number, 0)).collect();
    let mut all = vec![("migrations/0002_data.sql", table)];
    all.extend(borrowed(&files));
    let site = Housed::new(kind, &all);
    holds(
        &site,
        "select count(*) || ' ' || sum(v) from line",
        "1800 0",
    );
    let mixed = "select count(*) || '' from (select _file from line group by _file \
        having min(v) <> max(v) or count(*) <> 3) as mixed";
    for value in 1..=3 {
        for number in 0..MANY {
            let (name, csv) = file(number, value);
            let beside = path(&site, "data/.beside");
            fs::write(&beside, csv).unwrap();
            fs::rename(beside, path(&site, &name)).unwrap();
            if number % 50 == 0 {
                assert_eq!(site.text(mixed), "0");
            }
        }
        let sum = format!("{}", 1_800 * value);
        site.until("all have changed", || {
            assert_eq!(site.text(mixed), "0");
            site.text("select sum(v) || '' from line") == sum
        });
    }
}

fn of_many_changed_files_other_pages_stay_in_memory(kind: Kind) {
    let publish = "alter publication millpond add table post; alter table post replica identity full;
        create table _millpond_data (\"file\" text primary key, \"table\" text not null, hash text not null,
        version bigint not null, applied_at timestamptz not null default now());";
    let files: Vec<_> = (0..MANY).map(|number| post(number, "first")).collect();
    let settings = "[database]\nurl = \"sqlite:site.db\"\n[cache]\nrefresh_ahead = 0\nmax_staleness = \"10min\"\n";
    let mut all = vec![
        ("millpond.toml", settings),
        ("migrations/0002_data.sql", POSTS),
        ("migrations/0003_publish.postgres.sql", publish),
        ("migrations/0003_publish.sqlite.sql", "select 1;"),
        (
            "pages/posts/[slug].sql",
            "-- param: slug text\n-- name: post :one\nselect title from post where slug = :slug;\n",
        ),
        ("pages/posts/[slug].html", "{{ post.title }}"),
    ];
    all.extend(borrowed(&files));
    let site = Housed::new(kind, &all);
    let is_hit = |slug: &str, title: &str| {
        let answer = site.get(&format!("/posts/{slug}"));
        (answer.cache(), &*answer.body) == ("hit", title)
    };
    site.until("two pages are kept", || {
        is_hit("p000", "first") && is_hit("p599", "first")
    });
    for number in 1..MANY {
        let (name, text) = post(number, "second");
        let beside = path(&site, "data/.beside");
        fs::write(&beside, text).unwrap();
        fs::rename(beside, path(&site, &name)).unwrap();
    }
    site.until("the others have changed", || {
        assert!(is_hit("p000", "first"), "no file of it has changed");
        site.get("/posts/p599").body == "second"
    });
    site.until("all have changed", || {
        site.text("select count(*) || '' from post where title = 'second'") == "599"
    });
    assert!(is_hit("p000", "first"));
}

fn many_files_come_before_those_that_they_refer_to(kind: Kind) {
    let table = "create table writer (slug text primary key, name text, _file text not null);
        create table book (slug text primary key, writer text not null references writer (slug),
            _file text not null);";
    let mut files = Vec::new();
    for number in 0..300 {
        let book = format!("{{\"writer\": \"w{number}\"}}");
        files.push((format!("data/book/b{number}.json"), book));
        let writer = format!("{{\"name\": \"{number}\"}}");
        files.push((format!("data/writer/w{number}.json"), writer));
    }
    let mut all = vec![("migrations/0002_data.sql", table)];
    all.extend(borrowed(&files));
    let site = Housed::new(kind, &all);
    let count = "select count(*) || '' from book join writer on writer.slug = book.writer";
    assert_eq!(site.text(count), "300");
}
