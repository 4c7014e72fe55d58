//! `-- invalid:`: a form that was refused is shown again with what was typed, to the one visitor.

use millpond_http::OwnedRequest;
use millpond_site::SiteOptions;

use crate::{
    both::{Housed, Kind, on_both},
    support::{Answer, TestSite, problems},
};

const SCHEMA: &str = "create table artist (id integer primary key, name text not null);
create table album (id integer primary key, title text not null unique constraint short check (length(title) < 40),
  artist_id integer references artist, year integer, low integer, high integer, check (low < high));
insert into artist (id, name) values (1, 'Ann'), (2, 'Bob');
insert into album (id, title, artist_id) values (1, 'One', 1);";
const PAGE: &str = "{% for a in albums %}[{{ a.title }}]{% endfor %}\
<input name=title value=\"{{ form.title }}\">{{ errors.title }}|{{ errors.title.kind }}|\
{% for a in artists %}{% if form.artist_id == a.id %}{{ a.name }} chosen{% endif %}{% endfor %}{{ errors.artist_id }}|\
{{ form.year }}{{ errors.year }}|{{ errors.low }}|{{ errors.form }}|{% if errors %}again{% endif %}";
const FILES: &[(&str, &str)] = &[
    ("migrations/0002_albums.sql", SCHEMA),
    (
        "migrations/0003_feed.postgres.sql",
        "alter publication millpond add table album, artist;",
    ),
    ("pages/albums/new.html", PAGE),
    (
        "pages/albums/new.sql",
        "-- name: albums :many\nselect title from album order by title;\n-- name: artists :many\nselect id, name from artist order by id;\n",
    ),
    (
        "pages/albums/new.post.sql",
        "-- param: title text\n-- param: artist_id integer = null\n-- param: year integer = null\n-- param: low integer = null\n-- param: high integer = null\n\
         -- param: size text in (s, m) = m\n\
         -- name: made :exec\ninsert into album (id, title, artist_id, year, low, high) values (7, nullif(trim(:title), ''), :artist_id, :year, :low, :high);\n\
         -- name: sized :many\nselect :size as size;\n\
         -- message: title unique = \"An album of this title <exists>.\"\n\
         -- invalid: /albums/new\n-- redirect: /albums/new?done=1\n",
    ),
    ("pages/other.html", "other"),
];
const FIRST: &str = "[One]<input name=title value=\"\">||||||";

fn open(kind: Kind) -> Housed {
    Housed::new(kind, FILES)
}

fn get(site: &TestSite, target: &str, cookies: &str) -> Answer {
    let request = OwnedRequest::new("GET", target).field("Host", "site.test");
    match cookies {
        "" => site.ask(&request),
        cookies => site.ask(&request.field("Cookie", cookies)),
    }
}

/// The `name=value` of the flash in an answer that leads to `path`.
fn led(answer: &Answer, path: &str) -> String {
    assert_eq!(
        (
            answer.status,
            answer.field("location"),
            answer.field("cache-control")
        ),
        (303, path, "no-store"),
        "{}",
        answer.body
    );
    let cookie = answer.field("set-cookie");
    assert!(
        cookie.starts_with("__Host-session-form=f1.")
            && cookie.ends_with("; Path=/; Max-Age=300; HttpOnly; SameSite=Lax; Secure"),
        "{cookie}"
    );
    cookie.split(';').next().unwrap().to_owned()
}

on_both!(
    every_refusal_is_said_at_its_field,
    the_page_of_one_visitor_is_not_that_of_others,
    a_value_of_the_wrong_type_and_all_that_is_missing_are_said_at_once,
);

