//! Accounts on both databases: registering, signing in, and what that opens.

use std::time::Duration;

use base_clock::Boottime;
use millpond_http::{OwnedRequest, Reply, Service as _};

use crate::{
    both::{Housed, Kind, on_both},
    sessions::{SITE, cookie, get, login, register, request},
};

on_both!(
    a_registered_visitor_is_signed_in_until_signing_out,
    a_wrong_password_and_an_unknown_account_are_one_answer,
    what_is_required_is_asked_each_time,
    an_answer_that_was_kept_ends_with_its_session
);

fn a_registered_visitor_is_signed_in_until_signing_out(kind: Kind) {
    let site = Housed::new(kind, SITE);
    assert_eq!(site.get("/me").body, "I am .");
    let ann = register(&site, "Ann", 1, "reader");
    assert!(ann.starts_with("__Host-session=1."), "{ann}");
    let me = get(&site, "/me", &ann);
    assert_eq!(
        (&*me.body, me.field("cache-control")),
        ("I am Ann.", "private, no-cache")
    );
    let again = login(&site, "Ann", "pass+of+Ann");
    assert_eq!((again.status, again.field("location")), (303, "/me"));
    assert_eq!(again.field("cache-control"), "no-store");
    assert!(
        again
            .field("set-cookie")
            .ends_with("; Path=/; Max-Age=3600; HttpOnly; SameSite=Lax; Secure"),
        "{}",
        again.field("set-cookie")
    );
    assert_eq!(get(&site, "/me", &cookie(&again)).body, "I am Ann.");
    let out = site.post("/logout", "");
    assert_eq!((out.status, &*cookie(&out)), (303, "__Host-session="));
    assert!(out.field("set-cookie").contains("Max-Age=0"));
    let stored = site.text("select password_hash from account");
    assert!(stored.starts_with("$argon2id$"), "{stored}");
}

fn a_wrong_password_and_an_unknown_account_are_one_answer(kind: Kind) {
    let site = Housed::new(kind, SITE);
    register(&site, "Ann", 1, "reader");
    let wrong = login(&site, "Ann", "pass+of+Bob");
    let unknown = login(&site, "Nobody", "pass+of+Bob");
    let long = login(&site, "Ann", &"x".repeat(5_000));
    for answer in [&wrong, &unknown, &long] {
        assert_eq!(
            (answer.status, answer.field("location")),
            (303, "/login?failed=1")
        );
        assert_eq!(answer.field("set-cookie"), "");
    }
    assert_eq!(site.get("/login?failed=1").body, "wrong ");
    let short = site.post("/register", "name=Bob&password=short&tenant=1");
    assert_eq!((short.status, short.field("set-cookie")), (422, ""));
    let twice = site.post("/register", "name=Ann&password=long+enough&tenant=1");
    assert_eq!((twice.status, twice.field("set-cookie")), (409, ""));
}

fn what_is_required_is_asked_each_time(kind: Kind) {
    let site = Housed::new(kind, SITE);
    let ann = register(&site, "Ann", 1, "reader");
    let nobody = site.get("/members?a=1");
    assert_eq!(
        (nobody.status, nobody.field("location")),
        (303, "/login?next=%2Fmembers%3Fa%3D1")
    );
    let member = get(&site, "/members", &ann);
    assert_eq!(
        (&*member.body, member.field("cache-control")),
        ("2 for members", "private, no-cache")
    );
    site.until("a hit", || get(&site, "/members", &ann).cache() == "hit");
    assert_eq!(
        site.get("/members").status,
        303,
        "kept, and not for everybody"
    );
    let editor = register(&site, "Eve", 1, "editor");
    assert_eq!(get(&site, "/desk", &ann).status, 303);
    let reader = cookie(&login(&site, "Ann", "pass+of+Ann"));
    assert_eq!(get(&site, "/desk", &reader).status, 403);
    assert_eq!(
        get(&site, "/desk", &editor).status,
        303,
        "registered without the claim"
    );
    let editor = cookie(&login(&site, "Eve", "pass+of+Eve"));
    assert_eq!(get(&site, "/desk", &editor).body, "the desk");
    assert_eq!(get(&site, "/api/desk", &editor).status, 200);
    assert_eq!(
        site.get("/api/desk").status,
        401,
        "a program follows nobody to a form"
    );
    let note = site.post("/note", "body=x");
    assert_eq!((note.status, note.field("location")), (303, "/login"));
}

fn an_answer_that_was_kept_ends_with_its_session(kind: Kind) {
    let site = Housed::new(kind, SITE);
    let ann = register(&site, "Ann", 7, "reader");
    let note = OwnedRequest::new("POST", "/note")
        .field("Cookie", &ann)
        .field("Content-Type", "application/x-www-form-urlencoded")
        .body("body=secret");
    assert_eq!(site.ask(&note).status, 303);
    let service = site.site.service();
    for target in ["/api/notes", "/members"] {
        assert_ne!(get(&site, target, &ann).status, 303, "filled");
        let now = Boottime::now();
        let validity_at = |received| {
            let request = request(target, &ann)
                .from_peer(([127, 0, 0, 1], 1).into(), received)
                .wanting_validity();
            match service.call(&request.as_request()) {
                Reply::Reusable(reply) => Some(reply.1),
                Reply::Ready(_) | Reply::Later(_) => None,
            }
        };
        let validity = validity_at(now).expect("a hit can be repeated");
        assert!(validity.is_valid(now), "{target}");
        let later = now.plus(Duration::from_secs(2 * 3600));
        assert!(!validity.is_valid(later), "{target}: the session is over");
        let late = validity_at(later);
        assert!(late.is_none_or(|validity| validity.is_valid(later)));
    }
    // The answer is not valid for a request at that time.
    let later = Boottime::now().plus(Duration::from_secs(2 * 3600));
    let late = request("/members", &ann).from_peer(([127, 0, 0, 1], 1).into(), later);
    match service.call(&late.as_request()) {
        Reply::Ready(response) => assert_eq!(response.status(), 303),
        Reply::Reusable(..) | Reply::Later(_) => {
            panic!("nothing is looked up for a session that is over")
        }
    }
}
