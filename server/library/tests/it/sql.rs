//! Pages that show rows of a database, on both databases.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use lab_pgtest::Postgres;
use lab_testkit::{PATIENCE, Response};
use millpond::{
    Failure, Page, QueryError, Request, Routes, SqlDatabase, SqlQuery, SqlRows, Store, WebServer,
    blocking, stored,
};
use postgres::{Client, NoTls};

use crate::support::{Gate, connect, get, serve};

pub(crate) const SCHEMA: &str = "create table city (id integer primary key, name text not null);
create table address (id integer primary key, name text not null unique, city_id integer not null);
insert into city values (1, 'Rome'), (2, 'Oslo');
insert into address values (1, 'Ada', 1), (2, 'Ben', 1), (3, 'Cem', 2);";

/// One server for all tests; it ends with the process.
pub(crate) static POSTGRES: LazyLock<Postgres> =
    LazyLock::new(|| lab_pgtest::Options::new().logical().start().unwrap());

#[derive(Clone, Copy, PartialEq, Eq)]
enum Engine {
    Sqlite,
    Postgres,
}

macro_rules! on_both {
    ($($test:ident),+ $(,)?) => {
        mod on_sqlite {
            $(#[test] fn $test() { super::$test(super::Engine::Sqlite); })+
        }
        mod on_postgresql {
            $(#[test] fn $test() { super::$test(super::Engine::Postgres); })+
        }
    };
}

on_both!(
    a_changed_row_ends_the_pages_that_show_it,
    a_row_that_another_program_changes_is_on_the_page,
    rows_that_were_read_before_a_change_are_not_kept,
    a_page_of_several_reads_shows_one_state,
    what_nothing_ends_is_not_kept,
    errors_say_to_the_owner_what_the_client_is_not_told,
    a_violated_constraint_is_the_fault_of_a_value_or_of_what_is_there,
    any_number_of_statements_is_one_transaction,
    values_are_bound_as_they_are_or_not_at_all,
    a_page_ends_by_rows_and_by_what_the_program_says,
    many_writers_and_readers_see_what_was_written,
);

/// Dropped in this order: a slot of the feed would keep the database.
struct Book {
    server: WebServer,
    database: SqlDatabase,
    made: Arc<AtomicUsize>,
    gate: Gate,
    url: String,
    rename: SqlQuery,
    _home: (tempfile::TempDir, Option<lab_pgtest::Database<'static>>),
}

fn open(url: &str) -> SqlDatabase {
    let database = SqlDatabase::open(url).unwrap();
    let script = match url.starts_with("postgres") {
        true => format!("{SCHEMA} create publication millpond for table city, address;"),
        false => SCHEMA.to_owned(),
    };
    database.migrate([("0001", script)]).unwrap();
    database
}

impl Book {
    fn new(engine: Engine) -> Self {
        let dir = lab_testkit::fast_dir();
        let home = (engine == Engine::Postgres).then(|| POSTGRES.database().unwrap());
        let url = match &home {
            Some(database) => database.url(),
            None => format!("sqlite:{}", dir.path().join("book.db").display()),
        };
        let database = open(&url);
        let (made, gate) = (Arc::default(), Gate::default());
        let rename = "update address set name = :name where id = :id";
        Self {
            server: serve(routes(&database, &made, &gate)),
            made,
            gate,
            rename: database.prepare(rename).unwrap(),
            database,
            url,
            _home: (dir, home),
        }
    }

    fn made(&self) -> usize {
        self.made.load(Ordering::SeqCst)
    }

    fn get(&self, target: &str) -> String {
        let response = get(&self.server, target);
        assert_eq!(response.status, 200, "{target}: {}", response.text());
        response.text()
    }

    /// Asks until the page is kept. On PostgreSQL nothing is before the feed has begun.
    #[track_caller]
    fn keep(&self, target: &str, text: &str) {
        until(target, || {
            let before = self.made();
            assert_eq!(self.get(target), text, "{target}");
            self.made() == before
        });
    }

    fn rename(&self, id: i64, name: &str) {
        let rename = self.rename.with("id", id).with("name", name);
        self.database.write([rename]).unwrap();
    }

    /// Another program writes.
    fn run(&self, sql: &str) {
        match self.url.strip_prefix("sqlite:") {
            Some(path) => rusqlite::Connection::open(path)
                .unwrap()
                .execute_batch(sql)
                .unwrap(),
            None => Client::connect(&self.url, NoTls)
                .unwrap()
                .batch_execute(sql)
                .unwrap(),
        }
    }

    /// Asks on a thread.
    fn ask(&self, target: &'static str) -> std::thread::JoinHandle<Response> {
        let mut client = connect(&self.server);
        std::thread::spawn(move || client.get(target))
    }
}

#[track_caller]
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        std::thread::yield_now();
    }
}

pub(crate) fn routes(database: &SqlDatabase, made: &Arc<AtomicUsize>, gate: &Gate) -> Routes {
    let query = |sql| database.prepare(sql).unwrap();
    let one = query("select name from address where id = :id");
    let city = query("select name from city where id = :id");
    let of_city = query("select name from address where city_id = :city order by id");
    let random = query("select random() as number");
    let missing = query("select name from address where name = :name");
    let store = database.store();
    let mut routes = Routes::new();
    let name = move |page: &mut Page, id: i64| {
        let rows = page.query(one.with("id", id))?;
        let row = rows.first().ok_or_else(Failure::not_found)?;
        Ok::<String, Failure>(row.get("name")?)
    };
    let (counted, plain) = (Arc::clone(made), name.clone());
    routes.get(
        "/addresses/{id}",
        stored(store, move |page: &mut Page, id: i64| {
            counted.fetch_add(1, Ordering::SeqCst);
            plain(page, id)
        }),
    );
    let (counted, held) = (Arc::clone(made), gate.clone());
    routes.get(
        "/held/{id}",
        stored(store, move |page: &mut Page, id: i64| {
            counted.fetch_add(1, Ordering::SeqCst);
            let name = name(page, id);
            held.pass();
            name
        }),
    );
    let (counted, held) = (Arc::clone(made), gate.clone());
    routes.get(
        "/cities/{id}",
        stored(store, move |page: &mut Page, id: i64| {
            counted.fetch_add(1, Ordering::SeqCst);
            let rows = page.query(city.with("id", id))?;
            let mut text: String = rows.first().ok_or_else(Failure::not_found)?.get("name")?;
            held.pass();
            for row in page.query(of_city.with("city", id))?.iter() {
                text = text + " " + &row.get::<String>("name")?;
            }
            Ok::<_, Failure>(text)
        }),
    );
    let counted = Arc::clone(made);
    routes.get(
        "/random?{age}",
        stored(store, move |page: &mut Page, age: Option<u64>| {
            counted.fetch_add(1, Ordering::SeqCst);
            if let Some(age) = age {
                page.max_age(Duration::from_secs(age));
            }
            page.query(&random)?;
            Ok::<_, QueryError>("random")
        }),
    );
    let counted = Arc::clone(made);
    routes.get(
        "/swallowed",
        stored(store, move |page: &mut Page| {
            counted.fetch_add(1, Ordering::SeqCst);
            page.query(missing.with("nom", "Ada"))
                .map_or("failed", |_| "read")
        }),
    );
    routes
}

fn a_changed_row_ends_the_pages_that_show_it(engine: Engine) {
    let book = Book::new(engine);
    for _ in 0..2 {
        book.keep("/addresses/1", "Ada");
        book.keep("/addresses/2", "Ben");
    }
    assert_eq!(get(&book.server, "/addresses/9").status, 404);
    let before = book.made();
    book.rename(1, "Ann");
    assert_eq!(book.get("/addresses/1"), "Ann");
    assert_eq!(book.made(), before + 1);
    assert_eq!(book.get("/addresses/2"), "Ben");
    assert_eq!(get(&book.server, "/addresses/9").status, 404);
    assert_eq!(book.made(), before + 1, "the other pages stay");
    // A row that comes.
    let insert = "insert into address values (:id, :name, 1)";
    let insert = book.database.prepare(insert).unwrap();
    let written = book.database.write([
        insert.with("id", 9).with("name", "Zoe"),
        book.rename.with("id", 2).with("name", "Bob"),
    ]);
    written.unwrap();
    assert_eq!(book.get("/addresses/9"), "Zoe");
    assert_eq!(book.get("/addresses/2"), "Bob");
    assert_eq!(book.get("/addresses/1"), "Ann");
    assert_eq!(book.made(), before + 3);
}

fn a_row_that_another_program_changes_is_on_the_page(engine: Engine) {
    let book = Book::new(engine);
    book.keep("/addresses/1", "Ada");
    book.keep("/addresses/3", "Cem");
    let before = book.made();
    book.run("update address set name = 'Ann' where id = 1");
    until("the change shows", || book.get("/addresses/1") == "Ann");
    if engine == Engine::Postgres {
        assert_eq!(book.get("/addresses/3"), "Cem");
        assert_eq!(book.made(), before + 1, "the other page stays");
    }
    book.run("delete from address where id = 3");
    until("it goes", || {
        get(&book.server, "/addresses/3").status == 404
    });
}

fn rows_that_were_read_before_a_change_are_not_kept(engine: Engine) {
    let book = Book::new(engine);
    book.keep("/addresses/1", "Ada");
    let asked = book.ask("/held/1");
    book.gate.wait_for(1);
    book.rename(1, "Ann");
    book.gate.open(100);
    // It asked before the change.
    assert_eq!(asked.join().unwrap().text(), "Ada");
    for _ in 0..3 {
        assert_eq!(book.get("/held/1"), "Ann");
    }
}

fn a_page_of_several_reads_shows_one_state(engine: Engine) {
    let book = Book::new(engine);
    book.keep("/addresses/1", "Ada");
    let before = book.made();
    // What is read later changes: all is of the later state.
    let asked = book.ask("/cities/1");
    book.gate.wait_for(1);
    book.rename(1, "Ann");
    book.gate.open(1);
    assert_eq!(asked.join().unwrap().text(), "Rome Ann Ben");
    assert_eq!(book.made(), before + 1);
    // What was read changes too: the page is made again.
    let city = "update city set name = 'Roma' where id = 1";
    let city = book.database.prepare(city).unwrap();
    book.database.write([(&city).into()]).unwrap();
    let asked = book.ask("/cities/1");
    book.gate.wait_for(2);
    let back = "update city set name = 'Rome' where id = 1";
    let back = book.database.prepare(back).unwrap();
    let ben = book.rename.with("id", 2).with("name", "Bob");
    book.database.write([(&back).into(), ben]).unwrap();
    book.gate.open(1);
    book.gate.wait_for(3);
    book.gate.open(100);
    assert_eq!(asked.join().unwrap().text(), "Rome Ann Bob");
    book.keep("/cities/1", "Rome Ann Bob");
}

fn what_nothing_ends_is_not_kept(engine: Engine) {
    let book = Book::new(engine);
    book.keep("/addresses/1", "Ada");
    for target in ["/random", "/swallowed"] {
        let before = book.made();
        (0..3).for_each(|_| drop(book.get(target)));
        assert_eq!(book.made(), before + 3, "{target}");
    }
    book.keep("/random?age=3600", "random");
}

fn errors_say_to_the_owner_what_the_client_is_not_told(engine: Engine) {
    let book = Book::new(engine);
    let fault = |sql: &str| book.database.prepare(sql).unwrap_err().to_string();
    let misspelt = fault("select nam from address");
    assert!(misspelt.contains("nam"), "{misspelt}");
    assert!(misspelt.contains("line 1, column 8"), "{misspelt}");
    let one = book
        .database
        .prepare("select id, name from address where id = :id");
    let one = one.unwrap();
    let read = |query| book.database.read::<1>([query]).map(|[rows]| rows);
    for (query, sentence) in [
        (one.with("idd", 1), "there is no parameter idd among: id"),
        ((&one).into(), "the parameter id has no value"),
    ] {
        let error = read(query).unwrap_err();
        assert!(error.to_string().contains(sentence), "{error}");
        assert_eq!(Failure::from(error).message(), "internal server error");
    }
    let rows = read(one.with("id", 1)).unwrap();
    let row = rows.first().unwrap();
    assert_eq!((row.get::<u8>("id").unwrap(), rows.len()), (1, 1));
    let error = row.get::<String>("nam").unwrap_err().to_string();
    assert_eq!(error, "there is no column nam among: id, name");
    assert!(row.get::<bool>("name").is_err());
    // A violated constraint.
    let again = book.rename.with("id", 1).with("name", "Ben");
    let failure = Failure::from(book.database.write([again]).unwrap_err());
    assert_eq!(failure.status(), 409);
    // A database, and a store, that it does not belong to.
    let other = Book::new(Engine::Sqlite);
    assert!(other.database.read([one.with("id", 1)]).is_err());
    let mut routes = Routes::new();
    let page = move |page: &mut Page| {
        page.query(one.with("id", 1))?;
        Ok::<_, QueryError>("read")
    };
    routes.get("/", stored(&Store::new(), page));
    assert_eq!(get(&serve(routes), "/").status, 500);
    for url in ["book.db", "sqlite:", "mysql://localhost/"] {
        let error = SqlDatabase::open(url).unwrap_err().to_string();
        assert!(error.contains("sqlite:PATH"), "{error}");
    }
}

fn any_number_of_statements_is_one_transaction(engine: Engine) {
    let book = Book::new(engine);
    let insert = "insert into address values (:id, :name, 1) returning id";
    let insert = book.database.prepare(insert).unwrap();
    let row = |id: i64, name: &str| insert.with("id", id).with("name", name);
    let all: Vec<_> = (11..15).map(|id| row(id, &format!("n{id}"))).collect();
    let written = book.database.write_all(all).unwrap();
    let id = |rows: &SqlRows| rows.first().unwrap().get::<i64>("id").unwrap();
    assert_eq!(written.iter().map(id).collect::<Vec<_>>(), [11, 12, 13, 14]);
    assert!(book.database.write_all([]).unwrap().is_empty());
    // All or nothing.
    let again = book.database.write_all([row(15, "n15"), row(11, "n11")]);
    assert_eq!(again.unwrap_err().status(), 409);
    assert_eq!(book.get("/addresses/14"), "n14");
    assert_eq!(get(&book.server, "/addresses/15").status, 404);
}

fn a_violated_constraint_is_the_fault_of_a_value_or_of_what_is_there(engine: Engine) {
    let book = Book::new(engine);
    let (strict, lone) = match engine {
        Engine::Sqlite => ("strict", "create unique index lone on street (width + 1)"),
        Engine::Postgres => (
            "",
            "alter table street add exclude using btree (width with =)",
        ),
    };
    book.run(&format!(
        "create table street (id integer primary key, name text not null unique,
            width integer not null check (width > 0), city_id integer references city) {strict};
         {lone};
         insert into street values (1, 'Main', 2, 1)"
    ));
    let insert = "insert into street values (:id, :name, :width, :city)";
    let insert = book.database.prepare(insert).unwrap();
    let delete = book.database.prepare("delete from city where id = :id");
    let delete = delete.unwrap();
    let text = |name: &str, width: &str| {
        let insert = insert.with("id", 2).with("name", name).with("city", 1);
        insert.with("width", width)
    };
    let row = |name: Option<&str>, width: Option<i64>, city: i64| {
        let insert = insert.with("id", 2).with("name", name).with("city", city);
        insert.with("width", width)
    };
    for (query, status, part) in [
        (row(None, Some(1), 1), 400, "missing: name"),
        (row(Some("Park"), None, 1), 400, "missing: width"),
        (
            row(Some("Park"), Some(0), 1),
            400,
            "not one that is allowed",
        ),
        (text("Park", "wide"), 400, "width"),
        (row(Some("Main"), Some(1), 1), 409, "there already"),
        (row(Some("Park"), Some(1), 9), 409, "there already"),
        (row(Some("Park"), Some(2), 1), 409, "there already"),
        (delete.with("id", 1), 409, "there already"),
    ] {
        let shown = format!("{query:?}");
        let failure = Failure::from(book.database.write([query]).unwrap_err());
        assert_eq!(failure.status(), status, "{failure} {shown}");
        assert!(failure.message().contains(part), "{failure} {shown}");
    }
}