fn every_refusal_is_said_at_its_field(kind: Kind) {
    let site = open(kind);
    assert_eq!(get(&site, "/albums/new", "").body, FIRST);
    for (body, expected) in [
        (
            "title=One&artist_id=2",
            "value=\"One\">An album of this title &lt;exists&gt;.|unique|Bob chosen||||again",
        ),
        (
            "title=++&year=1999",
            "value=\"  \">Title must be filled in.|missing||1999|||again",
        ),
        (
            &format!("title={}", "x".repeat(45)),
            &format!(
                "value=\"{}\">Title is too short, too long or not allowed.|check|||||again",
                "x".repeat(45)
            ),
        ),
        (
            "title=%3Cb%3E&artist_id=9",
            "value=\"&lt;b&gt;\">||Artist id refers to something that does not exist.||||again",
        ),
        (
            "title=a&low=2&high=1",
            "value=\"a\">||||Low is too short, too long or not allowed.||again",
        ),
    ] {
        let flash = led(&site.post("/albums/new", body), "/albums/new");
        let shown = get(&site, "/albums/new", &flash);
        assert_eq!(shown.status, 200);
        let expected = format!("[One]<input name=title {expected}");
        assert_eq!(shown.body, expected, "{body}");
        assert_eq!(shown.cache(), "fwd=bypass; detail=form");
        assert_eq!(shown.field("cache-control"), "private, no-store");
        assert_eq!(
            shown.field("set-cookie"),
            "__Host-session-form=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax; Secure"
        );
        assert_eq!(get(&site, "/albums/new", "").body, FIRST);
    }
    assert_eq!(
        site.text("select max(title) as t from album"),
        "One",
        "nothing was written"
    );
    let done = site.post("/albums/new", "title=Two");
    assert_eq!(
        (done.status, done.field("location")),
        (303, "/albums/new?done=1")
    );
    assert!(!done.field("set-cookie").contains("-form"));
    assert!(get(&site, "/albums/new", "").body.starts_with("[One][Two]"));
}

fn a_value_of_the_wrong_type_and_all_that_is_missing_are_said_at_once(kind: Kind) {
    let site = open(kind);
    let flash = led(
        &site.post("/albums/new", "year=soon&size=xl"),
        "/albums/new",
    );
    let shown = get(&site, "/albums/new", &flash);
    assert_eq!(
        shown.body,
        "[One]<input name=title value=\"\">Title must be filled in.|missing||soonYear must be a whole number.||Size must be one of s, m.|again"
    );
    let flash = led(&site.post("/albums/new", "title=a&title=b"), "/albums/new");
    assert!(
        get(&site, "/albums/new", &flash)
            .body
            .contains("value=\"a\">Title is given twice.|type|")
    );
}

/// Two visitors, interleaved, each request twice: what one typed is in no page of the other.
fn the_page_of_one_visitor_is_not_that_of_others(kind: Kind) {
    let site = open(kind);
    let kept = || {
        let first = get(&site, "/albums/new", "");
        assert_eq!(first.body, FIRST);
        let again = get(&site, "/albums/new", "");
        assert_eq!((&*again.body, again.cache()), (FIRST, "hit"));
    };
    kept();
    let ann = led(&site.post("/albums/new", "title=One&year=1"), "/albums/new");
    kept();
    let bob = led(&site.post("/albums/new", "title=One&year=2"), "/albums/new");
    for _ in 0..3 {
        for (flash, year) in [(&ann, "|1|"), (&bob, "|2|")] {
            let shown = get(&site, "/albums/new", flash);
            assert!(shown.body.contains(year), "{}", shown.body);
            assert_eq!(shown.cache(), "fwd=bypass; detail=form");
            kept();
        }
    }
    // At another page, and with what is no flash, a visitor is as all others are.
    assert_eq!(
        get(&site, "/other", &ann).field("cache-control"),
        "no-cache"
    );
    assert_eq!(get(&site, "/other", &ann).cache(), "hit");
    for cookie in [
        ann.replace("f1.", "f1.x"),
        ann.replace("-form", "-seen"),
        ann.replace("__Host-", "__Secure-"),
        format!("{ann}x"),
        "__Host-session-form=".to_owned(),
        format!("__Host-session-form={}", "x".repeat(9_000)),
    ] {
        let shown = get(&site, "/albums/new", &cookie);
        assert_eq!((&*shown.body, shown.cache()), (FIRST, "hit"), "{cookie}");
        assert_eq!(shown.field("set-cookie"), "");
        assert_eq!(shown.field("cache-control"), "no-cache");
    }
    // What others write is seen at once.
    site.run("insert into album (id, title) values (8, 'New')");
    site.until("the write is seen", || {
        get(&site, "/albums/new", "").body.starts_with("[New][One]")
    });
    assert!(
        get(&site, "/albums/new", &ann)
            .body
            .starts_with("[New][One]")
    );
}

