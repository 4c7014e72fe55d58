//! Files that a form does not take: the visitor is led back with what was typed.

use std::net::TcpStream;

use lab_testkit::{Connection, Response, http2};

use crate::{
    both::{Kind, on_both},
    uploads::{
        PNG,
        Part::{self, File, Text},
        Served, body, head,
    },
};

const FILES: &[(&str, &str)] = &[
    (
        "pages/fill.html",
        "{{ form.title }}|{{ errors.title }}|{{ form.year }}|{{ errors.year }}|{{ errors.size }}|\
         {{ errors.picture.kind }}: {{ errors.picture }}|{{ errors.scans.kind }}: {{ errors.scans }}|{{ errors.form }}",
    ),
    (
        "pages/fill.post.sql",
        "-- param: title text
-- param: year integer = 2000
-- param: size text in (s, m) = m
-- file: picture into uploads/filled max 1KB types (image/png)
-- file: scans[] into uploads/scans max 1KB count 2 = null
-- name: album :exec
insert into album (id, title, picture, name) values (7, :title, :picture, :scans);
-- name: used :many
select :year as year, :size as size;
-- message: scans size = \"A scan has 1 KB at most.\"
-- invalid: /fill
-- redirect: /fill?done=1
",
    ),
];

fn shown(site: &Served, answer: &Response) -> String {
    assert_eq!(
        (answer.status, answer.field("location")),
        (303, Some("/fill")),
        "{}",
        answer.text()
    );
    let cookie = answer.field("set-cookie").unwrap_or_default();
    shown_with(site, cookie.split(';').next().unwrap())
}

fn shown_with(site: &Served, cookie: &str) -> String {
    let request = format!("GET /fill HTTP/1.1\r\nHost: site.test\r\nCookie: {cookie}\r\n\r\n");
    site.ask(request.as_bytes()).text().replace("&#x2f;", "/")
}

fn picture(content: &[u8]) -> Part<'_> {
    File("picture", "a.png", content)
}

fn scan(content: &[u8]) -> Part<'_> {
    File("scans", "b", content)
}

on_both!(
    a_file_that_is_not_taken_leads_back,
    all_that_is_wrong_is_said_at_once,
);

fn a_file_that_is_not_taken_leads_back(kind: Kind) {
    let site = Served::with(kind, FILES);
    let large = [PNG, &[7; 5_000]].concat();
    let huge = [PNG, &vec![7; 10 << 20]].concat();
    let title = || Text("title", "<One>");
    let start = "&lt;One&gt;||2001|||";
    let year = || Text("year", "2001");
    for (parts, expected) in [
        (
            vec![title(), year(), picture(b"hello")],
            "type: Picture is text/plain; it must be image/png.|: |",
        ),
        // What comes behind the file is read too.
        (
            vec![picture(&large), title(), year()],
            "size: Picture has more than 1 KB.|: |",
        ),
        (
            vec![title(), picture(&huge), year()],
            "size: Picture has more than 1 KB.|: |",
        ),
        (
            vec![title(), picture(b""), year()],
            "size: Picture is empty.|: |",
        ),
        (
            vec![title(), Text("picture", "/uploads/x.png"), year()],
            "type: Picture is a text and no file.|: |",
        ),
        (
            vec![title(), year(), picture(PNG), picture(PNG)],
            "count: Picture may be given once.|: |",
        ),
        (
            vec![
                title(),
                picture(PNG),
                scan(b"1"),
                scan(b"2"),
                scan(b"3"),
                year(),
            ],
            ": |count: Scans may be given 2 times.|",
        ),
        (
            vec![scan(b"1"), title(), picture(PNG), scan(&huge), year()],
            ": |size: A scan has 1 KB at most.|",
        ),
        (
            vec![scan(&large), picture(b"%PDF-1.7"), title(), year()],
            "type: Picture is application/pdf; it must be image/png.|size: A scan has 1 KB at most.|",
        ),
    ] {
        let page = shown(&site, &site.post("/fill", &parts));
        assert_eq!(page, format!("{start}{expected}"));
        site.until_files(0);
    }
    assert_eq!(
        site.housed
            .text("select 'none' where not exists (select 1 from album)"),
        "none"
    );
    let done = site.post("/fill", &[title(), picture(PNG), scan(b"1")]);
    assert_eq!(done.field("location"), Some("/fill?done=1"));
    site.until_files(2);
}

