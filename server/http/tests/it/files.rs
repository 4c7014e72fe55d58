//! Bodies that the kernel sends from a file.

use std::io::Write;

use millpond_http::Limits;

use crate::support::{Server, ServiceCall};

const LEN: usize = 20 << 20;

fn file() -> std::fs::File {
    let mut file = tempfile::tempfile().unwrap();
    let bytes: Vec<u8> = (0..LEN).map(|n| (n / 1000) as u8).collect();
    file.write_all(&bytes).unwrap();
    file
}

#[test]
fn a_file_larger_than_all_buffers() {
    let server = Server::with_file(Limits::default(), Some(file()));
    let mut client = server.connect();
    client.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\nGET /file HTTP/1.1\r\nHost: a\r\n\r\nHEAD /file HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.response().text(), "/a");
    // The client has read nothing of the file yet; others are served meanwhile.
    server.check_serves();
    let answer = client.response();
    assert_eq!(answer.body.len(), LEN);
    assert!(
        answer
            .body
            .iter()
            .enumerate()
            .all(|(n, &byte)| byte == (n / 1000) as u8)
    );
    assert_eq!(
        client.head().field("content-length"),
        Some(&LEN.to_string()[..])
    );
    assert_eq!(client.response().text(), "/b");
}

#[test]
fn a_file_that_is_shorter_than_promised_is_cut_off() {
    let server = Server::with_file(Limits::default(), Some(file()));
    let mut client = server.connect();
    client.get("/file?1");
    assert_eq!(
        client.head().field("content-length"),
        Some(&(LEN + 1).to_string()[..])
    );
    while client.read() > 0 {}
    assert_eq!(client.buffered(), LEN);
    assert_eq!(
        server.next_seen(),
        ServiceCall::Done {
            target: "/file?1".into(),
            status: 200,
            body_bytes: LEN as u64
        }
    );
    server.check_serves();
}
