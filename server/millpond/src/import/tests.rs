//! Imports into a real database with the example's schema.

use std::fs;
use std::ops::Deref;
use std::path::Path;

use rusqlite::Connection;

use super::{Error, Summary, Target};

const SCHEMA: &str = include_str!("../../../../examples/articles/migrations/0001_magazine.sql");
/// Not needed by an import; some of the example's queries are.
const ACCOUNTS: &str = include_str!("../../../../examples/articles/migrations/0002_accounts.sql");

/// These tests are on SQLite, and look into the file directly.
impl Deref for Target {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        match self {
            Self::Sqlite(connection) => connection,
            Self::Postgres(_) => panic!("not a test of SQLite"),
        }
    }
}

fn database() -> Target {
    let db = Connection::open_in_memory().unwrap();
    db.execute_batch(SCHEMA).unwrap();
    Target::Sqlite(db)
}

fn import(db: &mut Target, dir: &Path) -> Summary {
    super::markdown(db, dir, &mut |_| {}).unwrap()
}

fn text(db: &Connection, sql: &str) -> String {
    db.query_row(sql, [], |row| row.get(0)).unwrap()
}

fn number(db: &Connection, sql: &str) -> i64 {
    db.query_row(sql, [], |row| row.get(0)).unwrap()
}

fn file(dir: &Path, name: &str, contents: impl AsRef<[u8]>) {
    let path = dir.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, contents).unwrap();
}

const TIDES: &str = "---\ntitle: Tides\ndate: 2026-03-01\nauthors: [Ann Author <ann@example.org>, Bo]\n\
                     tags: [Sea, moon]\nsummary: Up and down.\n---\n# Tides\n\nThe **moon** pulls.\n";

#[test]
fn a_file_becomes_an_article() {
    let (dir, mut db) = (tempfile::tempdir().unwrap(), database());
    file(dir.path(), "notes/tides.md", TIDES);
    let summary = import(&mut db, dir.path());
    assert_eq!((summary.added, summary.skipped.len()), (1, 0));
    let row = text(
        &db,
        "select id || '|' || slug || '|' || title || '|' || summary || '|' || published_at || '|' || words from article",
    );
    assert_eq!(
        row,
        "50000001|tides|Tides|Up and down.|2026-03-01T00:00:00Z|3"
    );
    assert_eq!(
        text(&db, "select trim(body_html, char(10)) from article"),
        "<p>The <strong>moon</strong> pulls.</p>"
    );
    let authors = "select group_concat(u.name) from article_author x join author u on u.id = x.author_id order by x.position";
    assert_eq!(text(&db, authors), "Ann Author,Bo");
    assert_eq!(
        text(
            &db,
            "select group_concat(slug) from (select slug from topic order by slug)"
        ),
        "moon,sea"
    );
    assert_eq!(
        number(
            &db,
            "select count(*) from article_fts where article_fts match 'moon'"
        ),
        1
    );
}

#[test]
fn importing_again_writes_only_what_differs() {
    let (dir, mut db) = (tempfile::tempdir().unwrap(), database());
    file(dir.path(), "tides.md", TIDES);
    file(dir.path(), "waves.md", TIDES.replace("Tides", "Waves"));
    import(&mut db, dir.path());
    assert_eq!(
        number(&db, "select count(*) from related where kind = 'near'"),
        2
    );

    let before = db.total_changes();
    let again = import(&mut db, dir.path());
    assert_eq!((again.added, again.updated, again.unchanged), (0, 0, 2));
    assert_eq!(db.total_changes(), before);

    file(
        dir.path(),
        "tides.md",
        TIDES.replace("Tides", "Ebb and flow"),
    );
    db.execute(
        "insert into comment (article_id, who, body) values (50000001, 'A reader', 'Well.')",
        [],
    )
    .unwrap();
    let changed = import(&mut db, dir.path());
    assert_eq!(
        (changed.added, changed.updated, changed.unchanged),
        (0, 1, 1)
    );
    assert_eq!(
        text(&db, "select title from article where slug = 'tides'"),
        "Ebb and flow"
    );
    assert_eq!(
        text(&db, "select title from related where other_id = 50000001"),
        "Ebb and flow"
    );
    assert_eq!(
        number(
            &db,
            "select count(*) from article_fts where article_fts match 'ebb'"
        ),
        1
    );
    assert_eq!(
        number(
            &db,
            "select count(*) from article_fts where article_fts match 'title:tides'"
        ),
        0
    );
    assert_eq!(number(&db, "select count(*) from comment"), 1);
}

