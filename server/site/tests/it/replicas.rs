//! Sites that read a standby of their PostgreSQL server.

use lab_pgtest::{Options as Server, Postgres};
use millpond_site::{Config, SiteOptions, check};
use postgres::{Client, NoTls};

use crate::support::{TestSite, write};

const SCHEMA: &str = "create table note (id integer primary key, who text not null);
create publication millpond for table note;
insert into note values (1, 'nobody');
create function standby() returns boolean language sql stable as 'select pg_is_in_recovery()';";

const PAGES: [(&str, &str); 5] = [
    (
        "pages/where.sql",
        "-- name: at :one\n-- depends: note\nselect standby() as standby;\n",
    ),
    (
        "pages/where.html",
        "{% if at.standby %}standby{% else %}primary{% endif %}",
    ),
    (
        "pages/note.sql",
        "-- name: note :one\nselect who from note where id = 1;\n",
    ),
    ("pages/note.html", "{{ note.who }}"),
    (
        "pages/note.post.sql",
        "-- name: note :exec\nupdate note set who = :who where id = 1;\n-- redirect: /note\n",
    ),
];

fn folder(settings: &str) -> tempfile::TempDir {
    let dir = lab_testkit::fast_dir();
    write(dir.path(), &PAGES);
    write(
        dir.path(),
        &[
            ("millpond.toml", settings),
            ("migrations/0001_start.postgres.sql", SCHEMA),
            (
                "migrations/0001_start.sqlite.sql",
                "create table note (id integer primary key, who text)",
            ),
        ],
    );
    dir
}

/// A site on `primary` that may read `standby`; no page is made ahead, and the feed has unlimited
/// time.
fn site(primary: &Postgres, standby: &Postgres) -> TestSite {
    let settings = format!(
        "[database]\nurl = \"{}\"\nreplicas = [\"127.0.0.1:{}\"]\n[cache]\nrefresh_ahead = 0\nmax_staleness = \"10min\"\n",
        primary.url(),
        standby.port()
    );
    TestSite::open(folder(&settings), SiteOptions::default())
}

#[test]
fn pages_come_from_a_replica_and_are_kept_and_a_writer_sees_the_write_at_once() {
    let primary = Server::new().logical().start().unwrap();
    let standby = primary.standby().unwrap();
    let site = site(&primary, &standby);
    // What is kept ends with each write; otherwise it would stay the primary's.
    let is_read = || {
        site.post("/note", "who=nobody");
        site.get("/where").body == "standby"
    };
    site.until("a page of the standby", is_read);
    assert_eq!(site.get("/note").body, "nobody");
    site.until("a hit", || site.get("/note").cache() == "hit");

    let mut client = Client::connect(&standby.url(), NoTls).unwrap();
    client
        .batch_execute("select pg_wal_replay_pause()")
        .unwrap();
    for who in ["Ann", "Bo"] {
        assert_eq!(site.post("/note", &format!("who={who}")).status, 303);
        assert_eq!(site.get("/note").body, who);
        assert_eq!(site.get("/where").body, "primary");
        site.until("a hit", || site.get("/note").cache() == "hit");
        assert_eq!(site.get("/note").body, who);
    }
    client
        .batch_execute("select pg_wal_replay_resume()")
        .unwrap();
    site.until("a page of the standby", is_read);
}

#[test]
fn a_file_has_no_replicas() {
    let dir = folder("database.replicas = [\"127.0.0.1:5432\"]\n");
    let config = Config::read(dir.path()).unwrap();
    let found = check(dir.path(), &config).unwrap_err();
    assert!(found[0].to_string().contains("SQLite"), "{}", found[0]);
}
