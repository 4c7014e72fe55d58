//! Live pages over sockets: what those who look at a page are told.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use lab_testkit::Random;
use rustix::net::sockopt::set_socket_linger;
use tempfile::TempDir;

use crate::support::{Connection, PATIENCE, Server, admin, serve, site_with, write};
use crate::visitors::Visitor;

pub(crate) const FILES: &[(&str, &str)] = &[
    (
        "migrations/0009_comment.sql",
        "create table comment (id integer primary key, text text not null, hidden text);
         create table account (name text primary key, seen integer not null);
         insert into account values ('ann', 0), ('bob', 0);",
    ),
    (
        "pages/comments.sql",
        "-- live\n-- name: comments :many\nselect id, text, length(hidden) > 0 as has from comment order by id;\n",
    ),
    (
        "pages/comments.html",
        "<!doctype html><html><head><title>Comments</title></head><body><ol>{% for comment in comments %}<li>{{ comment.text }}</li>{% endfor %}</ol>\n\
         <details id=more><summary>More</summary>all</details>\n\
         <form method=post action=/comment><input type=hidden id=version value={{ comments | length }}><input name=text id=text>\
         <input type=radio name=side id=left{% if comments | length < 1 %} checked{% endif %}><input type=radio name=side id=right>\
         <input type=radio name=side id=none{% if comments | length > 0 %} checked{% endif %}><select id=kind><option>a<option>b</select><input type=checkbox id=box><button>Send</button></form></body></html>",
    ),
    (
        "pages/comment.post.sql",
        "-- param: text text\n-- name: added :exec\ninsert into comment (text) values (:text);\n-- redirect: /comments\n",
    ),
    (
        "pages/hide.post.sql",
        "-- param: text text\n-- name: hidden :exec\nupdate comment set hidden = :text;\n-- redirect: /comments\n",
    ),
    (
        "pages/plain.sql",
        "-- name: n :one\nselect count(*) as n from comment;\n",
    ),
    (
        "pages/enter.post.sql",
        "-- param: name text\n-- name: account :one\nselect name from account where name = :name;\n-- claims: name = account.name\n-- redirect: /mine\n",
    ),
    (
        "pages/leave.post.sql",
        "-- logout\n-- redirect: /comments\n",
    ),
    (
        "pages/see.post.sql",
        "-- param: name text\n-- name: seen :exec\nupdate account set seen = seen + 1 where name = :name;\n-- redirect: /comments\n",
    ),
    (
        "pages/mine.sql",
        "-- live\n-- require: claims.name else /comments\n-- name: account :one\nselect name, seen from account where name = :claims.name;\n",
    ),
    (
        "pages/own.sql",
        "-- live\n-- name: account :one\nselect sum(seen) as seen from account;\n",
    ),
    (
        "pages/own.html",
        "<!doctype html><p>{{ request.claims.name }} {{ account.seen }}</p>",
    ),
    (
        "pages/mine.html",
        "<!doctype html><title>{{ account.name }}</title><p>{{ account.seen }}</p>",
    ),
];

pub(crate) fn site(settings: &str) -> TempDir {
    let site = site_with(settings);
    for (name, text) in FILES {
        add(site.path(), name, text);
    }
    site
}

fn add(site: &Path, name: &str, text: &str) {
    let path = site.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    write(site, name, text);
}

/// A stream of events, read as it comes.
pub(crate) struct EventStream {
    lines: BufReader<TcpStream>,
}

impl EventStream {
    pub(crate) fn open(server: &Server, query: &str, fields: &str) -> Self {
        Self::open_at(server.address(), query, fields)
    }

