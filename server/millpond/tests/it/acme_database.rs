//! Certificates in a PostgreSQL database: several nodes share them, one node dies, the database is
//! lost, silent and back.

use std::net::SocketAddr;
use std::path::Path;

use lab_pgtest::{Database, Options, Postgres};
use lab_testkit::Pebble;
use postgres::{Client, NoTls};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::acme::{
    CLOSED_PORT, ServingNode, folder, issuing_root, node, page, settings, tls, until,
};
use crate::relay::Relay;
use crate::support::{run, text, write};

const TABLES: &str = "create table left_note (body text primary key); \
    create table right_note (body text primary key)";

/// How the nodes are notified of changes.
#[derive(Clone, Copy)]
enum NodeFeed {
    Logical,
    Triggers,
}

impl NodeFeed {
    fn server(self) -> Postgres {
        match self {
            Self::Logical => Options::new().logical().start().unwrap(),
            Self::Triggers => Postgres::start().unwrap(),
        }
    }

    /// Makes the tables of the pages, and what tells of their changes.
    fn prepare(self, site: &TempDir, database: &Database<'_>) {
        let mut client = client(&database.url());
        client.batch_execute(TABLES).unwrap();
        match self {
            Self::Logical => {
                let publication = "create publication millpond for all tables";
                client.batch_execute(publication).unwrap();
            }
            Self::Triggers => {
                let output = run(site.path(), &["check", ".", "--fix", "--yes"]);
                assert!(output.status.success(), "{}", text(&output.stderr));
            }
        }
    }
}

fn client(url: &str) -> Client {
    Client::connect(url, NoTls).unwrap()
}

/// Makes the folder of a node with one database.
fn database_folder(tls: &str, url: &str, feed: NodeFeed) -> TempDir {
    let feed = match feed {
        NodeFeed::Logical => "logical",
        NodeFeed::Triggers => "triggers",
    };
    let site = folder(&format!(
        "{tls}[database]\nurl = \"{url}\"\nfeed = \"{feed}\"\n[cache]\nrefresh_ahead = 0\n"
    ));
    for side in ["left", "right"] {
        let sql = format!("-- name: notes :many\nselect body from {side}_note order by body;\n");
        write(site.path(), &format!("pages/{side}.sql"), &sql);
    }
    site
}

#[test]
fn of_two_nodes_with_one_database_one_asks_and_both_answer() {
    nodes_share_their_certificates(NodeFeed::Logical);
}

#[test]
fn nodes_that_learn_of_changes_by_triggers_share_their_certificates_too() {
    nodes_share_their_certificates(NodeFeed::Triggers);
}

fn nodes_share_their_certificates(feed: NodeFeed) {
    let relay = Relay::new();
    let Some(pebble) = Pebble::start(relay.port(), CLOSED_PORT) else {
        return;
    };
    let postgres = feed.server();
    let database = postgres.database().unwrap();
    let site = || database_folder(&settings(&pebble, &["one.test"]), &database.url(), feed);
    let sites = [(); 2].map(|()| site());
    feed.prepare(&sites[0], &database);
    let nodes = sites.map(node);
    // The authority looks three times for each challenge, so that each node has to answer.
    relay.lead_to(nodes.iter().map(|node| node.server.address()).collect());
    let roots = lab_testkit::fast_dir();
    let root = issuing_root(&pebble, roots.path());
    let certificates = nodes.each_ref().map(|node| node.certificate(&root));
    assert_eq!(certificates[0], certificates[1]);
    assert!(relay.connections() >= 2, "{}", relay.connections());
    let orders = pebble.orders();

    // A third node finds everything.
    let third = node(site());
    let (certificate, _) = page(third.server.address(), "one.test", &root, "/").unwrap();
    assert_eq!(certificate, certificates[0]);
    assert!(
        !third.site.path().join("tls").exists(),
        "no key is in a file"
    );

    changes_end_no_page(&nodes[0], &root, &database.url());
    let mut issued = 0;
    for node in nodes.into_iter().chain([third]) {
        let (status, notes) = node.server.stop();
        assert!(status.success(), "{notes}");
        assert!(!notes.contains("no new certificate"), "{notes}");
        issued += notes.matches("one.test: a new certificate").count();
    }
    assert_eq!(issued, 1);
    assert_eq!(pebble.orders(), orders);
}

/// A change of the stored certificates ends no page that is kept.
fn changes_end_no_page(node: &ServingNode, root: &Path, url: &str) {
    let get = |target| {
        page(node.server.address(), "one.test", root, target)
            .unwrap()
            .1
    };
    until("the page is kept", || {
        get("/left").contains("millpond; hit").then_some(())
    });
    let mut client = client(url);
    let change = "update _millpond_certificate set value = value where value is not null";
    assert!(client.execute(change, &[]).unwrap() > 0);
    client
        .execute("insert into right_note values ('later')", &[])
        .unwrap();
    // The feed has passed the change of the certificates when it brings this one.
    until("the later change is seen", || {
        get("/right").contains("later").then_some(())
    });
    let kept = get("/left");
    assert!(kept.contains("millpond; hit"), "{kept}");
}

