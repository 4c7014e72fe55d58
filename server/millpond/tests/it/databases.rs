//! The article example on SQLite and on PostgreSQL: the same content, the same pages.

use std::collections::BTreeSet;
use std::path::Path;

use lab_pgtest::{Options, Postgres};
use tempfile::TempDir;

use crate::support::{Connection, Server, copy_folder, run, serve, serve_with, text, write};

/// Number of the first article, and how many there are.
const FIRST: usize = 50_000_001;
const ARTICLES: usize = 45;

fn server() -> Postgres {
    Options::new().logical().start().unwrap()
}

/// A copy of the example, with its database in the same folder.
fn articles() -> TempDir {
    let dir = lab_testkit::fast_dir();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/articles");
    copy_folder(&example, dir.path());
    dir
}

/// Articles with what tells databases apart: letters beyond ASCII, case, quotes, equal dates. The
/// statements are the same on both databases.
fn rows() -> String {
    let mut sql = "insert into author (id, slug, name) values (1, 'ann-author', 'Ann Author'), \
                   (2, 'bo-0', 'Bo 0'), (3, 'bo-1', 'Bo 1'), (4, 'bo-2', 'Bo 2');\n\
                   insert into topic (id, slug, name) values (1, 'sea', 'Sea'), (2, 'ueber', 'Über'), \
                   (3, 'moon-0', 'moon 0'), (4, 'moon-1', 'moon 1'), (5, 'moon-2', 'moon 2'), \
                   (6, 'moon-3', 'moon 3');\n"
        .to_owned();
    let mut links = String::new();
    for number in 0..ARTICLES {
        let title = [
            "Äpfel",
            "apples",
            "Zebra \"quoted\" & <b>",
            "école",
            "Zoo''s",
        ][number % 5];
        let id = FIRST + number;
        let text = format!("moon pulls number {number}, back\\slash and all.");
        sql += &format!(
            "insert into article (id, slug, title, summary, published_at, words, body_html, body_text) values \
             ({id}, 'a{number}', '{title} {number}', 'Number {number} of all.', \
             '2026-03-{:02}T00:00:00Z', 7, '<p>The <strong>{text}</strong></p>', 'The {text}');\n",
            1 + number % 7,
        );
        let (bo, moon) = (2 + number % 3, 3 + number % 4);
        links += &format!(
            "insert into article_author (article_id, author_id, position) values ({id}, 1, 0), ({id}, {bo}, 1);\n\
             insert into article_topic (article_id, topic_id, position) values ({id}, 1, 0), ({id}, {moon}, 1), ({id}, 2, 2);\n"
        );
        for (position, step) in [1, 5].into_iter().enumerate() {
            let other = FIRST + (number + step) % ARTICLES;
            links += &format!(
                "insert into related (article_id, other_id, kind, position, title, summary) \
                 select {id}, id, 'near', {position}, title, summary from article where id = {other};\n"
            );
        }
    }
    sql + &links
}

/// The example with the articles of `rows`, which a further migration writes.
fn filled() -> TempDir {
    let site = articles();
    write(site.path(), "migrations/0003_rows.sql", &rows());
    site
}

/// Every page that links lead to, from the front page on, and what they do not lead to.
fn pages(server: &Server) -> BTreeSet<(String, u16, String)> {
    let mut connection = Connection::open(server.address());
    let mut asked = BTreeSet::new();
    let mut left: Vec<String> = [
        "/",
        "/about",
        "/authors?page=0",
        "/authors?page=99999999999",
        "/board",
        "/read?id=1",
        "/search",
        "/topics?utm_source=x",
        "/topics/sea?page=2",
        "/discussion?id=50000001",
        "/api/articles/50000003",
        "/brief?id=50000002",
        "/board/1?page=-5",
    ]
    .map(str::to_owned)
    .into();
    let mut found = BTreeSet::new();
    while let Some(target) = left.pop() {
        if !asked.insert(target.clone()) {
            continue;
        }
        let answer = connection.get(&target);
        let body = answer.text();
        let links = body
            .split("href=\"/")
            .skip(1)
            .filter_map(|rest| rest.split('"').next());
        left.extend(links.map(|link| {
            let link = link.split('#').next().unwrap_or_default();
            format!("/{}", link.replace("&amp;", "&"))
        }));
        found.insert((target, answer.status, body));
    }
    found
}

