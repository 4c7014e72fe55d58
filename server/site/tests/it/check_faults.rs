//! What `check` and `serve` refuse because it can only go wrong: writes that return nothing, names
//! with two meanings, claims that visitors would choose; and addresses in which values stand.

use millpond_site::{Config, Problem, check};

use crate::{
    postgres,
    support::{TestSite, folder, problems},
};

const TABLES: (&str, &str) = (
    "migrations/0002_orders.sql",
    "create table orders (id integer primary key, account_id integer not null, note text) strict;\n\
     create table line (order_id integer not null) strict;\n\
     create table account (id integer primary key, name text not null, password_hash text) strict;\n",
);

const LOGIN: (&str, &str) = (
    "pages/login.post.sql",
    "-- name: account :one?\nselect id, password_hash from account where name = :name;\n\
     -- verify: account.password_hash = :password\n-- claims: user = account.id\n-- redirect: /\n",
);

fn notes(files: &[(&str, &str)]) -> Vec<String> {
    let dir = folder(files);
    let config = Config::read(dir.path()).unwrap();
    let report = check(dir.path(), &config).unwrap();
    report.notes.iter().map(Problem::to_string).collect()
}

#[test]
fn a_write_that_returns_nothing_gives_no_row() {
    for (kind, statement) in [
        (":one", "update orders set note = 'x' where id = :id"),
        (":one else 409", "delete from orders where id = :id"),
        (":one?", "insert into orders (account_id) values (:id)"),
        (":many", "update orders set note = 'x' where id > :id"),
    ] {
        let sql = format!("-- name: saved {kind}\n{statement};\n-- redirect: /\n");
        let found = problems(&[TABLES, ("pages/o/[id].post.sql", &sql)]);
        let said = kind.split(' ').next().unwrap();
        assert_eq!(
            found,
            format!(
                "pages/o/[id].post.sql:1:1: query `saved` is `{said}` and gives no columns, so no row comes of it\n  \
                 hint: add `returning …` to the statement, or say `-- name: saved :exec`"
            ),
            "{sql}"
        );
        let returning = sql.replace(";\n", " returning account_id;\n");
        TestSite::new(&[TABLES, ("pages/o/[id].post.sql", &returning)]);
        let exec = format!("-- name: saved :exec\n{statement};\n-- redirect: /\n");
        TestSite::new(&[TABLES, ("pages/o/[id].post.sql", &exec)]);
    }
}

/// Returns the faults that `check` finds in a form on PostgreSQL.
fn faults_on_postgres(form: &str) -> String {
    let database = postgres::database();
    let dir = postgres::folder(&database, &[("pages/o/[id].post.sql", form)]);
    let found = check(dir.path(), &Config::read(dir.path()).unwrap()).unwrap_err();
    let found: Vec<String> = found.iter().map(Problem::to_string).collect();
    found.join("\n")
}

#[test]
fn a_write_that_returns_nothing_gives_no_row_on_postgres() {
    let found = faults_on_postgres(
        "-- name: saved :one\nupdate article set title = 'x' where id = :id;\n-- redirect: /\n",
    );
    assert_eq!(
        found,
        "pages/o/[id].post.sql:1:1: query `saved` is `:one` and gives no columns, so no row comes of it\n  \
         hint: add `returning …` to the statement, or say `-- name: saved :exec`"
    );
}

#[test]
fn a_list_of_files_is_no_object_on_postgres() {
    let form = "-- file: pictures[] into uploads\n-- name: a :exec\n\
         insert into article (id, title) select 1, value #>> '{}' from json_each(:pictures);\n-- redirect: /\n";
    assert_eq!(
        faults_on_postgres(form),
        "pages/o/[id].post.sql:3:73: `:pictures` is several files, which are a JSON array on PostgreSQL and no object\n  \
         hint: write `json_array_elements(:pictures)` in the place of `json_each(:pictures)`"
    );
}

#[test]
fn a_name_has_one_meaning_after_a_step() {
    let made = "-- name: made :one\ninsert into orders (account_id) values (:id) returning id;\n";
    let hint = "name the column otherwise, such as `id as made_id` in `made`, and write `:made_id` where it is meant";
    let line = "-- name: line :exec\ninsert into line select :id;\n-- redirect: /\n";
    for (rest, place) in [("-- created: /orders/:id\n", "3:1"), (line, "4:25")] {
        let found = problems(&[
            TABLES,
            ("pages/a/[id]/b.post.sql", &format!("{made}{rest}")),
        ]);
        assert_eq!(
            found,
            format!(
                "pages/a/[id]/b.post.sql:{place}: `:id` is the part `[id]` of the path here, and query `made` above has a column of this name\n  \
                 hint: {hint}"
            )
        );
    }
    let declared = "-- param: note text\n-- name: made :one\ninsert into orders (account_id, note) values (1, upper(:note)) returning note;\n-- redirect: /?note=:note\n";
    let found = problems(&[TABLES, ("pages/b.post.sql", declared)]);
    assert!(
        found.starts_with("pages/b.post.sql:4:1: `:note` is the declared parameter here"),
        "{found}"
    );
}

