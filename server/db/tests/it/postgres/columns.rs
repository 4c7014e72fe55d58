//! A change ends what reads the columns that it changes (coherence.md, rule 22), through the real
//! feed.

use millpond_db::Value;

use super::feed::Fed;
use super::triggers;
use crate::support::{int, text};

const SCHEMA: &str = "
create type mood as enum ('low', 'high');
create domain word as text;
create type pair as (x integer, y text);
create table t (id integer primary key, a integer, b text, c text, n numeric, f float8, m mood,
    w word default 'w', o pair,
    loud text generated always as (upper(c)) stored);
create index on t (a);
create table u (id integer primary key, a integer, c text, x text);
create table small (id integer primary key, x text);
create table place (id integer primary key, x text);
create table city (people integer, primary key (id)) inherits (place);
create table p (id integer, at integer, x text, y text, primary key (id, at)) partition by list (at);
create table p1 partition of p for values in (1);
create table p2 partition of p for values in (2);
create table secret (id integer primary key, owner text, x text, y text);
alter table secret enable row level security;
alter table secret force row level security;
create policy own on secret using (owner = 'me');
create view listed as select id, a, b from t;
create view merged as select t.id from t join u using (c);
create view newest as select id, b from t order by a desc limit 2;
create view numbers as select a, count(*) as n from t group by a;
create function first_b(integer) returns text language sql stable
    begin atomic select b from t where a = $1; end;
";

const RESET: &str = "
delete from t; delete from u; delete from p; delete from small; delete from secret; delete from place;
insert into t values (1, 10, 'one', 'c1', 1.0, 0, 'low'), (2, 20, 'two', 'c2', 2, 0, 'low'),
    (3, 10, 'three', 'c3', 3, 0, 'low');
insert into u values (1, 10, 'c1', 'x1'), (2, 30, 'c9', 'x2');
insert into p values (1, 1, 'x', 'y'), (2, 2, 'x', 'y');
insert into small values (1, 'x');
insert into place values (1, 'x');
insert into city values (1, 'y', 9);
insert into secret values (1, 'me', 'x', 'y');
";

const TABLES: [&str; 8] = ["t", "u", "p1", "p2", "small", "secret", "place", "city"];

fn fed(identity: &str) -> Fed {
    let identities =
        TABLES.map(|table| format!("alter table {table} replica identity {identity};"));
    Fed::with(
        &format!("{SCHEMA}{}{PUBLISHED}", identities.join("")),
        |_| {},
    )
}

/// A publication of all tables; of generated columns too, as PostgreSQL 18 refuses to update tables
/// with a full identity of which it leaves some out.
const PUBLISHED: &str = "create publication millpond for all tables;
do $$ begin if current_setting('server_version_num')::int >= 180000 then
    execute 'alter publication millpond set (publish_generated_columns = stored)';
end if; end $$;";

/// True if a change of another program ends the result of a query.
fn ends(fed: &Fed, sql: &str, params: &[Value], change: &str) -> bool {
    let query = fed.prepare(sql);
    let mut foreign = fed.foreign();
    foreign.batch_execute(RESET).unwrap();
    fed.sink.settle();
    fed.fill("probe", &query, params);
    let before = fed.sink.epoch();
    foreign.batch_execute(change).unwrap();
    fed.sink.settle();
    assert_eq!(fed.sink.epoch(), before, "an epoch hides what the tags do");
    fed.sink.cached("probe").is_none()
}

fn check(fed: &Fed, sql: &str, params: &[Value], changes: &[(&str, bool)]) {
    for (change, expected) in changes {
        let ends = ends(fed, sql, params, change);
        assert_eq!(ends, *expected, "{sql} after {change}");
    }
}

const OF_C: &str = "update t set c = 'x' where id = 1";

