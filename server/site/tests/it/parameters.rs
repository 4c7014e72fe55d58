//! Parameters as people need them: left out, one of several values, lists, orders; and values that
//! the database does not take.

use millpond_site::{Config, check};

use crate::{
    both::{Housed, Kind, on_both},
    support::{TestSite, problems},
};

on_both!(
    an_empty_field_is_not_given,
    a_value_is_one_of_several,
    an_order_is_chosen_safely,
    a_path_that_cannot_be_is_no_page,
    a_number_that_is_too_large_is_no_fault_of_the_site,
    a_search_expression_that_is_none_is_a_400,
    a_declared_type_stands_where_the_database_finds_none,
);

fn an_empty_field_is_not_given(kind: Kind) {
    let site = Housed::new(
        kind,
        &[(
            "pages/list.sql",
            "-- param: id integer = null\n-- param: page integer = 1\n-- name: a :many\nselect title from article where (id = :id or :id is null) order by id limit 1 offset :page - 1;\n",
        )],
    );
    let one = r#"{"a":[{"title":"One"}]}"#;
    site.until("the page is kept", || site.get("/list").cache() == "hit");
    assert_eq!(site.get("/list").body, one);
    let empty = site.get("/list?id=&page=");
    assert_eq!((empty.cache(), &*empty.body), ("hit", one));
    assert_eq!(site.get("/list?page=2").body, r#"{"a":[{"title":"Two"}]}"#);
    assert_eq!(site.get("/list?id=2").body, r#"{"a":[{"title":"Two"}]}"#);
    assert_eq!(site.get("/list?page=x").status, 400);
}

fn a_value_is_one_of_several(kind: Kind) {
    let site = Housed::new(
        kind,
        &[
            (
                "pages/list.sql",
                "-- param: size integer in (1, 2) = 2\n-- name: a :many\nselect title from article order by id limit :size;\n",
            ),
            ("pages/by/[kind].sql", "-- param: kind text in (old, new)\n"),
            ("pages/by/[kind].html", "{{ params.kind }}"),
        ],
    );
    assert_eq!(site.get("/list?size=1").body, r#"{"a":[{"title":"One"}]}"#);
    assert_eq!(site.get("/list").body, site.get("/list?size=2").body);
    let refused = site.get("/list?size=3");
    let sentence = r#""detail":"The parameter \"size\" must be one of 1, 2.""#;
    assert_eq!(refused.status, 400);
    assert!(refused.body.contains(sentence), "{}", refused.body);
    assert_eq!(site.get("/by/new").body, "new");
    assert_eq!(site.get("/by/other").status, 404);
}

fn an_order_is_chosen_safely(kind: Kind) {
    let files = [
        (
            "pages/list.sql",
            "-- order: sort: id = \"a.id\", -id = \"a.id desc\", title = \"a.title desc, a.id\"\n-- order: first: all = \"a.id\", new = \"a.id desc\"\n-- name: a :many\nselect a.title from article a order by :sort limit 5;\n-- name: b :many\nselect id from article a order by :first limit 1;\n",
        ),
        (
            "pages/list.html",
            "{{ params.sort }}:{% for x in a %} {{ x.title }}{% endfor %}{% for x in b %} {{ x.id }}{% endfor %}",
        ),
        (
            "pages/title.post.sql",
            "-- param: id integer\n-- param: title text\n-- name: change :exec\nupdate article set title = :title where id = :id;\n-- redirect: /\n",
        ),
    ];
    let site = Housed::new(kind, &files);
    for (target, expected) in [
        ("/list", "id: One Two 1"),
        ("/list?sort=-id", "-id: Two One 1"),
        ("/list?sort=title&first=new", "title: Two One 2"),
        ("/list?sort=id&first=", "id: One Two 1"),
    ] {
        assert_eq!(site.get(target).body, expected, "{target}");
    }
    assert_eq!(site.get("/list?sort=").cache(), "hit");
    let refused = site.get("/list?sort=a.id;+drop+table+article");
    let sentence = "The parameter \"sort\" must be one of id, -id, title.\n";
    assert_eq!((refused.status, &*refused.body), (400, sentence));
    assert_eq!(site.post("/title", "id=1&title=Zzz").status, 303);
    assert_eq!(site.get("/list?sort=title").body, "title: Zzz Two 1");
    assert_eq!(site.get("/list?sort=-id").body, "-id: Two Zzz 1");

    let config = Config::read(site.dir.path()).unwrap();
    let report = check(site.dir.path(), &config).unwrap();
    let names: Vec<_> = report.queries.iter().map(|query| &*query.name).collect();
    let expected = [
        "a (sort = id)",
        "a (sort = -id)",
        "a (sort = title)",
        "b (first = all)",
        "b (first = new)",
    ];
    assert_eq!(names, expected);
}

fn a_path_that_cannot_be_is_no_page(kind: Kind) {
    let site = Housed::new(
        kind,
        &[
            (
                "pages/albums/[id].sql",
                "-- name: a :one\nselect title from article where id = :id;\n",
            ),
            ("pages/albums/[id].html", "{{ a.title }}"),
            ("pages/404.html", "nothing here"),
            (
                "pages/albums/[id].post.sql",
                "-- name: a :exec\nupdate article set title = title where id = :id;\n-- redirect: /\n",
            ),
        ],
    );
    assert_eq!(site.get("/albums/1").status, 200);
    let entries = site.site.stats().store.entries;
    for part in ["abc", "1.0", "99999999999999999999", "%00", "1%20"] {
        for _ in 0..2 {
            let answer = site.get(&format!("/albums/{part}"));
            let expected = if part == "%00" { 400 } else { 404 };
            assert_eq!(answer.status, expected, "{part}");
            assert!(part == "%00" || answer.body == "nothing here");
        }
    }
    assert_eq!(
        site.site.stats().store.entries,
        entries,
        "nothing of it is kept"
    );
    assert_eq!(site.post("/albums/abc", "").status, 404);
    // A number that no row can have is kept as any page that does not exist, within its budget.
    assert_eq!(site.get("/albums/9223372036854775807").status, 404);
}

fn a_number_that_is_too_large_is_no_fault_of_the_site(kind: Kind) {
    let site = Housed::new(
        kind,
        &[
            (
                "pages/list.sql",
                "-- param: page integer = 1\n-- param: size integer = 20\n-- name: a :many\nselect title from article order by id limit :size offset (:page - 1) * 20;\n",
            ),
            (
                "pages/undeclared.sql",
                "-- name: a :many\nselect title from article order by id limit :size offset (:page - 1) * 20;\n",
            ),
        ],
    );
    assert_eq!(site.get("/list?page=1000").body, r#"{"a":[]}"#);
    for target in [
        "/list?page=9223372036854775807",
        "/list?page=9223372036854775808",
        "/list?page=-9223372036854775808",
        "/list?size=9223372036854775808",
    ] {
        let answer = site.get(target);
        assert_eq!(answer.status, 400, "{target}: {}", answer.body);
        let names = ["page", "size"].map(|name| format!("\\\"{name}\\\""));
        assert!(names.iter().any(|name| answer.body.contains(name)));
        assert!(!answer.body.contains("offset"), "{}", answer.body);
    }
    assert!([200, 400].contains(&site.get("/list?size=9223372036854775807").status));
    assert_eq!(site.get("/list").status, 200);
    assert_eq!(
        site.get("/undeclared?page=1&size=1").body,
        r#"{"a":[{"title":"One"}]}"#
    );
    assert_eq!(site.get("/undeclared?page=x&size=1").status, 400);
}

fn a_search_expression_that_is_none_is_a_400(kind: Kind) {
    let (migration, query) = match kind {
        Kind::Sqlite => (
            "create virtual table note using fts5(body); insert into note values ('loud AC/DC')",
            "select body from note where note match :q",
        ),
        Kind::Postgres => (
            "create table note (id integer primary key, body text); insert into note values (1, 'loud AC/DC')",
            "select body from note where to_tsvector('simple', body) @@ to_tsquery('simple', :q)",
        ),
    };
    let file = match kind {
        Kind::Sqlite => "migrations/0002_note.sql",
        Kind::Postgres => "migrations/0002_note.postgres.sql",
    };
    let phrase = match kind {
        Kind::Sqlite => {
            "select body from note where note match '\"' || replace(:q, '\"', '\"\"') || '\"'"
        }
        Kind::Postgres => {
            "select body from note where to_tsvector('simple', body) @@ websearch_to_tsquery('simple', :q)"
        }
    };
    let own = format!("-- param: q text\n-- name: a :many\n{query};\n");
    let safe = format!("-- param: q text\n-- name: a :many\n{phrase};\n");
    let site = Housed::new(
        kind,
        &[
            (file, migration),
            ("pages/own.sql", &own),
            ("pages/safe.sql", &safe),
        ],
    );
    let loud = r#"{"a":[{"body":"loud AC/DC"}]}"#;
    assert_eq!(site.get("/own?q=loud").body, loud);
    let broken: &[&str] = match kind {
        Kind::Sqlite => &["AC/DC", "%22abc", "a:b", "(", ""],
        Kind::Postgres => &["a+b", "(", "a+%26"],
    };
    for q in broken {
        let answer = site.get(&format!("/own?q={q}"));
        let sentence = r#""detail":"The parameter \"q\" has a value that cannot be used.""#;
        assert_eq!(answer.status, 400, "{q}");
        assert!(answer.body.contains(sentence), "{q}: {}", answer.body);
    }
    if matches!(kind, Kind::Sqlite) {
        assert_eq!(site.get("/own?q=loud").cache(), "hit");
    }
    for q in ["AC/DC", "%22abc", "(", "a:b", ""] {
        assert_eq!(site.get(&format!("/safe?q={q}")).status, 200, "{q}");
    }
    assert_eq!(site.get("/safe?q=AC/DC").body, loud);
}

#[test]
fn a_type_is_known_from_another_query_from_a_view_and_from_an_expression() {
    let site = TestSite::new(&[
        (
            "migrations/0002_view.sql",
            "create view shown as select a.id, a.title, count(c.id) as said from article a \
             left join comment c on c.article_id = a.id group by a.id;\n",
        ),
        (
            "pages/a.sql",
            "-- name: given :one\nselect :id is not null as given;\n\
             -- name: row :one?\nselect title from shown where id = :id;\n\
             -- name: like :many\nselect id from article where lower(title) = lower(:title) or body like '%' || :q || '%' \
             limit max(:n, 1);\n",
        ),
    ]);
    let page = site.get("/a?id=2&title=ONE&q=second&n=5");
    assert_eq!(
        page.body.trim_end(),
        "{\"given\":{\"given\":1},\"row\":{\"title\":\"Two\"},\"like\":[{\"id\":1},{\"id\":2}]}"
    );
    for wrong in ["id=x&title=&q=&n=5", "id=2&title=&q=&n=x"] {
        assert_eq!(site.get(&format!("/a?{wrong}")).status, 400, "{wrong}");
    }
}

#[test]
fn what_would_not_do_what_is_meant_is_refused() {
    let query = "-- name: a :many\nselect title from article where id = :id;\n";
    for (file, text, expected) in [
        (
            "a.sql",
            "-- parm: id integer\n",
            "pages/a.sql:1:1: `-- parm: id integer` would be a comment\n  hint: did you mean `-- param: id integer`?",
        ),
        (
            "a.sql",
            "-- param: idd integer\n",
            "pages/a.sql:3:38: no line declares the parameter `:id`\n  hint: did you mean `:idd`?",
        ),
        (
            "a.sql",
            "-- param: old text\n",
            "pages/a.sql:1:1: nothing uses the parameter `old`\n  hint: remove the line",
        ),
        (
            "[id]/a.sql",
            "-- param: id integer = 1\n",
            "pages/[id]/a.sql:1:1: `id`: a part of the path is always there",
        ),
        (
            "[id]/a.sql",
            "-- param: id integer[]\n",
            "pages/[id]/a.sql:1:1: `id`: a part of the path is one value",
        ),
        (
            "a.sql",
            "-- param: id integer[]\n",
            "pages/a.sql:3:38: `:id` is a list, and here stands one value\n  hint: write `in (:id)`",
        ),
        (
            "a.sql",
            "-- order: sort: id = \"id\"\n",
            "pages/a.sql:1:1: nothing uses the parameter `sort`",
        ),
        (
            "a.post.sql",
            "-- order: id: id = \"id\"\n-- redirect: /\n",
            "pages/a.post.sql:1:1: only a page has an order",
        ),
        (
            "a.post.sql",
            "-- redirect: /?x=:idd\n",
            "hint: did you mean `:id`?",
        ),
        (
            "a.post.sql",
            "-- param: old text\n-- redirect: /\n",
            "pages/a.post.sql:1:1: nothing uses the parameter `old`",
        ),
    ] {
        let found = problems(&[(&format!("pages/{file}"), &format!("{text}{query}"))]);
        assert!(found.contains(expected), "{text}: {found}");
    }
    let found = problems(&[(
        "pages/a.sql",
        "-- param: id integer\n-- name: a :one\nselect title from article where id = :id;\n-- name: b :many\nselect who from comment\nwhere article_id = :idd;\n",
    )]);
    let expected = "pages/a.sql:6:20: no line declares the parameter `:idd`\n  hint: did you mean `:id`? If not, declare it: -- param: idd text";
    assert_eq!(found, expected);
    let found = problems(&[(
        "pages/a.sql",
        "-- param: id integer\n-- order: sort: id = \"a.id\", bad = \"a.absent\"\n-- name: a :many\nselect title from article a where id = :id\norder by :sort;\n",
    )]);
    assert!(
        found.contains("pages/a.sql:5:10: query `a` with sort = bad: no such column"),
        "{found}"
    );
    // Templates use parameters too.
    for template in [
        "{{ params.q }}",
        "{% for name in params %}{{ name }}{% endfor %}",
        "{% include 'x.html' %}",
    ] {
        let found = problems(&[
            ("pages/a.sql", "-- param: q text = ''\n"),
            ("pages/a.html", template),
            ("templates/x.html", "{{ params.q }}"),
        ]);
        assert_eq!(found, "", "{template}");
    }
}

#[test]
fn after_a_wrong_password_the_address_is_kept() {
    let sign_in = |target: &str, rest: &str| {
        format!(
            "-- param: name text\n{rest}-- name: account :one?\nselect title as hash from article where title = :name;\n-- verify: account.hash = :password else {target}\n-- claims: user = account.hash\n-- redirect: :next else /\n"
        )
    };
    let form = sign_in("/login?failed=1&next=:next#form", "");
    let site = Housed::new(Kind::Sqlite, &[("pages/login.post.sql", &form)]);
    for (next, expected) in [
        (
            "&next=%2Fa%3Fb%3Dc%26d",
            "/login?failed=1&next=%2Fa%3Fb%3Dc%26d#form",
        ),
        (
            "&next=%2F%2Fevil.example",
            "/login?failed=1&next=%2F%2Fevil.example#form",
        ),
        ("&next=%0D%0AX%3A1", "/login?failed=1&next=%0AX%3A1#form"),
        ("", "/login?failed=1&next=#form"),
    ] {
        let answer = site.post("/login", &format!("name=x&password=y{next}"));
        assert_eq!((answer.status, answer.field("location")), (303, expected));
    }
    for (target, rest, expected) in [
        (
            "/login?next=:nxt",
            "",
            "pages/login.post.sql:4:55: after `else` stands `:nxt`, which is no parameter of the form\n  hint: did you mean `next`?",
        ),
        (
            "/login?p=:password",
            "",
            "the password `:password` would stand in an address",
        ),
        (
            "/login?l=:l",
            "-- param: l text[]\n",
            "`:l` is a list, and an address takes one value",
        ),
        (
            "/login",
            "-- param: old text\n",
            "pages/login.post.sql:2:1: nothing uses the parameter `old`",
        ),
    ] {
        let found = problems(&[("pages/login.post.sql", &sign_in(target, rest))]);
        assert!(found.contains(expected), "{target}: {found}");
    }
    let host = "/:next";
    let site = Housed::new(
        Kind::Sqlite,
        &[("pages/login.post.sql", &sign_in(host, ""))],
    );
    let answer = site.post("/login", "name=x&password=y&next=%2Fevil.example");
    assert_eq!(answer.field("location"), "/%2Fevil.example");
}

#[test]
fn a_value_with_which_postgresql_cannot_compute_is_no_fault_of_the_site() {
    let query = |expression: &str| {
        format!(
            "-- param: y integer\n-- param: t text = ''\n-- name: a :one\nselect {expression} as x, :t as t;\n"
        )
    };
    let expressions = [
        ("divide", "10 / :y::integer"),
        ("range", "(:y * 1000000000)::integer"),
        ("log", "ln(:y::float8)"),
        ("power", "power(:y::float8, 0.5)"),
        ("read", "(:t || 'x')::integer + :y"),
        ("date", "(:t || '2026-13-01')::date + :y::integer"),
        (
            "series",
            "(select count(*) from generate_series(1, 9, :y::integer))",
        ),
        ("limit", "(select 1 limit :y)"),
    ];
    let files: Vec<(String, String)> = expressions
        .iter()
        .map(|(name, expression)| (format!("pages/{name}.sql"), query(expression)))
        .collect();
    let mut files: Vec<(&str, &str)> = files.iter().map(|(a, b)| (&**a, &**b)).collect();
    let own = "-- name: a :one\nselect 1 / (select count(*) from article where id = 0) as x;\n";
    files.push(("pages/own.sql", own));
    let site = Housed::new(Kind::Postgres, &files);
    for (name, y) in [
        ("divide", 0),
        ("range", 9),
        ("log", -1),
        ("power", -1),
        ("read", 1),
        ("date", 1),
        ("series", 0),
        ("limit", -1),
    ] {
        let answer = site.get(&format!("/{name}?y={y}"));
        assert_eq!(answer.status, 400, "{name}: {}", answer.body);
        let names = ["\"y\"", "y\\\""];
        assert!(
            names.iter().any(|name| answer.body.contains(name)),
            "{}",
            answer.body
        );
    }
    assert_eq!(site.get("/divide?y=5").body, r#"{"a":{"x":2,"t":""}}"#);
    // No request gave a value.
    assert_eq!(site.get("/own").status, 500);
}

fn a_declared_type_stands_where_the_database_finds_none(kind: Kind) {
    let site = Housed::new(
        kind,
        &[
            (
                "pages/list.sql",
                "-- param: title text = null\n-- param: id integer = null\n\
                 -- name: a :many\nselect title from article where (:title is null or title = :title) and (:id is null or id = :id) order by id;\n",
            ),
            (
                "pages/given.sql",
                "-- param: x real = null\n-- param: y boolean = null\n-- param: z text = 'a'\n\
                 -- name: a :one\nselect :x is null as x, :y is null as y, :z as z;\n",
            ),
            (
                "pages/add.post.sql",
                "-- param: more integer = null\n-- name: add :exec\n\
                 insert into article (id, title) select 7, 'Seven' where :more is null;\n-- redirect: /list\n",
            ),
        ],
    );
    let both = r#"{"a":[{"title":"One"},{"title":"Two"}]}"#;
    assert_eq!(site.get("/list").body, both);
    assert_eq!(
        site.get("/list?title=Two").body,
        r#"{"a":[{"title":"Two"}]}"#
    );
    assert_eq!(site.get("/list?id=1").body, r#"{"a":[{"title":"One"}]}"#);
    assert_eq!(site.get("/list?id=1&title=Two").body, r#"{"a":[]}"#);
    assert_eq!(site.get("/list?id=x").status, 400);
    let given = match kind {
        Kind::Sqlite => r#"{"a":{"x":0,"y":1,"z":"b"}}"#,
        Kind::Postgres => r#"{"a":{"x":false,"y":true,"z":"b"}}"#,
    };
    assert_eq!(site.get("/given?x=1.5&z=b").body, given);
    assert_eq!(site.post("/add", "more=1").status, 303);
    assert_eq!(site.get("/list").body, both);
    assert_eq!(site.post("/add", "").status, 303);
    assert!(site.get("/list").body.contains("Seven"));
}

#[test]
fn a_month_and_a_slug_are_types() {
    let site = TestSite::new(&[
        (
            "pages/programme.sql",
            "-- param: month month from 2026-01 = 2026-03\n-- param: slug slug = ''\n",
        ),
        (
            "pages/programme.html",
            "{{ params.month }} {{ params.slug }}",
        ),
    ]);
    for (query, status, body) in [
        ("", 200, "2026-03 "),
        ("?month=2026-11&slug=tea-time", 200, "2026-11 tea-time"),
        (
            "?month=abc",
            400,
            "The parameter \"month\" must be a month such as 2026-03.\n",
        ),
        (
            "?month=2025-12",
            400,
            "The parameter \"month\" must be at least 2026-01.\n",
        ),
        (
            "?slug=Tea%20Time",
            400,
            "The parameter \"slug\" must be small letters and digits with hyphens between, such as tea-and-cake.\n",
        ),
    ] {
        let answer = site.get(&format!("/programme{query}"));
        assert_eq!((answer.status, &*answer.body), (status, body), "{query}");
    }
}