const ALONE: &[(&str, &str)] = &[
    (
        "pages/login.html",
        "{{ form.name }}|{{ form.password is defined }}|{{ errors.form }}|{{ errors.password }}|{{ form.next or params.next }}",
    ),
    (
        "pages/login.sql",
        "-- param: next text = ''\n-- name: a :many\nselect title from article;\n",
    ),
    (
        "pages/login.post.sql",
        "-- param: next text = ''\n-- param: name text\n-- name: account :one?\nselect id, title as hash from article where title = :name;\n-- verify: account.hash = :password\n-- claims: user = account.id\n-- invalid: /login\n-- redirect: :next else /\n",
    ),
    (
        "pages/join.post.sql",
        "-- hash: h = :password\n-- param: name text\n-- name: a :exec\ninsert into article (title, body) values (:name, :h);\n-- invalid: /login?next=:next\n-- param: next text = ''\n-- redirect: /\n",
    ),
];

#[test]
fn a_password_is_never_sent_back_and_the_name_is() {
    let site = TestSite::new(ALONE);
    let wrong = site.post("/login", "name=ann&password=hunter22x&next=/me");
    let flash = led(&wrong, "/login");
    let shown = get(&site, "/login", &flash);
    assert_eq!(
        shown.body,
        "ann|True|The account or the password is wrong.||&#x2f;me"
    );
    let short = site.post("/join", "name=ann&password=hunter2&next=/a%26b");
    let flash = led(&short, "/login?next=%2Fa%26b");
    let shown = get(&site, "/login?next=%2Fa%26b", &flash);
    assert_eq!(
        shown.body,
        "ann|True||A password has at least 8 characters.|&#x2f;a&amp;b"
    );
    for answer in [wrong, short] {
        let token = answer.field("set-cookie").split(['.', ';']).nth(1).unwrap();
        let payload = decoded(token);
        assert!(
            payload.contains("\"ann\"") && !payload.contains("hunter"),
            "{payload}"
        );
    }
}

