//! What the guide says of the values of a database, and of the time as one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use millpond::{Failure, FromSql, Page, Routes, SqlDatabase, SqlRows, stored};

use crate::sql::{POSTGRES, until};
use crate::support::{get, serve};

fn value<T: FromSql>(rows: &SqlRows, column: &str) -> T {
    rows.first().unwrap().get(column).unwrap()
}

fn sqlite(dir: &tempfile::TempDir) -> String {
    format!("sqlite:{}", dir.path().join("book.db").display())
}

#[test]
fn values_of_postgresql_are_read_and_bound_as_the_guide_says() {
    let home = POSTGRES.database().unwrap();
    let database = SqlDatabase::open(&home.url()).unwrap();
    let all = "select 7::smallint as small, 1.5::double precision as real, 'x'::varchar as text,
        '\\x01'::bytea as bytes, true as truth, '{\"a\": 1}'::jsonb as json, array[1, 2] as list,
        12.50::numeric as decimal, '2026-11-21 17:00:00.123456+00'::timestamptz as moment,
        'c0ffee00-0000-4000-8000-000000000000'::uuid as uuid, null::integer as nothing,
        sum(7::bigint) as sum, sum(7::bigint)::bigint as whole";
    let all = database.prepare(all).unwrap();
    let [rows] = database.read([(&all).into()]).unwrap();
    assert_eq!(value::<u8>(&rows, "small"), 7);
    assert_eq!(value::<f64>(&rows, "small"), 7.0);
    assert_eq!(value::<f64>(&rows, "real"), 1.5);
    assert_eq!(value::<Vec<u8>>(&rows, "bytes"), [1]);
    assert!(value::<bool>(&rows, "truth"));
    assert_eq!(value::<Option<i64>>(&rows, "nothing"), None);
    assert_eq!(value::<i64>(&rows, "whole"), 7);
    for (column, text) in [
        ("text", "x"),
        ("json", r#"{"a":1}"#),
        ("list", "[1,2]"),
        ("decimal", "12.50"),
        ("moment", "2026-11-21T17:00:00.123456Z"),
        ("uuid", "c0ffee00-0000-4000-8000-000000000000"),
        ("sum", "7"),
    ] {
        assert_eq!(value::<String>(&rows, column), text, "{column}");
    }
    let bound = "select :day::date as day, :list::integer[] as list, :json::jsonb as json";
    let bound = database.prepare(bound).unwrap();
    let bound = bound.with("day", "2026-03-31").with("list", "{1,2}");
    let [rows] = database.read([bound.with("json", "[1]")]).unwrap();
    assert_eq!(value::<String>(&rows, "day"), "2026-03-31");
    assert_eq!(value::<String>(&rows, "list"), "[1,2]");
    assert_eq!(value::<String>(&rows, "json"), "[1]");
}

#[test]
fn values_of_sqlite_are_what_the_row_holds() {
    let dir = lab_testkit::fast_dir();
    let database = SqlDatabase::open(&sqlite(&dir)).unwrap();
    let script = "create table t (whole integer, real real, text text, bytes blob, truth boolean);
        insert into t values (7, 1, 'x', x'01', 1), ('no', null, null, null, 0);";
    database.migrate([("0001", script)]).unwrap();
    let query = database.prepare("select * from t order by rowid").unwrap();
    let [rows] = database.read([(&query).into()]).unwrap();
    assert_eq!(value::<u64>(&rows, "whole"), 7);
    assert_eq!(value::<f64>(&rows, "real"), 1.0);
    assert_eq!(value::<String>(&rows, "text"), "x");
    assert_eq!(value::<Vec<u8>>(&rows, "bytes"), [1]);
    assert!(value::<bool>(&rows, "truth"));
    let second = rows.iter().nth(1).unwrap();
    assert_eq!(second.get::<String>("whole").unwrap(), "no");
    assert_eq!(second.get::<Option<f64>>("real").unwrap(), None);
}

/// The page of the guide.
fn polls(database: &SqlDatabase, made: &Arc<AtomicUsize>) -> Routes {
    let open = "select title, ends_s from poll where ends_s > :now order by ends_s";
    let open = database.prepare(open).unwrap();
    let made = Arc::clone(made);
    let page = move |page: &mut Page| {
        made.fetch_add(1, Ordering::SeqCst);
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let polls = page.query(open.with("now", now.as_secs()))?;
        if let Some(first) = polls.first() {
            page.max_age(Duration::from_secs(first.get("ends_s")?).saturating_sub(now));
        }
        let titles: Result<Vec<String>, _> = polls.iter().map(|poll| poll.get("title")).collect();
        Ok::<_, Failure>(titles?.join(" "))
    };
    let mut routes = Routes::new();
    routes.get("/polls", stored(database.store(), page));
    routes
}

#[test]
fn a_page_with_a_bound_time_is_kept_until_the_moment_in_its_row() {
    let dir = lab_testkit::fast_dir();
    let database = SqlDatabase::open(&sqlite(&dir)).unwrap();
    let script = "create table poll (id integer primary key, title text, ends_s integer);
        insert into poll values (1, 'over', 1), (2, 'long', 99999999999);";
    database.migrate([("0001", script)]).unwrap();
    let made = Arc::<AtomicUsize>::default();
    let server = serve(polls(&database, &made));
    let ask = || get(&server, "/polls").text();
    until("it is kept", || {
        let before = made.load(Ordering::SeqCst);
        ask() == "long" && made.load(Ordering::SeqCst) == before
    });
    // One that ends soon is on the page, and leaves it although nothing changes.
    let insert = "insert into poll values (3, 'short', :ends)";
    let insert = database.prepare(insert).unwrap();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let ends = now.as_secs() + 2;
    database.write([insert.with("ends", ends)]).unwrap();
    until("its moment has come", || {
        let before = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let text = ask();
        assert!(text == "long" || before.as_secs() < ends, "{text}");
        text == "long"
    });
}