/// The node that holds the lock.
fn holder(client: &mut Client) -> Option<String> {
    let holder = "select owner from _millpond_certificate where until > clock_timestamp()";
    // The first node makes the table.
    let row = client.query_opt(holder, &[]).ok().flatten()?;
    row.get(0)
}

#[test]
fn after_the_node_that_asks_was_killed_another_one_asks_when_the_lease_ends() {
    let relay = Relay::new();
    let Some(pebble) = Pebble::start(relay.port(), CLOSED_PORT) else {
        return;
    };
    let postgres = NodeFeed::Triggers.server();
    let database = postgres.database().unwrap();
    let tls = settings(&pebble, &["one.test"]);
    let sites = [(); 2].map(|()| database_folder(&tls, &database.url(), NodeFeed::Triggers));
    NodeFeed::Triggers.prepare(&sites[0], &database);
    let [first, second] = sites;
    let mut client = client(&database.url());

    pebble.pause();
    let first = node(first);
    let dead = until("the first node holds the lock", || holder(&mut client));
    first.server.signal(Signal::KILL);
    first.server.wait();
    // Its connections end a moment later than the process.
    let connections = "select count(*) from pg_stat_activity where application_name = 'millpond'";
    until("the connections of the first node end", || {
        let left: i64 = client.query_one(connections, &[]).unwrap().get(0);
        (left == 0).then_some(())
    });
    pebble.resume();

    let second = node(second);
    relay.lead_to(vec![second.server.address()]);
    let asking = "select count(*) from pg_stat_activity where application_name = 'millpond' \
        and query like 'insert into _millpond_certificate as held%'";
    until("the second node asks for the lock", || {
        let found: i64 = client.query_one(asking, &[]).unwrap().get(0);
        (found > 0).then_some(())
    });
    assert_eq!(holder(&mut client), Some(dead));
    assert_eq!(pebble.orders(), 0);
    let end = "update _millpond_certificate set until = clock_timestamp() where owner is not null";
    client.batch_execute(end).unwrap();
    second
        .server
        .wait_for("one.test: a new certificate, valid until ");
}

#[test]
fn a_lost_database_is_reported_and_https_goes_on() {
    let relay = Relay::new();
    let Some(pebble) = Pebble::start(relay.port(), CLOSED_PORT) else {
        return;
    };
    let postgres = NodeFeed::Triggers.server();
    let database = postgres.database().unwrap();
    let tls = settings(&pebble, &["one.test"]);
    let site = database_folder(&tls, &database.url(), NodeFeed::Triggers);
    NodeFeed::Triggers.prepare(&site, &database);
    let node = node(site);
    relay.lead_to(vec![node.server.address()]);
    let root = issuing_root(&pebble, node.site.path());
    let before = node.certificate(&root);
    drop(database);
    drop(postgres);
    let notes = node.server.wait_for("error connecting to server");
    let reported = "the storage of certificates fails: the database is unavailable: ";
    assert!(notes.contains(reported), "{notes}");
    assert!(notes.contains("the certificates in use stay"), "{notes}");
    let (after, response) = page(node.server.address(), "one.test", &root, "/").unwrap();
    assert_eq!(after, before);
    assert!(response.ends_with("<h1>hello</h1>"), "{response}");
}

#[test]
fn a_silent_database_is_reported_until_it_answers_and_holds_up_no_end() {
    let postgres = NodeFeed::Triggers.server();
    let database = postgres.database().unwrap();
    let way = Relay::new();
    let direct = SocketAddr::from(([127, 0, 0, 1], postgres.port()));
    way.lead_to(vec![direct]);
    let url = database
        .url()
        .replace(&direct.to_string(), &format!("127.0.0.1:{}", way.port()));
    let directory = format!("https://127.0.0.1:{CLOSED_PORT}/dir");
    let site = database_folder(
        &tls(&["one.test"], &directory, None),
        &url,
        NodeFeed::Triggers,
    );
    NodeFeed::Triggers.prepare(&site, &database);
    let node = node(site);
    node.server.wait_for("one.test: no new certificate");
    way.lead_to(Vec::new());
    let notes = node.server.wait_for("the storage of certificates fails: ");
    assert!(!notes.contains("works again"), "{notes}");
    way.lead_to(vec![direct]);
    let notes = node
        .server
        .wait_for("millpond: the storage of certificates works again\n");
    assert_eq!(notes.matches("works again").count(), 1, "{notes}");

    way.lead_to(Vec::new());
    let failures = "the storage of certificates fails: ";
    let before = notes.matches(failures).count();
    until("the silence is reported again", || {
        (node.server.wait_for(failures).matches(failures).count() > before).then_some(())
    });
    let (status, notes) = node.server.stop();
    assert!(status.success(), "{notes}");
}