#[test]
fn the_example_gives_the_same_pages_on_both_databases() {
    let postgres = server();
    let database = postgres.database().unwrap();
    let url = database.url();
    let (on_file, on_server) = (filled(), filled());
    let one = serve(on_file.path());
    let other = serve_with(on_server.path(), &["--database", &url]);
    for server in [&one, &other] {
        let comment = "id=50000001&who=+Ann+&body=+Well%0D%0Asaid+%0D%0A";
        let posted = Connection::open(server.address()).post("/comment", comment);
        assert_eq!(posted.status, 303, "{posted:?}");
        let thread = "title=+Tides+&who=Bo&body=When%3F";
        let posted = Connection::open(server.address()).post("/thread", thread);
        assert_eq!(posted.field("location"), Some("/board/1"), "{posted:?}");
        let reply = Connection::open(server.address()).post("/reply", "id=1&who=Ann&body=Now");
        assert_eq!(
            reply.field("location"),
            Some("/board/1?page=1#p2"),
            "{reply:?}"
        );
        for (form, status) in [("id=7&who=A&body=B", 404), ("id=50000001&who=&body=B", 422)] {
            assert_eq!(
                Connection::open(server.address())
                    .post("/comment", form)
                    .status,
                status
            );
        }
    }
    let (one, other) = (pages(&one), pages(&other));
    assert!(one.len() > 60, "{}", one.len());
    // The minute may have ended between the two comments.
    let without_time = |pages: BTreeSet<(String, u16, String)>| -> Vec<_> {
        pages
            .into_iter()
            .map(|(target, status, body)| (target, status, untimed(&body)))
            .collect()
    };
    let (one, other) = (without_time(one), without_time(other));
    for (one, other) in one.iter().zip(&other) {
        assert_eq!(one, other);
    }
    assert_eq!(one.len(), other.len());
}

/// The page without times of this very test: what was written in it is of today.
fn untimed(body: &str) -> String {
    let mut text = String::new();
    let mut rest = body;
    while let Some(at) = rest.find("datetime=\"") {
        let end = rest[at..]
            .find("</time>")
            .map_or(rest.len(), |end| at + end);
        let is_old = rest[at..end].starts_with("datetime=\"2026-03-");
        text.push_str(if is_old { &rest[..end] } else { &rest[..at] });
        rest = &rest[end..];
    }
    text.push_str(rest);
    // The tag of a live page is that of the page with its times.
    if let Some(at) = text.find("data-tag=\"") {
        let tag = at + "data-tag=\"".len();
        let end = text[tag..].find('"').map_or(text.len(), |end| tag + end);
        text.replace_range(tag..end, "");
    }
    text
}

#[test]
fn a_search_finds_words_their_forms_and_beginnings_for_any_input() {
    let postgres = server();
    let database = postgres.database().unwrap();
    let site = filled();
    let server = serve_with(site.path(), &["--database", &database.url()]);
    for query in ["moon", "pulling", "number+mo", "PULLED+moon"] {
        let page = server.get(&format!("/search?q={query}")).text();
        assert!(page.contains("<mark>"), "{query}: {page}");
    }
    for query in ["nowhere", "moon+nowhere", "", "+", "the"] {
        let answer = server.get(&format!("/search?q={query}"));
        assert_eq!(answer.status, 200, "{query}");
        assert!(answer.text().contains("class=\"nothing\""), "{query}");
    }
    for query in [
        "%22",
        "'",
        "a%26",
        "%7C",
        "!",
        "%28a",
        "a:*",
        "%5C",
        "a+%3C-%3E",
        "%3A",
        "-",
        "%2F",
        "@",
    ] {
        assert_eq!(
            server.get(&format!("/search?q={query}")).status,
            200,
            "{query}"
        );
    }
}

#[test]
fn triggers_are_installed_when_the_owner_says_so_and_not_before() {
    let postgres = Postgres::start().unwrap();
    let database = postgres.database().unwrap();
    let mut client = postgres::Client::connect(&database.url(), postgres::NoTls).unwrap();
    client
        .batch_execute("create table note (id int primary key, body text)")
        .unwrap();
    let site = lab_testkit::fast_dir();
    let settings = format!(
        "[database]\nurl = \"{}\"\nfeed = \"triggers\"\n",
        database.url()
    );
    write(site.path(), "millpond.toml", &settings);
    write(
        site.path(),
        "pages/index.sql",
        "-- name: notes :many\nselect body from note order by id;\n",
    );
    let mut check = |args: &[&str], triggers: i64| {
        let output = run(site.path(), &[&["check", "."], args].concat());
        let said = text(&output.stderr);
        // A user that asks for more than the command does is informed.
        let is_undone = said.contains("no terminal is there to ask you first");
        assert_eq!(output.status.success(), !is_undone, "{said}");
        let count = "select count(*) from pg_trigger where tgname like '\\_millpond%'";
        let found: i64 = client.query_one(count, &[]).unwrap().get(0);
        assert_eq!(found, triggers, "{said}");
        said
    };
    let said = check(&[], 0);
    assert!(!said.contains("create or replace trigger"), "{said}");
    assert!(
        said.contains("4 triggers (--fix runs them, --sql shows"),
        "{said}"
    );
    let said = check(&["--sql"], 0);
    assert!(said.contains("create or replace trigger"), "{said}");
    let said = check(&["--fix"], 0);
    assert!(said.contains("--yes"), "{said}");
    let said = check(&["--fix", "--yes"], 4);
    assert!(said.contains("done: "), "{said}");
    let said = check(&["--fix"], 4);
    assert!(said.contains("all is well"), "{said}");
}
