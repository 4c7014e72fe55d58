//! The service over a real socket.

#![allow(
    clippy::disallowed_methods,
    reason = "tests read the clock to give up waiting"
)]

use std::collections::HashSet;
use std::io::Write as _;

use lab_testkit::{Connection, Response};
use millpond::{ServerSettings, WebServer};
use uuid::{Uuid, Variant};

fn serve() -> WebServer {
    let settings = ServerSettings::new()
        .listen("127.0.0.1:0")
        .workers(1)
        .blocking_threads(8);
    settings.serve(example_uuid::routes()).unwrap()
}

#[track_caller]
fn uuids(response: &Response) -> Vec<Uuid> {
    assert_eq!(response.status, 200, "{}", response.text());
    assert_eq!(response.field("content-type"), Some("application/xml"));
    let text = response.text();
    let lines: Vec<&str> = text.lines().collect();
    let (first, last) = (lines[..2].join("\n"), lines[lines.len() - 1]);
    assert_eq!(first, "<?xml version='1.0' encoding='UTF-8'?>\n<response>");
    assert_eq!(last, "</response>");
    let uuid = |line: &&str| {
        let text = line
            .strip_prefix("  <uuid>")
            .unwrap()
            .strip_suffix("</uuid>")
            .unwrap();
        let uuid = Uuid::try_parse(text).unwrap();
        assert!(uuid.hyphenated().to_string() == text && uuid.get_variant() == Variant::RFC4122);
        uuid
    };
    lines[2..lines.len() - 1].iter().map(uuid).collect()
}

fn post(client: &mut Connection, xml: impl AsRef<[u8]>) -> Response {
    let xml = xml.as_ref();
    client.send(format!(
        "POST /uuid HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n",
        xml.len()
    ));
    client.send(xml);
    client.receive()
}

#[test]
fn every_kind_is_valid_by_rfc_9562() {
    let server = serve();
    let mut client = Connection::open(server.address());
    for (query, version, count) in [
        ("", 4, 1),
        ("?method=RANDOM&count=100", 4, 100),
        ("?method=TIME&count=1000", 1, 1000),
        ("?method=TIME&version=7&count=10000", 7, 10_000),
        ("?method=NAME&namespace=dns&name=www.example.com", 5, 1),
    ] {
        let made = uuids(&client.get(&format!("/uuid{query}")));
        assert_eq!(made.len(), count, "{query}");
        assert!(
            made.iter().all(|uuid| uuid.get_version_num() == version),
            "{query}"
        );
        if version == 1 {
            let time = |uuid: &Uuid| uuid.get_timestamp().unwrap().to_gregorian().0;
            assert!(
                made.windows(2).all(|two| time(&two[0]) < time(&two[1])),
                "monotonic"
            );
            assert!(
                made.iter()
                    .all(|uuid| uuid.get_node_id().unwrap()[0] & 1 == 1),
                "multicast"
            );
            assert!(
                made.iter()
                    .all(|uuid| uuid.get_node_id() == made[0].get_node_id())
            );
        }
        if version == 7 {
            assert!(made.windows(2).all(|two| two[0] < two[1]), "monotonic");
        }
        if version == 5 {
            // RFC 9562 appendix A.4.
            assert_eq!(made[0].to_string(), "2ed6657d-e927-568b-95e1-2665a8aea6a2");
        }
    }
    let response = post(
        &mut client,
        "<?xml version='1.0' encoding='utf-8'?><!-- all -->\n<request>\n <generate-uuid/>\n \
         <generate-uuid method=\"TIME\" version='7' count=\"200\"></generate-uuid>\
         <generate-uuid method=\"NAME\">a&amp;b<![CDATA[<]]>&#x263a;</generate-uuid></request>\n",
    );
    let made = uuids(&response);
    assert_eq!(made.len(), 202);
    assert_eq!(
        made[201],
        Uuid::new_v5(&Uuid::NAMESPACE_URL, "a&b<☺".as_bytes())
    );
}

