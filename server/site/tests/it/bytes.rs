//! Pages that answer with the bytes of a column.

use millpond_http::OwnedRequest;

use crate::{
    both::{Housed, Kind, on_both},
    support::{TestSite, problems},
};

const TABLE: &str = "create table picture (id integer primary key, data blob, type text, file_name text);
insert into picture values
  (1, x'89504e470d0a1a0a00ff', 'image/png', 'Übung.png'),
  (2, null, 'image/png', 'none.png'),
  (3, cast('<svg xmlns=\"http://www.w3.org/2000/svg\"><script>alert(1)</script></svg>' as blob), 'image/svg+xml', 'a.svg'),
  (4, cast('alert(1)' as blob), 'text/javascript', '../x.js'),
  (5, x'89504e470d0a1a0a00ff', null, null),
  (6, cast(printf('%.2000c', 'a') as blob), 'text/plain', 'a.txt'),
  (7, zeroblob(2000), 'image/png', 'big.png'),
  (8, x'', 'text/html; charset=utf-7', 'x\u{202e}gpj.exe');";

/// Makes the table of types on PostgreSQL.
fn table_of_postgres() -> String {
    let table = TABLE
        .replace("blob)", "bytea)")
        .replace("data blob", "data bytea")
        .replace("as blob", "as bytea")
        .replace("printf('%.2000c', 'a')", "repeat('a', 2000)")
        .replace("zeroblob(2000)", "decode(repeat('00', 2000), 'hex')")
        .replace("x'89", "'\\x89")
        .replace("x'', ", "''::bytea, ");
    table
        .replace("cast('", "convert_to('")
        .replace("' as bytea)", "', 'UTF8')")
        + "\nalter publication millpond add table picture;"
}

const PAGE: &str = "-- bytes: picture.data type picture.type name picture.file_name\n\
                    -- name: picture :one\n\
                    select data, type, file_name from picture where id = :id;\n";

fn site(kind: Kind) -> Housed {
    Housed::new(
        kind,
        &[
            ("migrations/0002_picture.sql", TABLE),
            ("migrations/0002_picture.postgres.sql", &table_of_postgres()),
            ("pages/pictures/[id].sql", PAGE),
            (
                "pages/saved/[id].sql",
                &PAGE.replace("file_name\n", "file_name attachment\n"),
            ),
            (
                "pages/literal/[id].sql",
                &PAGE.replace(
                    "type picture.type name picture.file_name",
                    "type text/html name 'a.html'",
                ),
            ),
        ],
    )
}

on_both!(
    bytes_are_answered_with_type_and_name,
    a_page_of_bytes_is_kept_until_its_row_changes,
    conditions_ranges_and_heads_are_answered,
    what_a_visitor_has_sent_runs_nothing,
);

fn bytes_are_answered_with_type_and_name(kind: Kind) {
    let site = site(kind);
    let first = site.get("/pictures/1");
    assert_eq!(
        (first.status, first.field("content-type")),
        (200, "image/png")
    );
    assert_eq!(first.field("content-length"), "10");
    assert_eq!(
        first.field("content-disposition"),
        "inline; filename=\"_bung.png\"; filename*=UTF-8''%C3%9Cbung.png"
    );
    assert_eq!(first.field("x-content-type-options"), "nosniff");
    let saved = site.get("/saved/7");
    assert_eq!(
        saved.field("content-disposition"),
        "attachment; filename=\"big.png\""
    );
    let by_content = site.get("/pictures/5");
    assert_eq!(by_content.field("content-type"), "image/png");
    assert_eq!(by_content.field("content-disposition"), "");
    assert_eq!(by_content.field("etag"), first.field("etag"));
    for missing in ["/pictures/2", "/pictures/9", "/pictures/x"] {
        assert_eq!(site.get(missing).status, 404, "{missing}");
        assert_eq!(site.get(missing).status, 404, "{missing}");
    }
    assert_eq!(
        site.get("/literal/1").field("content-type"),
        "text/html; charset=utf-8"
    );
    let empty = site.get("/pictures/8");
    assert_eq!((empty.status, empty.field("content-length")), (200, "0"));
}

fn a_page_of_bytes_is_kept_until_its_row_changes(kind: Kind) {
    let site = site(kind);
    assert_eq!(site.get("/pictures/1").cache(), "fwd=miss; stored");
    assert_eq!(site.get("/pictures/2").cache(), "fwd=miss; stored");
    assert_eq!(site.get("/pictures/1").cache(), "hit");
    assert_eq!(
        site.get("/pictures/2").cache(),
        "hit",
        "no bytes are kept too"
    );
    let written = match kind {
        Kind::Sqlite => "x'ffd8ff'",
        Kind::Postgres => "'\\xffd8ff'",
    };
    site.run(&format!(
        "update picture set data = {written}, type = null where id in (1, 2)"
    ));
    for target in ["/pictures/1", "/pictures/2"] {
        site.until("the change arrives", || {
            site.get(target).field("content-type") == "image/jpeg"
        });
        assert_eq!(site.get(target).field("content-length"), "3");
    }
}