#[test]
fn broken_files_are_named_and_the_rest_is_imported() {
    let (dir, mut db) = (tempfile::tempdir().unwrap(), database());
    file(dir.path(), "a/good.md", TIDES);
    file(dir.path(), "b/good.md", TIDES);
    file(dir.path(), "draft.md", "---\ntitle: x\ndraft: true\n---\n");
    file(dir.path(), "bytes.md", b"---\ntitle: x\n---\n\xff\xfe");
    file(
        dir.path(),
        "date.md",
        "---\ntitle: x\ndate: tomorrow\n---\n",
    );
    file(
        dir.path(),
        "deep.md",
        format!("---\ntitle: x\n---\n{}", ">".repeat(5_000)),
    );
    file(dir.path(), "huge.md", vec![b'a'; 2 << 20]);
    file(dir.path(), "none.md", "# Text\n");
    file(dir.path(), "open.md", "---\ntitle: x\n");
    file(dir.path(), "ignored.txt", "x");
    file(dir.path(), ".hidden/x.md", "x");
    let summary = import(&mut db, dir.path());
    assert_eq!(summary.added, 1);
    let skipped: Vec<String> = summary.skipped.iter().map(ToString::to_string).collect();
    let starts = [
        "b/good.md: the slug `good`",
        "bytes.md:4: ",
        "date.md:3: `tomorrow`",
        "deep.md: nests",
        "huge.md: is larger",
        "none.md:1: no front",
        "open.md:1: the front",
    ];
    assert_eq!(skipped.len(), starts.len(), "{skipped:#?}");
    for (line, start) in skipped.iter().zip(starts) {
        assert!(line.starts_with(start), "{line} should begin with {start}");
    }
}

#[test]
fn hostile_text_is_tame() {
    let (dir, mut db) = (tempfile::tempdir().unwrap(), database());
    let hostile = "---\ntitle: <script>alert(1)</script>\nslug: ../../etc/passwd\nsummary: \"<img src=x onerror=alert(1)>\"\n---\n\
                   <script>alert(1)</script>\n\n[x](javascript:alert(1))\n\n<img src=x onerror=alert(1)>\n\n\
                   <svg onload=alert(1)><a xlink:href=javascript:x>y</a></svg>\n\n<p style='background:url(javascript:x)'>z\n";
    file(dir.path(), "x.md", hostile);
    import(&mut db, dir.path());
    let html = text(&db, "select body_html from article").to_lowercase();
    for word in ["script", "onerror", "onload", "svg", "style"] {
        assert!(!html.contains(word), "{html}");
    }
    assert_eq!(text(&db, "select slug from article"), "etc-passwd");
    // Titles and summaries are text: the template escapes them.
    assert_eq!(
        text(&db, "select title from article"),
        "<script>alert(1)</script>"
    );
}

#[test]
fn a_missing_table_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let mut empty = Target::Sqlite(Connection::open_in_memory().unwrap());
    let error = super::markdown(&mut empty, dir.path(), &mut |_| {}).unwrap_err();
    assert!(matches!(error, Error::MissingTable("article")), "{error}");
    assert!(error.to_string().contains("migrations"));
}

#[test]
fn a_refused_row_leaves_everything_as_it_was() {
    let (dir, mut db) = (tempfile::tempdir().unwrap(), database());
    file(dir.path(), "a.md", TIDES);
    db.execute_batch(
        "create trigger no before insert on article_topic begin select raise(abort, 'no'); end",
    )
    .unwrap();
    let error = super::markdown(&mut db, dir.path(), &mut |_| {}).unwrap_err();
    assert!(matches!(error, Error::Database(_)), "{error}");
    assert_eq!(
        number(&db, "select count(*) from article") + number(&db, "select count(*) from author"),
        0
    );
}

/// The components of this workspace, as the demo imports them.
#[test]
fn this_build_is_a_magazine() {
    let mut db = database();
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.toml");
    let mut told = 0;
    let summary = super::crates(&mut db, &manifest, &mut |_| told += 1).unwrap();
    assert!(summary.added > 100, "{summary}");
    assert!(told > summary.added);
    assert!(number(&db, "select count(*) from topic") > 20);
    assert!(number(&db, "select count(*) from comment") > 100);
    assert_eq!(
        number(&db, "select count(*) from thread"),
        number(&db, "select count(*) from post")
    );
    assert_eq!(
        number(&db, "select count(*) from author where name like '%@%'"),
        0
    );
    assert!(number(&db, "select count(*) from related where kind = 'needs'") > 100);
    let before = db.total_changes();
    let again = super::crates(&mut db, &manifest, &mut |_| {}).unwrap();
    assert_eq!((again.added, again.updated), (0, 0), "{again}");
    assert_eq!(db.total_changes(), before);
}