fn all_that_is_wrong_is_said_at_once(kind: Kind) {
    let site = Served::with(kind, FILES);
    let sent = [
        Text("year", "soon"),
        Text("size", "xl"),
        scan(b""),
        picture(b"GIF89a"),
    ];
    assert_eq!(
        shown(&site, &site.post("/fill", &sent)),
        "|Title must be filled in.|soon|Year must be a whole number.|Size must be one of s, m.|\
         type: Picture is image/gif; it must be image/png.|size: A scan has 1 KB at most.|"
    );
    assert_eq!(
        shown(&site, &site.post("/fill", &[Text("year", "soon")])),
        "|Title must be filled in.|soon|Year must be a whole number.||missing: Picture is missing.|: |"
    );
    site.until_files(0);
}

/// More than the form's limit is a 413 as before, and so is what is wrong with a program's file.
#[test]
fn what_is_thrown_away_is_bounded() {
    let site = Served::with(Kind::Sqlite, FILES);
    for length in ["100000000", "100000000\r\nExpect: 100-continue"] {
        let request = head("/fill", &format!("Content-Length: {length}"));
        assert_eq!(site.ask(&request).status, 413);
    }
    // Without a length the bytes count: after about 70 MB there is an answer, and the end.
    let mut client = Connection::open(site.address);
    client.send(head("/fill", "Transfer-Encoding: chunked"));
    let mut stream = client.stream().try_clone().unwrap();
    let sender = std::thread::spawn(move || {
        let start = body(&[Text("title", "a"), picture(PNG)]);
        let mut chunk = |bytes: &[u8]| {
            let mut piece = format!("{:x}\r\n", bytes.len()).into_bytes();
            piece.extend(bytes);
            piece.extend(b"\r\n");
            std::io::Write::write_all(&mut stream, &piece)
        };
        let mut sent = chunk(&start[..start.len() - 9]);
        let block = vec![7; 1 << 20];
        while sent.is_ok() {
            sent = chunk(&block);
        }
    });
    assert_eq!(client.receive().status, 413);
    sender.join().unwrap();
    let sent = body(&[Text("title", "a"), picture(b"hello"), Text("year", "1")]);
    let request = [
        &head(
            "/fill",
            &format!("Accept: application/json\r\nContent-Length: {}", sent.len()),
        )[..],
        &sent,
    ]
    .concat();
    let answer = site.ask(&request);
    assert_eq!(answer.status, 415);
    let problem: serde_json::Value = serde_json::from_str(&answer.text()).unwrap();
    assert_eq!(
        problem["errors"],
        serde_json::json!([{
            "field": "picture",
            "detail": "The file \"picture\" is text/plain; it must be image/png."
        }])
    );
    site.until_files(0);
}

fn limited(limits: &str) -> Served {
    let settings = format!(
        "[database]\nurl = \"sqlite:site.db\"\n[cache]\nrefresh_ahead = 0\n[limits]\n{limits}\n"
    );
    let files = [FILES, &[("millpond.toml", &*settings)]].concat();
    Served::with(Kind::Sqlite, &files)
}

/// The beginning of a form: a title, and a file that is too large and goes on.
fn begun() -> (Vec<u8>, Vec<u8>) {
    let large = [PNG, &[7; 5_000]].concat();
    let sent = body(&[Text("title", "a"), picture(&large)]);
    let file = sent.len() - large.len() - 9;
    (sent[..file].to_vec(), sent[file..sent.len() - 9].to_vec())
}