fn conditions_ranges_and_heads_are_answered(kind: Kind) {
    let site = site(kind);
    for _ in 0..2 {
        let whole = site.get("/pictures/1");
        let ask = |method: &str, name: &str, value: &str| {
            site.ask(&OwnedRequest::new(method, "/pictures/1").field(name, value))
        };
        assert_eq!(ask("GET", "If-None-Match", whole.field("etag")).status, 304);
        let part = ask("GET", "Range", "bytes=1-3");
        assert_eq!((part.status, &*part.body), (206, "PNG"));
        assert_eq!(part.field("content-range"), "bytes 1-3/10");
        assert_eq!(ask("GET", "Range", "bytes=99-").status, 416);
        let head = ask("HEAD", "Accept", "*/*");
        assert_eq!((head.status, head.field("content-length")), (200, "10"));
        assert_eq!(ask("POST", "Accept", "*/*").status, 405);
    }
}

fn what_a_visitor_has_sent_runs_nothing(kind: Kind) {
    let site = site(kind);
    for (target, media_type, policy) in [
        ("/pictures/1", "image/png", ""),
        (
            "/pictures/3",
            "image/svg+xml",
            "sandbox; default-src 'none'",
        ),
        ("/pictures/4", "text/plain; charset=utf-8", ""),
        (
            "/pictures/8",
            "text/html; charset=utf-8",
            "sandbox; default-src 'none'",
        ),
        (
            "/literal/3",
            "text/html; charset=utf-8",
            "sandbox; default-src 'none'",
        ),
    ] {
        for _ in 0..2 {
            let answer = site.get(target);
            assert_eq!(answer.field("content-type"), media_type, "{target}");
            assert_eq!(answer.field("content-security-policy"), policy, "{target}");
            assert_eq!(answer.field("x-content-type-options"), "nosniff");
        }
    }
    let hidden = site.get("/pictures/8");
    assert_eq!(
        hidden.field("content-disposition"),
        "inline; filename=\"xgpj.exe\""
    );
    assert_eq!(
        site.get("/pictures/4").field("content-disposition"),
        "inline; filename=\"x.js\""
    );
}

#[test]
fn what_is_compressed_already_is_not_compressed() {
    let site = TestSite::new(&[
        ("migrations/0002_picture.sql", TABLE),
        ("pages/pictures/[id].sql", PAGE),
    ]);
    let ask = |target: &str| {
        site.ask(&OwnedRequest::new("GET", target).field("Accept-Encoding", "gzip, br"))
    };
    for target in ["/pictures/6", "/pictures/7"] {
        assert_eq!(ask(target).cache(), "fwd=miss; stored");
    }
    site.until("text is compressed", || {
        !ask("/pictures/6").field("content-encoding").is_empty()
    });
    assert_eq!(ask("/pictures/7").field("content-encoding"), "");
    assert_eq!(ask("/pictures/7").field("vary"), "");
}

#[test]
fn a_large_file_is_in_memory_once() {
    let site = TestSite::new(&[
        ("migrations/0002_picture.sql", TABLE),
        (
            "migrations/0003_large.sql",
            "insert into picture values (9, zeroblob(4000000), 'image/png', 'large.png');",
        ),
        ("pages/pictures/[id].sql", PAGE),
    ]);
    assert_eq!(site.get("/pictures/9").cache(), "fwd=miss; stored");
    assert_eq!(site.get("/pictures/9").cache(), "hit");
    let memory = site.site.stats().store.bytes;
    assert!((4_000_000..4_500_000).contains(&memory), "{memory}");
}

#[test]
fn faults_of_the_line_are_named() {
    let said = |page: &str, more: &[(&str, &str)]| {
        let files = [
            ("migrations/0002_picture.sql", TABLE),
            ("pages/a/[id].sql", page),
        ];
        problems(&[&files, more].concat())
    };
    for (line, expected) in [
        (
            "-- bytes: pictur.data",
            "pages/a/[id].sql:1:11: there is no query `pictur`\n  hint: did you mean `picture`?",
        ),
        (
            "-- bytes: picture.dato",
            "pages/a/[id].sql:1:19: `picture` has no column `dato`\n  hint: did you mean `data`?",
        ),
        (
            "-- bytes: picture.data type picture.typ",
            "pages/a/[id].sql:1:37: `picture` has no column `typ`\n  hint: did you mean `type`?",
        ),
        (
            "-- bytes: picture.data tpye image/png",
            "pages/a/[id].sql:1:24: `tpye` says nothing about bytes\n  hint: what follows the column is `type …`, `name …` and `attachment`",
        ),
        (
            "-- byte: picture.data",
            "pages/a/[id].sql:1:1: `-- byte: picture.data` would be a comment\n  hint: did you mean `-- bytes: picture.data`? If it is a comment, begin it with another word",
        ),
    ] {
        let page = PAGE.replacen(PAGE.lines().next().unwrap(), line, 1);
        assert_eq!(said(&page, &[]), expected);
    }
    let many = said(&PAGE.replace(":one", ":many"), &[]);
    assert!(
        many.contains("`picture` gives many rows") && many.contains("-- name: picture :one"),
        "{many}"
    );
    let template = said(PAGE, &[("pages/a/[id].html", "x")]);
    assert!(
        template.contains("a page of bytes has no template"),
        "{template}"
    );
    let form = "-- name: a :exec\ndelete from picture;\n-- bytes: a.b\n-- redirect: /\n";
    let form = said(PAGE, &[("pages/b.post.sql", form)]);
    assert!(
        form.contains("pages/b.post.sql:3:1: only a page answers with bytes"),
        "{form}"
    );
    let twice = said(&format!("-- bytes: picture.data\n{PAGE}"), &[]);
    assert!(twice.contains(":2:1: a second `bytes`"), "{twice}");
}
