//! The article example on SQLite and on PostgreSQL: the same content, the same pages.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use lab_pgtest::{Options, Postgres};
use tempfile::TempDir;

use crate::support::{Connection, Server, run, serve, serve_with, text, write};

fn server() -> Postgres {
    Options::new().logical().start().unwrap()
}

/// A copy of the example, whose database is made beside it.
fn articles() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/articles");
    copy(&example, dir.path());
    dir
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// Articles with what tells databases apart: letters beyond ASCII, case, quotes, equal dates.
fn markdown() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for number in 0..45 {
        let title = [
            "Äpfel",
            "apples",
            "Zebra \"quoted\" & <b>",
            "école",
            "Zoo's",
        ][number % 5];
        let article = format!(
            "---\ntitle: {title} {number}\ndate: 2026-03-{:02}\nauthors: [Ann Author, Bo {}]\n\
             tags: [Sea, moon {}, Über]\nsummary: Number {number} of all.\n---\n# {title}\n\n\
             The **moon** pulls number {number}, back\\\\slash and all.\n",
            1 + number % 7,
            number % 3,
            number % 4,
        );
        write(dir.path(), &format!("a{number}.md"), &article);
    }
    dir
}

fn import(site: &Path, markdown: &Path, database: &[&str]) -> String {
    let mut args = vec![
        "import",
        markdown.to_str().unwrap(),
        "--site",
        site.to_str().unwrap(),
    ];
    args.extend(database);
    let output = run(site, &args);
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
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
    let (on_file, on_server, markdown) = (articles(), articles(), markdown());
    let said = [
        import(on_file.path(), markdown.path(), &[]),
        import(on_server.path(), markdown.path(), &["--database", &url]),
    ];
    assert_eq!(said[0], said[1]);
    assert!(said[0].contains("45 articles added"), "{}", said[0]);
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
    text + rest
}

#[test]
fn importing_again_changes_what_differs_and_nothing_else() {
    let postgres = server();
    let database = postgres.database().unwrap();
    let url = database.url();
    let (site, markdown) = (articles(), markdown());
    let again = |expected: &str| {
        let said = import(site.path(), markdown.path(), &["--database", &url]);
        assert!(said.contains(expected), "{said}");
    };
    again("45 articles added, 0 updated, 0 unchanged");
    let rows = "select xmin::text || ctid::text from article union all select xmin::text || ctid::text from article_topic \
                union all select xmin::text || ctid::text from related order by 1";
    let mut client = postgres::Client::connect(&url, postgres::NoTls).unwrap();
    let mut versions = || -> Vec<String> {
        let rows = client.query(rows, &[]).unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    };
    let before = versions();
    again("0 articles added, 0 updated, 45 unchanged");
    assert_eq!(versions(), before);
    let file: PathBuf = markdown.path().join("a7.md");
    let changed = std::fs::read_to_string(&file)
        .unwrap()
        .replace("pulls", "pushes");
    std::fs::write(file, changed).unwrap();
    again("0 articles added, 1 updated, 44 unchanged");
}

#[test]
fn a_search_finds_words_their_forms_and_beginnings_whatever_is_typed() {
    let postgres = server();
    let database = postgres.database().unwrap();
    let (site, markdown) = (articles(), markdown());
    import(
        site.path(),
        markdown.path(),
        &["--database", &database.url()],
    );
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
    let site = tempfile::tempdir().unwrap();
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
        // Whoever asks for more than is done should know.
        let is_undone = said.contains("nobody is here to be asked");
        assert_eq!(output.status.success(), !is_undone, "{said}");
        let count = "select count(*) from pg_trigger where tgname like '\\_millpond%'";
        let found: i64 = client.query_one(count, &[]).unwrap().get(0);
        assert_eq!(found, triggers, "{said}");
        said
    };
    let said = check(&[], 0);
    assert!(said.contains("create or replace trigger"), "{said}");
    let said = check(&["--fix"], 0);
    assert!(said.contains("--yes"), "{said}");
    let said = check(&["--fix", "--yes"], 4);
    assert!(said.contains("done: "), "{said}");
    let said = check(&["--fix"], 4);
    assert!(said.contains("all is well"), "{said}");
}
