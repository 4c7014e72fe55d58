//! The recipes of the guide, served as one site.

use crate::support::TestSite;

const RECIPES: &str = include_str!("../../../../docs/guide/recipes.md");
const LAYOUT: &str = "{% block main %}{% endblock %}";

/// The listings whose first line names a file, with these names.
fn files() -> Vec<(&'static str, &'static str)> {
    let listings = RECIPES.split("\n```").filter_map(|listing| {
        let (language, text) = listing.split_once('\n')?;
        let (first, rest) = text.split_once('\n')?;
        match language {
            "sql" => Some((first.strip_prefix("-- ")?, rest)),
            "html" => Some((first.strip_prefix("<!-- ")?.strip_suffix(" -->")?, rest)),
            _ => None,
        }
    });
    listings.collect()
}

#[test]
fn the_recipes_work() {
    let mut files = files();
    assert_eq!(files.len(), 16, "{files:?}");
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
    has("/albums?page=99", "no albums on this page");
    has("/older?released=2020-01-02&id=29", "\"id\":1,");
    has("/find?q=LIVE&most=", "<li>AC&#x2f;DC live</li>");
    has("/find?artist=2", "value=\"2\" checked");
    has(
        "/find?sort=-price&artist=1&artist=2",
        "<ul><li>Album 45</li>",
    );
    has("/words?q=AC/DC", "AC/DC live");
    has("/albums.csv", "46,AC/DC live,Ann,999");
    has("/albums/46/edit", "value=\"999\"");
    assert_eq!(site.get("/find?sort=title%3Bdrop").status, 400);
    has("/albums/46/picture", "enctype=\"multipart/form-data\"");
    let without = site.post("/albums/46/picture", "");
    assert_eq!(without.status, 303, "{}", without.body);
    assert_eq!(site.post("/albums/99/picture", "").status, 404);
    let changed = site.post("/albums/46/edit", "title=Renamed&price=5");
    assert_eq!(changed.status, 303, "{}", changed.body);
    has("/words?q=renamed", "Renamed");
    has("/albums", "Renamed");
}
