//! Templates with queries of their own, shown by pages that need not know of them.

use crate::{
    both::{Housed, Kind, on_both},
    sessions,
    support::problems,
};

on_both!(
    a_menu_is_kept_once_and_ends_the_pages_that_show_it,
    a_page_has_the_parameters_of_what_it_shows,
    what_depends_on_the_visitor_is_not_shared,
);

const LAYOUT: (&str, &str) = (
    "templates/layout.html",
    "{% include 'parts/menu.html' %}|{% block main %}{% endblock %}",
);
const MENU: (&str, &str) = (
    "templates/parts/menu.html",
    "{% for entry in menu %}{{ entry.title }},{% endfor %}",
);
const MENU_SQL: (&str, &str) = (
    "templates/parts/menu.sql",
    "-- name: menu :many\nselect title from article order by id;\n",
);

fn a_menu_is_kept_once_and_ends_the_pages_that_show_it(kind: Kind) {
    let site = Housed::new(
        kind,
        &[
            LAYOUT,
            MENU,
            MENU_SQL,
            (
                "pages/a.html",
                "{% extends 'layout.html' %}{% block main %}a{% endblock %}",
            ),
            (
                "pages/b.html",
                "{% extends 'layout.html' %}{% block main %}{{ n.n }}{% endblock %}",
            ),
            (
                "pages/b.sql",
                "-- name: n :one\nselect count(*) as n from comment;\n",
            ),
            ("pages/c.html", "none"),
        ],
    );
    let entries = || site.site.stats().store.entries;
    assert_eq!(entries(), 0);
    assert_eq!(site.get("/a").body, "One,Two,|a");
    assert_eq!(entries(), 2, "the page and the menu");
    assert_eq!(site.get("/b").body, "One,Two,|0");
    assert_eq!(entries(), 4, "and a page and its own query");
    assert_eq!(site.get("/c").body, "none");
    for page in ["/a", "/b", "/c"] {
        assert_eq!(site.get(page).cache(), "hit", "{page}");
    }
    site.run("update article set title = 'Uno' where id = 1");
    site.until("the menu changes", || {
        site.get("/a").body == "Uno,Two,|a" && site.get("/b").body == "Uno,Two,|0"
    });
    site.run("insert into comment (id, article_id, who) values (9, 1, 'Ann')");
    site.until("the count changes", || site.get("/b").body == "Uno,Two,|1");
    if matches!(kind, Kind::Postgres) {
        assert_eq!(site.get("/a").cache(), "hit", "it shows no comments");
    }
}

fn a_page_has_the_parameters_of_what_it_shows(kind: Kind) {
    let site = Housed::new(
        kind,
        &[
            (
                "templates/near.html",
                "{% for a in near %}{{ a.title }}{% endfor %}{{ params.least }}",
            ),
            (
                "templates/near.sql",
                "-- param: id integer = 1\n-- param: least integer = 0\n-- order: way: up = \"id\", down = \"id desc\"\n\
                 -- name: near :many\nselect title from article where id >= :id and id > :least order by :way;\n",
            ),
            (
                "pages/of/[id].html",
                "{{ own.title }}:{% include 'near.html' %}",
            ),
            (
                "pages/of/[id].sql",
                "-- name: own :one\nselect title from article where id = :id;\n",
            ),
            ("pages/all.html", "{% include 'near.html' %}"),
        ],
    );
    assert_eq!(site.get("/of/2").body, "Two:Two0");
    assert_eq!(site.get("/of/1").body, "One:OneTwo0");
    assert_eq!(site.get("/of/1?way=down").body, "One:TwoOne0");
    assert_eq!(site.get("/of/x").status, 404);
    assert_eq!(site.get("/all").body, "OneTwo0");
    assert_eq!(site.get("/all?least=1").body, "Two1");
    assert_eq!(site.get("/all?least=x").status, 400);
    assert_eq!(site.get("/all?id=2").body, "Two0");
}

fn what_depends_on_the_visitor_is_not_shared(kind: Kind) {
    let mut files = sessions::SITE.to_vec();
    files.extend([
        (
            "templates/mine.html",
            "{% for n in mine %}{{ n.body }},{% endfor %}{{ request.claims.name }}",
        ),
        (
            "templates/mine.sql",
            "-- vary: claims.name\n-- name: mine :many\n\
             select body from note where tenant = :claims.tenant order by id;\n",
        ),
        ("pages/page.html", "{% include 'mine.html' %}"),
    ]);
    let site = Housed::new(kind, &files);
    let ann = sessions::register(&site, "Ann", 1, "reader");
    let bob = sessions::register(&site, "Bob", 2, "reader");
    site.run("insert into note (id, tenant, body) values (8, 1, 'of one'), (9, 2, 'of two')");
    let of = |cookie: &str| sessions::get(&site, "/page", cookie);
    site.until("the notes show", || of(&ann).body == "of one,Ann");
    site.until("the others too", || of(&bob).body == "of two,Bob");
    site.until("both are kept", || {
        of(&ann).cache() == "hit" && of(&bob).cache() == "hit"
    });
    assert_eq!(of(&bob).body, "of two,Bob");
    assert_eq!(site.get("/page").body, "");
    assert_eq!(of(&ann).body, "of one,Ann");
}

