//! Hot pages are made ahead: after a change, an epoch, an edit of the folder and a restart.

use std::fs;

use base_clock::Boottime;

use crate::support::TestSite;

const ON: (&str, &str) = (
    "millpond.toml",
    "[database]\nurl = \"sqlite:site.db\"\n[cache]\nrefresh_ahead = 100\n",
);
const READ: (&str, &str) = (
    "pages/read.sql",
    "-- name: article :one\nselect title from article where id = :id;\n",
);
const READ_HTML: (&str, &str) = ("pages/read.html", "<h1>{{ article.title }}</h1>");
const LIST: (&str, &str) = (
    "pages/list.sql",
    "-- name: articles :many\nselect title from article order by id;\n",
);
const EDIT: (&str, &str) = (
    "pages/edit.post.sql",
    "-- name: edit :exec\nupdate article set title = :title where id = :id;\n-- redirect: /\n",
);
const FILES: &[(&str, &str)] = &[ON, READ, READ_HTML, LIST, EDIT];

/// Asked for so often, a page is hot.
fn heat(site: &TestSite, target: &str) {
    for _ in 0..20 {
        site.get(target);
    }
}

fn edit(site: &TestSite, id: u32, title: &str) {
    let sent = site.post("/edit", &format!("id={id}&title={title}"));
    assert_eq!(sent.status, 303);
}

fn made(site: &TestSite) -> u64 {
    site.site.stats().ahead
}

fn until_made(site: &TestSite, pages: u64) {
    site.until("they are made ahead", || made(site) >= pages);
    assert_eq!(made(site), pages);
}

#[test]
fn a_hot_page_is_a_hit_again_after_a_foreign_write_and_a_cold_one_is_not() {
    let site = TestSite::new(FILES);
    heat(&site, "/read?id=1");
    site.get("/read?id=2");
    let foreign = site.foreign();
    foreign
        .execute("update article set title = 'New ' || id", [])
        .unwrap();
    until_made(&site, 1);
    let hot = site.get("/read?id=1");
    assert_eq!((hot.cache(), &*hot.body), ("hit", "<h1>New 1</h1>"));
    let cold = site.get("/read?id=2");
    assert_eq!(
        (cold.cache(), &*cold.body),
        ("fwd=stale; stored", "<h1>New 2</h1>")
    );
}

#[test]
fn it_is_so_after_a_form_for_rows_and_for_whole_tables_and_without_a_template() {
    let site = TestSite::new(FILES);
    heat(&site, "/read?id=1");
    heat(&site, "/list");
    edit(&site, 2, "Other");
    // The list depends on the table, the page on its own row.
    until_made(&site, 1);
    let list = site.get("/list");
    assert_eq!(list.cache(), "hit");
    assert!(list.body.contains("Other"), "{}", list.body);
    edit(&site, 1, "Mine");
    until_made(&site, 3);
    let page = site.get("/read?id=1");
    assert_eq!((page.cache(), &*page.body), ("hit", "<h1>Mine</h1>"));
    let told = site
        .site
        .explain("/read?id=1", millpond_site::ExplainedVisitor::Anonymous)
        .expect("an explanation");
    assert_eq!(told["page"]["made_ahead"]["times"], 1);
    assert_eq!(told["page"]["made_ahead"]["in_vain"], 0);
    assert_eq!(told["route_so_far"]["made_ahead"], 1);
    // A visitor's miss is one, and what is made ahead is none.
    assert_eq!(site.site.stats().misses, 2);
}

#[test]
fn a_flood_of_changes_makes_a_page_a_few_times_and_no_more() {
    let site = TestSite::new(FILES);
    heat(&site, "/read?id=1");
    for n in 0..300 {
        edit(&site, 1, &format!("Title {n}"));
    }
    let store = || site.site.stats().store;
    site.until("nothing is left to make", || {
        store().ahead == 0 && store().flights == 0
    });
    // Each page that was not requested halves the chance of the next.
    assert!(made(&site) <= 4, "{}", made(&site));
    assert!(store().made_unused + 1 >= made(&site));
    assert_eq!(site.get("/read?id=1").body, "<h1>Title 299</h1>");
}