/// A form of which nothing will be stored lets others come first, however slowly the rest arrives.
#[test]
fn a_refused_form_that_is_still_arriving_keeps_no_place() {
    let site = limited("uploads = 1");
    let (start, file) = begun();
    let mut slow = Connection::open(site.address);
    slow.send(head("/fill", "Content-Length: 1000000"));
    slow.send(&start);
    let other = || site.post("/fill", &[Text("title", "b"), picture(PNG)]);
    site.housed
        .until("the place is taken", || other().status == 503);
    slow.send(&file);
    site.housed.until("another form is received", || {
        other().field("location") == Some("/fill?done=1")
    });
    site.until_files(1);
}

/// Nor is it read for hours.
#[test]
fn a_refused_form_is_read_for_a_bounded_time() {
    let site = limited("progress_timeout = \"100ms\"");
    let (start, file) = begun();
    let mut slow = Connection::open(site.address);
    slow.send(head("/fill", "Content-Length: 60000000"));
    slow.send([start, file].concat());
    let mut stream = slow.stream().try_clone().unwrap();
    let sender = std::thread::spawn(
        move || {
            while std::io::Write::write_all(&mut stream, b"x").is_ok() {}
        },
    );
    let answer = slow.receive();
    assert_eq!(
        (answer.status, &*answer.text()),
        (413, "The file \"picture\" has more than 1 KB.\n")
    );
    sender.join().unwrap();
    site.until_files(0);
}

/// Cuts the stream at any place: nothing changes.
#[test]
fn any_cut_of_a_refused_form_gives_the_same() {
    let site = Served::with(Kind::Sqlite, FILES);
    let tricky: Vec<u8> = b"\r\n--\r\n--y\r\n-x--x\r\r\n- \r\n\r\n--".repeat(60);
    let sent = body(&[
        scan(&tricky),
        Text("title", "\r\n--"),
        picture(&tricky),
        scan(b"a"),
        Text("year", "1"),
    ]);
    let mut random = lab_testkit::Random::new(11);
    for round in 0..40 {
        let mut client = Connection::open(site.address);
        client.send(head("/fill", &format!("Content-Length: {}", sent.len())));
        let mut rest = &sent[..];
        while !rest.is_empty() {
            let len = 1 + random.index(1 + round * 8);
            let (piece, behind) = rest.split_at(len.min(rest.len()));
            client.send(piece);
            rest = behind;
        }
        assert_eq!(
            shown(&site, &client.receive()),
            "\n--||1|||type: Picture is text/plain; it must be image/png.|size: A scan has 1 KB at most.|",
            "round {round}"
        );
    }
    site.until_files(0);
}

#[test]
fn over_http2_it_is_the_same() {
    let site = Served::with(Kind::Sqlite, FILES);
    let stream = TcpStream::connect(site.address).unwrap();
    let mut frames = http2::Frames::open(stream, &[]).unwrap();
    let large = [PNG, &[7; 9_000]].concat();
    // What is too long for a cookie: the answer is the page.
    let title = "t".repeat(4_000);
    let sent = body(&[picture(&large), Text("title", &title)]);
    let mut block = http2::head_of("http", "POST", "/fill");
    http2::field(
        &mut block,
        b"content-type",
        b"multipart/form-data; boundary=x",
    );
    // HEADERS with its end, then DATA with the end of the stream.
    frames.send(1, 4, 1, &block).unwrap();
    let (first, rest) = sent.split_at(4_000);
    frames.send(0, 0, 1, first).unwrap();
    frames.send(0, 1, 1, rest).unwrap();
    let (_, page) = frames.response(1).unwrap();
    assert_eq!(
        String::from_utf8_lossy(&page),
        format!("{title}|||||size: Picture has more than 1 KB.|: |")
    );
    site.until_files(0);
}