fn values_are_bound_as_they_are_or_not_at_all(engine: Engine) {
    let book = Book::new(engine);
    let sql = "select cast(:number as bigint) as number, cast(:text as text) as text";
    let echo = book.database.prepare(sql).unwrap();
    let text = "Ada".to_owned();
    let most = i64::MAX.unsigned_abs();
    let read = |number: u64| {
        let query = echo.with("number", number).with("text", &text);
        let [rows] = book.database.read([query])?;
        let row = rows.first().unwrap();
        assert_eq!(row.get::<String>("text")?, text);
        row.get::<u64>("number")
    };
    for number in [0, 7, most] {
        assert_eq!(read(number).unwrap(), number);
    }
    for number in [most + 1, u64::MAX] {
        let error = read(number).unwrap_err();
        assert!(error.to_string().contains(", in: select"), "{error}");
        let failure = Failure::from(error);
        let sentence = "number must be at most 9223372036854775807";
        assert_eq!((failure.status(), failure.message()), (400, sentence));
    }
}

fn a_page_ends_by_rows_and_by_what_the_program_says(engine: Engine) {
    let book = Book::new(engine);
    book.keep("/addresses/1", "Ada");
    let one = book
        .database
        .prepare("select name from address where id = 1");
    let one = one.unwrap();
    let mut routes = Routes::new();
    let made = Arc::<AtomicUsize>::default();
    let counted = Arc::clone(&made);
    let page = move |page: &mut Page| {
        page.depends_on("file", "a.xml");
        let rows = page.query(&one)?;
        let name: String = rows.first().ok_or_else(Failure::not_found)?.get("name")?;
        Ok::<_, Failure>(format!("{name} {}", counted.fetch_add(1, Ordering::SeqCst)))
    };
    let file = |page: &mut Page| {
        page.depends_on("file", "b.xml");
        "file"
    };
    let store = book.database.store();
    routes
        .get("/", stored(store, page))
        .get("/file", stored(store, file));
    let server = serve(routes);
    let text = || get(&server, "/").text();
    let kept = |name: &str| {
        until("it is kept", || text() == text());
        assert!(text().starts_with(name), "{}", text());
        made.load(Ordering::SeqCst)
    };
    let first = kept("Ada");
    store.changed("file", "b.xml");
    assert_eq!(kept("Ada"), first);
    store.changed("file", "a.xml");
    let second = kept("Ada");
    assert!(second > first);
    book.rename(1, "Ann");
    assert!(kept("Ann") > second);
    assert_eq!(get(&server, "/file").text(), "file");
}

