//! The recipes of the guide, served as one site.

use millpond_http::OwnedRequest;

use crate::{sessions::cookie, support::TestSite};

const RECIPES: &str = include_str!("../../../../docs/guide/recipes.md");
const LAYOUT: &str = "{% block main %}{% endblock %}{% include 'newsletter.html' %}";

/// Two visitors without an account.
fn a_basket_is_its_visitors(site: &TestSite) {
    let send = |method: &str, cookie: &str, form: &str| {
        let request = OwnedRequest::new(method, "/basket")
            .field("Host", "site.test")
            .field("Content-Type", "application/x-www-form-urlencoded")
            .field("Cookie", cookie);
        site.ask(&request.body(form.to_owned()))
    };
    let put = |session: &str, album: u32| {
        let answer = send(
            "POST",
            session,
            &format!("album={album}&made_id=1&basket_id=1"),
        );
        assert_eq!(answer.status, 303, "{}", answer.body);
        cookie(&answer)
    };
    let (ann, bob) = (put("", 1), put("", 2));
    put(&ann, 3);
    let titles = |cookie: &str| send("GET", cookie, "").body.matches("\"title\"").count();
    assert_eq!((titles(&ann), titles(&bob), titles("")), (2, 1, 0));
}

#[test]
fn the_recipes_work() {
    let mut files = lab_testkit::listings(RECIPES);
    assert_eq!(files.len(), 34, "{files:?}");
    files.push(("templates/layout.html", LAYOUT));
    let site = TestSite::new(&files);
    let sql = "insert into artist (name) values ('Ann'), ('Bob'); \
               with recursive n (i) as (select 1 union all select i + 1 from n where i < 45) \
               insert into album (title, artist_id, price_cents, released) \
               select 'Album ' || i, i % 2 + 1, i * 100, '2020-01-' || printf('%02d', i % 28 + 1) from n; \
               insert into album (title, artist_id, price_cents, released) values ('AC/DC live', 1, 999, '2021-01-01')";
    site.foreign().execute_batch(sql).unwrap();
    site.until("the rows are seen", || {
        site.get("/albums").body.contains("46 albums")
    });
    let has = |target: &str, text: &str| {
        let answer = site.get(target);
        assert_eq!(answer.status, 200, "{target}: {}", answer.body);
        assert!(answer.body.contains(text), "{target}: {}", answer.body);
    };
    has("/albums", "AC&#x2f;DC live");
    has("/albums?page=2", "<a rel=\"prev\" href=\"?\">");
    has("/albums?page=2", "<a rel=\"next\" href=\"?page=3\">");
    assert_eq!(site.get("/albums?page=99").status, 404);
    assert_eq!(site.get("/albums?page=0").status, 400);
    has("/older?released=2020-01-02&id=29", "\"id\":1,");
    has("/find?q=LIVE&most=", "<li>AC&#x2f;DC live</li>");
    has("/find?artist=2", "value=\"2\" checked");
    has(
        "/find?sort=-price&artist=1&artist=2",
        "<ul><li>Album 45</li>",
    );
    has("/words?q=AC/DC", "AC/DC live");
    a_basket_is_its_visitors(&site);
    let subscribe = || site.post("/newsletter", "email=ann@example.org");
    assert_eq!(subscribe().field("Location"), "/newsletter");
    assert_eq!(subscribe().status, 303);
    has(
        "/news.atom",
        "<title>AC&#x2f;DC live</title><updated>2021-01-01T00:00:00Z</updated>",
    );
    has(
        "/news.atom",
        "<content type=\"html\">&lt;p&gt;&lt;em&gt;AC&#x2f;DC live&lt;&#x2f;em&gt; of Ann&lt;&#x2f;p&gt;\n</content>",
    );
    assert_eq!(site.get("/api/albums").field("x-total-count"), "46");
    has("/albums.csv", "46,AC/DC live,Ann,999");
    has("/albums/46/edit", "value=\"999\"");
    assert_eq!(site.get("/find?sort=title%3Bdrop").status, 400);
    let refused = site.post("/albums/46/edit", "title=+&price=-1");
    assert_eq!(refused.field("location"), "/albums/46/edit");
    let cookie = refused.field("set-cookie").split(';').next().unwrap();
    let led = OwnedRequest::new("GET", "/albums/46/edit").field("Cookie", cookie);
    let shown = site.ask(&led.field("Host", "site.test")).body;
    assert!(
        shown.contains("A title has 1 to 200 characters.") && shown.contains("value=\"-1\""),
        "{shown}"
    );
    has("/albums/46/edit", "value=\"999\"");
    has("/albums/46/picture", "enctype=\"multipart/form-data\"");
    let without = site.post("/albums/46/picture", "");
    assert_eq!(without.status, 303, "{}", without.body);
    assert_eq!(site.post("/albums/99/picture", "").status, 404);
    let changed = site.post("/albums/46/edit", "title=Renamed&price=5");
    assert_eq!(changed.status, 303, "{}", changed.body);
    has("/words?q=renamed", "Renamed");
    let rows = "name=zebra&quantity=5&name=ape&quantity=1&name=&quantity=&name=ape&quantity=1";
    let ordered = site.post("/order", rows);
    assert_eq!(ordered.field("location"), "/order/1", "{}", ordered.body);
    has(
        "/order/1",
        "[{\"name\":\"zebra\",\"quantity\":5},{\"name\":\"ape\",\"quantity\":1},{\"name\":\"ape\",\"quantity\":1}]",
    );
    let refused = site.post("/order", "name=b&quantity=0&name=a&quantity=2");
    let cookie = refused.field("set-cookie").split(';').next().unwrap();
    let led = OwnedRequest::new("GET", "/order").field("Cookie", cookie);
    let shown = site.ask(&led.field("Host", "site.test")).body;
    assert!(
        shown.contains("aria-label=\"Name 1\" value=\"b\""),
        "{shown}"
    );
    assert!(shown.contains("Quantity must be at least 1."), "{shown}");
    has("/albums", "Renamed");
    has(
        "/api/albums?page=3",
        "{\"id\":46,\"title\":\"Renamed\",\"price_cents\":5}]",
    );
    let send = |method: &str, target: &str, body: &str| {
        let request = OwnedRequest::new(method, target).field("Host", "site.test");
        let request = match body {
            "" => request,
            _ => request.field("Content-Type", "application/json"),
        };
        site.ask(&request.body(body.to_owned()))
    };
    let blue = "{\"title\": \"Blue\", \"artist\": 1, \"price\": 999, \"released\": \"2026-11-26\"}";
    let made = send("POST", "/api/albums", blue);
    assert_eq!(
        (made.status, made.field("location")),
        (201, "/api/albums/47")
    );
    let changed = send("PATCH", "/api/albums/47", "{\"price\": 1099}");
    let expected = "{\"id\":47,\"title\":\"Blue\",\"price_cents\":1099}";
    assert_eq!((changed.status, &*changed.body), (200, expected));
    has("/api/albums/47", "\"price_cents\":1099");
    assert_eq!(send("DELETE", "/api/albums/47", "").status, 200);
    assert_eq!(site.get("/api/albums/47").status, 404);
    let missing = send("POST", "/api/albums", "{}");
    assert!(
        missing.body.contains("\"field\":\"title\""),
        "{}",
        missing.body
    );
}
