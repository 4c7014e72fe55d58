//! What is allowed and probably not meant: the notes of `millpond check` on templates, links, forms
//! and columns.

use millpond_site::{CheckReport, Config, Problem, check};

use crate::{
    both::{Housed, Kind},
    support::folder,
};

fn report(files: &[(&str, &str)]) -> CheckReport {
    let dir = folder(files);
    let config = Config::read(dir.path()).unwrap();
    check(dir.path(), &config).unwrap()
}

/// The notes on a site with these files.
fn notes(files: &[(&str, &str)]) -> Vec<String> {
    report(files).notes.iter().map(Problem::to_string).collect()
}

const CLOCK: (&str, &str) = (
    "templates/clock.html",
    "{% for c in clock %}{{ c.now }}{% endfor %}",
);
const CLOCK_SQL: (&str, &str) = (
    "templates/clock.sql",
    "-- name: clock :many\nselect datetime('now') as now, count(*) as n from article;\n",
);
const SHOWS_CLOCK: &str = "{% include 'clock.html' %}";

#[test]
fn a_partial_that_is_not_kept_is_named_with_the_pages_that_show_it() {
    let files = [
        CLOCK,
        CLOCK_SQL,
        ("pages/a.html", SHOWS_CLOCK),
        ("pages/b.html", "{% include 'clock.html' %}{{ n.n }}"),
        (
            "pages/b.sql",
            "-- name: n :one\nselect count(*) as n from comment;\n",
        ),
        // Its own query keeps it out of memory too.
        ("pages/c.html", "{% include 'clock.html' %}{{ r.r }}"),
        ("pages/c.sql", "-- name: r :one\nselect random() as r;\n"),
    ];
    let found = report(&files);
    let said: Vec<String> = found.notes.iter().map(Problem::to_string).collect();
    assert_eq!(
        said,
        [
            "templates/clock.sql:1:1: query `clock` is not kept in memory (datetime() reads the clock), so none of the 2 pages that show it is: pages/a.html, pages/b.sql\n  \
             hint: \"-- max-age: 60s\" below its name keeps them for so long; what is shown may be that old"
        ]
    );
    let shown = |name: &str| {
        let mut queries = found.queries.iter();
        let query = queries.find(|query| query.name == name).unwrap();
        let pages = query.shown_by.iter();
        pages
            .map(|page| page.display().to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        shown("clock"),
        ["pages/a.html", "pages/b.sql", "pages/c.sql"]
    );
    assert!(shown("n").is_empty());
    let kept = CLOCK_SQL.1.replace(":many\n", ":many\n-- max-age: 60s\n");
    let kept = ("templates/clock.sql", &*kept);
    assert!(notes(&[CLOCK, kept, ("pages/a.html", SHOWS_CLOCK)]).is_empty());
}

const ALBUMS_SQL: (&str, &str) = (
    "pages/albums.sql",
    "-- param: sort text in (title, -title) = title\n-- param: page integer = 1\n\
     -- name: albums :many\nselect title from article where :sort = :sort order by title limit :page;\n",
);

#[test]
fn values_that_a_page_refuses_are_found_in_links_and_redirects() {
    let said = notes(&[
        ALBUMS_SQL,
        (
            "pages/albums.html",
            "{{ params | query(sort = 'foo', page = 2) }}{{ params | query(page = 'two') }}{{ params | query(sort = '-title') }}\n\
             <a href='?sort=foo'><a href=\"?page={{ params.page + 1 }}&amp;sort=x\"><a href='?utm_source=x'>",
        ),
        (
            "pages/a.html",
            "<a href=/albums?sort=-title#x>{# <a href='/albums?sort=foo'> #}<a href='/albums?srt=title'>\n\
             <a href='/albms'><a href='{{ request.path }}?sort=y'><a href='/albums/{{ 1 }}/x'><a href=/a><a href=//b/c>\
             <a href='/uploads/x.png'><img src=/none.png><a href='/albums{{ params }}'><a href=/go><a href=mailto:a@b>",
        ),
        (
            "pages/go.post.sql",
            "-- param: id integer\n-- name: a :exec\ndelete from comment where id = :id;\n-- redirect: /albums?page=:id&sort=none#:id\n",
        ),
    ]);
    assert_eq!(
        said,
        [
            "pages/albums.html:1:26: the page does not take `foo` for `sort`\n  hint: `sort` must be one of title, -title",
            "pages/albums.html:1:70: the page does not take `two` for `page`\n  hint: `page` must be a whole number",
            "pages/go.post.sql: the page /albums does not take `sort=none`\n  hint: `sort` must be one of title, -title",
            "pages/a.html:1:73: the page /albums has no parameter `srt`\n  hint: did you mean `sort`?",
            "pages/a.html:2:10: leads to /albms, and there is no such page\n  hint: did you mean /albums?",
            "pages/a.html:2:63: leads to /albums/…/x, and there is no such page\n  hint: did you mean /albums?",
            "pages/a.html:2:141: leads to /none.png, and there is no such page\n  hint: no page, file or rule has this address",
            "pages/a.html:2:189: leads to /go, which answers POST only\n  hint: what leads there asks with GET",
            "pages/albums.html:2:10: the page /albums does not take `sort=foo`\n  hint: `sort` must be one of title, -title",
            "pages/albums.html:2:30: the page /albums does not take `sort=x`\n  hint: `sort` must be one of title, -title",
        ]
    );
}

#[test]
fn fields_are_compared_with_what_the_form_takes() {
    let said = notes(&[
        ALBUMS_SQL,
        (
            "pages/albums.html",
            "<form><select name=srt><option>title</select>\n\
             <select name=sort><option value=''><option value=title><option value='{{ params.sort }}'><option value=tilte>Title</select>\n\
             <input type=hidden name=page value=one><input name=page value=one></form>{{ albums }}",
        ),
        (
            "pages/say.html",
            "<form method=post><textarea name=bdy><input name=bod></textarea><select name=who><option value=x></select>\n\
             <input type=radio name=kind value=c></form><select name=bodi>",
        ),
        (
            "pages/say.post.sql",
            "-- param: body text\n-- param: who text\n-- param: kind text in (a, b)\n-- name: a :exec\n\
             insert into article (title, body) values (:who || :kind, :body);\n-- redirect: /\n",
        ),
    ]);
    assert_eq!(
        said,
        [
            "pages/albums.html:1:20: GET /albums has no parameter `srt`\n  hint: did you mean `sort`?",
            "pages/albums.html:2:104: GET /albums does not take `tilte` for `sort`\n  hint: `sort` must be one of title, -title",
            "pages/albums.html:3:36: GET /albums does not take `one` for `page`\n  hint: `page` must be a whole number",
            "pages/say.html:1:34: POST /say has no parameter `bdy`\n  hint: did you mean `body`?",
            "pages/say.html:2:35: POST /say does not take `c` for `kind`\n  hint: `kind` must be one of a, b",
        ]
    );
}

#[test]
fn a_secret_that_nothing_names_is_a_note() {
    let account = (
        "migrations/0002_account.sql",
        "create table account (id integer primary key, name text, password_hash text, API_Token text);",
    );
    let all = "-- name: account :many\nselect * from account;\n";
    let said = notes(&[
        account,
        ("pages/api/all.sql", all),
        ("pages/all.csv.sql", all),
        (
            "pages/named.sql",
            "-- json: named\n-- name: account :many\nselect * from account;\n\
             -- name: named :many\nselect name, password_hash from account;\n",
        ),
        (
            "pages/api/all.post.sql",
            "-- param: name text\n-- name: made :one\ninsert into account (name, api_token) values (:name, 'x') returning *;\n",
        ),
        (
            "pages/api/token.post.sql",
            "-- param: name text\n-- name: made :one\ninsert into account (name) values (:name) returning id, api_token;\n",
        ),
        ("pages/shown.sql", all),
        (
            "pages/shown.html",
            "<script>let a = {{ account | tojson }}, b = {{ account | map(attribute='name') | list | tojson }}</script>\n\
             {% for a in account %}{{ a.name }}{{ a }}{{ a.name | tojson }}{% endfor %}{{ account | length }}",
        ),
        (
            "pages/fine.sql",
            "-- name: fine :many\nselect id, name from account;\n",
        ),
        ("pages/fine.json.html", "{{ fine }}"),
        (
            "pages/fine.json.sql",
            "-- name: fine :many\nselect id, name from account;\n",
        ),
    ]);
    let shown = "all of `account` is shown, also its column `password_hash`\n  hint: show the columns that visitors may see, or select no others";
    let hint = "hint: name the columns that may be seen in the place of the `*`";
    assert_eq!(
        said,
        [
            format!("pages/shown.html:1:20: {shown}").replace("password_hash", "API_Token"),
            format!("pages/shown.html:2:38: {shown}").replace("password_hash", "API_Token"),
            format!(
                "pages/all.csv.sql:1:1: /all.csv gives everyone whom it answers the column `password_hash` of `account`\n  {hint}"
            ),
            format!(
                "pages/api/all.sql:1:1: /api/all gives everyone whom it answers the column `password_hash` of `account`\n  {hint}"
            ),
            format!(
                "pages/api/all.post.sql:2:1: POST /api/all gives everyone whom it answers the column `password_hash` of `made`\n  {hint}"
            ),
        ]
    );
}

const MENU_SQL: (&str, &str) = (
    "templates/menu.sql",
    "-- name: menu :many\nselect title from article order by id;\n",
);

#[test]
fn what_an_error_page_would_say_of_an_empty_list_is_a_note() {
    let said = |menu: &str| {
        notes(&[
            ("templates/menu.html", menu),
            MENU_SQL,
            ("pages/404.html", "{% include 'menu.html' %}"),
            ("pages/a.html", "{% include 'menu.html' %}"),
        ])
    };
    let rows = "{% for m in menu %}{{ m.title }}";
    let note = "`menu` has no rows on error pages, as no query runs there (for pages/404.html)\n  \
                hint: write {% if request is defined %}…{% endif %} around what would be untrue there";
    assert_eq!(
        said(&format!("{rows}{{% else %}}no events{{% endfor %}}")),
        [format!("templates/menu.html:1:13: {note}")]
    );
    assert_eq!(
        said("{% if not menu %}no events{% endif %}"),
        [format!("templates/menu.html:1:11: {note}")]
    );
    for fine in [
        format!("{rows}{{% endfor %}}"),
        "{% if menu %}some{% endif %}".to_owned(),
        format!(
            "{{% if request is defined %}}{rows}{{% else %}}no events{{% endfor %}}{{% endif %}}"
        ),
    ] {
        assert!(said(&fine).is_empty(), "{fine}");
    }
}

#[test]
fn a_partial_leaves_out_on_error_pages_what_would_be_untrue_there() {
    let site = Housed::new(
        Kind::Sqlite,
        &[
            (
                "templates/menu.html",
                "{% if request is defined %}{% for m in menu %}{{ m.title }}{% else %}no events{% endfor %}{% endif %}",
            ),
            MENU_SQL,
            ("pages/404.html", "[{% include 'menu.html' %}]"),
            ("pages/a.html", "[{% include 'menu.html' %}]"),
        ],
    );
    assert_eq!(site.get("/none").body, "[]");
    assert_eq!(site.get("/a").body, "[OneTwo]");
    assert_eq!(site.get("/a").cache(), "hit", "the page is everyone's");
}

/// Names the page that has no place for the fault.
#[test]
fn check_says_which_fault_no_visitor_sees() {
    let form = "-- param: title text\n-- param: version integer\n-- name: made :many\nselect :title as t, :version as v;\n-- invalid: /edit\n-- redirect: /\n";
    for (page, expected) in [
        (
            "{{ errors.title }}",
            "pages/edit.post.sql:5:1: the page /edit shows neither `errors.version` nor `errors.form`",
        ),
        ("{{ errors.title }}{{ errors.form }}", ""),
        ("{{ errors.title }}{{ errors['version'] }}", ""),
        ("{% for name in errors %}{{ errors[name] }}{% endfor %}", ""),
    ] {
        let notes = notes(&[("pages/edit.html", page), ("pages/edit.post.sql", form)]);
        let is_about = |note: &&String| note.contains("shows neither");
        let found = notes.iter().find(is_about).map_or("", String::as_str);
        let is_right = found.starts_with(expected) && found.is_empty() == expected.is_empty();
        assert!(is_right, "{page}: {notes:?}");
    }
}

/// Names and addresses that are right, though they are like others or have parts that are unknown.
#[test]
fn what_may_be_meant_is_not_noted() {
    let said = notes(&[
        (
            "pages/index.sql",
            "-- param: tag text = ''\n-- param: search text = ''\n-- name: a :many\nselect id from article where :tag || :search = '';\n",
        ),
        (
            "pages/index.html",
            "{{ a }}{% if request.query.seach is defined %}{% endif %}<a href='/?tab=info'><a href='/?seach=1'>",
        ),
        ("pages/docs/[a]/[b].html", "{{ params.a }}{{ params.b }}"),
        (
            "pages/docs/[a]/[b]/rate.post.sql",
            "-- name: a :exec\ndelete from comment where id = 0;\n-- redirect: /?tab=info\n",
        ),
        (
            "pages/links.html",
            "<a href='/docs/{{ request.path }}'><form method=post action='/docs/{{ request.path }}/rate'></form>\n\
             <!-- <form method=post action=/gone></form> --><template><form action=/gone></form></template>\
             <script>let html = '<form action=/gone>';</script><form hx-post=/gone></form>",
        ),
    ]);
    assert!(said.is_empty(), "{said:?}");
}
