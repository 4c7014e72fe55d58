//! The account and the certificates of an authority in the site's PostgreSQL database, for all
//! nodes of the site.
//!
//! One table has the values and the locks. Private keys are among the values, so no other role may
//! read the table: also not one that the owner's default privileges give every new table to. No
//! page reads the table, so changes to it invalidate no cached page; creating it changes the schema
//! once.

use std::collections::HashMap;
use std::io;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use base_clock::Deadline;
use millpond_certificates::CertificateStorage;
use millpond_db::{Error, PostgresOptions, PostgresSession};

/// How often each node looks for what others have stored.
const POLL: Duration = Duration::from_secs(1);
/// How long versions that were read are taken for current: one round of a node reads all values.
const FRESH: Duration = Duration::from_millis(500);
/// How long the database may take for one answer.
const LIMIT: Duration = Duration::from_secs(5);

const IS_THERE: &str = "select pg_catalog.to_regclass('_millpond_certificate') is not null";

/// The lock (`millcert` in ASCII) is for nodes that start together.
const CREATE: &str = "select pg_catalog.pg_advisory_xact_lock(7883951835468624500); \
    create table if not exists _millpond_certificate \
        (name text primary key, value bytea, owner text, until timestamptz); \
    revoke all on _millpond_certificate from public; \
    do $millpond$ declare role text; begin \
        for role in select distinct pg_catalog.quote_ident(r.rolname) from pg_catalog.pg_class c \
            cross join lateral pg_catalog.aclexplode(c.relacl) a \
            join pg_catalog.pg_roles r on r.oid = a.grantee \
            where c.oid = '_millpond_certificate'::regclass and a.grantee <> c.relowner \
        loop execute 'revoke all on _millpond_certificate from ' || role; end loop; \
    end $millpond$";

/// Settings that the statements rely on. The owner's defaults may differ. A value that is stored
/// survives a crash.
const SESSION: &str = "set default_transaction_read_only = off; \
    set default_transaction_isolation = 'read committed'; set bytea_output = 'hex'; \
    select set_config('synchronous_commit', 'on', false) \
        where current_setting('synchronous_commit') = 'off'";

/// A row that was replaced has another transaction or another place.
const VERSIONS: &str = "select name, xmin::text || ' ' || ctid::text from _millpond_certificate where value is not null";
const LOAD: &str =
    "select pg_catalog.encode(value, 'hex') from _millpond_certificate where name = $1";
const STORE: &str = "insert into _millpond_certificate (name, value) \
    values ($1, pg_catalog.decode($2, 'hex')) on conflict (name) do update set value = excluded.value";
/// One statement, so two nodes cannot both find the lock free. The database's clock alone counts.
const LOCK: &str = "insert into _millpond_certificate as held (name, owner, until) \
    values ($1, $2, pg_catalog.clock_timestamp() + $3::interval) \
    on conflict (name) do update set owner = excluded.owner, until = excluded.until \
    where held.owner is null or held.owner = excluded.owner \
        or held.until <= pg_catalog.clock_timestamp() \
    returning name";
const UNLOCK: &str = "update _millpond_certificate set owner = null, until = null \
    where name = $1 and owner = $2";

/// The storage. A thread of its own has the connection, because the caller's thread has an event
/// loop, within which the connection's own cannot run.
pub(crate) struct DatabaseStorage {
    jobs: Sender<StorageJob>,
}

type StorageJob = Box<dyn FnOnce(&mut CertificateTable) + Send>;

impl DatabaseStorage {
    /// A storage in the database of this URL. Nothing is connected yet.
    pub(crate) fn new(url: &str) -> io::Result<Self> {
        let options = PostgresOptions::new(url);
        let (jobs, received) = channel::<StorageJob>();
        let run = move || {
            let mut table = CertificateTable::new(options);
            for job in received {
                job(&mut table);
            }
        };
        thread::Builder::new()
            .name("certificates".to_owned())
            .spawn(run)?;
        Ok(Self { jobs })
    }

    fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut CertificateTable) -> Result<T, Error> + Send + 'static,
    ) -> io::Result<T> {
        let (reply, answer) = channel();
        let job = move |table: &mut CertificateTable| {
            // The caller waits.
            let _ = reply.send(work(table));
        };
        let ended = || io::Error::other("the thread for certificates in the database has ended");
        self.jobs.send(Box::new(job)).map_err(|_| ended())?;
        answer.recv().map_err(|_| ended())?.map_err(explain)
    }
}

impl CertificateStorage for DatabaseStorage {
    fn load(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let name = name.to_owned();
        self.ask(move |table| table.load(&name))
    }

    fn store(&self, name: &str, value: &[u8]) -> io::Result<()> {
        let (name, value) = (name.to_owned(), hex(value));
        self.ask(move |table| table.change(STORE, &[&name, &value]).map(drop))
    }

    fn lock(&self, name: &str, lease: Duration) -> io::Result<bool> {
        let (name, lease) = (name.to_owned(), format!("{} ms", lease.as_millis()));
        self.ask(move |table| {
            let owner = table.owner()?;
            table.change(LOCK, &[&name, &owner, &lease])
        })
    }

    fn unlock(&self, name: &str) -> io::Result<()> {
        let name = name.to_owned();
        self.ask(move |table| {
            let owner = table.owner()?;
            table.change(UNLOCK, &[&name, &owner]).map(drop)
        })
    }

    fn poll_interval(&self) -> Option<Duration> {
        Some(POLL)
    }
}

/// The table as its thread sees it.
struct CertificateTable {
    options: PostgresOptions,
    session: Option<PostgresSession>,
    /// Tells the locks of this process from those of others; drawn by the database.
    owner: Option<String>,
    /// The version of each row, so that a round in which nothing has changed is one statement.
    versions: HashMap<String, String>,
    versions_end: Option<Deadline>,
    /// Values, each with its version.
    values: HashMap<String, (String, Vec<u8>)>,
}

impl CertificateTable {
    fn new(options: PostgresOptions) -> Self {
        Self {
            options,
            session: None,
            owner: None,
            versions: HashMap::new(),
            versions_end: None,
            values: HashMap::new(),
        }
    }

    fn load(&mut self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        if self.versions_end.is_none_or(Deadline::is_past) {
            let rows = self.query(VERSIONS, &[])?;
            let pairs = rows.into_iter().filter_map(|row| {
                let mut columns = row.into_iter().flatten();
                Some((columns.next()?, columns.next()?))
            });
            self.versions = pairs.collect();
            self.versions_end = Some(Deadline::after(FRESH));
        }
        let Some(version) = self.versions.get(name).cloned() else {
            return Ok(None);
        };
        if let Some((known, value)) = self.values.get(name)
            && *known == version
        {
            return Ok(Some(value.clone()));
        }
        let rows = self.query(LOAD, &[name])?;
        let value = rows.into_iter().flatten().next().flatten();
        let Some(value) = value.as_deref().and_then(octets) else {
            return Ok(None);
        };
        let kept = (version, value.clone());
        self.values.insert(name.to_owned(), kept);
        Ok(Some(value))
    }

    /// Runs a statement that changes the table; true if it gave a row. What is loaded next is read
    /// again: another node may have stored something before it freed a lock.
    fn change(&mut self, sql: &str, params: &[&str]) -> Result<bool, Error> {
        self.versions_end = None;
        self.query(sql, params).map(|rows| !rows.is_empty())
    }

    fn owner(&mut self) -> Result<String, Error> {
        if let Some(owner) = &self.owner {
            return Ok(owner.clone());
        }
        let rows = self.query("select pg_catalog.gen_random_uuid()::text", &[])?;
        let owner = rows.into_iter().flatten().next().flatten();
        let owner = owner.unwrap_or_default();
        self.owner = Some(owner.clone());
        Ok(owner)
    }

