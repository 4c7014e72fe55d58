//! What `millpond new --template` makes, as it is: each answers every address, on both databases.

use tempfile::TempDir;

use crate::support::{Connection, fail, run, text};
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
        let is_closed = ["/desk", "/editor", "/account"].contains(&target.as_str());
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
    answers("blog", &["/", "/robots.txt", "/sitemap.xml", "/login"], 12);
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

#[test]
fn a_blog_is_written_and_its_comments_are_let_through() {
    on_both(
        || new("blog"),
        |server, run| {
            are_kept(
                server,
                &[
                    "/",
                    "/posts/hello",
                    "/tags",
                    "/tags/writing",
                    "/feed.rss",
                    "/sitemap.xml",
                    "/login",
                ],
            );
            let (mut author, mut reader) = (Visitor::new(server), Visitor::new(server));
            author.post("/register", "name=Ada&password=long+enough");
            assert_eq!(author.get("/desk").status, 403);
            assert_eq!(
                author.refused("/desk/posts/new", "title=A&slug=a&body=A"),
                403
            );
            run("update account set role = 'author' where name = 'Ada'");
            author.post("/login", "name=Ada&password=long+enough");
            author.post("/desk/tags", "name=C%2B%2B+%26+co");
            let post = "title=Tea+%3C3&slug=tea&body=**Hot**&tag=1&tag=3";
            assert_eq!(author.post("/desk/posts/new", post), "/desk");
            assert_eq!(author.refused("/desk/posts/new", post), 409);
            assert_eq!(server.get("/posts/tea").status, 404);
            assert!(!server.get("/feed.rss").text().contains("Tea"));
            author.shows("/desk", "draft");
            run("update post set published_at = '2020-02-02T20:20:20Z' where slug = 'tea'");
            author.shows("/desk/posts/2", "value=\"3\" checked");
            author.post("/desk/posts/2", &format!("{post}&public=true"));
            reader.shows("/", "Tea &lt;3");
            assert!(!server.get("/posts/tea").text().contains("2020"));
            reader.shows("/posts/tea", "<strong>Hot</strong>");
            reader.shows("/tags/C%2B%2B%20%26%20co", "Tea &lt;3");
            reader.shows("/feed.rss", "<![CDATA[<p><strong>Hot</strong>");
            author.post(
                "/desk/posts/2",
                "title=Tea&slug=tea&body=Cold&tag=3&public=true",
            );
            assert!(!server.get("/tags/millpond").text().contains("Tea"));
            assert_eq!(
                reader.post("/comment", "slug=tea&who=Bo&body=%3Cb%3E"),
                "/posts/tea?sent=true#comments"
            );
            reader.shows("/posts/tea?sent=true", "Thank you");
            assert!(!server.get("/posts/tea").text().contains("&lt;b&gt;"));
            assert_eq!(reader.refused("/comment", "slug=no&who=Bo&body=b"), 404);
            let refused = reader.post("/comment", "slug=tea&who=&body=Not+yet");
            assert_eq!(refused, "/posts/tea#comments");
            let refused = reader.get("/posts/tea").text();
            assert!(refused.contains("A name has 1 to 80"), "{refused}");
            assert!(refused.contains("Not yet</textarea>"), "{refused}");
            assert!(!reader.get("/posts/tea").text().contains("Not yet"));
            author.shows("/desk", "&lt;b&gt;");
            author.post("/desk/comments/2/allow", "");
            reader.shows("/posts/tea", "&lt;b&gt;");
            author.post("/desk/comments/2/delete", "");
            assert!(!server.get("/posts/tea").text().contains("&lt;b&gt;"));
            author.post("/desk/posts/2/delete", "");
            assert_eq!(server.get("/posts/tea").status, 404);
        },
    );
}

/// What a program sends: the answer's status and body, and the address of what was made.
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
