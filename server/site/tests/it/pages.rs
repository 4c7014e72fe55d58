//! Pages from the store: hits, misses, what makes a page stale and what does not.

use millpond_http::OwnedRequest;
use millpond_site::SiteOptions;

use crate::support::{TestSite, problems};

const READ: &[(&str, &str)] = &[
    (
        "pages/read.sql",
        "-- name: article :one\nselect id, title, body from article where id = :id;\n-- name: comments :many\nselect who from comment where article_id = :id order by id;\n",
    ),
    (
        "pages/read.html",
        "{% extends \"layout.html\" %}{% block main %}{{ article.title }}: {{ article.body }}{% for c in comments %} [{{ c.who }}]{% endfor %}{% endblock %}",
    ),
    (
        "templates/layout.html",
        "<main>{% block main %}{% endblock %}</main>",
    ),
    (
        "pages/comment.post.sql",
        "-- name: insert :exec\ninsert into comment (article_id, who) values (:id, :who);\n-- redirect: /read?id=:id#c\n",
    ),
    (
        "pages/api/[id].sql",
        "-- name: article :one\nselect * from article where id = :id;\n-- name: comments :many\nselect who from comment where article_id = :id;\n",
    ),
];

#[test]
fn the_second_request_is_a_hit() {
    let site = TestSite::new(READ);
    let miss = site.get("/read?id=1");
    assert_eq!((miss.status, miss.cache()), (200, "fwd=miss; stored"));
    assert_eq!(miss.body, "<main>One: a &lt; b</main>");
    assert_eq!(miss.field("server-timing"), "");
    let hit = site.get("/read?id=1");
    assert_eq!(
        (hit.status, hit.cache(), &*hit.body),
        (200, "hit", &*miss.body)
    );
    assert_eq!(hit.field("etag"), miss.field("etag"));
    assert_eq!(hit.field("cache-control"), "no-cache");
    assert_eq!(hit.field("content-type"), "text/html; charset=utf-8");
    assert_eq!(hit.field("x-content-type-options"), "nosniff");
    let request = OwnedRequest::new("GET", "/read?id=1").field("If-None-Match", hit.field("etag"));
    assert_eq!(site.ask(&request).status, 304);
    assert_eq!(site.site.stats().hits, 2);
}

#[test]
fn only_declared_parameters_make_entries() {
    let site = TestSite::new(READ);
    site.get("/read?id=1");
    for target in [
        "/read?id=1&utm_source=x",
        "/read?fbclid=1&id=1",
        "/read?id=01",
        "/read?id=%31",
        "/x/../read?id=1",
    ] {
        assert_eq!(site.get(target).cache(), "hit", "{target}");
    }
    assert_eq!(site.get("/read?id=2").cache(), "fwd=miss; stored");
}

#[test]
fn a_write_is_on_the_very_next_page_and_on_no_other() {
    let site = TestSite::new(READ);
    site.get("/read?id=1");
    site.get("/read?id=2");
    let posted = site.post("/comment", "id=1&who=Ann");
    assert_eq!(
        (posted.status, posted.field("location")),
        (303, "/read?id=1#c")
    );
    let next = site.get("/read?id=1");
    assert_eq!(
        (next.cache(), next.body.contains("[Ann]")),
        ("fwd=stale; stored", true)
    );
    assert_eq!(site.get("/read?id=2").cache(), "hit");
}

#[test]
fn another_programs_write_is_seen() {
    let site = TestSite::new(READ);
    site.get("/read?id=1");
    site.foreign()
        .execute("update article set title = 'Uno' where id = 1", [])
        .unwrap();
    site.until("the page shows the change", || {
        site.get("/read?id=1").body.contains("Uno")
    });
}

#[test]
fn queries_without_a_template_are_json() {
    let site = TestSite::new(READ);
    let answer = site.get("/api/1");
    assert_eq!(
        answer.body,
        r#"{"article":{"id":1,"title":"One","body":"a < b"},"comments":[]}"#
    );
    assert_eq!(answer.field("content-type"), "application/json");
    assert_eq!(site.get("/api/1").cache(), "hit");
    assert_eq!(site.get("/api/x").status, 404);
}