#[test]
fn a_name_with_one_value_may_stand_for_both() {
    let site = TestSite::new(&[
        TABLES,
        (
            "pages/a/[id].post.sql",
            "-- param: note text\n-- name: old :one\nselect id, note from orders where id = :id;\n\
             -- name: saved :one\nupdate orders set note = :note where id = :id returning id;\n\
             -- redirect: /orders/:id?note=:note\n",
        ),
        (
            "pages/b/[id].put.sql",
            "-- name: item :one\ninsert into orders (id, account_id) values (:id, 1) returning id;\n-- created: /b/:id\n",
        ),
        (
            "pages/c/[id].post.sql",
            "-- name: made :one\ninsert into orders (account_id) values (:id) returning id as made_id;\n-- created: /b/:made_id\n",
        ),
    ]);
    let made = site.post("/c/7", "");
    assert_eq!((made.status, made.field("Location")), (201, "/b/1"));
    assert_eq!(
        site.post("/a/1", "note=x").field("Location"),
        "/orders/1?note=x"
    );
}

#[test]
fn a_claim_is_not_chosen_in_an_address() {
    let orders = "-- name: orders :many\nselect id from orders where account_id = :user;\n";
    let closed = format!("-- require: claims.user\n{orders}");
    let said = |name: &str, place: &str| {
        format!(
            "pages/orders.sql:{place}: nothing gives `:{name}`, so each visitor could choose it in the address of a page that requires a session\n  \
             hint: did you mean `:claims.user`? If visitors may choose it, declare it: -- param: {name} integer"
        )
    };
    assert_eq!(
        problems(&[TABLES, LOGIN, ("pages/orders.sql", &closed)]),
        said("user", "3:42")
    );
    // The claim may come from another program.
    assert_eq!(
        problems(&[
            TABLES,
            ("pages/orders.sql", &closed.replace(":user", ":user_id"))
        ]),
        said("user_id", "3:42")
    );
    let rule = (
        "millpond.toml",
        "[[require]]\npath = \"/orders/*\"\nclaims = \"user\"\n",
    );
    assert_eq!(
        problems(&[TABLES, LOGIN, rule, ("pages/orders.sql", orders)]),
        said("user", "2:42")
    );
    let declared = format!("-- param: user integer\n{closed}");
    TestSite::new(&[TABLES, LOGIN, rule, ("pages/orders.sql", &declared)]);
    TestSite::new(&[TABLES, LOGIN, ("pages/by.sql", orders)]);
    let in_path = closed.replace(":many", ":many\n");
    TestSite::new(&[TABLES, LOGIN, ("pages/by/[user].sql", &in_path)]);
}

#[test]
fn a_sign_in_without_a_password_is_noted() {
    let open = LOGIN
        .1
        .replace("-- verify: account.password_hash = :password\n", "");
    assert_eq!(
        notes(&[
            TABLES,
            ("pages/login.post.sql", &open),
            ("pages/index.html", "x")
        ]),
        [
            "pages/login.post.sql:1:1: visitors get the claims of `account`, which has `password_hash`, and no `-- verify:` line compares a password with it\n  \
             hint: below the query: -- verify: account.password_hash = :password else /login?failed=1; if no password is asked for, leave the column out"
        ]
    );
    assert!(notes(&[TABLES, LOGIN, ("pages/index.html", "x")]).is_empty());
}

