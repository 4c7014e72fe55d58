//! Files that come with forms, over real sockets and on both databases.

use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;

use lab_testkit::{Connection, Response};
use millpond_http::{Limits, OwnedRequest, WorkerGroup, listen, run_worker};

use crate::{
    both::{Housed, Kind, on_both},
    support::{self, TestSite, problems},
};

mod hostile;
mod lines;

pub(crate) const PNG: &[u8] = b"\x89PNG\r\n\x1a\n and what follows";
const JPEG: &[u8] = b"\xff\xd8\xff\xe0 and what follows";

const ALBUMS: &str = "create table album (id integer primary key, title text not null unique check (length(title) < 20), picture text, name text, type text, size bigint, portrait BLOB);
create table scan (album_id integer not null references album, file text not null, name text, size bigint);";

const FILES: &[(&str, &str)] = &[
    (
        "pages/new.post.sql",
        "-- param: id integer
-- param: title text
-- file: picture into uploads/albums max 300KB types (image/png, image/jpeg)
-- file: portrait as bytes max 1KB types (image/*) = null
-- name: album :exec
insert into album (id, title, picture, name, type, size, portrait)
values (:id, :title, :picture, :picture_name, :picture_type, :picture_size, :portrait);
-- redirect: /album?id=:id
",
    ),
    (
        "pages/replace.post.sql",
        "-- param: id integer
-- file: picture into uploads/albums max 300KB = null
-- name: old :one
select picture from album where id = :id;
-- name: new :exec
update album set picture = :picture where id = :id;
-- delete-file: old.picture
-- redirect: /album?id=:id
",
    ),
    (
        "pages/clear.post.sql",
        "-- param: id integer
-- name: gone :many
delete from scan where album_id = :id returning file;
-- delete-file: gone.file
-- redirect: /
",
    ),
    (
        "pages/album.sql",
        "-- param: id integer
-- name: album :one
select title, picture, name, type, size, length(portrait) as portrait from album where id = :id;
",
    ),
    (
        "pages/any.post.sql",
        "-- file: file into uploads max 2GB
-- name: album :exec
update album set picture = :file where id = 0;
-- redirect: /
",
    ),
];

fn scans(kind: Kind) -> String {
    let rows = match kind {
        Kind::Sqlite => {
            "select 1, value ->> 'file', value ->> 'name', value ->> 'size' from json_each(:scans)"
        }
        Kind::Postgres => {
            "select 1, value ->> 'file', value ->> 'name', (value ->> 'size')::bigint from json_array_elements(:scans)"
        }
    };
    format!(
        "-- file: scans[] into uploads/scans count 3 max 1KB\n-- name: scan :exec\n\
         insert into scan (album_id, file, name, size) {rows};\n-- redirect: /\n"
    )
}

/// A site that is served on a socket.
pub(crate) struct Served {
    pub(crate) housed: Housed,
    pub(crate) address: SocketAddr,
    group: Arc<WorkerGroup>,
    thread: Option<JoinHandle<()>>,
}

impl Served {
    fn new(kind: Kind) -> Self {
        Self::with(kind, &[])
    }

    pub(crate) fn with(kind: Kind, more: &[(&str, &str)]) -> Self {
        let (blob, scans) = match kind {
            Kind::Sqlite => ("blob", scans(kind)),
            Kind::Postgres => ("bytea", scans(kind)),
        };
        let schema = ALBUMS.replace("BLOB", blob);
        let mut files = vec![
            ("migrations/0002_album.sql", &*schema),
            ("pages/scans.post.sql", &*scans),
        ];
        files.extend(FILES);
        files.extend(more);
        let housed = Housed::new(kind, &files);
        let listener = listen(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let address = listener.local_addr().unwrap();
        let group = WorkerGroup::new();
        let thread = std::thread::spawn({
            let (site, group) = (Arc::clone(&housed.site), Arc::clone(&group));
            move || run_worker(listener, site.service(), Limits::default(), group).unwrap()
        });
        Self {
            housed,
            address,
            group,
            thread: Some(thread),
        }
    }

    pub(crate) fn ask(&self, bytes: &[u8]) -> Response {
        let mut client = Connection::open(self.address);
        client.send(bytes);
        client.receive()
    }

    fn get(&self, target: &str) -> Response {
        self.ask(format!("GET {target} HTTP/1.1\r\nHost: site.test\r\n\r\n").as_bytes())
    }

    pub(crate) fn post(&self, target: &str, parts: &[Part<'_>]) -> Response {
        self.ask(&post(target, &body(parts)))
    }

    /// The files that are stored, below `uploads/`, and those that grow.
    fn files(&self) -> Vec<String> {
        let root = self.housed.dir.path().join("uploads");
        let mut found = Vec::new();
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                match entry.path().is_dir() {
                    true => folders.push(entry.path()),
                    false => {
                        let path = entry.path();
                        let path = path.strip_prefix(&root).unwrap();
                        found.push(path.to_str().unwrap().to_owned());
                    }
                }
            }
        }
        found.sort();
        found
    }

    /// Waits until exactly these many files are there, and none grows.
    pub(crate) fn until_files(&self, count: usize) -> Vec<String> {
        self.housed.until("the files are as they should be", || {
            let files = self.files();
            files.len() == count && !files.iter().any(|file| file.starts_with(".parts"))
        });
        self.files()
    }

    fn album(&self, id: i64) -> serde_json::Value {
        let text = self.get(&format!("/album?id={id}")).text();
        serde_json::from_str::<serde_json::Value>(&text).unwrap()["album"].clone()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.group.shutdown();
        let ended = self.thread.take().unwrap().join();
        if !std::thread::panicking() {
            ended.unwrap();
        }
    }
}

#[derive(Clone, Copy)]
pub(crate) enum Part<'p> {
    Text(&'p str, &'p str),
    File(&'p str, &'p str, &'p [u8]),
}
use Part::{File, Text};

pub(crate) fn body(parts: &[Part<'_>]) -> Vec<u8> {
    let mut body = Vec::new();
    for part in parts {
        body.extend(b"--x\r\nContent-Disposition: form-data; name=\"");
        match part {
            Text(name, text) => body.extend(format!("{name}\"\r\n\r\n{text}\r\n").bytes()),
            File(name, file, content) => {
                let head =
                    format!("{name}\"; filename=\"{file}\"\r\nContent-Type: text/html\r\n\r\n");
                body.extend(head.bytes());
                body.extend(*content);
                body.extend(b"\r\n");
            }
        }
    }
    body.extend(b"--x--\r\n");
    body
}

pub(crate) fn head(target: &str, framing: &str) -> Vec<u8> {
    format!(
        "POST {target} HTTP/1.1\r\nHost: site.test\r\nContent-Type: multipart/form-data; \
         boundary=x\r\n{framing}\r\n\r\n"
    )
    .into_bytes()
}

fn post(target: &str, body: &[u8]) -> Vec<u8> {
    let mut request = head(target, &format!("Content-Length: {}", body.len()));
    request.extend(body);
    request
}

fn a_file_is_there_with_its_row(kind: Kind) {
    let site = Served::new(kind);
    let large = [PNG, &vec![7; 250 << 10]].concat();
    let posted = site.post(
        "/new",
        &[
            Text("id", "1"),
            Text("title", "One"),
            // What a visitor says of these names is not used.
            Text("picture_type", "text/html"),
            Text("picture_size", "1"),
            File("picture", "../../C:\\a\\My \"cover\".exe", &large),
            File("portrait", "p", JPEG),
        ],
    );
    assert_eq!(posted.status, 303, "{}", posted.text());
    let album = site.album(1);
    let picture = album["picture"].as_str().unwrap();
    assert!(picture.starts_with("/uploads/albums/") && picture.ends_with(".png"));
    assert_eq!(album["type"], "image/png");
    assert_eq!(album["size"], large.len());
    assert_eq!(album["portrait"], JPEG.len());
    assert_eq!(site.until_files(1), [&picture["/uploads/".len()..]]);
    let served = site.get(picture);
    assert_eq!((served.status, &served.body), (200, &large));
    assert_eq!(served.field("content-type"), Some("image/png"));
    assert_eq!(served.field("x-content-type-options"), Some("nosniff"));
    let kept = served.field("cache-control").unwrap();
    assert!(kept.contains("immutable"), "{kept}");
    let etag = served.field("etag").unwrap();
    let again = format!("GET {picture} HTTP/1.1\r\nHost: a\r\nIf-None-Match: {etag}\r\n\r\n");
    assert_eq!(site.ask(again.as_bytes()).status, 304);
    let part = format!("GET {picture} HTTP/1.1\r\nHost: a\r\nRange: bytes=1-3\r\n\r\n");
    let part = site.ask(part.as_bytes());
    assert_eq!((part.status, &*part.body), (206, &b"PNG"[..]));
    // Another picture takes the place of the first, whose file goes.
    let replaced = site.post(
        "/replace",
        &[Text("id", "1"), File("picture", "b", b"plain text")],
    );
    assert_eq!(replaced.status, 303, "{}", replaced.text());
    let other = site.until_files(1);
    assert!(other[0].ends_with(".txt"));
    assert_eq!(site.get(picture).status, 404);
    // No file: an empty field of a form, and no field.
    for parts in [
        &[Text("id", "1"), File("picture", "", b"")][..],
        &[Text("id", "1")],
    ] {
        assert_eq!(site.post("/replace", parts).status, 303);
        assert!(site.album(1)["picture"].is_null());
        site.until_files(0);
    }
}

fn a_form_that_fails_leaves_no_file(kind: Kind) {
    let site = Served::new(kind);
    let long = vec![0; 400 << 10];
    let long = [PNG, &long].concat();
    let portrait = [PNG, &[0; 1024]].concat();
    let title = "a title that is too long for the table";
    let picture = |content| File("picture", "a.png", content);
    let ok = || vec![Text("id", "1"), Text("title", "One"), picture(PNG)];
    assert_eq!(site.post("/new", &ok()).status, 303);
    for (parts, status, sentence) in [
        (ok(), 409, "This exists already."),
        (
            vec![Text("id", "2"), Text("title", title), picture(PNG)],
            422,
            "",
        ),
        (
            vec![Text("id", "x"), Text("title", "Two"), picture(PNG)],
            400,
            "\"id\"",
        ),
        (
            vec![picture(PNG), Text("id", "2")],
            400,
            "\"title\" is missing",
        ),
        (
            vec![picture(&long)],
            413,
            "The file \"picture\" has more than 300 KB.",
        ),
        (
            vec![picture(b"<html>")],
            415,
            "is text/html; it must be image/png, image/jpeg.",
        ),
        (vec![picture(b"<svg/>")], 415, "is image/svg+xml"),
        (vec![picture(b"")], 400, "The file \"picture\" is empty."),
        (vec![picture(PNG), picture(JPEG)], 400, "may be given once"),
        (
            vec![Text("picture", "/uploads/x.png")],
            400,
            "is a text and no file",
        ),
        (
            vec![Text("id", "2"), Text("title", "Two")],
            400,
            "The file \"picture\" is missing.",
        ),
        (
            vec![
                Text("id", "2"),
                Text("title", "Two"),
                picture(PNG),
                File("portrait", "a", &portrait),
            ],
            413,
            "The file \"portrait\" has more than 1 KB.",
        ),
    ] {
        let answer = site.post("/new", &parts);
        let text = answer.text();
        assert_eq!(answer.status, status, "{sentence}: {text}");
        assert!(text.contains(sentence), "{text}");
        site.until_files(1);
    }
    // Not as multipart: the name of a file is no file.
    let answer = site.housed.post(
        "/new",
        "id=3&title=Three&picture=/uploads/x.png&picture_size=1",
    );
    assert_eq!(answer.status, 400);
    assert!(
        answer.body.contains("multipart/form-data"),
        "{}",
        answer.body
    );
}

/// Gives the typed text back, and removes the files of the refused form.
fn a_refused_form_with_a_file_leads_back(kind: Kind) {
    let site = Served::with(
        kind,
        &[
            (
                "pages/fill.html",
                "<form method=post enctype=multipart/form-data><input name=title value='{{ form.title }}'>\
                 <input type=file name=picture>{{ errors.title }}|{{ errors.picture }}</form>",
            ),
            (
                "pages/fill.post.sql",
                "-- param: id integer\n-- param: title text\n-- file: picture into uploads/filled types (image/png)\n\
                 -- name: album :exec\ninsert into album (id, title, picture) values (:id, :title, :picture);\n\
                 -- invalid: /fill\n-- redirect: /fill\n",
            ),
        ],
    );
    let long = "a title that is too long for the table";
    let picture = || File("picture", "a.png", PNG);
    let led = |parts: &[Part<'_>]| {
        let answer = site.post("/fill", parts);
        assert_eq!(answer.status, 303);
        let cookie = answer.field("set-cookie").unwrap_or_default();
        let cookie = cookie.split(';').next().unwrap();
        let request = format!("GET /fill HTTP/1.1\r\nHost: site.test\r\nCookie: {cookie}\r\n\r\n");
        String::from_utf8(site.ask(request.as_bytes()).body).unwrap()
    };
    let shown = led(&[Text("id", "1"), Text("title", "One")]);
    assert!(shown.contains("value='One'"), "{shown}");
    assert!(shown.contains("|Picture is missing."), "{shown}");
    let shown = led(&[Text("id", "1"), Text("title", long), picture()]);
    assert!(shown.contains(long), "{shown}");
    assert_eq!(site.until_files(0), Vec::<String>::new());
    let answer = site.post("/fill", &[Text("id", "1"), Text("title", "One"), picture()]);
    let cookie = answer.field("set-cookie").unwrap_or_default();
    assert!(
        answer.status == 303 && !cookie.contains("session-form"),
        "{cookie}"
    );
    assert_eq!(site.until_files(1).len(), 1);
    let page = String::from_utf8(site.get("/fill").body).unwrap();
    assert!(
        page.contains("value=''") && page.contains("|</form>"),
        "{page}"
    );
}

fn several_files_come_as_a_list(kind: Kind) {
    let site = Served::new(kind);
    let album = [
        Text("id", "1"),
        Text("title", "One"),
        File("picture", "a", PNG),
    ];
    assert_eq!(site.post("/new", &album).status, 303);
    let scan = |name, content| File("scans", name, content);
    let three = [
        scan("a.txt", b"a"),
        scan("b.csv", b"b,c"),
        scan("c", b"%PDF-"),
    ];
    assert_eq!(site.post("/scans", &three).status, 303);
    site.until_files(4);
    let names = site
        .housed
        .text("select string_agg(name || size, ' ') from (select * from scan order by name) s");
    assert_eq!(names, "a.txt1 b.csv3 c5");
    let four = [
        scan("a", b"a"),
        scan("b", b"b"),
        scan("c", b"c"),
        scan("d", b"d"),
    ];
    let answer = site.post("/scans", &four);
    assert_eq!(
        (answer.status, answer.text().trim()),
        (400, "The file \"scans\" may be given 3 times.")
    );
    assert_eq!(site.post("/scans", &[]).status, 400);
    site.until_files(4);
    let csv = site
        .housed
        .text("select file from scan where name = 'b.csv'");
    let served = site.get(&csv);
    assert_eq!(served.field("content-disposition"), Some("attachment"));
    assert_eq!(
        served.field("content-type"),
        Some("text/csv; charset=utf-8")
    );
    // The picture of the album stays.
    assert_eq!(site.post("/clear", &[Text("id", "1")]).status, 303);
    site.until_files(1);
}

/// Files that not every visitor may read are in the database, and a page gives them.
fn several_files_come_as_bytes(kind: Kind) {
    let (blob, rows) = match kind {
        Kind::Sqlite => (
            "blob",
            "unhex(value ->> 'bytes'), value ->> 'name', value ->> 'type', value ->> 'size' from json_each(:letters)",
        ),
        Kind::Postgres => (
            "bytea",
            "decode(value ->> 'bytes', 'hex'), value ->> 'name', value ->> 'type', (value ->> 'size')::bigint \
             from json_array_elements(:letters)",
        ),
    };
    let schema = format!(
        "create table letter (name text primary key, content {blob} not null, type text not null, size bigint not null);"
    );
    let form = format!(
        "-- file: letters[] as bytes count 3 max 1KB = null\n-- name: letter :exec\n\
         insert into letter (content, name, type, size) select {rows};\n-- redirect: /\n"
    );
    let site = Served::with(
        kind,
        &[
            ("migrations/0003_letter.sql", &schema),
            ("pages/letters.post.sql", &form),
            (
                "pages/letters/[name].sql",
                "-- bytes: letter.content type letter.type name letter.name\n-- name: letter :one\n\
                 select content, type, name from letter where name = :name;\n",
            ),
        ],
    );
    let all: Vec<u8> = (0..=255).collect();
    let letter = |name, content| File("letters", name, content);
    let three = [
        letter("all", &*all),
        letter("b.csv", b"b,c"),
        letter("c", PNG),
    ];
    assert_eq!(site.post("/letters", &three).status, 303);
    for (name, content, kind) in [
        ("all", &*all, "application/octet-stream"),
        ("b.csv", b"b,c", "text/csv"),
        ("c", PNG, "image/png"),
    ] {
        let given = site.get(&format!("/letters/{name}"));
        assert_eq!(given.body, content, "{name}");
        let told = given.field("content-type").unwrap_or_default();
        assert!(told.starts_with(kind), "{told}");
        let size = format!("select size || '' from letter where name = '{name}'");
        assert_eq!(site.housed.text(&size), content.len().to_string());
    }
    // Without a file the list is empty, and what is refused leaves no row.
    assert_eq!(site.post("/letters", &[]).status, 303);
    let large = [letter("d", b"d"), letter("e", &[b'e'; 1001])];
    assert_eq!(site.post("/letters", &large).status, 413);
    let rows = "select count(*) || '' from letter";
    assert_eq!(site.housed.text(rows), "3");
    assert_eq!(site.until_files(0), Vec::<String>::new());
}

on_both!(
    a_file_is_there_with_its_row,
    a_form_that_fails_leaves_no_file,
    a_refused_form_with_a_file_leads_back,
    several_files_come_as_a_list,
    several_files_come_as_bytes,
);

/// The text of a form with a file has the same ends of lines as that of one without.
#[test]
fn the_lines_of_a_text_beside_a_file() {
    let form = "-- param: note text\n-- file: picture into uploads\n-- name: a :exec\n\
                update article set body = :note where id = 1;\n-- name: b :exec\n\
                insert into comment (id, article_id, who) values (9, 1, :picture);\n-- redirect: /\n";
    let site = Served::with(Kind::Sqlite, &[("pages/note.post.sql", form)]);
    let answer = site.post(
        "/note",
        &[Text("note", "a\r\nb\rc"), File("picture", "a.png", PNG)],
    );
    assert_eq!(answer.status, 303, "{}", answer.text());
    let body = site.housed.text("select body from article where id = 1");
    assert_eq!(body, "a\nb\nc");
}

/// Removes the remains of a process that was killed at the next start; files that may belong to a
/// row stay.
#[test]
fn what_is_left_over_is_removed_at_the_start() {
    let dir = support::folder(&[]);
    let parts = dir.path().join("uploads/.parts");
    fs::create_dir_all(&parts).unwrap();
    fs::write(parts.join("a.png"), PNG).unwrap();
    fs::write(parts.join("b.png"), PNG).unwrap();
    fs::hard_link(parts.join("b.png"), dir.path().join("uploads/b.png")).unwrap();
    let busy = fs::File::create(parts.join("c.png")).unwrap();
    busy.lock().unwrap();
    let site = TestSite::open(dir, Default::default());
    let names = || {
        let names = fs::read_dir(&parts).unwrap();
        let mut names: Vec<_> = names.map(|name| name.unwrap().file_name()).collect();
        names.sort();
        names
    };
    site.until("the parts are removed", || names() == ["c.png"]);
    assert!(site.dir.path().join("uploads/b.png").exists());
}

#[test]
fn a_folder_that_cannot_be_written_is_a_500_with_a_line() {
    let site = Served::new(Kind::Sqlite);
    fs::write(site.housed.dir.path().join("uploads"), "a file").unwrap();
    let large = vec![b'a'; 1 << 20];
    let refused = site.post("/any", &[File("file", "a", &large)]);
    assert_eq!(
        (refused.status, refused.text().trim()),
        (500, "The file could not be stored.")
    );
}

/// *Counterexample*: a browser without the enctype sends the file's name. As a form without a file
/// it would take the picture away.
#[test]
fn the_name_of_a_file_in_its_place_changes_nothing() {
    let form = "-- file: picture into uploads = null\n-- name: a :exec\n\
                update article set body = :picture where id = 1;\n-- redirect: /\n";
    let bytes = form
        .replace("into uploads", "as bytes")
        .replace(":picture where", "hex(:picture) where");
    let site = TestSite::new(&[
        ("pages/set.post.sql", form),
        ("pages/bytes.post.sql", &bytes),
    ]);
    for target in ["/set", "/bytes"] {
        let answer = site.post(target, "picture=a.png");
        assert_eq!(answer.status, 400, "{target}: {}", answer.body);
        assert!(answer.body.contains("needs enctype"), "{}", answer.body);
    }
    let json = OwnedRequest::new("POST", "/set")
        .field("Host", "site.test")
        .field("Content-Type", "application/json")
        .body(r#"{"picture": "a.png"}"#);
    assert_eq!(site.ask(&json).status, 400);
    let body = |sql: &str| {
        site.foreign()
            .query_row(sql, [], |row| row.get::<_, String>(0))
            .unwrap()
    };
    assert_eq!(body("select body from article where id = 1"), "a < b");
    assert_eq!(site.post("/set", "picture=").status, 303);
}