#[test]
fn what_does_not_exist_is_kept_too_and_forgotten_when_it_comes() {
    let site = TestSite::new(READ);
    let missing = site.get("/read?id=3");
    assert_eq!((missing.status, missing.cache()), (404, "fwd=miss; stored"));
    assert_eq!(
        (
            site.get("/read?id=3").status,
            site.get("/read?id=3").cache()
        ),
        (404, "hit")
    );
    site.foreign()
        .execute("insert into article values (3, 'Three', '')", [])
        .unwrap();
    site.until("the page is there", || site.get("/read?id=3").status == 200);
}

#[test]
fn objects_are_shared_between_pages_when_they_make_one_state() {
    let site = TestSite::new(READ);
    site.get("/read?id=1");
    // Once the feed has passed the position of the first page, a page of other queries is still
    // read, but a page of the same queries is combined.
    let before = site.site.stats().store.stored;
    site.get("/api/1");
    assert!(site.site.stats().store.stored > before);
}

#[test]
fn a_page_that_is_made_tells_its_times_and_a_stored_one_none_of_them() {
    let options = |cache| SiteOptions {
        cache,
        is_timed: true,
        ..SiteOptions::default()
    };
    let site = TestSite::with(READ, options(true));
    let miss = site.get("/read?id=1");
    let times = miss.field("server-timing");
    assert!(times.starts_with("cache;desc=miss, queue;dur="), "{times}");
    for step in [", db;dur=", ", render;dur="] {
        assert!(times.contains(step), "{times}");
    }
    // The workers' service tells of hits.
    let hit = site.get("/read?id=1");
    assert_eq!((hit.cache(), hit.field("server-timing")), ("hit", ""));
    let uncached = TestSite::with(READ, options(false)).get("/read?id=1");
    let times = uncached.field("server-timing");
    assert!(
        times.starts_with("cache;desc=bypass, queue;dur="),
        "{times}"
    );
}

#[test]
fn without_a_cache_every_page_is_made() {
    let site = TestSite::with(
        READ,
        SiteOptions {
            cache: false,
            ..SiteOptions::default()
        },
    );
    for _ in 0..2 {
        assert_eq!(
            site.get("/read?id=1").cache(),
            "fwd=bypass; detail=no-cache"
        );
    }
    assert_eq!(site.site.stats().store.entries, 0);
}

#[test]
fn what_is_not_immutable_is_not_kept_unless_the_owner_says_how_long() {
    let site = TestSite::new(&[
        (
            "pages/dice.sql",
            "-- name: dice :one\nselect random() as r;\n",
        ),
        (
            "pages/aged.sql",
            "-- name: dice :one\n-- max-age: 1h\nselect random() as r;\n",
        ),
    ]);
    let (a, b) = (site.get("/dice"), site.get("/dice"));
    assert_eq!(
        (a.cache(), b.cache()),
        (
            "fwd=miss; detail=uncacheable",
            "fwd=miss; detail=uncacheable"
        )
    );
    assert_ne!(a.body, b.body);
    assert_eq!(site.get("/aged").body, site.get("/aged").body);
    assert_eq!(site.get("/aged").cache(), "hit");
}

#[test]
fn codings_come_in_the_background() {
    let site = TestSite::new(&[("pages/long.html", &"lorem ipsum ".repeat(500))]);
    let request = OwnedRequest::new("GET", "/long").field("Accept-Encoding", "gzip");
    assert_eq!(site.ask(&request).field("content-encoding"), "");
    site.until("gzip is made", || {
        site.ask(&request).field("content-encoding") == "gzip"
    });
    assert_eq!(site.ask(&request).field("vary"), "Accept-Encoding");
    let plain = site.get("/long");
    assert_ne!(plain.field("etag"), site.ask(&request).field("etag"));
}

#[test]
fn two_hundred_at_once_are_one_fill() {
    let site = TestSite::new(READ);
    let before = site.site.stats().misses;
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let service = site.site.service();
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build_local(Default::default())
                    .unwrap();
                runtime.block_on(async {
                    let mut waiting = Vec::new();
                    for _ in 0..25 {
                        use millpond_http::{Reply, Service};
                        let request = OwnedRequest::new("GET", "/read?id=2")
                            .from_peer(([127, 0, 0, 1], 1).into(), base_clock::Boottime::now());
                        match service.call(&request.as_request()) {
                            Reply::Ready(response) => assert_eq!(response.status(), 200),
                            Reply::Reusable(..) => panic!("no validity was asked for"),
                            Reply::Later(future) => waiting.push(tokio::task::spawn_local(future)),
                        }
                    }
                    for response in waiting {
                        assert_eq!(response.await.unwrap().status(), 200);
                    }
                });
            });
        }
    });
    assert_eq!(site.site.stats().misses - before, 1);
}

