//! What `millpond new --template` makes, as it is: each answers every address, on both databases.

use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::support::{Connection, PATIENCE, Server, fail, run, serve, text, write};
use crate::visitors::{Visitor, alike_on_both, are_kept, on_both, pages_on_both};

/// A new site.
fn new(template: &str) -> TempDir {
    let dir = lab_testkit::fast_dir();
    let output = run(dir.path(), &["new", ".", "--template", template]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    dir
}

/// Every address is answered, by a page or by the way to sign in.
fn answers(template: &str, from: &[&str], least: usize) {
    let pages = alike_on_both(|| new(template), from);
    for (target, (status, body)) in &pages {
        let is_closed = ["/editor", "/account"].contains(&target.as_str());
        let expected = if is_closed { 303 } else { 200 };
        assert_eq!(*status, expected, "{template}: {target}: {body}");
    }
    assert!(pages.len() >= least, "{template}: {}", pages.len());
}

#[test]
fn the_notes_answer_every_address_on_both_databases() {
    // The first note is of this moment, so the pages are not the same.
    for pages in pages_on_both(|| new("notes"), &["/"]) {
        assert!(
            pages.values().all(|(status, _)| *status == 200),
            "{pages:?}"
        );
        let targets: Vec<_> = pages.keys().map(String::as_str).collect();
        assert_eq!(targets, ["/", "/notes/1", "/style.css"]);
    }
}

#[test]
fn each_template_answers_every_address_alike_on_both_databases() {
    answers(
        "blog",
        &[
            "/",
            "/robots.txt",
            "/sitemap.xml",
            "/search?q=wheel",
            "/search",
        ],
        14,
    );
    answers(
        "shop",
        &["/", "/robots.txt", "/sitemap.xml", "/api/albums/3"],
        70,
    );
    answers("api", &["/"], 2);
}

#[test]
fn a_misspelt_template_is_named_with_what_was_meant() {
    let dir = lab_testkit::fast_dir();
    let (status, said) = fail(dir.path(), &["new", "site", "--template", "blogg"]);
    assert_eq!(status, 2, "{said}");
    assert!(
        said.contains("'blog'") && said.contains("notes, blog, shop, api"),
        "{said}"
    );
    assert!(!dir.path().join("site").exists());
}

#[test]
fn what_is_secret_or_made_is_not_for_git() {
    let dir = new("shop");
    let ignored = std::fs::read_to_string(dir.path().join(".gitignore")).unwrap();
    for name in ["site.db*", "session.key", "access.log*", "tls/", "uploads/"] {
        assert!(
            ignored.lines().any(|line| line == name),
            "{name}: {ignored}"
        );
    }
}

/// Asks until the page has this text, or has it no more.
fn until(server: &Server, target: &str, text: &str, is_there: bool) {
    let since = Instant::now();
    while server.get(target).text().contains(text) != is_there {
        let page = server.get(target).text();
        assert!(since.elapsed() < PATIENCE, "{target}: {text}: {page}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_blog_is_written_in_files() {
    let site = Mutex::new(PathBuf::new());
    let make = || {
        let dir = new("blog");
        site.lock().unwrap().clone_from(&dir.path().to_owned());
        dir
    };
    on_both(make, |server, _| {
        let site = site.lock().unwrap().clone();
        let post = |name: &str, text: &str| write(&site, &format!("data/posts/{name}"), text);
        are_kept(
            server,
            &[
                "/",
                "/posts/hello",
                "/posts/how-it-looks",
                "/pages/about",
                "/tags",
                "/tags/markdown",
                "/search?q=pond",
                "/feed.atom",
                "/sitemap.xml",
            ],
        );
        post(
            "2026/tea.md",
            "---\ntitle: Tea <3\ndate: 2026-02-01\ntags: [C++ & co, blog]\n---\n\n**Hot** [x](hello.md#y) [z](../hello.md)[^1]\n\n<!--more-->\n\nCold\n\n[^1]: A note\n",
        );
        until(server, "/posts/tea", "<strong>Hot</strong>", true);
        let page = server.get("/posts/tea").text();
        assert!(page.contains("<a href=\"hello#y\">x</a>"), "{page}");
        assert!(page.contains("<a href=\"hello\">z</a>"), "{page}");
        assert!(
            page.contains("<div class=\"footnote-definition\""),
            "{page}"
        );
        assert!(!page.contains("more--"), "{page}");
        assert!(page.contains("1 February 2026"), "{page}");
        assert!(
            page.contains("rel=\"prev\" href=\"/posts/hello\""),
            "{page}"
        );
        until(
            server,
            "/posts/hello",
            "rel=\"next\" href=\"/posts/tea\"",
            true,
        );
        until(server, "/", "Tea &lt;3", true);
        assert!(server.get("/").text().contains("<p>Hot x z</p>"));
        until(server, "/tags/C%2B%2B%20%26%20co", "Tea &lt;3", true);
        until(server, "/search?q=hot", "Tea &lt;3", true);
        until(server, "/feed.atom", "&lt;strong&gt;Hot&lt;", true);
        until(server, "/sitemap.xml", "/posts/tea</loc>", true);
        // A post of a day to come is nowhere, and those beside it do not name it.
        post(
            "later.md",
            "---\ntitle: Later\ndate: 2999-12-31\ntags: [later]\n---\n\nTomorrow\n",
        );
        server.wait_for("data/posts/later.md: table posts, rows: 1 new");
        for target in [
            "/",
            "/tags",
            "/search?q=tomorrow",
            "/feed.atom",
            "/sitemap.xml",
            "/posts/tea",
        ] {
            let page = server.get(target).text();
            assert!(
                !page.contains("Later") && !page.contains("later"),
                "{target}: {page}"
            );
        }
        for target in ["/posts/later", "/tags/later"] {
            assert_eq!(server.get(target).status, 404, "{target}");
        }
        // A draft is nowhere.
        post(
            "2026/tea.md",
            "---\ntitle: Tea <3\ndate: 2026-02-01\ntags: [C++ & co]\ndraft: true\npreview: a b & c/d\n---\n\nHot\n",
        );
        server.wait_for("the preview is a word of eight letters or more");
        post(
            "2026/tea.md",
            "---\ntitle: Tea <3\ndate: 2026-02-01\ntags: [C++ & co]\ndraft: true\npreview: lantern & snow\n---\n\nHot\n",
        );
        until(server, "/", "Tea", false);
        for target in ["/tags", "/search?q=hot", "/feed.atom", "/sitemap.xml"] {
            until(server, target, "Tea", false);
            assert!(!server.get(target).text().contains("tea"), "{target}");
        }
        assert_eq!(server.get("/posts/tea").status, 404);
        let draft = server.get("/preview/lantern%20%26%20snow");
        assert!(draft.text().contains("noindex"), "{}", draft.text());
        for target in ["/?page=2", "/?page=0", "/preview/another"] {
            assert!(server.get(target).status >= 400, "{target}");
        }
        assert_eq!(server.get("/tags/C%2B%2B%20%26%20co").status, 404);
        // Only a heading: it is the title, and the post is the last of the list.
        post("note.md", "# A note\n\nShort.\n");
        until(server, "/posts/note", "<h1>A note</h1>", true);
        until(server, "/", "A note", true);
        let list = server.get("/").text();
        assert!(list.find("How it looks") < list.find("A note"), "{list}");
        // What is no list, and no day, is said; the post stays as it was.
        post("note.md", "---\ntags: winter\n---\n# Another\n");
        server.wait_for(": the rows stay as they were");
        server.wait_for("the tags are a list, such as [walks, winter]");
        until(server, "/posts/note", "<h1>A note</h1>", true);
        post("note.md", "---\nslug: a/b\n---\n# Another\n");
        server.wait_for("the slug is a part of an address, without a /");
        std::fs::remove_file(site.join("data/posts/note.md")).unwrap();
        until(server, "/", "A note", false);
        assert_eq!(server.get("/posts/note").status, 404);
    });
}

#[test]
fn an_excerpt_of_a_post_has_no_footnotes() {
    let dir = new("blog");
    let text =
        "# Tea\n\nHot[^1] [x](hello.md) `a`\n\n|b|c|\n|-|-|\n|1|2|\n\n[^1]: A note\n\nEnd[^2]";
    let long = format!("{text}{}\n\n[^2]: Another note\n", " word".repeat(600));
    write(dir.path(), "data/posts/tea.md", &long);
    let server = serve(dir.path());
    let excerpt = "Hot x a b c 1 2 End word word";
    let list = server.get("/").text();
    assert!(list.contains(&format!("<p>{excerpt}")), "{list}");
    let page = server.get("/posts/tea").text();
    let meta = format!("<meta name=\"description\" content=\"{excerpt}");
    assert!(page.contains(&meta), "{page}");
    assert!(page.contains("Another note"), "{page}");
}

#[test]
fn a_page_of_a_blog_may_be_a_draft() {
    let site = Mutex::new(PathBuf::new());
    let make = || {
        let dir = new("blog");
        site.lock().unwrap().clone_from(&dir.path().to_owned());
        let text =
            "---\ntitle: Walks\nmenu: 2\ndraft: true\npreview: the-way-up\n---\n\nOn *foot*\n";
        write(dir.path(), "data/pages/walks.md", text);
        dir
    };
    on_both(make, |server, _| {
        let site = site.lock().unwrap().clone();
        for target in ["/", "/sitemap.xml", "/pages/about"] {
            assert!(!server.get(target).text().contains("walks"), "{target}");
        }
        assert_eq!(server.get("/pages/walks").status, 404);
        let draft = server.get("/preview/the-way-up").text();
        assert!(
            draft.contains("noindex") && draft.contains("<em>foot</em>"),
            "{draft}"
        );
        let text = "---\ntitle: Walks\nmenu: 2\n---\n\nOn *foot*\n";
        write(&site, "data/pages/walks.md", text);
        until(server, "/", "href=\"/pages/walks\"", true);
        until(server, "/pages/walks", "<em>foot</em>", true);
        until(server, "/sitemap.xml", "/pages/walks</loc>", true);
        assert_eq!(server.get("/preview/the-way-up").status, 404);
        let other = "---\ntitle: Walks\npreview: short\n---\n";
        write(&site, "data/pages/walks.md", other);
        server.wait_for("the preview is a word of eight letters or more");
    });
}

/// Returns the address at which a client that follows redirects of the site ends.
fn end_of(server: &Server, target: &str) -> String {
    let mut at = target.to_owned();
    for _ in 0..5 {
        let answer = server.get(&at);
        match answer.field("location") {
            Some(to) => to.clone_into(&mut at),
            None => return format!("{} {at}", answer.status),
        }
    }
    panic!("{target} has no end");
}

#[test]
fn old_addresses_lead_to_a_blog_with_and_without_a_slash() {
    let dir = new("blog");
    let readme = std::fs::read_to_string(dir.path().join("README.md")).unwrap();
    let rules = readme
        .lines()
        .filter_map(|line| line.strip_prefix("      "));
    let rules: Vec<&str> = rules.filter(|line| !line.starts_with(' ')).collect();
    let is_rule = |line: &&&str| line.starts_with("[[redirect]]");
    assert_eq!(rules.iter().filter(is_rule).count(), 5);
    let settings = dir.path().join("millpond.toml");
    let before = std::fs::read_to_string(&settings).unwrap();
    std::fs::write(settings, before + &rules.join("\n")).unwrap();
    write(dir.path(), "data/posts/first-snow.md", "# Snow\n");
    write(dir.path(), "static/wp-content/2019/05/snow.jpg", "snow");
    let checked = run(dir.path(), &["check"]);
    let said = text(&checked.stdout) + &text(&checked.stderr);
    assert!(
        checked.status.success() && said.contains("all is well"),
        "{said}"
    );
    let server = serve(dir.path());
    for (target, end) in [
        ("/2019/05/17/first-snow", "200 /posts/first-snow"),
        ("/2019/05/first-snow", "200 /posts/first-snow"),
        ("/2019/05/old-name", "200 /posts/first-snow"),
        ("/feed", "200 /feed.atom"),
    ] {
        assert_eq!(end_of(&server, target), end);
        assert_eq!(end_of(&server, &format!("{target}/")), end);
    }
    for (target, end) in [
        ("/2019/05/17/first-snow.html", "200 /posts/first-snow"),
        ("/2019/05/17/none", "404 /posts/none"),
        // Files and pages keep their addresses.
        (
            "/wp-content/2019/05/snow.jpg",
            "200 /wp-content/2019/05/snow.jpg",
        ),
        ("/posts/first-snow", "200 /posts/first-snow"),
        ("/preview/x/y", "404 /posts/y"),
    ] {
        assert_eq!(end_of(&server, target), end);
    }
}

/// A blog with all recipes of the guide.
fn with_recipes() -> TempDir {
    let dir = new("blog");
    let recipes = lab_testkit::listings(include_str!("../../../../docs/guide/blog.md"));
    assert_eq!(recipes.len(), 10, "{recipes:?}");
    for (name, text) in recipes {
        write(dir.path(), name, text);
    }
    let page = dir.path().join("pages/posts/[slug].html");
    let text = std::fs::read_to_string(&page).unwrap();
    let shown = "</article>\n{% include \"comments.html\" %}";
    std::fs::write(page, text.replace("</article>", shown)).unwrap();
    dir
}

#[test]
fn the_recipes_for_a_blog_work_on_both_databases() {
    on_both(with_recipes, |server, sql| {
        let mut ada = Visitor::new(server);
        ada.shows("/archive", "<h2>2026</h2>");
        ada.shows("/posts/hello", "There is no comment yet.");
        let refused = ada.post("/posts/hello", "name=&words=x");
        assert_eq!(refused, "/posts/hello");
        ada.shows(
            "/posts/hello",
            "<textarea name=\"words\" required maxlength=\"5000\">x<",
        );
        assert_eq!(ada.refused("/posts/none", "name=Ada&words=x"), 404);
        let posted = ada.post("/posts/hello", "name=Ada&words=Well+said");
        assert_eq!(posted, "/posts/hello#comments");
        ada.shows("/posts/hello", "There is no comment yet.");
        sql("update comment set is_shown = true");
        until(server, "/posts/hello", "<strong>Ada</strong>", true);
        let right = "name=Ada&email=a%40b.example&words=x&website=";
        assert_eq!(ada.post("/contact", right), "/contact/thanks");
        ada.shows("/contact/thanks", "Your message has arrived.");
        for (wrong, said) in [
            (
                "name=+&email=a%40b.example&words=y",
                "</label> Please write your name,",
            ),
            (
                "name=Ada&email=nowhere&words=y",
                "</label> Please write your whole e-mail",
            ),
            (
                "name=Ada&email=a%40b.example&words=",
                "</label> Please write a message,",
            ),
            (
                &format!("{right}http://x"),
                "<p role=\"alert\">The message was not sent",
            ),
        ] {
            assert_eq!(ada.post("/contact", wrong), "/contact", "{wrong}");
            ada.shows("/contact", said);
        }
        // Only the first was kept: two could not have such an index.
        sql("create unique index message_alone on message (is_read)");
    });
}

/// Sends the request of a program; returns the status and body of the response, and the address of
/// the new thing.
fn send(visitor: &mut Visitor<'_>, head: &str, body: &str) -> (u16, String, Option<String>) {
    let answer = visitor.send_as(head, "application/json", body);
    let address = answer.field("location").map(str::to_owned);
    (answer.status, answer.text(), address)
}

/// The address of what is made.
fn made(visitor: &mut Visitor<'_>, head: &str, body: &str) -> String {
    let (status, said, address) = send(visitor, head, body);
    assert_eq!(status, 201, "{head} {body}: {said}");
    address.unwrap()
}

#[test]
fn the_tasks_of_an_api_belong_to_their_account() {
    on_both(
        || new("api"),
        |server, _| {
            let (mut ada, mut bo) = (Visitor::new(server), Visitor::new(server));
            assert_eq!(ada.get("/api/tasks").status, 401);
            assert_eq!(
                send(&mut ada, "POST /api/tasks", "{\"title\":\"Tea\"}").0,
                401
            );
            let account = "{\"name\":\"Ada\",\"password\":\"long enough\"}";
            assert_eq!(made(&mut ada, "POST /api/register", account), "/api/me");
            let (status, said, _) = send(&mut bo, "POST /api/register", account);
            assert_eq!(status, 409, "{said}");
            assert!(said.starts_with("{\"type\":\"about:blank\""), "{said}");
            made(&mut bo, "POST /api/register", &account.replace("Ada", "Bo"));
            let new = "{\"title\":\" Buy milk \",\"due\":\"2026-12-31\"}";
            let task = made(&mut ada, "POST /api/tasks", new);
            made(&mut bo, "POST /api/tasks", "{\"title\":\"Sleep\"}");
            ada.shows(
                &task,
                "\"title\":\"Buy milk\",\"note\":\"\",\"done\":0,\"due\":\"2026-12-31\"",
            );
            let (patch, delete) = (format!("PATCH {task}"), format!("DELETE {task}"));
            let done = "{\"done\":1}";
            assert_eq!(bo.get(&task).status, 404);
            assert_eq!(send(&mut bo, &patch, done).0, 404);
            assert_eq!(send(&mut bo, &delete, "").0, 404);
            let (status, said, _) = send(&mut ada, &patch, done);
            assert_eq!(status, 200, "{said}");
            assert!(
                said.contains("\"title\":\"Buy milk\",\"note\":\"\",\"done\":1"),
                "{said}"
            );
            ada.shows("/api/tasks?done=1&q=MILK", "\"title\":\"Buy milk\"");
            ada.shows("/api/tasks?done=0", "\"tasks\":[]");
            ada.shows("/api/me", "\"total\":1,\"done\":1");
            ada.shows("/api/tasks.csv", "Buy milk");
            bo.shows("/api/tasks?sort=due", "\"title\":\"Sleep\"");
            assert!(!bo.get("/api/tasks").text().contains("milk"));
            assert_eq!(ada.refused("/api/tasks", "title="), 422);
            assert_eq!(ada.refused("/api/tasks", "title=x&due=soon"), 422);
            assert_eq!(ada.get("/api/tasks?sort=made%3B").status, 400);
            assert_eq!(
                ada.refused("/api/login", "name=Ada&password=something+else"),
                422
            );
            let (status, said, _) = send(&mut ada, "POST /api/login", account);
            assert_eq!(status, 200, "{said}");
            let said: serde_json::Value = serde_json::from_str(&said).unwrap();
            let token = said["access_token"].as_str().unwrap();
            let token = format!("Authorization: Bearer {token}");
            let me = Connection::open(server.address()).get_with("/api/me", &[&token]);
            assert!(me.text().contains("\"Ada\""), "{}", me.text());
            assert_eq!(send(&mut ada, &delete, "").0, 200);
            assert_eq!(ada.get(&task).status, 404);
            assert_eq!(send(&mut ada, "POST /api/logout", "{}").0, 204);
            ada.cookies.clear();
            assert_eq!(ada.get("/api/me").status, 401);
        },
    );
}