#[test]
fn a_page_answers_for_the_values_that_it_takes() {
    let lang = "-- param: lang text in (en, de)\n";
    let play =
        format!("{lang}-- name: n :one\nselect count(*) as n from article where title = :slug;\n");
    let send = "-- file: picture into uploads/plays\n-- name: a :exec\ninsert into article (title, body) values ('a', :picture);\n-- redirect: /en\n";
    let files = [
        ("pages/[lang].html", "{{ params.lang }}"),
        ("pages/[lang].sql", lang),
        ("pages/[lang]/plays/[slug].html", "{{ n.n }}"),
        ("pages/[lang]/plays/[slug].sql", &*play),
        ("pages/send.post.sql", send),
        ("static/robots.txt", "all"),
        ("static/uploads/plays/x.png", "png"),
    ];
    let site = TestSite::new(&files);
    for (target, status, body) in [
        ("/en", 200, "en"),
        ("/de/plays/a", 200, "0"),
        ("/robots.txt", 200, "all"),
        ("/uploads/plays/x.png", 200, "png"),
        ("/fr", 404, ""),
        ("/fr/plays/a", 404, ""),
        ("/en/", 308, ""),
        ("/fr/", 404, ""),
    ] {
        let answer = site.get(target);
        assert_eq!(answer.status, status, "{target}");
        assert!(answer.body.contains(body), "{target}: {}", answer.body);
    }
    assert_eq!(site.post("/fr", "").status, 404);
    assert!(notes(&files).is_empty(), "{:?}", notes(&files));
    // A page for any text hides them.
    let mut open = files;
    open[3].1 = "-- name: n :one\nselect count(*) as n from article where title = :slug;\n";
    assert_eq!(
        notes(&open),
        [
            "static/uploads/plays/x.png: does not answer at /uploads/plays/x.png: the page /{lang}/plays/{slug} does\n  \
             hint: say which values the page takes: -- param: lang text in (…); or name the file otherwise",
            "pages/send.post.sql:1:1: no file in `uploads/plays` answers: the page /{lang}/plays/{slug} comes first\n  \
             hint: say which values the page takes, for example: -- param: lang text in (en, de); or name another folder",
        ]
    );
}

#[test]
fn files_whose_names_begin_with_a_dot_are_named() {
    let form = "-- name: a :exec\ndelete from comment;\n-- redirect: /\n";
    assert_eq!(
        notes(&[
            ("pages/.post.sql", form),
            ("pages/.#a.sql", "of an editor"),
            ("pages/.a.sql.swp", "of an editor"),
            ("templates/parts/.menu.html", "x"),
        ]),
        [
            "pages/.post.sql: is not looked at, as its name begins with a dot\n  hint: did you mean pages/index.post.sql?",
            "templates/parts/.menu.html: is not looked at, as its name begins with a dot\n  \
             hint: name it menu.html, or move it to another folder",
        ]
    );
}

#[test]
fn rules_reach_the_values_that_a_page_takes() {
    let rules = "[[require]]\npath = \"/staff/*\"\nclaims = \"user\"\n[[require]]\npath = \"/en/*\"\nclaims = \"user\"\n\
                 [[require]]\npath = \"/:any/plays\"\nclaims = \"user\"\n";
    let lang = "-- param: lang text in (en, de)\n";
    let dir = folder(&[
        TABLES,
        LOGIN,
        ("millpond.toml", rules),
        ("pages/[lang]/plays.html", "{{ params.lang }}"),
        ("pages/[lang]/plays.sql", lang),
        ("pages/staff/index.html", "x"),
    ]);
    let report = check(dir.path(), &Config::read(dir.path()).unwrap()).unwrap();
    let reached: Vec<String> = report
        .reached
        .iter()
        .map(|it| it.addresses.join(", "))
        .collect();
    assert_eq!(reached, ["/staff", "/{lang}/plays (some)", "/{lang}/plays"]);
}

#[test]
fn addresses_with_values_are_compared_as_patterns() {
    let lang = "-- param: lang text in (en, de)\n";
    let play = format!("{lang}-- param: id integer\n");
    let save = "-- param: lang text in (en, de)\n-- param: id integer\n-- param: title text\n-- name: a :exec\nupdate article set title = :title where id = :id;\n-- redirect: /:lang/pley/:id\n";
    let said = notes(&[
        ("pages/[lang].html", "{{ params.lang }}"),
        ("pages/[lang].sql", lang),
        ("pages/[lang]/play/[id].sql", &play),
        ("pages/[lang]/play/[id].post.sql", save),
        (
            "pages/[lang]/play/[id].html",
            "<a href=\"/{{ params.lang }}/play/{{ params.id }}\"><a href=\"/{{ params.lang }}/pley/{{ params.id }}\">\n\
             <form method=post action=\"/{{ params.lang }}/play/{{ params.id }}\"><input name=titel></form>\n\
             <form method=post action=\"/{{ params.lang }}/play/{{ params.id }}\"></form>\n\
             <form method=post><input name=title><button formaction=\"/{{ params.lang }}/{{ params.id }}/nix/1\"></form>\n\
             <a href=/logn>{% for a in [1] %}<a href=\"/static-{{ a }}.png\">{% endfor %}",
        ),
        (
            "pages/newsletter.post.sql",
            "-- name: a :exec\ndelete from comment;\n-- redirect: /en\n",
        ),
        (
            "pages/news.html",
            "<form method=post action=/newsleter></form>",
        ),
        ("static/a.png", "x"),
    ]);
    let starts = [
        "pages/[lang]/play/[id].html:2:80: POST /{lang}/play/{id} has no parameter `titel`\n  hint: did you mean `title`?",
        "pages/[lang]/play/[id].post.sql: leads to /…/pley/…, and there is no such page\n  hint: did you mean /:lang/play/:id?",
        "pages/[lang]/play/[id].html:1:60: leads to /…/pley/…, and there is no such page",
        "pages/[lang]/play/[id].html:5:9: leads to /logn, and there is no such page",
        "pages/[lang]/play/[id].html:5:42: leads to /static-….png, and there is no such page",
        "pages/[lang]/play/[id].html:3:1: no field of this form is called `title`, which POST /{lang}/play/{id} needs",
        "pages/[lang]/play/[id].html:4:37: this form is sent to /…/…/nix/1, where nothing answers",
        "pages/news.html:1:1: this form is sent to /newsleter, where nothing answers\n  hint: did you mean /newsletter?",
    ];
    assert_eq!(said.len(), starts.len(), "{said:#?}");
    for (note, start) in said.iter().zip(starts) {
        assert!(note.starts_with(start), "{note}\n{start}");
    }
}

