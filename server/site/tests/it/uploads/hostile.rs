//! Hostile forms with files: bounded, refused, and without a trace.

use super::*;

#[test]
fn what_is_active_is_taken_by_name_only_and_never_run() {
    let form = "-- file: file into uploads types (image/svg+xml, text/html)
-- name: album :exec
insert into album (id, title, picture) values (:id, 'x', :file);
-- redirect: /\n";
    let site = Served::with(Kind::Sqlite, &[("pages/active.post.sql", form)]);
    let svg = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>";
    let posted = site.post("/active", &[Text("id", "1"), File("file", "a.png", svg)]);
    assert_eq!(posted.status, 303, "{}", posted.text());
    let served = site.get(site.album(1)["picture"].as_str().unwrap());
    assert_eq!(served.field("content-type"), Some("image/svg+xml"));
    assert_eq!(served.field("content-disposition"), Some("attachment"));
    let policy = served.field("content-security-policy").unwrap();
    assert!(policy.contains("sandbox") && policy.contains("default-src 'none'"));
    let any = site.post("/any", &[File("file", "a", svg)]);
    assert_eq!(any.status, 415);
}

#[test]
fn hostile_forms_are_refused_and_bounded() {
    let site = Served::new(Kind::Sqlite);
    let check = |request: &[u8], status: u16, sentence: &str| {
        let mut client = Connection::open(site.address);
        let mut stream = client.stream().try_clone().unwrap();
        let request = request.to_vec();
        // The answer may come before all is sent.
        let sender = std::thread::spawn(move || {
            let _ = std::io::Write::write_all(&mut stream, &request);
        });
        let answer = client.receive();
        let text = answer.text();
        assert_eq!(answer.status, status, "{sentence}: {text}");
        assert!(text.contains(sentence), "{text}");
        sender.join().unwrap();
    };
    let many = vec![Text("a", "b"); 10_000];
    check(&post("/any", &body(&many)), 400, "too many fields");
    let text = "t".repeat(3 << 20);
    check(
        &post("/any", &body(&[Text("a", &text)])),
        413,
        "too much text",
    );
    let long = "n".repeat(100 << 10);
    check(
        &post("/any", &body(&[File("file", &long, PNG)])),
        400,
        "too long",
    );
    let name = "n".repeat(300);
    check(
        &post("/any", &body(&[Text(&name, "")])),
        400,
        "The name of a part",
    );
    let endless = |start: &[u8]| {
        [
            &head("/any", "Content-Length: 1000000000")[..],
            start,
            &vec![b'-'; 1 << 20],
        ]
        .concat()
    };
    check(&endless(b""), 400, "too long");
    check(&endless(b"--x\r\nContent-Disposition: "), 400, "too long");
    check(&endless(b"--xy"), 400, "");
    check(
        &head("/any", "Content-Length: 9000000000"),
        413,
        "too large: at most",
    );
    check(
        &head("/any", "Content-Length: 9000000000\r\nExpect: 100-continue"),
        413,
        "too large",
    );
    check(
        &head("/any", "Content-Length: 5\r\nOrigin: http://evil.test"),
        403,
        "another site",
    );
    let boundary = format!(
        "POST /any HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Type: multipart/form-data; boundary={}\r\n\r\n",
        "b".repeat(1000)
    );
    check(boundary.as_bytes(), 400, "too long");
    let cut = body(&[File("file", "a", PNG)]);
    check(&post("/any", &cut[..cut.len() - 5]), 400, "cannot be read");
    check(&post("/any", b""), 400, "");
    check(&post("/any", b"--x--\r\n"), 400, "is missing");
    for name in ["..", "a/../../b", "a\\..\\b", "CON", "a%00b"] {
        let posted = site.post("/any", &[File("file", name, b"x")]);
        assert_eq!(posted.status, 303, "{name}: {}", posted.text());
    }
    // Rows that name no file of these: they stay until someone removes them.
    let files = site.until_files(5);
    assert!(files.iter().all(|file| file.len() == 32 + 4), "{files:?}");
    for target in [
        "/uploads/",
        "/uploads/.parts/",
        "/uploads/..%2fsite.db",
        "/uploads/%2e%2e/site.db",
    ] {
        assert!(matches!(site.get(target).status, 400 | 404), "{target}");
    }
}

/// Cuts the stream at any place: nothing changes.
#[test]
fn any_cut_gives_the_same() {
    let site = Served::new(Kind::Sqlite);
    let content: Vec<u8> = b"\r\n--\r\n--y\r\n-x--x\r\r\n- \r\n\r\n--".repeat(30);
    let body = body(&[
        Text("id", "0"),
        File("file", "a", &content),
        Text("more", "\r\n--"),
    ]);
    let first = [
        &head("/any", &format!("Content-Length: {}", body.len()))[..],
        &body[..0],
    ]
    .concat();
    let mut random = lab_testkit::Random::new(7);
    for round in 0..60 {
        let mut client = Connection::open(site.address);
        client.send(&first);
        let mut at = 0;
        while at < body.len() {
            let len = match round {
                0 => 1,
                _ => 1 + random.index(1 + round * 4),
            };
            let end = (at + len).min(body.len());
            client.send(&body[at..end]);
            at = end;
        }
        assert_eq!(client.receive().status, 303);
        let files = site.until_files(1);
        let stored = site.housed.dir.path().join("uploads").join(&files[0]);
        assert!(fs::read(&stored).unwrap() == content, "round {round}");
        fs::remove_file(stored).unwrap();
    }
}

#[test]
fn too_many_at_once_are_told_to_come_again() {
    let config =
        "[database]\nurl = \"sqlite:site.db\"\n[limits]\nuploads = 3\nupload_disk = \"1MB\"\n";
    let site = Served::with(Kind::Sqlite, &[("millpond.toml", config)]);
    let begun = body(&[File("file", "a", &[b'a'; 600])]);
    let mut held = Vec::new();
    for _ in 0..3 {
        let mut client = Connection::open(site.address);
        client.send(head("/any", &format!("Content-Length: {}", begun.len())));
        client.send(&begun[..begun.len() - 9]);
        held.push(client);
    }
    site.housed
        .until("three are received", || site.files().len() == 3);
    let refused = site.post("/any", &[File("file", "a", b"x")]);
    assert_eq!(refused.status, 503);
    assert_eq!(refused.field("retry-after"), Some("10"));
    for client in &mut held {
        client.send(&begun[begun.len() - 9..]);
        assert_eq!(client.receive().status, 303);
    }
    // By what the client announces, and by what it sends.
    let large = vec![b'a'; 2_000_000];
    let refused = site.post("/any", &[File("file", "a", &large)]);
    assert_eq!(refused.status, 503);
    drop(held);
    site.until_files(3);
    assert_eq!(site.post("/any", &[File("file", "a", b"x")]).status, 303);
}

#[test]
fn a_client_that_goes_away_leaves_nothing() {
    let site = Served::new(Kind::Sqlite);
    for _ in 0..20 {
        let mut client = Connection::open(site.address);
        client.send(head("/any", "Content-Length: 1000000"));
        client
            .send(b"--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n");
        client.send(vec![b'a'; 100_000]);
    }
    site.until_files(0);
}