/// On a machine of any speed: the last page waits until all earlier ones have taken no more than
/// their share of the time.
#[test]
fn a_flood_of_changes_takes_no_more_than_its_share_of_the_time() {
    let some = "[cache]\nrefresh_ahead = 5\n";
    let page = "-- param: n integer\n-- name: article :one\nselect title from article where id = 1 and :n >= 0;\n";
    let site = TestSite::new(&[
        ("millpond.toml", some),
        ("pages/read.sql", page),
        READ_HTML,
        EDIT,
    ]);
    let pages = 8;
    (0..pages).for_each(|n| heat(&site, &format!("/read?n={n}")));
    let began = Boottime::now();
    edit(&site, 1, "Mine");
    until_made(&site, pages);
    let worked = site.site.stats().ahead_time;
    heat(&site, "/read?n=1");
    edit(&site, 1, "Yours");
    site.until("one more is made", || made(&site) > pages);
    let share = Boottime::now().since(began).mul_f64(0.05);
    assert!(
        worked > std::time::Duration::ZERO && worked <= share,
        "{worked:?} of {share:?}"
    );
}

#[test]
fn zero_is_off() {
    let off = ("millpond.toml", "[cache]\nrefresh_ahead = 0\n");
    let site = TestSite::new(&[off, READ, READ_HTML, EDIT]);
    heat(&site, "/read?id=1");
    edit(&site, 1, "Mine");
    let stats = site.site.stats();
    assert_eq!((stats.store.ahead, stats.store.ahead_dropped), (0, 0));
    assert_eq!(site.get("/read?id=1").cache(), "fwd=stale; stored");
    let dir = site.dir.path().join("site.db.warm");
    site.site.stop();
    assert!(!dir.exists());
}

#[test]
fn nothing_that_shows_a_visitor_is_made_ahead() {
    let site = TestSite::new(&[
        ON,
        READ,
        READ_HTML,
        EDIT,
        ("pages/path.sql", LIST.1),
        ("pages/path.html", "{{ request.host }} {{ articles }}"),
        (
            "pages/tongue.sql",
            "-- vary: Accept-Language\n-- name: articles :many\nselect title from article order by id;\n",
        ),
        (
            "pages/tongue.html",
            "{{ request.headers['accept-language'] }} {{ articles }}",
        ),
        (
            "pages/claim.sql",
            "-- vary: claims.name\n-- name: articles :many\nselect title from article order by id;\n",
        ),
        (
            "pages/claim.html",
            "{{ request.claims.name }} {{ articles }}",
        ),
    ]);
    for target in ["/path", "/tongue", "/claim", "/read?id=1"] {
        heat(&site, target);
    }
    edit(&site, 1, "Mine");
    until_made(&site, 1);
    let store = || site.site.stats().store;
    site.until("nothing is left to make", || {
        store().ahead == 0 && store().flights == 0
    });
    assert_eq!(site.get("/read?id=1").cache(), "hit");
    for target in ["/tongue", "/claim"] {
        assert_eq!(site.get(target).cache(), "fwd=stale; stored", "{target}");
    }
    assert_eq!(site.get("/path").cache(), "fwd=bypass; detail=private");
    assert_eq!(made(&site), 1);
}

#[test]
fn what_is_made_ahead_shows_its_own_address() {
    let site = TestSite::new(&[
        ON,
        EDIT,
        ("pages/plays/[id].sql", READ.1),
        (
            "pages/plays/[id].html",
            "{{ request.path }} {{ article.title }}",
        ),
    ]);
    heat(&site, "/plays/01");
    edit(&site, 1, "Mine");
    until_made(&site, 1);
    let made = site.get("/plays/1");
    assert_eq!(
        (made.cache(), &*made.body),
        ("hit", "&#x2f;plays&#x2f;1 Mine")
    );
}

