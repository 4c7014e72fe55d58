//! Imports into a real database with the example's schema.

use std::fs;
use std::ops::Deref;
use std::path::Path;

use lab_pgtest::Postgres;
use millpond_site::DatabaseUrl;
use rusqlite::Connection;

use super::html::Renderer;
use super::record::{Article, ImportBatch, Relation, RelationKind, Topic};
use super::text::slug;
use super::{ArticleDatabase, ImportError, ImportSummary};

const SCHEMA: &str = include_str!("../../../../examples/articles/migrations/0001_magazine.sql");
const POSTGRES_SCHEMA: &str =
    include_str!("../../../../examples/articles/migrations/0001_magazine.postgres.sql");
/// Not needed by an import; some of the example's queries are.
const ACCOUNTS: &str = include_str!("../../../../examples/articles/migrations/0002_accounts.sql");

/// These tests are on SQLite, and look into the file directly.
impl Deref for ArticleDatabase {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        match self {
            Self::Sqlite(connection) => connection,
            Self::Postgres(_) => panic!("not a test of SQLite"),
        }
    }
}

fn database() -> ArticleDatabase {
    let db = Connection::open_in_memory().unwrap();
    db.execute_batch(SCHEMA).unwrap();
    ArticleDatabase::Sqlite(db)
}

fn import(db: &mut ArticleDatabase, batch: &ImportBatch) -> ImportSummary {
    let mut summary = ImportSummary::default();
    db.write(batch, &mut summary).unwrap();
    summary
}

/// An article with this title, by two authors and on two topics.
fn article(title: &str) -> Article {
    let body = Renderer::new()
        .render("# Tides\n\nThe **moon** pulls.\n")
        .unwrap();
    Article {
        slug: slug(title),
        title: title.to_owned(),
        summary: "Up and down.".to_owned(),
        published_at: "2026-03-01T00:00:00Z".to_owned(),
        version: None,
        license: None,
        repository: None,
        body_html: body.html,
        body_text: body.text,
        authors: vec!["Ann Author".to_owned(), "Bo".to_owned()],
        topics: vec!["sea".to_owned(), "moon".to_owned()],
        related: Vec::new(),
        comments: Vec::new(),
    }
}

/// The articles with their topics. Each is related to the next.
fn batch(mut articles: Vec<Article>) -> ImportBatch {
    let slugs: Vec<String> = articles
        .iter()
        .map(|article| article.slug.clone())
        .collect();
    for (number, article) in articles.iter_mut().enumerate() {
        article.related.push(Relation {
            slug: slugs[(number + 1) % slugs.len()].clone(),
            kind: RelationKind::Needs,
        });
    }
    let topic = |slug: &str| Topic {
        slug: slug.to_owned(),
        name: slug.to_owned(),
        summary: String::new(),
    };
    ImportBatch {
        articles,
        topics: vec![topic("sea"), topic("moon")],
        threads: Vec::new(),
    }
}

fn text(db: &Connection, sql: &str) -> String {
    db.query_row(sql, [], |row| row.get(0)).unwrap()
}

fn number(db: &Connection, sql: &str) -> i64 {
    db.query_row(sql, [], |row| row.get(0)).unwrap()
}