/// What the site asks of the schema that imports write to.
#[test]
fn every_query_of_the_example_is_good_sql() {
    let db = database();
    db.execute_batch(ACCOUNTS).unwrap();
    let mut folders =
        vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/articles/pages")];
    let mut queries = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "sql")
                && !path.to_string_lossy().ends_with(".postgres.sql")
            {
                for query in fs::read_to_string(&path)
                    .unwrap()
                    .split("-- name: ")
                    .skip(1)
                {
                    let sql = query.split_once('\n').unwrap().1;
                    // As the site writes a claim into the statement.
                    let sql = sql.replace(":claims.", ":claims_");
                    db.prepare(&sql)
                        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
                    queries += 1;
                }
            }
        }
    }
    assert!(queries > 40);
}

/// Whatever is typed into the search field is a question that FTS5 understands.
#[test]
fn no_search_is_a_syntax_error() {
    let (dir, mut db) = (tempfile::tempdir().unwrap(), database());
    file(dir.path(), "tides.md", TIDES);
    import(&mut db, dir.path());
    let page =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/articles/pages/search.sql");
    let page = fs::read_to_string(page).unwrap();
    let sql = page
        .split("-- name: ")
        .nth(1)
        .unwrap()
        .split_once('\n')
        .unwrap()
        .1;
    let mut hits = db.prepare(sql).unwrap();
    let mut check = |q: &str, expected: usize| {
        let found = hits
            .query_map([q], |row| row.get::<_, i64>(0))
            .unwrap()
            .collect::<Result<Vec<_>, _>>();
        assert_eq!(
            found.unwrap_or_else(|error| panic!("{q:?}: {error}")).len(),
            expected,
            "{q:?}"
        );
    };
    for q in [
        "moon",
        "pulls tides",
        "TIDE",
        "mo",
        "  the   moon  ",
        "\"moon\"",
        "moon\0\"",
        "(moon)",
    ] {
        check(q, 1);
    }
    let long = "moon ".repeat(1_000);
    for q in [
        "",
        " ",
        "\0",
        "\"",
        "\"\"\"",
        "*",
        "NEAR(",
        "title:x",
        "a OR b",
        "-",
        "'; drop table article; --",
        "\u{2}<",
    ] {
        check(q, 0);
    }
    check(&long, 1);
}

/// Nothing that stands in a file may make an import panic, or take longer than reading it does.
#[test]
fn random_files_do_no_harm() {
    const WORDS: [&str; 40] = [
        "---",
        "+++",
        "\n",
        "\n\n",
        "title",
        ":",
        " ",
        "[",
        "]",
        "(",
        ")",
        "\"",
        "'",
        "\\",
        "- ",
        "#",
        "# ",
        "=",
        "===\n",
        "|",
        "\t",
        "```",
        "`",
        "<",
        ">",
        "<b>",
        "</b>",
        "<a href=\"",
        "&lt;",
        "é",
        "日本",
        "\u{0}",
        "2026-03-01",
        "1.2.3",
        "a@b.cc",
        "*",
        "[^1]",
        "[^1]: ",
        "<h1>",
        "date",
    ];
    let (mut db, mut state) = (database(), 42_u64);
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).unwrap()
    };
    let dir = tempfile::tempdir().unwrap();
    for index in 0..400 {
        let head = ["", "---\n", "---\ntitle: x\n---\n", "+++\n"][random(4)];
        let text: String = (0..random(120))
            .map(|_| WORDS[random(WORDS.len())])
            .collect();
        super::changelog::entries(&text, 5);
        super::library::documentation(&text);
        super::dates::find(&text);
        super::dates::parse(&text);
        file(dir.path(), &format!("{index}.md"), format!("{head}{text}"));
    }
    let summary = import(&mut db, dir.path());
    assert!(
        summary.added > 50 && summary.skipped.len() > 50,
        "{summary}"
    );
    let unsafe_html = "select count(*) from article where body_html like '%<script%' or body_html like '%javascript:%'";
    assert_eq!(number(&db, unsafe_html), 0);
}
