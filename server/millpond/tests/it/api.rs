//! An API over sockets: writes of every method on connections that stay open.

use crate::support::{Connection, serve, site_with};

const FILES: &[(&str, &str)] = &[
    (
        "migrations/0009_item.sql",
        "create table item (id integer primary key, name text not null unique) strict;",
    ),
    (
        "pages/items.sql",
        "-- json: items\n-- name: items :many\nselect id, name from item order by id;\n",
    ),
    (
        "pages/items.post.sql",
        "-- param: name text\n-- name: item :one\ninsert into item (name) values (:name) returning id, name;\n-- json: item\n-- created: /items/:id\n",
    ),
    (
        "pages/items/[id].sql",
        "-- json: item\n-- name: item :one\nselect id, name from item where id = :id;\n",
    ),
    (
        "pages/items/[id].put.sql",
        "-- json: item\n-- name: item :one\nupdate item set name = :name where id = :id returning id, name;\n",
    ),
    (
        "pages/items/[id].delete.sql",
        "-- json: item\n-- name: item :one\ndelete from item where id = :id returning id;\n",
    ),
];

fn request(method: &str, target: &str, body: &str) -> String {
    format!(
        "{method} {target} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

#[test]
fn what_is_written_is_in_the_next_answer_of_every_open_connection() {
    let site = site_with("");
    for (name, text) in FILES {
        let path = site.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let server = serve(site.path());
    let mut writer = Connection::open(server.address());
    let mut readers = [0; 3].map(|_| Connection::open(server.address()));
    let mut ask = |method: &str, target: &str, body: &str| {
        writer.send(request(method, target, body));
        writer.receive()
    };
    let made = ask("POST", "/items", "{\"name\":\"a\"}");
    assert_eq!(
        (made.status, made.field("location")),
        (201, Some("/items/1"))
    );
    assert_eq!(made.text(), "{\"id\":1,\"name\":\"a\"}");
    // Each reader asks the same again, byte for byte, so what is repeated must end too.
    let read = |readers: &mut [Connection; 3], target: &str, status: u16, body: &str| {
        for _ in 0..3 {
            for reader in readers.iter_mut() {
                let answer = reader.get(target);
                assert_eq!((answer.status, &*answer.text()), (status, body), "{target}");
            }
        }
    };
    read(&mut readers, "/items/1", 200, "{\"id\":1,\"name\":\"a\"}");
    read(&mut readers, "/items", 200, "[{\"id\":1,\"name\":\"a\"}]");
    for name in ["b", "c", "d"] {
        let put = ask("PUT", "/items/1", &format!("{{\"name\":\"{name}\"}}"));
        let item = format!("{{\"id\":1,\"name\":\"{name}\"}}");
        assert_eq!((put.status, &*put.text()), (200, &*item));
        read(&mut readers, "/items/1", 200, &item);
        read(&mut readers, "/items", 200, &format!("[{item}]"));
    }
    let same = ask("POST", "/items", "{\"name\":\"d\"}");
    assert_eq!(same.status, 409);
    assert_eq!(same.field("content-type"), Some("application/problem+json"));
    assert_eq!(ask("DELETE", "/items/1", "").status, 200);
    let missing = readers[0].get("/items/1").text();
    assert!(
        missing.starts_with("{\"type\":\"about:blank\""),
        "{missing}"
    );
    read(&mut readers, "/items/1", 404, &missing);
    read(&mut readers, "/items", 200, "[]");
    // In pieces, and with another request behind it.
    writer.send(
        "PUT /items/1 HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"nam\r\n6\r\ne\":1}\n\r\n0\r\n\r\nPATCH /items HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
    );
    assert_eq!(writer.receive().status, 404);
    let not_there = writer.receive();
    assert_eq!(
        (not_there.status, not_there.field("allow")),
        (405, Some("GET, HEAD, OPTIONS, POST"))
    );
    assert!(server.stop().0.success());
}