#[test]
fn boxes_of_a_loop_need_a_list() {
    let form = "<form method=post>{% for seat in [1, 2] %}<input type=checkbox name=seats value='{{ seat }}'><input type=radio name=row value=1>{% endfor %}</form>";
    let post = "-- param: seats integer\n-- param: row integer\n-- name: a :exec\ndelete from article where id = :seats + :row;\n-- redirect: /hold\n";
    let said = notes(&[("pages/hold.html", form), ("pages/hold.post.sql", post)]);
    assert_eq!(
        said,
        [
            "pages/hold.html:1:69: POST /hold takes one `seats`, and a loop makes several boxes of this name\n  \
             hint: a list takes them all: -- param: seats integer[]"
        ]
    );
    let list = post
        .replace("seats integer", "seats integer[]")
        .replace("= :seats + :row", "in (:seats) and id > :row");
    assert!(notes(&[("pages/hold.html", form), ("pages/hold.post.sql", &list)]).is_empty());
}

#[test]
fn a_statement_that_is_not_ended_is_named() {
    let layout = ("templates/layout.html", "{% block body %}{% endblock %}");
    let found = problems(&[
        layout,
        (
            "pages/a.html",
            "{% extends 'layout.html' %}\n{% block body %}\n{% for a in [1] %}{{ a }}\n{% endblock %}\n",
        ),
        ("pages/b.html", "{% if true %}x"),
    ]);
    assert_eq!(
        found,
        "pages/a.html:3:1: `{% for … %}` is not ended: `{% endblock %}` comes first\n  hint: write `{% endfor %}` where it ends\n\
         pages/b.html:1:1: `{% if … %}` is not ended\n  hint: write `{% endif %}` where it ends"
    );
}

#[test]
fn a_page_without_the_declaration_of_its_layout_is_told_the_line() {
    let found = problems(&[
        (
            "templates/layout.html",
            "{{ params.lang }}{% block body %}{% endblock %}",
        ),
        (
            "templates/layout.sql",
            "-- param: lang text in (en, de)\n-- name: n :one\nselect count(*) as n from article where title = :lang;\n",
        ),
        ("pages/[lang]/register.html", "{% extends 'layout.html' %}"),
    ]);
    assert_eq!(
        found,
        "templates/layout.sql:1:1: `lang` is declared here, and not in pages/[lang]/register.sql, which shows this\n  \
         hint: write the same line into pages/[lang]/register.sql, or once for its folder into _folder.sql: -- param: lang text in (en, de)"
    );
}

#[test]
fn a_form_in_a_layout_is_told_how_to_ask_for_its_values() {
    let layout = |footer: &str| format!("{footer}{{% block body %}}{{% endblock %}}");
    let with = |footer: &str| {
        let layout = layout(footer);
        problems(&[
            ("templates/layout.html", &*layout),
            ("pages/a.html", "{% extends 'layout.html' %}"),
        ])
    };
    let found =
        with("<form method=post action=/news><input name=email value='{{ form.email }}'></form>");
    assert!(
        found.ends_with(
            "in a template of several pages, write {% if form is defined and form.NAME is defined %}…{% endif %} around what shows a value of it"
        ),
        "{found}"
    );
    assert_eq!(
        with("{% if form is defined and form.email is defined %}{{ form.email }}{% endif %}"),
        ""
    );
}
