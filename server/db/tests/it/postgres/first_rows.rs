//! A change behind the last of the first rows of an order ends nothing (coherence.md, rule 23),
//! through the real feed.

use super::feed::Fed;
use super::triggers;

const SCHEMA: &str = "
create table article (id integer primary key, title text, at timestamptz, day date, n bigint);
create index on article (at);
";

const RESET: &str = "
delete from article;
insert into article select i, 't', '2024-01-01 00:00:00+00'::timestamptz + i * interval '1 hour', date '2024-01-01' + i, i
    from generate_series(1, 10) i;
";

/// True if a change of another program ends the result of a query.
fn ends(fed: &Fed, sql: &str, change: &str) -> bool {
    let query = fed.prepare(sql);
    let mut foreign = fed.foreign();
    foreign.batch_execute(RESET).unwrap();
    fed.sink.settle();
    fed.fill("probe", &query, &[]);
    let before = fed.sink.epoch();
    foreign.batch_execute(change).unwrap();
    fed.sink.settle();
    assert_eq!(fed.sink.epoch(), before, "an epoch hides what the tags do");
    fed.sink.cached("probe").is_none()
}

fn check(fed: &Fed, sql: &str, changes: &[(&str, bool)]) {
    for (change, expected) in changes {
        assert_eq!(ends(fed, sql, change), *expected, "{sql} after {change}");
    }
}

/// With all old values known.
fn check_all(fed: &Fed) {
    check(
        fed,
        "select title, at from article order by at desc nulls last, id limit 3",
        &[
            ("update article set title = 'x' where id = 8", true),
            ("update article set title = 'x' where id = 7", false),
            (
                "update article set at = '2024-01-01 07:59:59Z' where id = 1",
                false,
            ),
            (
                "update article set at = '2024-01-01 13:30:00+05:30' where id = 1",
                true,
            ),
            ("update article set at = null where id = 10", true),
            ("update article set title = 'x' where id in (9, 1)", true),
            ("insert into article (id) values (11)", false),
            ("insert into article (id, at) values (11, 'infinity')", true),
            ("delete from article where id = 7", false),
            ("delete from article where id = 8", true),
            ("truncate article", true),
        ],
    );
    check(
        fed,
        "select id, at from article order by at desc, id limit 3",
        &[("insert into article (id) values (11)", true)],
    );
    check(
        fed,
        "select id, day from article where n > 2 order by day, id limit 2 offset 1",
        &[
            ("update article set title = 'x' where id > 5", false),
            ("update article set n = 0 where id = 6", false),
            ("update article set n = 0 where id = 4", true),
            ("insert into article (id) values (11)", false),
        ],
    );
    // Which of equal rows is taken may depend on any other.
    let change = [("update article set title = 'x' where id = 7", true)];
    check(
        fed,
        "select at from article order by at desc limit 3",
        &change,
    );
    check(
        fed,
        "select id, title from article order by id limit 11",
        &[("update article set title = 'x' where id = 10", true)],
    );
}

#[test]
fn a_change_behind_the_last_row_ends_nothing() {
    let fed = Fed::with(
        &format!(
            "{SCHEMA} alter table article replica identity full; create publication millpond for all tables;"
        ),
        |_| {},
    );
    check_all(&fed);
}

#[test]
fn a_change_behind_the_last_row_that_triggers_record_ends_nothing() {
    let queries = ["select title from article"];
    check_all(&triggers::fed(SCHEMA, &queries, |_| {}));
}

#[test]
fn with_the_default_identity_only_keys_tell_where_a_row_was() {
    let fed = Fed::with(
        &format!("{SCHEMA} create publication millpond for all tables;"),
        |_| {},
    );
    let change = "update article set title = 'x' where id = 7";
    check(
        &fed,
        "select id, title from article order by id desc limit 3",
        &[
            (change, false),
            ("update article set title = 'x' where id = 8", true),
            ("update article set id = 11 where id = 1", true),
            ("delete from article where id = 7", false),
        ],
    );
    check(
        &fed,
        "select title, at from article order by at desc, id limit 3",
        &[
            (change, true),
            (
                "insert into article (id, at) values (11, '2023-01-01 00:00:00Z')",
                false,
            ),
            ("delete from article where id = 7", true),
        ],
    );
}