    /// Runs a statement. A connection that was lost meanwhile is opened again once: each statement
    /// here may be carried out twice.
    fn query(&mut self, sql: &str, params: &[&str]) -> Result<Vec<Vec<Option<String>>>, Error> {
        if let Some(mut session) = self.session.take() {
            match session.query(sql, params) {
                Err(Error::Unavailable { .. }) => {}
                Ok(rows) => {
                    self.session = Some(session);
                    return Ok(rows);
                }
                // The next statement gets a new connection: a server that became a standby refuses
                // too.
                refused @ Err(_) => return refused,
            }
        }
        let mut session = self.open()?;
        let rows = session.query(sql, params)?;
        self.session = Some(session);
        Ok(rows)
    }

    fn open(&mut self) -> Result<PostgresSession, Error> {
        // Another server may use the same versions.
        self.values.clear();
        self.versions_end = None;
        let mut session = PostgresSession::open_within(&self.options, LIMIT)?;
        session.run(SESSION)?;
        let rows = session.query(&format!("select ({IS_THERE})::text"), &[])?;
        if rows.into_iter().flatten().flatten().next().as_deref() != Some("true") {
            session.run(CREATE)?;
        }
        Ok(session)
    }
}

/// Adds the remedy that the owner of the database has. Neither message has a value in it.
fn explain(error: Error) -> io::Error {
    io::Error::other(match error {
        Error::Sql { message, .. } => format!(
            "the database refuses: {message}; the role in database.url needs SELECT, INSERT and \
             UPDATE on the table _millpond_certificate, and CREATE in its schema while there is no \
             such table; or set tls.storage to a folder"
        ),
        other => other.to_string(),
    })
}

fn hex(octets: &[u8]) -> String {
    use std::fmt::Write as _;
    octets.iter().fold(
        String::with_capacity(2 * octets.len()),
        |mut text, octet| {
            // A string takes all that is written.
            let _ = write!(text, "{octet:02x}");
            text
        },
    )
}

fn octets(hex: &str) -> Option<Vec<u8>> {
    let pairs = hex.as_bytes().chunks(2);
    let octet = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    pairs.map(octet).collect()
}

#[cfg(test)]
mod tests {
    use lab_pgtest::{Database, Postgres};
    use millpond_certificates::CertificateStorage as _;

    use super::*;

    const LEASE: Duration = Duration::from_secs(60);

    fn storage(database: &Database) -> DatabaseStorage {
        DatabaseStorage::new(&database.url()).unwrap()
    }

    fn client(database: &Database) -> postgres::Client {
        postgres::Client::connect(&database.url(), postgres::NoTls).unwrap()
    }