#[test]
fn a_change_to_what_is_not_read_ends_nothing() {
    let fed = fed("full");
    check(
        &fed,
        "select a, b from t where id = :id",
        &[int(1)],
        &[
            (OF_C, false),
            ("update t set n = 7, f = 7 where id = 1", false),
            ("update t set c = 'x', b = 'x' where id = 1", true),
            ("update t set id = 9 where id = 1", true),
            ("delete from t where id = 1", true),
            ("update t set b = 'x' where id = 2", false),
        ],
    );
    check(
        &fed,
        "select a from t",
        &[],
        &[
            (OF_C, false),
            ("update t set a = 11 where id = 1", true),
            (
                "begin; update t set c = 'x'; update t set a = 11 where id = 3; commit",
                true,
            ),
            (
                "begin; update t set c = 'x'; update t set b = 'x' where id = 3; commit",
                false,
            ),
            ("delete from t where id = 3", true),
            ("insert into t (id) values (9)", true),
        ],
    );
    for sql in [
        "select b from t order by c",
        "select b from t where c like 'c%'",
        "select t.b from t join u using (c)",
        "select t.b from t natural join u",
        "select t.b from t left join u on u.c = t.c",
        "select b, t is null as w from t",
        "select t from t",
        "select row_to_json(t) as r from t",
        "select loud from t",
        "select t.c from listed l join t on t.id = l.id",
        "select l.b from t join listed l on t.id = l.id and t.c > ''",
        "select x.b from t x join t y on y.c > x.b",
        "select y.b from t x join t y on x.c > y.b",
        "select id from merged",
        "select id from t where exists (select from u where u.c = t.c)",
        "select (select max(u.id) from u where u.c > t.c) as i from t",
        "select x.b from t, lateral (select t.b where t.c > '') x",
        "with q as (select b, c from t) select b from q where c > ''",
        "select a, count(*) from t group by a having min(c) > ''",
        "select sum(a) filter (where c > '') from t",
        "select first_b(10) as b",
    ] {
        check(&fed, sql, &[], &[(OF_C, true)]);
    }
    let of_u = ("update u set x = 'y' where id = 1", false);
    for sql in [
        "select t.id from t where exists (select 1 from u where u.a = t.a)",
        "select t.b from t join u using (a)",
        "select t.b, u.c from t join u on u.a = t.a",
        "select b from listed where id = 1",
        "select b from t where a in (select a from u)",
    ] {
        check(&fed, sql, &[], &[of_u, ("update t set f = 1", false)]);
    }
    check(
        &fed,
        "select id, x from p where at = 1",
        &[],
        &[
            ("update p set y = 'z'", false),
            ("update p set x = 'z' where id = 1", true),
            ("update p set at = 1 where id = 2", true),
        ],
    );
    check(
        &fed,
        "select count(*) from p1",
        &[],
        &[
            ("update p set y = 'z'", false),
            ("update p set at = 2 where id = 1", true),
        ],
    );
    check(
        &fed,
        "select x from secret",
        &[],
        &[("update secret set owner = 'you'", true)],
    );
}

#[test]
fn where_a_choice_is_made_among_rows_every_column_counts() {
    let fed = fed("full");
    // The change that changes nothing writes the row to another place.
    let changes = [(OF_C, true), ("update t set a = a where id = 1", true)];
    for sql in [
        "select b from t limit 1",
        "select b from t order by a limit 1",
        "select b from t order by a offset 1",
        "select distinct on (a) a, b from t order by a",
        "select distinct n from t",
        "select n, count(*) from t group by n",
        "select string_agg(b, ',') as l from t",
        "select array(select b from t) as l",
        "select sum(f) from t",
        "select max(n) from t",
        "select b, row_number() over (order by a) from t",
        "select n from t union select 1",
        "select b from newest",
        "select u.x from u where u.a = (select a from t order by a limit 1)",
        "with recursive r as (select id from t union all select id + 10 from r where id < 5) select * from r",
        "select a, generate_series(1, 2) from t",
    ] {
        check(&fed, sql, &[], &changes);
    }
    // The key of the parent is not one of its children.
    let of_city = [("update city set people = 8", true)];
    check(&fed, "select id, x from place group by id", &[], &of_city);
    let of_city = [("update city set people = 8", false)];
    check(&fed, "select id, x from place", &[], &of_city);
}

#[test]
fn what_no_order_of_the_rows_changes_is_no_choice() {
    let fed = fed("full");
    for sql in [
        "select a, count(*), count(b), sum(a), min(id), max(b) from t group by a",
        "select count(distinct b), count(a) from t",
        "select distinct a from t",
        "select a from t order by b, id limit 9",
        "select a from t union select a from t",
        "select n from t where a > 9 union all select n from t where a < 29",
        "select n from numbers where a = 10",
        "select t.id, t.a, count(u.id) from t left join u on u.a = t.a group by t.id",
        "select u.x, (select count(*) from t where t.a = u.a) from u",
    ] {
        check(
            &fed,
            sql,
            &[],
            &[
                (OF_C, false),
                ("update t set a = 10 where id = 3", false),
                ("update t set a = 30 where id = 3", true),
                ("delete from t where id = 3", true),
            ],
        );
    }
}