#[test]
fn a_page_gets_nothing_that_it_would_not_have_kept_itself() {
    let query = "select random() as r;\n";
    let site = TestSite::new(&[
        (
            "pages/a.sql",
            &format!("-- name: n :one\n-- max-age: 1h\n{query}"),
        ),
        ("pages/b.sql", &format!("-- name: n :one\n{query}")),
    ]);
    site.get("/a");
    assert_eq!(site.get("/b").cache(), "fwd=miss; detail=uncacheable");
    assert_ne!(site.get("/a").body, site.get("/b").body);
}

#[test]
fn what_does_not_exist_evicts_nothing_that_does() {
    let mut files = READ.to_vec();
    files.push((
        "millpond.toml",
        "[database]\nurl = \"sqlite:site.db\"\n[cache]\nmemory = \"2MB\"\n",
    ));
    let site = TestSite::new(&files);
    site.get("/read?id=1");
    for id in 1000..3000 {
        assert_eq!(site.get(&format!("/read?id={id}")).status, 404);
    }
    assert_eq!(site.get("/read?id=1").cache(), "hit");
    let stats = site.site.stats().store;
    assert!(
        stats.evicted > 0 && stats.bytes < 200_000,
        "{} bytes",
        stats.bytes
    );
}

#[test]
fn all_workers_send_the_body_that_the_store_holds() {
    use millpond_http::{Body, Reply, Service as _};
    let site = TestSite::new(READ);
    assert_eq!(site.get("/read?id=1").status, 200);
    let request = OwnedRequest::new("GET", "/read?id=1").wanting_validity();
    let bodies = [site.site.service(), site.site.service()].map(|worker| {
        let Reply::Reusable(reply) = worker.call(&request.as_request()) else {
            panic!("a page in the store is a hit that can be repeated");
        };
        let Body::Bytes(body) = reply.0.body().clone() else {
            panic!("a page is in memory");
        };
        body
    });
    assert_eq!(bodies[0].as_ptr(), bodies[1].as_ptr());
}

#[test]
fn what_is_json_by_its_function_is_a_document() {
    let query = "-- name: a :many\nselect *, coalesce((select json_group_array(a.title) from article a where a.id <= article.id), '[]') as titles, \
         json_object('n', id) as made, json('[1, {\"b\": null}]') -> '$[1]' as part, json_extract('{\"a\":1}', '$') as plain, \
         '[]' as written, coalesce(nullif(json_array(), '[]'), title) as either from article order by id;\n";
    let site = TestSite::new(&[
        ("pages/api.sql", query),
        ("pages/shown.sql", query),
        (
            "pages/shown.html",
            "{% for r in a %}{% for t in r.titles %}{{ t }},{% endfor %}{{ r.made.n }};{% endfor %}",
        ),
        (
            "pages/broken.sql",
            "-- name: a :many\nselect (select json_group_array(json(body)) from article where body is null) as ok, \
             json_object('a', 9e999) as odd;\n",
        ),
    ]);
    for _ in 0..2 {
        let rows: serde_json::Value = serde_json::from_str(&site.get("/api").body).unwrap();
        let row = &rows["a"][1];
        assert_eq!(row["titles"], serde_json::json!(["One", "Two"]));
        assert_eq!(row["made"], serde_json::json!({ "n": 2 }));
        assert_eq!(row["part"], serde_json::json!({ "b": null }));
        for (name, text) in [("plain", "{\"a\":1}"), ("written", "[]"), ("either", "Two")] {
            assert_eq!(row[name], text, "{name}");
        }
        assert_eq!(site.get("/shown").body, "One,1;One,Two,2;");
    }
    let odd: serde_json::Value = serde_json::from_str(&site.get("/broken").body).unwrap();
    assert!(odd["a"][0]["odd"].is_string(), "{odd}");
    let wrong = problems(&[
        ("pages/a.sql", query),
        (
            "pages/a.html",
            "{% for r in a %}{{ r.title.n }}{% endfor %}",
        ),
    ]);
    assert!(wrong.contains("pages/a.html:1:"), "{wrong}");
}
