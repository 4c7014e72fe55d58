//! What `-- max-age:` waives, and what it does not.

use millpond_site::ExplainedVisitor;

use crate::{
    postgres::{client, database, site},
    support::TestSite,
};

const PAGES: [(&str, &str); 2] = [
    (
        "pages/both.sql",
        "-- name: late :one\n-- max-age: 600s\nselect n from late;\n\
         -- name: comments :one\nselect count(*) as n from comment;\n",
    ),
    (
        "pages/comments.sql",
        "-- name: comments :one\nselect count(*) as n from comment;\n",
    ),
];

fn epoch(site: &TestSite) -> Option<u64> {
    let told = site
        .site
        .explain("/comments", ExplainedVisitor::Anonymous)
        .unwrap();
    told["feed"]["epoch"].as_u64()
}

/// True if the feed has passed what the result of the second query was read at.
fn has_passed(site: &TestSite) -> bool {
    let told = site
        .site
        .explain("/both", ExplainedVisitor::Anonymous)
        .unwrap();
    let place = |told: &serde_json::Value| {
        let (high, low) = told.as_str()?.split_once('/')?;
        let part = |digits| u64::from_str_radix(digits, 16).ok();
        Some((part(high)?, part(low)?))
    };
    place(&told["feed"]["position"]) >= place(&told["queries"][1]["stored"]["position"])
}

/// A transaction changes two tables, and one of them is published only afterwards: the feed brings
/// the change of the other alone. A result with a max-age that was read before the transaction is
/// visible must not be on a page beside a later result.
#[test]
fn a_result_that_may_be_old_is_kept_only_where_the_feed_covers_what_it_was_read_in() {
    let database = database();
    let mut owner = client(&database);
    owner
        .batch_execute(
            "create table late (n integer not null); alter table late replica identity full; \
             insert into late values (0)",
        )
        .unwrap();
    let site = site(&database, &PAGES);
    site.until("a hit", || site.get("/comments").cache() == "hit");

    let mut other = client(&database);
    other
        .batch_execute(
            "begin; update late set n = 1; insert into comment (article_id, who) values (1, 'Ann')",
        )
        .unwrap();
    let began = epoch(&site);
    owner
        .batch_execute("alter publication millpond add table late")
        .unwrap();
    site.until("the feed to notice it", || epoch(&site) > began);
    let before = site.get("/both");
    assert_eq!(before.body, r#"{"late":{"n":0},"comments":{"n":0}}"#);
    other.batch_execute("commit").unwrap();
    site.until("a newer result to be kept", || {
        let answer = site.get("/comments");
        answer.cache() == "hit" && answer.body == r#"{"comments":{"n":1}}"#
    });
    site.until("results that can be combined", || has_passed(&site));
    assert_eq!(
        site.get("/both").body,
        r#"{"late":{"n":1},"comments":{"n":1}}"#
    );
}

/// Waives by the line the nature of the query: here a function that the feed knows nothing of.
#[test]
fn a_result_with_a_max_age_is_kept_without_a_feed_of_its_changes() {
    let database = database();
    let query = "-- name: at :one\n-- max-age: 600s\nselect clock_timestamp()::text as at;\n";
    let site = site(&database, &[("pages/at.sql", query)]);
    site.until("a hit", || site.get("/at").cache() == "hit");
}