#[test]
fn an_update_that_changes_nothing_ends_nothing() {
    let fed = fed("full");
    check(
        &fed,
        "select id, a, b, n, f from t where id = :id",
        &[int(1)],
        &[
            ("update t set b = b, a = 10 where id = 1", false),
            ("update t set b = 'x' where id = 99", false),
            ("update t set n = 1.00 where id = 1", true),
            ("update t set f = '-0' where id = 1", true),
            ("update t set f = 1e-300 where id = 1", true),
        ],
    );
    check(
        &fed,
        "select * from u where id = :id",
        &[int(1)],
        &[
            ("update u set c = c, x = 'x1' where id = 1", false),
            ("update u set c = null where id = 1", true),
            ("update u set x = 'X1' where id = 1", true),
        ],
    );
    check(
        &fed,
        "select m, w from t where id = :id",
        &[int(1)],
        &[
            (
                "update t set a = 11, m = 'low', w = 'w' where id = 1",
                false,
            ),
            ("update t set m = 'high' where id = 1", true),
            ("update t set w = 'v' where id = 1", true),
        ],
    );
    // Of most types that are not PostgreSQL's own it is not known whether the text says everything.
    check(
        &fed,
        "select o from t where id = :id",
        &[int(1)],
        &[("update t set a = 11 where id = 1", true)],
    );
}

#[test]
fn numbers_that_are_nearly_the_same_are_not() {
    let fed = Fed::with(
        &format!(
            "{SCHEMA} alter table t replica identity full;
            do $$ begin execute format('alter database %I set extra_float_digits = -10', current_database()); end $$;
            {PUBLISHED}"
        ),
        |_| {},
    );
    let near = [
        ("update t set f = 1e-300 + 0.1 where id = 1", true),
        ("update t set f = 0", false),
    ];
    check(&fed, "select f from t where id = :id", &[int(1)], &near);
    let query = fed.prepare("select f from t where id = 1");
    let mut foreign = fed.foreign();
    foreign.batch_execute("update t set f = 0.1").unwrap();
    fed.sink.settle();
    fed.fill("near", &query, &[]);
    foreign
        .batch_execute("update t set f = 0.10000000000000002")
        .unwrap();
    fed.sink.settle();
    assert!(fed.sink.cached("near").is_none());
}

#[test]
fn a_large_value_that_is_not_sent_is_not_changed() {
    for (identity, b) in [("full", false), ("default", true)] {
        let fed = fed(identity);
        let mut foreign = fed.foreign();
        let large = "alter table small alter x set storage external;
            alter table small add y integer, add z integer";
        foreign.batch_execute(large).unwrap();
        fed.sink.settle();
        let insert = "delete from small; insert into small values (1, repeat('x', 10000), 1, 1)";
        let query = fed.prepare("select x from small where id = :id");
        let other = fed.prepare("select x, y from small where id = :id");
        foreign.batch_execute(insert).unwrap();
        fed.sink.settle();
        fed.fill("x", &query, &[int(1)]);
        fed.fill("x, y", &other, &[int(1)]);
        foreign.batch_execute("update small set z = 2").unwrap();
        fed.sink.settle();
        assert!(fed.sink.cached("x").is_some(), "{identity}");
        assert_eq!(fed.sink.cached("x, y").is_none(), b, "{identity}");
        foreign
            .batch_execute("update small set x = repeat('y', 10000)")
            .unwrap();
        fed.sink.settle();
        assert!(fed.sink.cached("x").is_none(), "{identity}");
    }
}

#[test]
fn with_the_default_identity_only_keys_are_known_to_be_the_same() {
    let fed = fed("default");
    check(
        &fed,
        "select b from t where id = :id",
        &[int(1)],
        &[(OF_C, true), ("update t set c = 'x' where id = 2", false)],
    );
    for sql in ["select id from t", "select count(*) from t"] {
        check(
            &fed,
            sql,
            &[],
            &[
                (OF_C, false),
                ("update t set b = b", false),
                ("delete from t where id = 1", true),
            ],
        );
    }
    let moved = [("update t set id = 9 where id = 1", true)];
    check(&fed, "select id from t", &[], &moved);
    check(
        &fed,
        "select count(*) from t where a = :a",
        &[int(10)],
        &[(OF_C, true)],
    );
    check(&fed, "select id from t limit 1", &[], &[(OF_C, true)]);
}

#[test]
fn triggers_record_no_columns_so_all_count() {
    let queries = [
        "select a, b from t where id = :id",
        "select count(*) from p1",
        "select b from t where b = :b",
    ];
    let fed = triggers::fed(SCHEMA, &queries, |_| {});
    check(
        &fed,
        queries[0],
        &[int(1)],
        &[
            (OF_C, true),
            ("update t set b = b where id = 1", true),
            ("update t set b = 'x' where id = 2", false),
        ],
    );
    check(
        &fed,
        queries[1],
        &[],
        &[("update p set at = 2 where id = 1", true)],
    );
    check(
        &fed,
        queries[2],
        &[text("one")],
        &[("update t set b = 'x' where id = 1", true)],
    );
}
