//! A route whose addresses never repeat takes no place of others in a full store.

use base_clock::Boottime;
use millpond_site::SiteOptions;

use crate::support::TestSite;

/// Of each search the store gets a page and a result.
const KEPT: u64 = 2;

fn site() -> TestSite {
    let filler = "x".repeat(4_000);
    let files = [
        (
            "millpond.toml",
            "[database]\nurl = \"sqlite:site.db\"\n[cache]\nmemory = \"1MiB\"\nrefresh_ahead = 0\n",
        ),
        (
            "pages/article/[id].sql",
            "-- param: id integer\n-- name: article :one\nselect title from article where id = :id;\n",
        ),
        ("pages/article/[id].html", "{{ article.title }}"),
        (
            "pages/search.sql",
            "-- live\n-- param: q text\n-- crawl: no\n-- name: found :many\nselect id from article where title = :q;\n",
        ),
        ("pages/search.html", &format!("{{{{ params.q }}}} {filler}")),
    ];
    TestSite::with(&files, SiteOptions::default())
}

/// Stored, evicted, and not kept because they may never be asked for again.
fn counts(site: &TestSite) -> [u64; 3] {
    let stats = site.site.stats().store;
    [stats.stored, stats.evicted, stats.unproven]
}

fn search(site: &TestSite, from: u64, searches: u64) {
    for n in from..from + searches {
        assert_eq!(site.get(&format!("/search?q={n}")).status, 200);
    }
}

#[test]
fn addresses_that_never_repeat_end_no_others_once_that_is_known() {
    let site = site();
    for _ in 0..3 {
        site.get("/article/1");
    }
    // With room all are kept, also when the route is known to be useless.
    search(&site, 0, 120);
    assert_eq!(counts(&site), [120 * KEPT + KEPT, 0, 0]);
    // Then the store fills up, and nothing moves any more.
    search(&site, 120, 400);
    let [stored, evicted, unproven] = counts(&site);
    assert_eq!(evicted, 0);
    assert_eq!(stored + unproven, 520 * KEPT + KEPT);
    search(&site, 1_000, 2_000);
    assert_eq!(counts(&site), [stored, 0, unproven + 2_000 * KEPT]);
    assert_eq!(site.get("/article/1").cache(), "hit");
    assert_eq!(
        site.get("/search?q=0").cache(),
        "hit",
        "the first have stayed"
    );
}

#[test]
fn an_address_that_repeats_is_kept_and_a_route_that_repeats_is_as_before() {
    let site = site();
    search(&site, 0, 1_000);
    let target = "/search?q=again";
    assert_eq!(site.get(target).cache(), "fwd=miss; detail=unproven");
    assert_eq!(site.get(target).cache(), "fwd=miss; stored");
    assert_eq!(site.get(target).cache(), "hit");
    // Each is asked for four times: two hits for two fills.
    for n in 10_000..10_100 {
        (0..4).for_each(|_| search(&site, n, 1));
    }
    assert_eq!(site.get("/search?q=new").cache(), "fwd=miss; stored");
}

#[test]
fn a_page_that_is_looked_at_is_kept_all_the_same() {
    let site = site();
    search(&site, 0, 1_000);
    let target = "/search?q=live";
    let stream = site.get("/.millpond/live?page=/search%3Fq%3Dlive");
    assert_eq!(stream.status, 200);
    site.until("it is kept", || site.is_hit_at(target, Boottime::now()));
}