#[test]
fn an_edit_of_a_template_has_hot_pages_made_with_it() {
    let site = TestSite::new(FILES);
    heat(&site, "/read?id=1");
    fs::write(
        site.dir.path().join("pages/read.html"),
        "<h2>{{ article.title }}</h2>",
    )
    .unwrap();
    // The counters begin anew with the pages.
    site.until("it is made with the new one", || {
        site.site.stats().store.made_ahead == 1
    });
    let page = site.get("/read?id=1");
    assert_eq!((page.cache(), &*page.body), ("hit", "<h2>One</h2>"));
}

#[test]
fn an_edit_of_pages_that_were_made_ahead_has_them_made_again() {
    let site = TestSite::new(FILES);
    heat(&site, "/read?id=1");
    for (number, text) in [
        "<h2>{{ article.title }}</h2>",
        "<h3>{{ article.title }}</h3>",
    ]
    .into_iter()
    .enumerate()
    {
        fs::write(site.dir.path().join("pages/read.html"), text).unwrap();
        site.until("it is made with the new one", || {
            site.site.stats().store.made_ahead == number as u64 + 1
        });
    }
    // No request came in between.
    let page = site.get("/read?id=1");
    assert_eq!((page.cache(), &*page.body), ("hit", "<h3>One</h3>"));
}

#[test]
fn what_was_hot_is_made_after_a_restart() {
    let site = TestSite::new(FILES);
    heat(&site, "/read?id=1");
    heat(&site, "/list");
    site.get("/read?id=2");
    site.site.stop();
    let list = fs::read_to_string(site.dir.path().join("site.db.warm")).unwrap();
    assert!(list.contains("/read") && !list.contains("One"), "{list}");
    assert_eq!(list.lines().count(), 3);
    let site = site.restart(&[]);
    until_made(&site, 2);
    assert_eq!(site.get("/read?id=1").cache(), "hit");
    assert_eq!(site.get("/list").cache(), "hit");
    assert_eq!(site.get("/read?id=2").cache(), "fwd=miss; stored");
    // Before it was known what is hot now, that was still the same.
    let site = site.restart(&[]);
    until_made(&site, 2);
}

#[test]
fn a_list_is_read_with_care() {
    let head = |pages| format!("{{\"millpond\":\"hot pages\",\"version\":1,\"pages\":{pages}}}\n");
    let lines = "{\"page\":\"/gone\",\"with\":{}}\n{\"page\":\"/read\",\"with\":{\"id\":\"x\"}}\n\
        {\"page\":\"/read\",\"with\":{}}\n{\"page\":\"/read\",\"with\":{\"id\":1,\"more\":2}}\n\
        {\"page\":\"/read\",\"with\":{\"id\":1}}\n{\"page\":\"/read\",\"with\":{\"id\":999}}\n";
    let site = TestSite::new(&[ON, READ, READ_HTML, ("site.db.warm", &(head(6) + lines))]);
    // What does not exist is kept as that; it is no page.
    until_made(&site, 2);
    assert_eq!(site.get("/read?id=1").cache(), "hit");
    assert_eq!(site.get("/read?id=999").status, 404);
    let cut = head(7) + lines;
    for bad in [&*cut, "garbage", ""] {
        let site = TestSite::new(&[ON, READ, READ_HTML, ("site.db.warm", bad)]);
        assert_eq!(site.get("/read?id=1").cache(), "fwd=miss; stored");
    }
}

#[test]
fn a_list_that_cannot_be_written_is_no_error() {
    let toml = "[cache]\nrefresh_ahead = 100\nwarm_list = \"no/such/folder/x.warm\"\n";
    let site = TestSite::new(&[("millpond.toml", toml), READ, READ_HTML, EDIT]);
    heat(&site, "/read?id=1");
    edit(&site, 1, "Mine");
    until_made(&site, 1);
    let site = site.restart(&[]);
    assert_eq!(site.get("/read?id=1").cache(), "fwd=miss; stored");
}
