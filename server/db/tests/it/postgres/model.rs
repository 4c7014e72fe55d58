//! A cached answer equals a fresh one: random queries, own writes and other programs', through the
//! real feed.

use std::collections::HashSet;
use std::time::Duration;

use lab_testkit::Random;
use millpond_db::{Query, Value};

use super::feed::Fed;
use super::try_read;
use crate::support::{int, text};

pub(super) const SCHEMA: &str = "
create table a (id integer primary key, owner integer not null, word text not null);
create table b (id serial primary key, a integer not null references a on update cascade on delete cascade,
    n bigint not null) partition by range (id);
alter table b drop constraint b_pkey;
alter table b add primary key (id);
create table b1 partition of b for values from (minvalue) to (20);
create table b2 partition of b for values from (20) to (maxvalue);
alter table b1 replica identity full;
create table c (id integer primary key, kind integer not null, title text not null, note text, n integer not null);
alter table c replica identity full;
create index on c (kind);
create view v as select a.id, a.owner, sum(b.n) as total from a left join b on b.a = a.id group by a.id;
create view listed as select word, owner, id from a;
";

pub(super) const QUERIES: &[&str] = &[
    "select * from a where id = :p",
    "select * from a where owner = :p order by id",
    "select * from a where word = :w order by id",
    "select count(*) from b where a = :p",
    "select max(n) from b",
    "select a.id, b.id from a join b on b.a = a.id where a.owner = :p order by 1, 2",
    "select a.id, count(b.id) from a left join b on b.a = a.id and b.n > 1 where a.id = :p group by a.id",
    "select * from v where owner = :p order by id",
    "select * from v where id = :p",
    "select w.word, l.total from listed w left join v l on l.id = w.id where w.id = :p",
    "select * from (select owner, count(*) as n from listed group by owner) o where owner = :p",
    "select * from (select distinct on (a) a, n from b order by a, n desc, id) o where a = :p",
    "select * from a where id in (1, :p) order by id",
    "select id, title from c where kind = :p order by id",
    "select note from c where id = :p",
    "select kind, count(*), sum(n) from c group by kind order by kind",
    "select title from c order by n, id limit 2",
    "select distinct kind from c order by kind",
    "select count(*) from c where kind = :p",
    "select c.title, a.word from c join a on a.id = c.kind where c.id = :p",
];

const CHANGES: &[&str] = &[
    "insert into a values (Q, P, 'wP') on conflict (id) do update set owner = excluded.owner",
    "insert into a values (Q, P, 'wQ') on conflict (id) do update set word = excluded.word",
    "update a set owner = P where id = Q",
    "update a set id = id + 10 where id = Q and not exists (select from a where id = Q + 10)",
    "update a set id = id - 10 where id = Q + 10 and not exists (select from a where id = Q)",
    "delete from a where id = Q",
    "insert into b (a, n) select id, P from a where owner = Q",
    "update b set n = n + 1 where a = P",
    "update b set id = id + 19 where id = Q",
    "delete from b where n > 3",
    "truncate b",
    "update a set word = word || 'x' where owner = P",
    "update a set word = word where owner = P",
    "insert into c values (Q, P, 'tP', 'nQ', P) on conflict (id) do update set note = excluded.note",
    "update c set kind = P where id = Q",
    "update c set title = 'tP' where kind = Q",
    "update c set note = 'nP' where id = Q",
    "update c set n = n + 1 where id = Q",
    "update c set title = title, n = n",
    "delete from c where id = Q and n = P",
];

fn change(cases: &mut Random) -> String {
    let sql = *cases.pick(CHANGES);
    let (p, q) = (cases.below(4) + 1, cases.below(4) + 1);
    sql.replace('P', &p.to_string())
        .replace('Q', &q.to_string())
}

fn params(query: &Query, p: usize) -> Vec<Value> {
    let params = query.params();
    let value = |name: &str| match name {
        "w" => text(&format!("w{p}")),
        _ => int(i64::try_from(p).unwrap()),
    };
    params.iter().map(|param| value(&param.name)).collect()
}

#[test]
fn a_cached_answer_equals_a_fresh_one() {
    for seed in [1, 2, 3] {
        run(seed);
    }
}

fn run(seed: u64) {
    let published = format!("{SCHEMA} create publication millpond for all tables;");
    let fed = Fed::with(&published, |options| {
        options.max_staleness = Duration::from_millis(200);
    });
    compare(&fed, seed);
}

/// Each cached answer against a fresh one, after each of some random changes.
pub(super) fn compare(fed: &Fed, seed: u64) {
    let queries: Vec<Query> = QUERIES.iter().map(|sql| fed.prepare(sql)).collect();
    let mut cases = Random::new(seed);
    let mut foreign = fed.foreign();
    let mut kept = HashSet::new();
    let mut seen = 0;
    for step in 0..120 {
        for _ in 0..6 {
            let (query, p) = (cases.index(queries.len()), cases.index(4) + 1);
            fed.try_fill(
                &format!("{query} {p}"),
                &queries[query],
                &params(&queries[query], p),
            );
            kept.insert((query, p));
        }
        let mut change = change(&mut cases);
        if cases.below(2) == 0 && !change.starts_with("truncate") {
            fed.write(&change, vec![]);
        } else {
            for _ in 0..cases.below(3) {
                change = format!("{change}; {}", self::change(&mut cases));
            }
            // One transaction.
            foreign.batch_execute(&change).unwrap();
            fed.sink.settle();
        }
        for (query, p) in &kept {
            let Some(entry) = fed.sink.cached(&format!("{query} {p}")) else {
                continue;
            };
            let query = &queries[*query];
            let fresh = try_read(&fed.database, query, params(query, *p)).unwrap();
            assert_eq!(
                entry.rows,
                fresh.results,
                "seed {seed}, step {step}, after {change}: {} with {p}",
                query.sql()
            );
            seen += 1;
        }
    }
    assert!(seen > 100, "only {seen} cached answers were compared");
}
