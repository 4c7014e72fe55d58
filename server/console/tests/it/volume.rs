//! Ninety days of figures: the size of the file, and what the pages read of it.

use std::fs;

use millpond_console::FILES;
use rusqlite::{Connection as Sqlite, StatementStatus};

use crate::support::{DAY, TestConsole, history_of};

/// Fills the history with what ninety days of a busy site with more routes than are told apart
/// leave.
fn fill(history: &Sqlite) {
    history
        .execute_batch(&format!(
            "begin;
             insert into route (id, name)
               with recursive n (i) as (select 1 union all select i + 1 from n where i < 100)
               select i, '/a/route/of/some/length/' || i from n;
             create temp table moment as
               with recursive n (grain, at, till) as (
                 select seconds, {DAY} - keep - seconds, {DAY} from grain
                 union all select grain, at + grain, till from n where at + grain < till
               ) select grain, at from n;
             insert into sample
               select grain, at, grain * 1000, grain * 2000 + at % 977, grain * 1500 + at % 777,
                 grain * 1400, grain * 60, grain * 20, grain * 30, grain * 60, grain * 60 * 4100,
                 grain * 60 * 3300, at % 7, at % 3, grain * 40000000, grain * 1900, grain * 30,
                 grain * 10, at % 11, grain * 700, grain * 340, grain * 900, 100 + at % 200,
                 15 + at % 30, 380000000 + at % 100000, 210000000 + at % 100000, 40000 + at % 1000, 12
               from moment;
             create temp table route_moment as
               with recursive n (grain, at, till) as (
                 select seconds, {DAY} - keep - seconds, {DAY} from route_grain
                 union all select grain, at + grain, till from n where at + grain < till
               ) select grain, at from n;
             insert into route_sample
               select grain, at, id, grain * 20 + at % 97, grain * 14, grain, at % 17, at % 5, grain,
                 grain * 4100, grain * 3300, at % 7, grain * 7
               from route_moment cross join route;
             insert into duration
               select grain, at, bound, grain * 100 + at % 91 from route_moment cross join (
                 select 50 as bound union all select 100 union all select 200 union all select 500
                 union all select 1000 union all select 5000 union all select 20000
                 union all select 100000 union all select 500000 union all select 2000000)
               where grain < 86400;
             insert or replace into clock (id, at, started) values (1, {DAY}, {DAY} - 7776000);
             commit;"
        ))
        .unwrap();
}

/// Each query of a page, without its comments.
fn queries(text: &str) -> Vec<String> {
    let parts = text.split("-- name: ").skip(1);
    parts
        .map(|part| part.split_once('\n').unwrap().1.to_owned())
        .collect()
}

#[test]
fn ninety_days_fit_and_each_page_reads_little_of_them() {
    let test = TestConsole::new();
    let dir = test.close();
    let file = history_of(&dir);
    let history = Sqlite::open(&file).unwrap();
    fill(&history);
    let rows = |table: &str| -> i64 {
        let count = format!("select count(*) from {table}");
        history.query_row(&count, [], |row| row.get(0)).unwrap()
    };
    assert!(rows("sample") > 140_000 && rows("route_sample") > 360_000);
    let steps = |sql: &str, values: &[(&str, &str)]| {
        let mut statement = history.prepare(sql).unwrap();
        for (name, value) in values {
            if let Some(at) = statement.parameter_index(name).unwrap() {
                statement.raw_bind_parameter(at, value).unwrap();
            }
        }
        let mut found = statement.raw_query();
        while found.next().unwrap().is_some() {}
        drop(found);
        statement.get_status(StatementStatus::VmStep)
    };
    // A million steps take about 20 ms. Each page has its queries in turn.
    for range in ["hour", "day", "week", "month", "quarter"] {
        for (page, text) in FILES.iter().filter(|(path, _)| path.ends_with(".sql")) {
            let mut all = 0;
            let values = [(":range", range), (":beside", "week"), (":id", "7")];
            for query in queries(text) {
                let query = query.replace(":sort", "requests desc, name");
                all += steps(&query, &values);
            }
            assert!(all < 4_000_000, "{page} of a {range}: {all} steps");
            println!("{page} {range}: {all}");
        }
    }
    drop(history);
    let size = fs::metadata(&file).unwrap().len();
    println!("{size} bytes");
    assert!(size < 50_000_000, "{size}");
    let mut test = TestConsole::in_folder(dir);
    test.sample(DAY + 5);
    test.ask(10, 1);
    test.sample(DAY + 15);
    for range in ["hour", "day", "week", "month", "quarter"] {
        for page in ["/", "/routes", "/routes/7"] {
            assert!(
                test.page(&format!("{page}?range={range}"))
                    .contains("</html>")
            );
        }
    }
}