    #[test]
    fn octets_come_back_from_their_text() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(octets(&hex(&all)), Some(all));
        assert_eq!(octets("0g"), None);
    }

    #[test]
    fn what_a_node_stores_another_loads() {
        let server = Postgres::start().unwrap();
        let database = server.database().unwrap();
        // Both make the table at the same time.
        let nodes = [storage(&database), storage(&database)];
        thread::scope(|scope| {
            for node in &nodes {
                scope.spawn(|| assert_eq!(node.load("a/b.pem").unwrap(), None));
            }
        });
        for value in [&b"one \0\xff"[..], b"two", b""] {
            nodes[0].store("a/b.pem", value).unwrap();
            assert_eq!(nodes[0].load("a/b.pem").unwrap().unwrap(), value);
            // What was read within the last half second may be what it was.
            let deadline = Deadline::after(Duration::from_secs(60));
            while nodes[1].load("a/b.pem").unwrap().as_deref() != Some(value) {
                assert!(!deadline.is_past(), "{value:?}");
                thread::sleep(Duration::from_millis(20));
            }
        }
    }

    #[test]
    fn one_of_many_has_the_lock_until_it_is_freed_or_its_lease_ends() {
        let server = Postgres::start().unwrap();
        let database = server.database().unwrap();
        let nodes = [(); 4].map(|()| storage(&database));
        let taken: usize = thread::scope(|scope| {
            let asked = nodes
                .each_ref()
                .map(|node| scope.spawn(|| usize::from(node.lock("lock", LEASE).unwrap())));
            asked.into_iter().map(|asked| asked.join().unwrap()).sum()
        });
        assert_eq!(taken, 1);
        let holder = nodes
            .iter()
            .position(|node| node.lock("lock", LEASE).unwrap());
        let holder = holder.expect("prolonged");
        let other = &nodes[(holder + 1) % nodes.len()];
        other.unlock("lock").unwrap();
        assert!(!other.lock("lock", LEASE).unwrap());
        assert_eq!(other.load("lock").unwrap(), None, "a lock is no value");
        nodes[holder].unlock("lock").unwrap();
        assert!(other.lock("lock", LEASE).unwrap());
        let past = "update _millpond_certificate set until = now() - interval '1 second'";
        client(&database).batch_execute(past).unwrap();
        assert!(nodes[holder].lock("lock", LEASE).unwrap());
        assert!(!other.lock("lock", LEASE).unwrap(), "lost");
    }

    #[test]
    fn a_lease_is_prolonged_from_the_moment_at_which_its_holder_asks_again() {
        let server = Postgres::start().unwrap();
        let database = server.database().unwrap();
        let [holder, other] = [(); 2].map(|()| storage(&database));
        assert!(holder.lock("lock", LEASE).unwrap());
        let mut client = client(&database);
        // As if three quarters of the lease were over, twice.
        let later = "update _millpond_certificate set until = until - interval '45 seconds'";
        for _ in 0..2 {
            client.batch_execute(later).unwrap();
            assert!(!other.lock("lock", LEASE).unwrap());
            assert!(holder.lock("lock", LEASE).unwrap());
        }
    }

    #[test]
    fn no_other_role_may_read_the_table() {
        let server = Postgres::start().unwrap();
        let database = server.database().unwrap();
        let mut client = client(&database);
        let before = "create role acme_reader; \
            alter default privileges grant select on tables to public, acme_reader";
        client.batch_execute(before).unwrap();
        storage(&database).store("key", b"secret").unwrap();
        let may = "select has_table_privilege('acme_reader', '_millpond_certificate', 'select')";
        assert!(!client.query_one(may, &[]).unwrap().get::<_, bool>(0));
    }

    #[test]
    fn a_lost_connection_is_opened_again_and_a_lost_server_is_an_error() {
        let (storage, url) = {
            let server = Postgres::start().unwrap();
            let database = server.database().unwrap();
            let storage = storage(&database);
            storage.store("key", b"value").unwrap();
            let end = "select pg_terminate_backend(pid) from pg_stat_activity \
                where application_name = 'millpond'";
            client(&database).batch_execute(end).unwrap();
            assert_eq!(storage.load("key").unwrap().unwrap(), b"value");
            (storage, database.url())
        };
        let error = storage.store("key", b"value").unwrap_err().to_string();
        assert!(error.contains("cannot connect to "), "{error}");
        assert!(!error.contains(&hex(b"value")), "{error}");
        let error = DatabaseStorage::new(&url).unwrap().load("key").unwrap_err();
        assert!(error.to_string().contains("cannot connect to "), "{error}");
    }

    #[test]
    fn a_missing_right_is_named() {
        let server = Postgres::start().unwrap();
        let database = server.database().unwrap();
        let mut client = client(&database);
        let before = "create role acme_guest login; revoke create on schema public from public; \
            grant connect on database template1 to acme_guest";
        client.batch_execute(before).unwrap();
        let (scheme, rest) = database
            .url()
            .split_once("://")
            .map(|(a, b)| (a.to_owned(), b.to_owned()))
            .unwrap();
        let host = rest.split_once('@').map_or(rest.as_str(), |(_, host)| host);
        let guest = DatabaseStorage::new(&format!("{scheme}://acme_guest@{host}")).unwrap();
        let error = guest.load("key").unwrap_err().to_string();
        assert!(error.contains("CREATE in its schema"), "{error}");
        storage(&database).store("key", b"secret").unwrap();
        let error = guest.load("key").unwrap_err().to_string();
        assert!(error.contains("needs SELECT, INSERT and UPDATE"), "{error}");
        let grant = "grant select, insert, update on _millpond_certificate to acme_guest";
        client.batch_execute(grant).unwrap();
        assert_eq!(guest.load("key").unwrap().unwrap(), b"secret");
    }
}