#[test]
fn what_is_no_request_is_a_clear_400_in_xml() {
    let server = serve();
    for (xml, reason) in [
        ("", "not expected"),
        ("text", "not expected"),
        ("<response/>", "&lt;response&gt; is not expected"),
        ("<request>", "not expected"),
        (
            "<request><generate-uuid></request>",
            "expected `&lt;/generate-uuid&gt;`",
        ),
        ("<request/><request/>", "not expected"),
        (
            "<request><generate-uuid><a/></generate-uuid></request>",
            "&lt;a&gt;",
        ),
        ("<request>text</request>", "not expected"),
        (
            "<request><generate-uuid method='X'/></request>",
            "method is",
        ),
        (
            "<request><generate-uuid count='0'/></request>",
            "from 1 to 10000",
        ),
        (
            "<request><generate-uuid count='10001'/></request>",
            "from 1 to 10000",
        ),
        ("<request/>", "from 1 to 10000"),
        (
            "<request><generate-uuid count='9999999999999999999999'/></request>",
            "count: ",
        ),
        (
            "<request><generate-uuid count='1' count='2'/></request>",
            "duplicate",
        ),
        (
            "<request><generate-uuid method='NAME'/></request>",
            "name is missing",
        ),
        (
            "<request><generate-uuid method='NAME' namespace='x'>a</generate-uuid></request>",
            "namespace",
        ),
        (
            "<request><generate-uuid count='9999'/><generate-uuid count='2'/></request>",
            "10001 UUIDs",
        ),
        (
            "<!DOCTYPE r [<!ENTITY a 'aaaa'><!ENTITY b '&a;&a;'>]><request>&b;</request>",
            "ENTITY",
        ),
        (
            "<request><generate-uuid method='NAME'>&lol;</generate-uuid></request>",
            "lol",
        ),
        ("<request><generate-uuid method='&lol;'/></request>", "lol"),
        (
            "<?xml version='1.0' encoding='ISO-8859-1'?><request/>",
            "not expected",
        ),
        (
            "\u{feff}<?xml version='1.0' encoding='UTF-16'?><request/>",
            "not expected",
        ),
    ] {
        let mut client = Connection::open(server.address());
        let response = post(&mut client, xml);
        assert_eq!(response.status, 400, "{xml}: {}", response.text());
        assert_eq!(response.field("content-type"), Some("application/xml"));
        assert!(
            response.text().contains(reason),
            "{xml}: {}",
            response.text()
        );
    }
    let mut client = Connection::open(server.address());
    let utf16: Vec<u8> = "<request/>"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    for bytes in [
        &[&[0xff, 0xfe], &utf16[..]].concat()[..],
        b"<request>\xff</request>",
    ] {
        assert_eq!(post(&mut client, bytes).status, 400);
    }
    let deep = "<request>".repeat(100_000);
    assert_eq!(
        post(&mut Connection::open(server.address()), deep).status,
        400
    );
    for (target, status) in [
        ("/uuid?count=x", 400),
        ("/uuid?method=NAME", 400),
        ("/uuid?method=TIME&version=4", 400),
        ("/uuids", 404),
    ] {
        let response = client.get(target);
        assert_eq!(response.status, status);
        assert!(response.text().starts_with("<?xml"), "{}", response.text());
    }
}

/// Megabytes that are one comment, one attribute, one name, or many elements.
#[test]
fn hostile_megabytes_cost_bounded_memory() {
    let server = serve();
    let before = resident();
    for (begin, piece) in [
        ("<!--", "x"),
        ("<request a='", "x"),
        ("<request><generate-uuid method='NAME'>", "x"),
        ("<request>", "<generate-uuid count='1'/>"),
        ("<request>", " "),
        ("<request>", "<!-- x -->"),
        ("<!DOCTYPE r [", "<!ENTITY a 'aaaa'>"),
    ] {
        let mut client = Connection::open(server.address());
        client.send("POST /uuid HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
        let mut stream = client.stream().try_clone().unwrap();
        let sender = std::thread::spawn(move || {
            let piece = piece.repeat((64 << 10) / piece.len());
            let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
            let _ = stream.write_all(chunk(begin).as_bytes());
            // A gigabyte, or until the server has had enough.
            for _ in 0..16 << 10 {
                if stream.write_all(chunk(&piece).as_bytes()).is_err() {
                    break;
                }
            }
        });
        let response = client.receive();
        assert!(
            [400, 413].contains(&response.status),
            "{begin}: {}",
            response.status
        );
        assert!(response.text().starts_with("<?xml"));
        drop(client);
        sender.join().unwrap();
    }
    let grown = resident().saturating_sub(before);
    assert!(grown < 64 << 20, "{grown} bytes more than before");
    let declared = format!("Content-Length: {}", (2 << 20) + 1);
    let mut client = Connection::open(server.address());
    client.send(format!(
        "POST /uuid HTTP/1.1\r\nHost: a\r\n{declared}\r\n\r\n"
    ));
    assert_eq!(client.receive().status, 413);
}

/// Resident memory in bytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = status.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

/// Two million by default; `UUID_COUNT` says how many.
#[test]
fn no_uuid_comes_twice() {
    let server = serve();
    let count = std::env::var("UUID_COUNT").map_or(2_000_000, |count| count.parse().unwrap());
    let queries = ["RANDOM", "TIME", "TIME&version=7", "RANDOM"];
    let mut all = HashSet::with_capacity(count);
    let made: Vec<Vec<u128>> = std::thread::scope(|scope| {
        let threads = queries.map(|query| {
            let server = &server;
            scope.spawn(move || {
                let mut client = Connection::open(server.address());
                let target = format!("/uuid?count=10000&method={query}");
                let requests = 0..count / 10_000 / queries.len();
                let made = requests.flat_map(|_| uuids(&client.get(&target)));
                made.map(|uuid| uuid.as_u128()).collect()
            })
        });
        threads.map(|thread| thread.join().unwrap()).into()
    });
    for uuid in made.into_iter().flatten() {
        assert!(all.insert(uuid), "{} came twice", Uuid::from_u128(uuid));
    }
    assert_eq!(all.len(), count);
}

/// More clients than threads, none of which reads.
#[test]
fn slow_readers_hold_no_thread() {
    let server = serve();
    let xml = "<request><generate-uuid count='10000'/></request>";
    let mut slow: Vec<_> = (0..20)
        .map(|_| Connection::open(server.address()))
        .collect();
    for client in &mut slow {
        // Enough of them that the sockets are full.
        for _ in 0..20 {
            let len = xml.len();
            client.send(format!(
                "POST /uuid HTTP/1.1\r\nHost: a\r\nContent-Length: {len}\r\n\r\n{xml}"
            ));
        }
    }
    let mut client = Connection::open(server.address());
    for _ in 0..20 {
        assert_eq!(uuids(&post(&mut client, xml)).len(), 10_000);
    }
    for client in &mut slow {
        for _ in 0..20 {
            assert_eq!(uuids(&client.receive()).len(), 10_000);
        }
    }
}
