//! A role that is taken away counts at the next request where a query asks for it
//! (`docs/reference/site/sessions.md`, "A role that can be taken away").

use millpond_http::OwnedRequest;

use crate::{
    both::{Housed, Kind, on_both},
    sessions::{SITE, cookie, get, login, register},
};

const OFFICE: &[(&str, &str)] = &[
    (
        "templates/office.sql",
        "-- name: clerk :one\n\
         select name, role from account where id = :claims.user and role in ('editor', 'admin');\n",
    ),
    (
        "templates/office.html",
        "{{ clerk.name }}, {{ clerk.role }}: {% block main %}{% endblock %}",
    ),
    (
        "pages/office/notes.sql",
        "-- require: claims.user else /login\n-- name: notes :many\nselect body from note order by id;\n",
    ),
    (
        "pages/office/notes.html",
        "{% extends \"office.html\" %}{% block main %}{% for n in notes %}{{ n.body }} {% endfor %}{% endblock %}",
    ),
    (
        "pages/office/note.post.sql",
        "-- param: body text\n-- require: claims.user else /login\n-- name: clerk :one\n\
         select tenant from account where id = :claims.user and role in ('editor', 'admin');\n\
         -- name: note :exec\ninsert into note (tenant, body) values (:tenant, :body);\n\
         -- redirect: /office/notes\n",
    ),
    (
        "pages/role.post.sql",
        "-- param: name text\n-- param: role text\n-- name: role :exec\n\
         update account set role = :role where name = :name;\n-- redirect: /\n",
    ),
];

fn a_role_that_is_taken_away_counts_at_once(kind: Kind) {
    let site = Housed::new(kind, &[SITE, OFFICE].concat());
    let signed_in = |name: &str| {
        register(&site, name, 1, "editor");
        cookie(&login(&site, name, &format!("pass+of+{name}")))
    };
    let (ann, eve) = (signed_in("Ann"), signed_in("Eve"));
    assert_eq!(site.get("/office/notes").status, 303);
    let send = |session: &str| {
        let form = OwnedRequest::new("POST", "/office/note")
            .field("Host", "site.test")
            .field("Content-Type", "application/x-www-form-urlencoded")
            .field("Cookie", session)
            .body("body=x".to_owned());
        site.ask(&form).status
    };
    assert_eq!(send(&eve), 303);
    let open = |session: &str| get(&site, "/office/notes", session);
    site.until("the page of each is kept", || {
        open(&ann).cache() == "hit" && open(&eve).cache() == "hit"
    });
    assert_eq!(open(&eve).body, "Eve, editor: x ");
    assert_eq!(open(&eve).field("cache-control"), "private, no-cache");
    // By a form of this site: at the next request, and no other clerk's page ends.
    for _ in 0..3 {
        assert_eq!(site.post("/role", "name=Eve&role=reader").status, 303);
        assert_eq!(open(&eve).status, 404);
        assert_eq!((open(&ann).status, send(&eve)), (200, 404));
        assert_eq!(site.post("/role", "name=Eve&role=admin").status, 303);
        assert_eq!(open(&eve).body, "Eve, admin: x ");
    }
    assert_eq!(open(&ann).cache(), "hit");
    // By another program: as soon as its commit is seen.
    site.run("update account set role = 'reader' where name = 'Eve'");
    site.until("it counts", || open(&eve).status == 404);
    assert_eq!(open(&eve).cache(), "hit", "asked of memory");
    assert_eq!((send(&eve), open(&ann).status), (404, 200));
    assert_eq!(site.text("select cast(count(*) as text) from note"), "1");
    site.run("delete from account where name = 'Ann'");
    site.until("the account is gone", || open(&ann).status == 404);
}

on_both!(a_role_that_is_taken_away_counts_at_once);
