//! Visitors of a whole site: browsers with cookies, and one that follows every link; on SQLite and
//! on PostgreSQL.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use lab_pgtest::Options;
use tempfile::TempDir;

use crate::support::{Connection, PATIENCE, Response, Server, run, serve, serve_with, text};

/// A visitor with a browser that keeps cookies.
pub(crate) struct Visitor<'s> {
    server: &'s Server,
    pub(crate) cookies: BTreeMap<String, String>,
}

impl<'s> Visitor<'s> {
    pub(crate) fn new(server: &'s Server) -> Self {
        Self {
            server,
            cookies: BTreeMap::new(),
        }
    }

    fn send(&mut self, head: &str, body: &str) -> Response {
        self.send_as(head, "application/x-www-form-urlencoded", body)
    }

    /// Sends a body of another kind than a form, such as JSON: `PATCH /items/1`.
    pub(crate) fn send_as(&mut self, head: &str, kind: &str, body: &str) -> Response {
        let cookies: Vec<String> = self
            .cookies
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let mut connection = Connection::open(self.server.address());
        connection.send(format!(
            "{head} HTTP/1.1\r\nHost: shop\r\nCookie: {}\r\nContent-Type: {kind}\r\n\
             Content-Length: {}\r\n\r\n{body}",
            cookies.join("; "),
            body.len()
        ));
        let answer = connection.receive();
        for (_, value) in answer
            .fields
            .iter()
            .filter(|(name, _)| name == "set-cookie")
        {
            let pair = value.split(';').next().unwrap_or_default();
            if let Some((name, value)) = pair.split_once('=') {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        answer
    }

    pub(crate) fn get(&mut self, target: &str) -> Response {
        self.send(&format!("GET {target}"), "")
    }

    /// Sends a form and gives the address that it leads to.
    pub(crate) fn post(&mut self, target: &str, form: &str) -> String {
        let answer = self.send(&format!("POST {target}"), form);
        assert_eq!(answer.status, 303, "{target} {form}: {}", answer.text());
        answer.field("location").unwrap().to_owned()
    }

    /// Sends a form with a file as a browser does, and gives the address that it leads to.
    pub(crate) fn upload(&mut self, target: &str, fields: &[(&str, &str)], file: &str) -> String {
        let part = |name: &str, value: &str| {
            format!("--part\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
        };
        let mut body: String = fields
            .iter()
            .map(|(name, value)| part(name, value))
            .collect();
        body += &part("cover\"; filename=\"cover.webp", file);
        body += "--part--\r\n";
        let kind = "multipart/form-data; boundary=part";
        let answer = self.send_as(&format!("POST {target}"), kind, &body);
        assert_eq!(answer.status, 303, "{target}: {}", answer.text());
        answer.field("location").unwrap().to_owned()
    }

    /// The status that the form is refused with.
    pub(crate) fn refused(&mut self, target: &str, form: &str) -> u16 {
        let answer = self.send(&format!("POST {target}"), form);
        assert!(answer.status >= 400, "{target} {form}: {answer:?}");
        answer.status
    }

    pub(crate) fn shows(&mut self, target: &str, expected: &str) {
        let answer = self.get(target);
        assert_eq!(answer.status, 200, "{target}: {}", answer.text());
        let page = answer.text();
        assert!(page.contains(expected), "{target}: {expected}: {page}");
    }
}

/// Every page that links and pictures lead to, from these addresses on: status and body.
pub(crate) fn pages(server: &Server, from: &[&str]) -> BTreeMap<String, (u16, String)> {
    let mut connection = Connection::open(server.address());
    let mut left: Vec<String> = from.iter().map(|&target| target.into()).collect();
    let mut found = BTreeMap::new();
    while let Some(target) = left.pop() {
        if found.contains_key(&target) {
            continue;
        }
        let answer = connection.get(&target);
        let body = answer.text();
        for attribute in ["href=\"", "src=\""] {
            let links = body.split(attribute).skip(1);
            left.extend(links.filter_map(|rest| address(&target, rest.split('"').next()?)));
        }
        found.insert(target, (answer.status, body));
    }
    found
}

/// The address that a link leads to; none if it is on the same page or on another site.
fn address(page: &str, link: &str) -> Option<String> {
    let link = link.split('#').next()?.replace("&amp;", "&");
    let path = page.split('?').next()?;
    match link.as_bytes().first()? {
        b'/' => Some(link),
        b'?' => Some(format!("{path}{link}")),
        _ => None,
    }
}

/// Runs `test` for a new copy of a site on SQLite, then for one on PostgreSQL, with a means to run
/// a statement as another program would.
pub(crate) fn on_both(make: impl Fn() -> TempDir, test: impl Fn(&Server, &mut dyn FnMut(&str))) {
    let site = make();
    let server = serve(site.path());
    let file = rusqlite::Connection::open(site.path().join("site.db")).unwrap();
    test(&server, &mut |sql| file.execute_batch(sql).unwrap());

    let postgres = Options::new().logical().start().unwrap();
    let database = postgres.database().unwrap();
    let site = make();
    let server = serve_with(site.path(), &["--database", &database.url()]);
    let mut client = postgres::Client::connect(&database.url(), postgres::NoTls).unwrap();
    test(&server, &mut |sql| client.batch_execute(sql).unwrap());
}

/// Every page of a site that links lead to, from these addresses on, on SQLite and on PostgreSQL.
/// `check` is well on both.
pub(crate) fn pages_on_both(
    make: impl Fn() -> TempDir,
    from: &[&str],
) -> [BTreeMap<String, (u16, String)>; 2] {
    let postgres = Options::new().logical().start().unwrap();
    let database = postgres.database().unwrap();
    let url = database.url();
    [None, Some(url.as_str())].map(|url| {
        let site = make();
        let other: Vec<&str> = url
            .map(|url| ["--database", url])
            .into_iter()
            .flatten()
            .collect();
        let output = run(site.path(), &[&["check", "."], other.as_slice()].concat());
        let said = text(&output.stderr) + &text(&output.stdout);
        assert!(output.status.success(), "{said}");
        assert!(said.contains("all is well"), "{said}");
        assert!(!said.contains("not cacheable"), "{said}");
        pages(&serve_with(site.path(), &other), from)
    })
}

/// Compares the pages on both databases.
pub(crate) fn alike_on_both(
    make: impl Fn() -> TempDir,
    from: &[&str],
) -> BTreeMap<String, (u16, String)> {
    let [one, other] = pages_on_both(make, from);
    for (target, answer) in &one {
        assert_eq!(Some(answer), other.get(target), "{target}");
    }
    assert_eq!(one.len(), other.len());
    one
}

/// Each of these pages comes from memory when it is asked for again; what a start still writes may
/// end it once or twice.
pub(crate) fn are_kept(server: &Server, targets: &[&str]) {
    wait_for_the_feed(server);
    let deadline = Instant::now() + PATIENCE;
    for target in targets {
        loop {
            let answer = server.get(target);
            assert_eq!(answer.status, 200, "{target}");
            let status = answer.field("cache-status").unwrap_or_default();
            if status == "millpond; hit" {
                break;
            }
            assert!(Instant::now() < deadline, "{target}: {status}");
        }
    }
}

/// Asks for the front page until it comes from memory: once the feed of the server has begun.
fn wait_for_the_feed(server: &Server) {
    let deadline = Instant::now() + PATIENCE;
    while server.get("/").field("cache-status") != Some("millpond; hit") {
        assert!(Instant::now() < deadline, "the front page is not kept");
        thread::sleep(Duration::from_millis(20));
    }
}