/// base64url without padding.
fn decoded(text: &str) -> String {
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let bits = text
        .bytes()
        .map(|byte| digits.iter().position(|digit| *digit == byte).unwrap());
    let (mut buffer, mut held, mut bytes) = (0_usize, 0, Vec::new());
    for six in bits {
        buffer = buffer << 6 | six;
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((buffer >> held) as u8);
            buffer &= (1 << held) - 1;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn the_address_of_the_page_may_have_values() {
    let site = TestSite::new(&[
        (
            "pages/article/[id]/edit.html",
            "{{ article.title }}: {{ form.title or article.title }} {{ errors.title }}{{ errors.form }}",
        ),
        (
            "pages/article/[id]/edit.sql",
            "-- name: article :one\nselect title from article where id = :id;\n",
        ),
        (
            "pages/article/[id]/edit.post.sql",
            "-- name: changed :one\nupdate article set title = :title where id = :id and body <> 'locked' returning id;\n\
             -- message: changed = \"The article is locked.\"\n-- invalid: /article/:id/edit\n-- redirect: /article/:id/edit\n",
        ),
    ]);
    let body = |target: &str, flash: &str| get(&site, target, flash).body;
    assert_eq!(body("/article/1/edit", ""), "One: One ");
    let flash = led(
        &site.post("/article/1/edit", "title=Two"),
        "/article/1/edit",
    );
    assert_eq!(
        body("/article/1/edit", &flash),
        "One: Two Title exists already."
    );
    assert_eq!(
        body("/article/2/edit", &flash),
        "Two: Two ",
        "it is of the other page"
    );
    let locked = led(&site.post("/article/9/edit", "title=x"), "/article/9/edit");
    assert_eq!(get(&site, "/article/9/edit", &locked).status, 404);
    site.foreign()
        .execute("update article set body = 'locked' where id = 2", [])
        .unwrap();
    let locked = led(&site.post("/article/2/edit", "title=x"), "/article/2/edit");
    assert_eq!(
        body("/article/2/edit", &locked),
        "Two: x The article is locked."
    );
    // A part of the path that cannot be one is no page.
    assert_eq!(site.post("/article/x/edit", "title=x").status, 404);
}

#[test]
fn what_cannot_be_told_apart_belongs_to_the_form() {
    let site = TestSite::new(&[
        (
            "migrations/0002_pair.sql",
            "create table pair (one integer not null references article, two integer references article, \
             three integer references article deferrable initially deferred) strict;
             create trigger refuse before insert on pair when new.one = 2 begin select raise(abort, 'secret'); end;",
        ),
        ("pages/pair.html", "{{ form.one }} {{ form.two }} {% for name in errors %}{{ name }}: {{ errors[name] }} {{ errors[name].kind }}{% endfor %}"),
        (
            "pages/pair.post.sql",
            "-- name: a :exec\ninsert into pair (one, two, three) values (:one, :two, :three);\n-- param: one integer\n-- param: two integer\n-- param: three integer = null\n\
             -- invalid: /pair\n-- redirect: /pair\n",
        ),
        (
            "pages/one.post.sql",
            "-- name: a :exec\ninsert into pair (one) values (:one);\n-- param: one text\n-- invalid: /pair\n-- redirect: /pair\n",
        ),
    ]);
    let shown = |form: &str, body: &str| {
        let flash = led(&site.post(form, body), "/pair");
        get(&site, "/pair", &flash).body
    };
    assert_eq!(
        shown("/pair", "one=8&two=9"),
        "8 9 form: This refers to something that does not exist. reference"
    );
    assert_eq!(
        shown("/pair", "one=1&two=1&three=9"),
        "1 1 form: This refers to something that does not exist, or something else still refers to it. reference"
    );
    assert_eq!(
        shown("/pair", "one=2&two=1"),
        "2 1 one: One is too short, too long or not allowed. check"
            .replace("one: One is", "form: A field is")
    );
    // Of two forms of one page, what both take is shown as it was typed.
    assert_eq!(
        shown("/one", "one=x%3C"),
        "x&lt;  one: One is too short, too long or not allowed. check"
    );
    assert_eq!(get(&site, "/pair", "").body, "  ");
    assert_eq!(get(&site, "/pair", "").cache(), "hit");
}

#[test]
fn without_a_cache_and_with_members_it_is_the_same() {
    let members = "-- require: claims.user\n-- name: me :one\nselect title from article where id = :claims.user;\n";
    let files = [
        (
            "pages/mine.html",
            "{{ me.title }} {{ form.title }} {{ errors.title }}",
        ),
        ("pages/mine.sql", members),
        (
            "pages/mine.post.sql",
            "-- require: claims.user\n-- name: a :exec\nupdate article set title = :title where id = :claims.user;\n-- invalid: /mine\n-- redirect: /mine\n",
        ),
        (
            "pages/enter.post.sql",
            "-- param: id integer\n-- name: a :one\nselect id from article where id = :id;\n-- claims: user = a.id\n-- redirect: /mine\n",
        ),
    ];
    for cache in [true, false] {
        let site = TestSite::with(
            &files,
            SiteOptions {
                cache,
                ..SiteOptions::default()
            },
        );
        let member = |id: &str| {
            let answer = site.post("/enter", &format!("id={id}"));
            answer
                .field("set-cookie")
                .split(';')
                .next()
                .unwrap()
                .to_owned()
        };
        let (one, two) = (member("1"), member("2"));
        let post = OwnedRequest::new("POST", "/mine")
            .field("Host", "site.test")
            .field("Cookie", &one)
            .field("Content-Type", "application/x-www-form-urlencoded")
            .body("title=Two");
        let flash = led(&site.ask(&post), "/mine");
        let page = |who: &str, flash: &str| get(&site, "/mine", &format!("{who}; {flash}")).body;
        for _ in 0..3 {
            assert_eq!(page(&one, &flash), "One Two Title exists already.");
            assert_eq!(page(&two, &flash), "Two  ", "it is of another session");
            assert_eq!(page(&one, "a=b"), "One  ");
            assert_eq!(get(&site, "/mine", &flash).status, 403, "signed out");
        }
    }
}

#[test]
fn without_the_line_a_refusal_is_as_before() {
    let site = TestSite::new(&[(
        "pages/add.post.sql",
        "-- name: a :exec\ninsert into article (title) values (:title);\n-- redirect: /\n",
    )]);
    let answer = site.post("/add", "title=One");
    assert_eq!(
        (answer.status, &*answer.body),
        (409, "This exists already.\n")
    );
    assert_eq!(site.post("/add", "").status, 400);
}

/// Answers a form at its own address with a page that has no room in a cookie: with the fields that
/// the settings add there, and with those of the page.
#[test]
fn the_page_that_answers_a_form_has_the_fields_of_its_own_path() {
    let settings = "[database]\nurl = \"sqlite:site.db\"\n\
        [[fields]]\npath = \"/*\"\nset = { \"X-All\" = \"1\" }\n\
        [[fields]]\npath = \"/edit\"\nset = { \"X-Page\" = \"2\" }\n\
        [[fields]]\npath = \"/save\"\nset = { \"X-Form\" = \"3\" }\n";
    let site = TestSite::new(&[
        ("millpond.toml", settings),
        ("pages/edit.html", "{{ form.title }}{{ errors.title.kind }}"),
        (
            "pages/save.post.sql",
            "-- param: title text\n-- name: a :exec\ninsert into article (title) values (:title);\n-- invalid: /edit\n-- redirect: /\n",
        ),
    ]);
    let answer = site.post("/save", &format!("title={}", "x".repeat(5_000)));
    assert_eq!(answer.status, 422);
    assert!(answer.body.ends_with("xcheck"), "{}", answer.body);
    for (name, value) in [("x-all", "1"), ("x-page", "2"), ("x-form", "3")] {
        assert_eq!(answer.field(name), value, "{name}");
    }
    assert_eq!(site.get("/edit").field("x-form"), "");
}

#[test]
fn check_knows_where_forms_lead_back() {
    let form = |lines: &str| {
        format!(
            "-- param: title text\n-- name: a :exec\ninsert into article (title) values (:title);\n-- redirect: /\n{lines}"
        )
    };
    let page = (
        "pages/new.html",
        "{{ form.title }}{{ errors.title.kind }}{{ errors.form }}",
    );
    let said = |lines: &str, template: &str| {
        let form = form(lines);
        problems(&[("pages/new.post.sql", &form), ("pages/new.html", template)])
    };
    let ok = said("-- invalid: /new\n-- message: form = \"No.\"\n", page.1);
    assert_eq!(ok, "");
    for (lines, template, expected) in [
        (
            "-- invalid: /nwe\n",
            "",
            "pages/new.post.sql:5:1: no page answers at /nwe\n  hint: did you mean /new?",
        ),
        (
            "-- invald: /new\n",
            "",
            "pages/new.post.sql:5:1: `-- invald: /new` would be a comment\n  hint: did you mean `-- invalid: /new`",
        ),
        (
            "-- invalid: new\n",
            "",
            "pages/new.post.sql:5:1: a refused form leads back to a path of this site",
        ),
        (
            "-- invalid: /new?x=:titel\n",
            "",
            "pages/new.post.sql:5:1: `:titel` in the path is no parameter of the form\n  hint: did you mean `:title`?",
        ),
        (
            "-- invalid: /new\n",
            "{{ form.titel }}",
            "pages/new.html:1:9: no form that leads to this page has a field `titel`\n  hint: did you mean `title`?",
        ),
        (
            "-- invalid: /new\n",
            "{{ errors.titel }}",
            "pages/new.html:1:11: no form that leads to this page has a field `titel`\n  hint: did you mean `title`?",
        ),
        (
            "-- invalid: /new\n",
            "{{ errors.title.knd }}",
            "pages/new.html:1:17: an error has no `knd`\n  hint: did you mean `kind`?",
        ),
        (
            "",
            "{{ form.title }}",
            "pages/new.html:1:4: nothing gives the template `form`\n  hint: `form` is there if a form leads back to this page",
        ),
        (
            "-- invalid: /new\n-- message: titel = \"No.\"\n",
            "",
            "pages/new.post.sql:6:1: `titel` is neither a parameter of the form nor a `:one` query\n  hint: did you mean `title`?",
        ),
        (
            "-- invalid: /new\n-- message: title uniqe = \"No.\"\n",
            "",
            "pages/new.post.sql:6:1: there is no fault `uniqe`, nor a constraint of this name\n  hint: did you mean `unique`?",
        ),
    ] {
        let found = said(lines, template);
        assert!(found.starts_with(expected), "{lines} {template}\n{found}");
    }
    let with_query = problems(&[
        ("pages/new.post.sql", &form("-- invalid: /new\n")),
        ("pages/new.html", ""),
        (
            "pages/new.sql",
            "-- name: errors :many\nselect title from article;\n",
        ),
    ]);
    assert!(
        with_query.starts_with("pages/new.post.sql:5:1: the page /new has a query named `errors`"),
        "{with_query}"
    );
    let needs = problems(&[
        ("pages/new.post.sql", &form("-- invalid: /new\n")),
        ("pages/new.html", ""),
        (
            "pages/new.sql",
            "-- name: a :one\nselect title from article where id = :id;\n",
        ),
    ]);
    assert!(needs.starts_with("pages/new.post.sql:5:1: the page /new needs the parameter `id`\n  hint: write it behind the path: /new?id=:id"), "{needs}");
    let json = problems(&[
        ("pages/new.post.sql", &form("-- invalid: /data\n")),
        (
            "pages/data.sql",
            "-- name: a :many\nselect title from article;\n",
        ),
    ]);
    assert!(
        json.starts_with("pages/new.post.sql:5:1: /data has no template"),
        "{json}"
    );
    let of_page = problems(&[(
        "pages/a.sql",
        "-- invalid: /\n-- name: a :many\nselect 1 as x;\n",
    )]);
    assert!(
        of_page.starts_with("pages/a.sql:1:1: a page has no `-- invalid:`"),
        "{of_page}"
    );
}

/// A page forgets a hidden field. What is wrong with it belongs to no field that is shown, so it is
/// said with what is wrong with the form.
#[test]
fn what_is_wrong_with_a_field_that_is_not_shown_is_said_all_the_same() {
    let files = [
        ("migrations/0002_t.sql", "create table t (title text);"),
        (
            "pages/edit.html",
            "{% include 'field.html' %}{{ errors.title }}|{{ errors.form }}|{{ errors.form.kind }}",
        ),
        (
            "templates/field.html",
            "<p class=errors>{{ errors.length }}</p>",
        ),
        (
            "pages/edit.post.sql",
            "-- param: title text\n-- param: length integer\n-- param: version integer\n\
             -- name: made :exec\ninsert into t (title) select :title where :version = :length;\n\
             -- message: version missing = \"Look at the row again.\"\n-- invalid: /edit\n-- redirect: /\n",
        ),
    ];
    let site = Housed::new(Kind::Sqlite, &files);
    let request = OwnedRequest::new("POST", "/edit")
        .field("Host", "site.test")
        .field("Content-Type", "application/x-www-form-urlencoded")
        .body("length=x");
    let cookie = led(&site.ask(&request), "/edit");
    let page = get(&site, "/edit", &cookie);
    assert_eq!(
        page.body,
        "<p class=errors>Length must be a whole number.</p>Title must be filled in.|Look at the row again.|missing"
    );
}