    fn open_at(address: SocketAddr, query: &str, fields: &str) -> Self {
        let mut socket = TcpStream::connect(address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(
            socket,
            "GET /.millpond/live?{query} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n"
        )
        .unwrap();
        let mut stream = Self {
            lines: BufReader::new(socket),
        };
        let head = stream.until_empty();
        assert_eq!(head[0], "HTTP/1.1 200 OK");
        let kind = "Content-Type: text/event-stream";
        assert!(head.iter().any(|line| line == kind), "{head:?}");
        stream
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn until_empty(&mut self) -> Vec<String> {
        let lines = std::iter::from_fn(|| Some(self.line()).filter(|line| !line.is_empty()));
        lines.collect()
    }

    /// The lines of the next event, without those that divide the body into chunks.
    pub(crate) fn event(&mut self) -> Vec<String> {
        loop {
            let mut lines = self.until_empty();
            lines.retain(|line| u64::from_str_radix(line, 16).is_err());
            let is_beat = lines.iter().any(|line| line == "event: beat");
            if !lines.is_empty() && !is_beat {
                return lines;
            }
        }
    }
}

/// The tag of a page now, and what the store said of it.
fn tag(server: &Server, target: &str) -> (String, String) {
    let answer = Connection::open(server.address()).get(target);
    assert_eq!(answer.status, 200);
    let tag = answer.field("etag").unwrap().trim_matches('"').to_owned();
    (tag, answer.field("cache-status").unwrap().to_owned())
}

pub(crate) fn count(server: &Server, name: &str) -> u64 {
    let admin = admin(server);
    let address = admin.trim_start_matches("http://").trim_end_matches('/');
    let answer = Connection::open(address.parse().unwrap()).get("/counters");
    let text = answer.text();
    let (_, rest) = text.split_once(&format!("\"{name}\":")).unwrap();
    let digits = rest.trim_start().split(|c: char| !c.is_ascii_digit());
    digits.into_iter().next().unwrap().parse().unwrap()
}

#[test]
fn all_who_look_are_told_of_a_change_which_is_rendered_once() {
    let site = site("[admin]\nlisten = \"127.0.0.1:0\"\n[cache]\nrefresh_ahead = 0\n");
    let server = serve(site.path());
    let (first, _) = tag(&server, "/comments");
    let query = format!("page=%2Fcomments&seen={first}");
    let mut streams: Vec<EventStream> = (0..50)
        .map(|_| EventStream::open(&server, &query, ""))
        .collect();
    for stream in &mut streams {
        assert_eq!(stream.event(), [": the newest"]);
    }
    let before = count(&server, "fills");
    let mut visitor = Visitor::new(&server);
    visitor.post("/comment", "text=one");
    let told: Vec<_> = streams.iter_mut().map(EventStream::event).collect();
    let (second, status) = tag(&server, "/comments");
    assert_eq!(status, "millpond; hit");
    assert_ne!(first, second);
    for event in &told {
        assert_eq!(event[0], format!("id: {second}"));
        // The other forty-nine take less than a millisecond.
        assert_eq!(event[1], "data: 0");
    }
    assert_eq!(count(&server, "fills") - before, 1);
    assert_eq!(count(&server, "live_streams"), 50);
    // A change that the page does not show is no event: the next one is that of the next comment.
    visitor.post("/hide", "text=");
    visitor.post("/comment", "text=two");
    let (third, _) = tag(&server, "/comments");
    for stream in &mut streams {
        assert_eq!(stream.event()[0], format!("id: {third}"));
    }
    // Who comes again with an old state is told at once.
    let mut late = EventStream::open(&server, &query, "Last-Event-ID: old\r\n");
    assert_eq!(late.event(), [format!("id: {third}"), "data: 0".to_owned()]);
    // A client that is gone is noticed although its stream has nothing to say.
    for stream in streams.iter().chain([&late]) {
        set_socket_linger(stream.lines.get_ref(), Some(Duration::ZERO)).unwrap();
    }
    drop(streams);
    drop(late);
    while count(&server, "live_streams") > 0 {
        std::thread::yield_now();
    }
}

#[test]
fn the_newest_state_arrives_however_quickly_changes_come_and_clients_go() {
    let site = site("[live]\ninterval = \"10ms\"\n");
    let server = serve(site.path());
    let (first, _) = tag(&server, "/comments");
    let mut stays = EventStream::open(&server, &format!("page=/comments&seen={first}"), "");
    let database = rusqlite::Connection::open(site.path().join("site.db")).unwrap();
    database.busy_timeout(PATIENCE).unwrap();
    let mut visitor = Visitor::new(&server);
    let mut random = Random::new(1);
    let mut told = first;
    for round in 0..40 {
        // By the site and by another program, in bursts that take up to several intervals.
        for _ in 0..=random.below(12) {
            match random.below(2) {
                0 => _ = visitor.post("/comment", &format!("text=round {round}")),
                _ => {
                    let insert = "insert into comment (text) values ('of another program')";
                    database.execute(insert, []).unwrap();
                }
            }
        }
        // The page has all rows, also those of the other program, and ends no more.
        let rows = "select count(*) from comment";
        let rows: u32 = database.query_row(rows, [], |row| row.get(0)).unwrap();
        let mut connection = Connection::open(server.address());
        let shown = |connection: &mut Connection| {
            let page = connection.get("/comments");
            page.text().matches("<li>").count()
        };
        while shown(&mut connection) != rows as usize {}
        let (newest, _) = tag(&server, "/comments");
        while told != newest {
            let event = stays.event();
            if let Some(id) = event[0].strip_prefix("id: ") {
                id.clone_into(&mut told);
            }
        }
        let query = format!("page=/comments&seen={told}");
        let mut comes = EventStream::open(&server, &query, "");
        assert_eq!(comes.event(), [": the newest"], "round {round}");
    }
}

/// As the script does it.
fn apply(page: &str, change: &serde_json::Value, tag: &str) -> String {
    let page = page.replace(change["of"].as_str().unwrap(), tag);
    let units: Vec<u16> = page.encode_utf16().collect();
    let part = |from: usize, to: usize| String::from_utf16(&units[from..to]).unwrap();
    let at = |name: &str| change[name].as_u64().unwrap() as usize;
    let text = change["text"].as_str().unwrap();
    part(0, at("from")) + text + &part(at("to"), units.len())
}

#[test]
fn a_small_change_of_a_public_page_is_in_its_event() {
    let site = site("");
    let server = serve(site.path());
    let text = || Connection::open(server.address()).get("/comments").text();
    let (mut told, _) = tag(&server, "/comments");
    let mut stream = EventStream::open(&server, &format!("page=/comments&seen={told}"), "");
    stream.event();
    let mut visitor = Visitor::new(&server);
    visitor.post("/comment", "text=the text of the page is known from now on");
    stream.event()[0]["id: ".len()..].clone_into(&mut told);
    let mut page = text();
    for comment in ["%F0%9F%8C%8A", "one%3Cscript%20src=x%3E", "two"] {
        visitor.post("/comment", &format!("text={comment}"));
        let event = stream.event();
        let change = serde_json::from_str(event[2].strip_prefix("data: ").unwrap()).unwrap();
        page = apply(&page, &change, &event[0]["id: ".len()..]);
        assert_eq!(page, text(), "{change}");
    }
    // One that is longer is asked for.
    visitor.post("/comment", &format!("text={}", "x".repeat(5000)));
    assert_eq!(stream.event().len(), 2);
}

/// Nginx with its defaults, which collect what they pass on. None where there is no nginx.
struct Nginx {
    child: Child,
    address: SocketAddr,
}

impl Nginx {
    fn before(server: &Server, dir: &Path) -> Option<Self> {
        let nginx = "/usr/sbin/nginx";
        if !Path::new(nginx).exists() {
            eprintln!("nginx is missing: not tested");
            return None;
        }
        loop {
            // Another process may take the port before nginx does.
            let free = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = free.local_addr().unwrap();
            drop(free);
            let places = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
            let places = places.map(|name| format!("{name}_temp_path {name};"));
            let settings = format!(
                "daemon off; master_process off; pid nginx.pid; error_log stderr; events {{}}\n\
                 http {{ access_log off; {} server {{ listen {address}; location / {{ proxy_pass http://{}; }} }} }}",
                places.concat(),
                server.address()
            );
            write(dir, "nginx.conf", &settings);
            let mut command = Command::new(nginx);
            command.arg("-p").arg(dir).args(["-c", "nginx.conf"]);
            let mut child = command.stderr(Stdio::null()).spawn().unwrap();
            while child.try_wait().unwrap().is_none() {
                if TcpStream::connect(address).is_ok() {
                    return Some(Self { child, address });
                }
            }
        }
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn events_pass_a_proxy_that_collects_what_it_passes_on() {
    let site = site("");
    let server = serve(site.path());
    let dir = tempfile::tempdir().unwrap();
    let Some(nginx) = Nginx::before(&server, dir.path()) else {
        return;
    };
    let (mut told, _) = tag(&server, "/comments");
    let query = format!("page=/comments&seen={told}");
    let mut stream = EventStream::open_at(nginx.address, &query, "");
    assert_eq!(stream.event(), [": the newest"]);
    for comment in ["one", "two"] {
        Visitor::new(&server).post("/comment", &format!("text={comment}"));
        let event = stream.event();
        assert_ne!(event[0], format!("id: {told}"));
        event[0]["id: ".len()..].clone_into(&mut told);
        assert_eq!(told, tag(&server, "/comments").0);
    }
}

#[test]
fn what_is_a_visitor_s_own_ends_with_the_session() {
    let site = site("[session]\nsecure = false\n");
    let server = serve(site.path());
    let (mut ann, mut bob) = (Visitor::new(&server), Visitor::new(&server));
    ann.post("/enter", "name=ann");
    bob.post("/enter", "name=bob");
    // Once, so that it is known whose page it is.
    ann.shows("/own", "ann 0");
    let open = |visitor: &mut Visitor<'_>, target: &str| {
        let answer = visitor.get(target);
        let seen = answer.field("etag").unwrap().trim_matches('"');
        let cookies = visitor.cookies.iter();
        let cookies: Vec<_> = cookies
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let fields = format!("Cookie: {}\r\n", cookies.join("; "));
        let query = format!("page={target}&seen={seen}");
        let mut stream = EventStream::open(&server, &query, &fields);
        assert_eq!(stream.event(), [": the newest"]);
        stream
    };
    // A page of those with the same claims, and one that looks at the request.
    let mut of_ann = open(&mut ann, "/mine");
    let mut of_bob = open(&mut bob, "/mine");
    let mut own = open(&mut ann, "/own");
    // The first look at its results, which might be newer.
    assert_eq!(own.event(), ["data: 0"]);
    ann.post("/see", "name=ann");
    let event = of_ann.event();
    let answer = ann.get("/mine");
    let tag = answer.field("etag").unwrap().trim_matches('"');
    assert_eq!(event[0], format!("id: {tag}"));
    ann.post("/see", "name=ann");
    assert_eq!(of_ann.event().len(), 2, "no part of a page with claims");
    assert_eq!(own.event(), ["data: 0"]);
    ann.post("/leave", "");
    assert_eq!(of_ann.event()[0], "event: gone");
    // The second change may come before the end, or not any more.
    let next = own.event();
    let last = match next == ["data: 0"] {
        true => own.event(),
        false => next,
    };
    assert_eq!(last[0], "event: gone");
    // Of all that, the other visitor was told nothing.
    bob.post("/see", "name=bob");
    let event = of_bob.event();
    let answer = bob.get("/mine");
    let tag = answer.field("etag").unwrap().trim_matches('"');
    assert_eq!(event[0], format!("id: {tag}"));
    // Without the session there is no stream.
    let mut none = EventStream::open(&server, "page=/mine", "");
    assert_eq!(none.event()[0], "event: gone");
}

#[test]
fn a_stream_that_there_cannot_be_ends_so_that_a_browser_does_the_right_thing() {
    let site = site("[live]\nstreams = 1\n");
    let server = serve(site.path());
    for query in [
        "page=/plain",
        "page=/none",
        "page=",
        "",
        "page=//comments",
        "page=/.millpond/live",
    ] {
        let mut stream = EventStream::open(&server, query, "");
        assert_eq!(stream.event()[0], "event: gone", "{query}");
    }
    let foreign = "Sec-Fetch-Site: cross-site\r\n";
    let mut stream = EventStream::open(&server, "page=/comments", foreign);
    assert_eq!(stream.event()[0], "event: gone");
    // A page that is just given up, as no one looks at it, sends its client away once.
    let mut first = loop {
        let mut stream = EventStream::open(&server, "page=/comments", "");
        if !stream.event()[0].starts_with("retry: ") {
            break stream;
        }
    };
    let mut second = EventStream::open(&server, "page=/comments", "");
    let event = second.event();
    let again = event[0].strip_prefix("retry: ").unwrap();
    assert!((1000..=31_000).contains(&again.parse::<u32>().unwrap()));
    // A template that has changed: the page is another one, and is judged anew.
    write(
        site.path(),
        "pages/comments.html",
        "<!doctype html><title>New</title>",
    );
    let event = first.event();
    assert!(event[0].starts_with("retry: "), "{event:?}");
}