/// Each writer counts up its own row and must read what it wrote, at once.
fn many_writers_and_readers_see_what_was_written(engine: Engine) {
    let book = Book::new(engine);
    book.keep("/addresses/1", "Ada");
    let rename = book.rename.clone();
    let mut routes = Routes::new();
    let writer = book.database.clone();
    let put = move |request: &Request<'_>, id: i64| {
        writer.write([rename.with("id", id).with("name", request.text()?)])?;
        Ok::<_, Failure>(())
    };
    routes.put("/addresses/{id}", blocking(put));
    let writing = serve(routes);
    std::thread::scope(|scope| {
        for id in 1..=3 {
            let (book, writing) = (&book, &writing);
            scope.spawn(move || {
                let (mut writer, mut reader) = (connect(writing), connect(&book.server));
                for n in 0..60 {
                    let name = format!("{id}-{n}");
                    let len = name.len();
                    writer.send(format!(
                        "PUT /addresses/{id} HTTP/1.1\r\nHost: a\r\nContent-Length: {len}\r\n\r\n{name}"
                    ));
                    assert_eq!(writer.receive().status, 204);
                    for _ in 0..3 {
                        assert_eq!(reader.get(&format!("/addresses/{id}")).text(), name);
                    }
                }
            });
        }
    });
}

