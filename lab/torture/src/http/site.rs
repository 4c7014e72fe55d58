//! A small site to attack: pages from a database, and files small, middling and large.

use std::path::Path;
use std::{fs, io};

/// Targets of a well-behaved client; each is answered with 200 and one body for ever.
pub const TARGETS: [&str; 5] = ["/", "/mills", "/mill?id=2", "/small.txt", "/text.txt"];

/// A file that does not fit the buffers of a socket, in bytes.
pub const BIG: usize = 3 << 19;

const FILES: [(&str, &str); 8] = [
    ("millpond.toml", "[database]\nurl = \"sqlite:site.db\"\n"),
    (
        "migrations/0001_mills.sql",
        "create table mill (id integer primary key, name text not null) strict;\n\
         insert into mill values (1, 'Upper'), (2, 'Middle'), (3, 'Lower');\n",
    ),
    (
        "pages/index.html",
        "<!doctype html><title>Mills</title><p>Water.</p>\n",
    ),
    (
        "pages/mills.sql",
        "-- name: mills :many\nselect id, name from mill order by id;\n",
    ),
    (
        "pages/mills.html",
        "<ul>{% for mill in mills %}<li>{{ mill.name }}</li>{% endfor %}</ul>\n",
    ),
    (
        "pages/mill.sql",
        "-- name: mill :one\nselect name from mill where id = :id;\n",
    ),
    ("pages/mill.html", "<h1>{{ mill.name }}</h1>\n"),
    (
        "static/small.txt",
        "A millpond keeps back the water of a stream for the wheel below it.",
    ),
];

/// Writes the site into the folder `dir`.
///
/// # Errors
/// Those of the file system.
pub fn write(dir: &Path) -> io::Result<()> {
    for (name, text) in FILES {
        let path = dir.join(name);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(path, text)?;
    }
    fs::write(
        dir.join("static/text.txt"),
        "round and round it goes\n".repeat(350),
    )?;
    fs::write(
        dir.join("static/big.bin"),
        b"0123456789abcdef".repeat(BIG / 16),
    )
}