#[test]
fn an_error_page_shows_partials_without_rows() {
    let site = Housed::new(
        Kind::Sqlite,
        &[
            LAYOUT,
            MENU,
            MENU_SQL,
            (
                "pages/404.html",
                "{% extends 'layout.html' %}{% block main %}no such page{% endblock %}",
            ),
        ],
    );
    let page = site.get("/nothing");
    assert_eq!((page.status, &*page.body), (404, "|no such page"));
}

#[test]
fn what_is_wrong_with_a_partial_is_said_once() {
    let layout = [LAYOUT, MENU];
    let page = [
        ("pages/a.html", "{% extends 'layout.html' %}"),
        ("pages/b.html", "{% extends 'layout.html' %}"),
    ];
    let found = |files: &[(&str, &str)]| problems(&[&layout[..], &page[..], files].concat());
    let menu = |sql: &str| found(&[("templates/parts/menu.sql", sql)]);
    assert_eq!(
        menu("-- name: menu :many\nselect titel from article;\n"),
        "templates/parts/menu.sql:2:8: query `menu`: no such column: titel\n  hint: did you mean title?"
    );
    assert_eq!(
        menu("-- name: menu :many\nselect title from article where id = :id;\n"),
        "templates/parts/menu.sql:2:38: no line declares the parameter `:id`\n  hint: declare it: -- param: id integer"
    );
    assert_eq!(
        menu("-- param: id integer\n-- name: menu :many\nselect title from article;\n"),
        "templates/parts/menu.sql:1:1: nothing uses the parameter `id`\n  hint: remove the line, or write `:id` into a query"
    );
    assert_eq!(
        menu("-- name: menu :exec\ndelete from article;\n"),
        "templates/parts/menu.sql:1:1: query `menu` writes\n  hint: what writes is a form: a .post.sql file below pages/"
    );
    assert_eq!(
        menu(
            "-- require: claims.user else /login\n-- name: menu :many\nselect title from article;\n"
        ),
        "templates/parts/menu.sql: only a page or a form says who may enter\n  \
         hint: put the `-- require:` line into the .sql file of each page"
    );
    assert_eq!(
        menu("-- name: menu :many\nselect title from article;\n-- redirect: /\n"),
        "templates/parts/menu.sql:3:1: only a page or a form redirects\n  hint: put the line into a .sql file below pages/"
    );
    assert_eq!(
        found(&[MENU_SQL, ("templates/parts/mnu.sql", MENU_SQL.1)]),
        "templates/parts/mnu.sql: there is no templates/parts/mnu.html beside it\n  hint: did you mean parts/menu.sql?"
    );
    assert_eq!(
        found(&[MENU_SQL, ("templates/parts/menu.post.sql", MENU_SQL.1)]),
        "templates/parts/menu.post.sql: a form has an address, and templates have none\n  hint: put it below pages/"
    );
}

#[test]
fn what_does_not_fit_a_page_is_said_with_the_page() {
    let files = [
        LAYOUT,
        MENU,
        ("pages/a.html", "{% extends 'layout.html' %}"),
    ];
    let found = |sql: &str, page: &str| {
        let own = [("templates/parts/menu.sql", sql), ("pages/a.sql", page)];
        problems(&[&files[..], &own[..]].concat())
    };
    let by_id =
        "-- param: id integer\n-- name: menu :many\nselect title from article where id = :id;\n";
    assert_eq!(
        found(by_id, ""),
        "templates/parts/menu.sql:1:1: `id` has no default, and pages/a.sql, which shows this, has no such parameter\n  \
         hint: declare it there too, or give it a default here, such as `= null`"
    );
    assert_eq!(
        found(
            by_id,
            "-- param: id text\n-- name: x :one\nselect :id as x;\n"
        ),
        "templates/parts/menu.sql:1:1: `id` is declared otherwise than in pages/a.sql, which shows this\n  \
         hint: declare both alike, or give one of them another name"
    );
    assert_eq!(
        found(MENU_SQL.1, "-- name: menu :one\nselect 1 as x;\n"),
        "templates/parts/menu.sql:1:1: `menu` is also a query of pages/a.sql, and one page shows both\n  \
         hint: give one of them another name"
    );
    // What a page does not show does not concern it.
    assert_eq!(
        problems(&[
            MENU,
            MENU_SQL,
            ("pages/a.html", "x"),
            ("pages/a.sql", "-- name: menu :one\nselect 1 as x;\n"),
        ]),
        ""
    );
}