/// While PostgreSQL is away pages are given until the bound is over; then they are a 503, and after
/// its return they have what was missed.
#[test]
fn a_lost_feed_keeps_nothing_beyond_the_bound() {
    let mut server = lab_pgtest::Options::new().logical().start().unwrap();
    let url = server.url();
    let database = open(&url);
    let (made, gate) = (Arc::<AtomicUsize>::default(), Gate::default());
    let web = serve(routes(&database, &made, &gate));
    let kept = || {
        let before = made.load(Ordering::SeqCst);
        get(&web, "/addresses/1").status == 200 && made.load(Ordering::SeqCst) == before
    };
    until("it is kept", kept);
    server.stop();
    until("the bound is over", || {
        get(&web, "/addresses/1").status == 503
    });
    let response = get(&web, "/addresses/1");
    assert!(response.text().contains("the database does not respond"));
    assert_eq!(response.field("retry-after"), Some("1"));
    server.restart().unwrap();
    let mut client = Client::connect(&url, NoTls).unwrap();
    client
        .batch_execute("update address set name = 'Ann' where id = 1")
        .unwrap();
    until("it is back", || get(&web, "/addresses/1").status == 200);
    assert_eq!(get(&web, "/addresses/1").text(), "Ann");
    until("it is kept again", kept);
}

const OUTAGE: &str = "MILLPOND_TEST_OUTAGE";

#[test]
fn an_outage_is_two_lines_on_standard_error() {
    if std::env::var_os(OUTAGE).is_some() {
        let mut server = lab_pgtest::Options::new().logical().start().unwrap();
        let database = open(&server.url());
        let query = database.prepare("select name from address").unwrap();
        let read = || database.read([(&query).into()]).map(|[rows]| rows.len());
        assert_eq!(read().unwrap(), 3);
        server.stop();
        (0..5).for_each(|_| assert_eq!(read().unwrap_err().status(), 503));
        server.restart().unwrap();
        until("it is back", || read().is_ok());
        return;
    }
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture"])
        .arg("sql::an_outage_is_two_lines_on_standard_error")
        .env(OUTAGE, "1")
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{stderr}");
    let lines = stderr.lines().filter(|line| line.starts_with("millpond: "));
    let lines: Vec<_> = lines.collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].contains("the database is away: "), "{lines:?}");
    assert!(
        lines[1].contains("the database is back after "),
        "{lines:?}"
    );
}