#[test]
fn an_article_becomes_rows() {
    let mut db = database();
    let summary = import(&mut db, &batch(vec![article("Tides")]));
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
    let mut db = database();
    let mut content = batch(vec![article("Tides"), article("Waves")]);
    import(&mut db, &content);
    assert_eq!(
        number(&db, "select count(*) from related where kind = 'needs'"),
        2
    );

    let before = db.total_changes();
    let again = import(&mut db, &content);
    assert_eq!((again.added, again.updated, again.unchanged), (0, 0, 2));
    assert_eq!(db.total_changes(), before);

    content.articles[0].title = "Ebb and flow".to_owned();
    db.execute(
        "insert into comment (article_id, who, body) values (50000001, 'A reader', 'Well.')",
        [],
    )
    .unwrap();
    let changed = import(&mut db, &content);
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
fn hostile_text_is_harmless() {
    let hostile = "<script>alert(1)</script>\n\n[x](javascript:alert(1))\n\n<img src=x onerror=alert(1)>\n\n\
                   <svg onload=alert(1)><a xlink:href=javascript:x>y</a></svg>\n\n<p style='background:url(javascript:x)'>z\n";
    let html = Renderer::new().render(hostile).unwrap().html.to_lowercase();
    for word in ["script", "onerror", "onload", "svg", "style"] {
        assert!(!html.contains(word), "{html}");
    }
    assert_eq!(slug("../../etc/passwd"), "etc-passwd");
}

#[test]
fn a_missing_table_is_named() {
    let mut empty = ArticleDatabase::Sqlite(Connection::open_in_memory().unwrap());
    let error = super::crates(&mut empty, Path::new("Cargo.toml"), &mut |_| {}).unwrap_err();
    assert!(
        matches!(error, ImportError::MissingTable("article")),
        "{error}"
    );
    assert!(error.to_string().contains("migrations"));
}

#[test]
fn a_refused_row_leaves_everything_as_it_was() {
    let mut db = database();
    db.execute_batch(
        "create trigger no before insert on article_topic begin select raise(abort, 'no'); end",
    )
    .unwrap();
    let content = batch(vec![article("Tides")]);
    let error = db
        .write(&content, &mut ImportSummary::default())
        .unwrap_err();
    assert!(matches!(error, ImportError::Database(_)), "{error}");
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

/// Prepares every query of the site on the schema that imports write to.
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

/// Any text in the search field is a valid FTS5 query.
#[test]
fn any_search_text_is_valid() {
    let mut db = database();
    import(&mut db, &batch(vec![article("Tides")]));
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

/// No text makes an import panic, or take longer than reading the text does.
#[test]
fn random_texts_do_no_harm() {
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
    let mut random = lab_testkit::Random::new(42);
    let renderer = Renderer::new();
    let mut rendered = 0;
    for _ in 0..400 {
        let text: String = (0..random.below(120))
            .map(|_| *random.pick(&WORDS))
            .collect();
        super::changelog::entries(&text, 5);
        super::library::documentation(&text);
        super::dates::find(&text);
        let Ok(text) = renderer.render(&text) else {
            continue;
        };
        rendered += 1;
        let html = text.html.to_lowercase();
        assert!(
            !html.contains("<script") && !html.contains("javascript:"),
            "{html}"
        );
    }
    assert!(rendered > 50, "{rendered}");
}

/// A second import on PostgreSQL leaves the version (`xmin`, `ctid`) of every row as it was.
#[test]
fn importing_again_on_postgres_writes_only_what_differs() {
    let postgres = Postgres::start().unwrap();
    let database = postgres.database().unwrap();
    let mut client = postgres::Client::connect(&database.url(), postgres::NoTls).unwrap();
    client.batch_execute(POSTGRES_SCHEMA).unwrap();
    let url = DatabaseUrl::parse(&database.url(), Path::new("")).unwrap();
    let mut db = ArticleDatabase::open(&url).unwrap();
    db.require_tables().unwrap();
    let titles = (0..45).map(|number| format!("Äpfel & Zoo's \"{number}\""));
    let mut content = batch(titles.map(|title| article(&title)).collect());
    let mut again = |content: &ImportBatch, expected: (usize, usize, usize)| {
        let said = import(&mut db, content);
        assert_eq!((said.added, said.updated, said.unchanged), expected);
    };
    again(&content, (45, 0, 0));
    let rows = "select xmin::text || ctid::text from article union all select xmin::text || ctid::text from article_topic \
                union all select xmin::text || ctid::text from related order by 1";
    let mut versions = || -> Vec<String> {
        let rows = client.query(rows, &[]).unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    };
    let before = versions();
    assert!(before.len() > 45 * 3);
    again(&content, (0, 0, 45));
    assert_eq!(versions(), before);
    content.articles[7].body_text = "The moon pushes.".to_owned();
    again(&content, (0, 1, 44));
}
