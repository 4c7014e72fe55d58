//! Why a visitor's page is answered as it is, for one visitor or another.

use millpond_http::OwnedRequest;
use millpond_site::ExplainedVisitor;

use crate::{
    postgres::{client, database, site},
    sessions::{SITE, register},
    support::TestSite,
};

fn with_cookie(target: &str, cookie: &str) -> OwnedRequest {
    OwnedRequest::new("GET", target)
        .field("Host", "site.test")
        .field("Cookie", cookie)
}

#[test]
fn each_visitors_answer_is_explained_from_its_own_key() {
    let site = TestSite::new(SITE);
    let ann = register(&site, "Ann", 1, "reader");
    site.ask(&with_cookie("/notes", &ann));
    let explain = |target: &str, whom: ExplainedVisitor<'_>| site.site.explain(target, whom);
    let state =
        |whom: ExplainedVisitor<'_>| explain("/notes", whom).unwrap()["page"]["state"].clone();
    assert_eq!(state(ExplainedVisitor::Claims("tenant=1")), "hit");
    assert_eq!(state(ExplainedVisitor::Claims("tenant=2")), "miss");
    // The key holds claims as they are, not as the query is given them.
    assert_eq!(state(ExplainedVisitor::Claims("tenant='1'")), "miss");
    assert_eq!(state(ExplainedVisitor::Anonymous), "miss");
    let cookie = with_cookie("/explain", &ann);
    assert_eq!(state(ExplainedVisitor::Cookie(&cookie.as_request())), "hit");
    let told = explain("/notes", ExplainedVisitor::Anonymous).unwrap();
    assert_eq!(told["claims_used"], serde_json::json!(["tenant"]));

    let forged = with_cookie("/explain", &format!("{ann}x"));
    let said = explain("/notes", ExplainedVisitor::Cookie(&forged.as_request())).unwrap_err();
    assert!(said.contains("__Host-session"), "{said}");
    assert!(explain("/notes", ExplainedVisitor::Claims("tenant")).is_err());

    let members = |whom| explain("/members", whom).unwrap();
    assert_eq!(members(ExplainedVisitor::Anonymous)["led_to"], "/login");
    assert!(members(ExplainedVisitor::Claims("user=1"))["led_to"].is_null());
    // A program that may not see it is led nowhere.
    let refused = explain("/api/desk", ExplainedVisitor::Anonymous).unwrap();
    assert!(refused["led_to"].is_null() && refused["refused_without"] == true);
    assert_eq!(site.get("/api/desk").status, 401);
    let desk = explain("/desk", ExplainedVisitor::Claims("role=reader")).unwrap();
    assert_eq!(desk["closed"], true);
    // The claims let no visitor in.
    assert_eq!(site.get("/members").status, 303);
}

#[test]
fn the_transaction_that_ended_a_page_is_named_as_postgresql_names_it() {
    let database = database();
    let queries = "-- name: a :one\nselect title from article where id = :id;\n\
                   -- name: who :many\nselect who from comment where article_id = :id;\n";
    let site = site(&database, &[("pages/a.sql", queries)]);
    site.until("a hit", || site.get("/a?id=1").cache() == "hit");
    let told = || {
        site.site
            .explain("/a?id=1", ExplainedVisitor::Anonymous)
            .unwrap()
    };
    let key = told()["key"].clone();
    assert_eq!(
        (&key["route"], &key["parameters"]["id"]),
        (&"/a".into(), &1.into())
    );

    let mut other = client(&database);
    let mut open = other.transaction().unwrap();
    open.batch_execute(
        "insert into comment (article_id, who) values (1, 'Ann'); \
         update article set title = 'Other' where id = 1",
    )
    .unwrap();
    let asked = "select pg_current_xact_id()::text, pg_current_wal_insert_lsn()::text";
    let row = open.query_one(asked, &[]).unwrap();
    let (id, from): (String, String) = (row.get(0), row.get(1));
    open.commit().unwrap();
    site.until("its end", || {
        !told()["page"]["ended_by"].is_null() || !told()["page"]["ended_before"].is_null()
    });
    site.until("a hit", || site.get("/a?id=1").cache() == "hit");
    let cause = told()["page"]["ended_before"].clone();
    assert_eq!(cause["transaction"].to_string(), id);
    assert_eq!(cause["tables"], serde_json::json!(["article", "comment"]));
    assert_eq!(cause["certain"], true);
    // Its commit record ends there.
    let position = cause["position"].as_str().unwrap();
    let asked =
        "select $1::text::pg_lsn > $2::text::pg_lsn and $1::text::pg_lsn <= pg_current_wal_lsn()";
    let row = other.query_one(asked, &[&position, &from]).unwrap();
    assert!(row.get::<_, bool>(0), "{position} after {from}");
}

#[test]
fn a_max_age_is_told_as_what_ends_a_result() {
    let query = "-- name: at :one\n-- max-age: 60s\nselect strftime('%H:%M', 'now') as at, title from article;\n";
    let site = TestSite::new(&[("pages/at.sql", query)]);
    let config = millpond_site::Config::read(site.dir.path()).unwrap();
    let report = millpond_site::check(site.dir.path(), &config).unwrap();
    let [query] = &report.queries[..] else {
        panic!("{:?}", report.queries)
    };
    assert_eq!(query.ends, ["its age of 1min (-- max-age)", "any article"]);
    let kept = "kept for 1min (-- max-age): strftime() reads the clock";
    assert_eq!(query.dependencies, [kept, "article: every change"]);
    assert!(query.advice.iter().all(|advice| advice.is_kept));
    let explained = site.site.explain("/at", ExplainedVisitor::default());
    assert_eq!(explained.unwrap()["queries"][0]["depends"][0], kept);
}
