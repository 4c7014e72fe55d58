//! Property test: with random schemas, queries and changes, a cached result always equals a fresh
//! one.
//!
//! A case is a stream of choices that determines everything else, so a failure shrinks to a short
//! stream, and its SQL is printed. `MILLPOND_PROPTEST_CASES` sets the number of cases,
//! `MILLPOND_PROPTEST_SEED` repeats a failed run.

use std::cell::RefCell;
use std::hash::{BuildHasher, RandomState};

use millpond_db::{FeedKind, Query, ResultRows, Value};
use proptest::collection::vec;
use proptest::prelude::any;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use crate::support::{SqliteFixture, int, text};

#[test]
fn a_cached_answer_equals_a_fresh_one() {
    run_cases(FeedKind::Logical);
}

/// Checks stored answers where most changes are those of another program, recorded by triggers.
#[test]
fn a_cached_answer_equals_a_fresh_one_with_triggers() {
    run_cases(FeedKind::Triggers);
}

fn run_cases(feed: FeedKind) {
    let variable = |name: &str| {
        std::env::var(name)
            .ok()
            .and_then(|value| value.parse::<u64>().ok())
    };
    let cases =
        variable("MILLPOND_PROPTEST_CASES").map_or(96, |cases| u32::try_from(cases).unwrap());
    let seed = variable("MILLPOND_PROPTEST_SEED").unwrap_or_else(|| RandomState::new().hash_one(0));
    println!("MILLPOND_PROPTEST_SEED={seed}");
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config {
        cases,
        failure_persistence: None,
        max_shrink_iters: 400,
        ..Config::default()
    };
    let mut runner =
        TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    let totals = RefCell::new((0, 0));
    let result = runner.run(&vec(any::<u16>(), 300..500), |choices| {
        let (kept, dropped) = ModelCase::new(choices).run(feed)?;
        let mut totals = totals.borrow_mut();
        totals.0 += kept;
        totals.1 += dropped;
        Ok(())
    });
    match result {
        Ok(()) => {}
        Err(TestError::Fail(reason, _)) => panic!("seed {seed}: {reason}"),
        Err(other) => panic!("seed {seed}: {other}"),
    }
    let (kept, dropped) = *totals.borrow();
    println!("{kept} answers outlived a change, {dropped} did not");
    assert!(
        kept > 0 && dropped > 0,
        "a cache that keeps nothing, or everything, proves nothing: {kept}, {dropped}"
    );
}

const TYPES: [&str; 8] = [
    "integer",
    "text",
    "text collate nocase",
    "text collate nocase",
    "real",
    "numeric",
    "",
    "text collate rtrim",
];
const TEXTS: [&str; 9] = ["a", "A", "a ", "7", "07", "7.0", " 7", "b", ""];

struct ModelTable {
    name: String,
    columns: Vec<&'static str>,
    key: &'static str,
    has_rowid: bool,
}

struct ModelCase {
    choices: Vec<u16>,
    at: usize,
    tables: Vec<ModelTable>,
    script: Vec<String>,
    /// True if columns have few types and values, and rows are often joined by witnesses.
    has_few_types: bool,
    /// True while a query is made whose common table expression is called Z.
    has_common_table: bool,
    pool: Vec<Value>,
}

struct CachedQuery {
    query: Query,
    params: Vec<Value>,
    key: String,
}

impl ModelCase {
    fn new(choices: Vec<u16>) -> Self {
        Self {
            choices,
            at: 0,
            tables: Vec::new(),
            script: Vec::new(),
            has_few_types: false,
            has_common_table: false,
            pool: Vec::new(),
        }
    }

    fn below(&mut self, n: usize) -> usize {
        let choice = self.choices.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        usize::from(choice) % n
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == n - 1
    }

    fn of<T: Copy>(&mut self, among: &[T]) -> T {
        among[self.below(among.len())]
    }

    /// One of few values, so that queries and changes often overlap.
    fn value(&mut self) -> Value {
        if self.pool.is_empty() || self.one_in(12) {
            return self.fresh_value();
        }
        let index = self.below(self.pool.len());
        self.pool[index].clone()
    }

    fn fresh_value(&mut self) -> Value {
        match self.below(12) {
            0..=3 => int([0, 1, 7][self.below(3)]),
            4..=5 if self.has_few_types => int([0, 1, 7][self.below(3)]),
            4..=9 => text(self.of(&TEXTS)),
            10 => Value::Real([7.0, 1.5, 0.0][self.below(3)]),
            _ => Value::Null,
        }
    }

    fn literal(&mut self) -> String {
        match self.value() {
            Value::Integer(integer) => integer.to_string(),
            Value::Real(real) => format!("{real:?}"),
            Value::Text(text) => format!("'{text}'"),
            Value::Null | Value::Blob(_) | Value::Boolean(_) | Value::Json(_) => "null".to_owned(),
        }
    }

    fn schema(&mut self) -> String {
        let mut schema = String::new();
        let types: &[&str] = match self.has_few_types {
            true => &["integer", "integer", "text", "text collate nocase"],
            false => &TYPES,
        };
        for index in 0..2 + self.below(2) {
            let name = format!("T{index}");
            let (key, without_rowid) = self.of(&[
                ("k integer primary key", false),
                ("k text primary key", true),
                ("k text primary key", false),
                ("k integer primary key desc", false),
                ("k int", false),
                ("k integer primary key", true),
            ]);
            let (first, second) = (self.of(types), self.of(types));
            let unique = self.of(&[
                "",
                "",
                "",
                " unique",
                " unique on conflict replace",
                " not null default 7 unique",
            ]);
            let generated = if self.one_in(5) {
                ", g text generated always as (upper(b)) virtual"
            } else {
                ""
            };
            let references = if index > 0 && self.one_in(4) {
                " references T0 (a) on delete cascade on update cascade"
            } else {
                ""
            };
            let unique = if index == 0 { " unique" } else { unique };
            let tail = if without_rowid { " without rowid" } else { "" };
            schema += &format!(
                "create table {name} ({key}, a {first}{unique}, b {second}{references}{generated}){tail};\n"
            );
            if self.has_few_types {
                schema += &format!(
                    "create index {name}A on {name} (a);\ncreate index {name}B on {name} (b);\n\
                     create index {name}L on {name} (lower(a));\ncreate index {name}U on {name} (upper(b));\n"
                );
            }
            self.tables.push(ModelTable {
                name,
                columns: vec!["k", "a", "b"],
                key: "k",
                has_rowid: !without_rowid,
            });
        }
        schema += "create view V as select x.a, y.b from T0 x join T1 y on x.a = y.a;\n";
        schema += "create view W as select v.a as k, x.k as a, x.b from V v left join T0 x on x.b = v.b;\n";
        schema += "create view J as select y.k, y.a, x.b from T0 x join T1 y on y.b = x.a;\n";
        schema += "create view U as select k, a, b from T0 union all select a, k, b from T1;\n";
        schema += "create virtual table F using fts5(body);\n";
        if self.one_in(2) {
            schema += "create trigger R after update on T0 begin insert or replace into T1 (k, a, b) values (new.k, new.a, old.b); end;\n";
        }
        if self.one_in(2) {
            schema +=
                "create trigger S after delete on T1 begin delete from F where rowid = 1; end;\n";
        }
        schema += self.of(&[
            "",
            "create index I on T1 (b, a);\n",
            "create unique index I on T1 (b, a);\n",
            "create unique index I on T1 (b) where a = 7;\n",
            "create unique index I on T1 (a collate nocase);\n",
        ]);
        schema += self.of(&[
            "",
            "",
            "create trigger U after update on T0 when new.a = 7 begin select raise(ignore); end;\n",
            "create trigger U before update on T1 begin update T0 set b = new.b where k = 1; end;\n",
            "create trigger U before insert on T1 begin update T1 set a = new.b where k = 1; end;\n",
        ]);
        schema
    }

    fn column(&mut self, table: usize) -> &'static str {
        let columns = self.tables[table].columns.clone();
        if self.tables[table].has_rowid && self.one_in(6) {
            "rowid"
        } else {
            self.of(&columns)
        }
    }

    fn condition(&mut self, qualifier: &str, table: usize) -> String {
        let column = self.column(table);
        let other = self.column(table);
        self.condition_on(qualifier, column, other)
    }

    fn condition_on(&mut self, qualifier: &str, column: &str, other: &str) -> String {
        let literal = self.literal();
        match self.below(19) {
            16 => format!("(:p is null or {qualifier}{column} = :p)"),
            17 => format!("(:p = {literal} or {qualifier}{column} = :p or :q is null)"),
            18 => format!(
                "(:q is null or {qualifier}{column} = :q) and (:p = '' or {qualifier}{other} = :p)"
            ),
            14 => format!("lower({qualifier}{column}) = lower(:p)"),
            15 => format!(
                "{} = upper({qualifier}{column})",
                self.of(&[":p", "upper(:p)", "lower(:q)", "'A'"])
            ),
            11 => format!("({qualifier}{column} = :p or {qualifier}{column} = {literal})"),
            12 => format!(
                "({qualifier}{column} = :p and {qualifier}{other} > {literal} or {qualifier}{other} = 7 and {qualifier}{column} in (:q, 1))"
            ),
            13 => format!(
                "({qualifier}{column} = :p and {qualifier}{other} = :q or {qualifier}{other} = {literal})"
            ),
            0..=3 => format!("{qualifier}{column} = :p"),
            4 => format!(":q = {qualifier}{column}"),
            5 => format!("{qualifier}{column} in (:p, {literal})"),
            6 => format!("{qualifier}{column} = {literal}"),
            7 => format!("{qualifier}{column} = :p and {qualifier}{other} >= :q"),
            8 => format!("({qualifier}{column} = :p or {qualifier}{other} = :q)"),
            9 => format!("not {qualifier}{column} = :p"),
            _ => format!("{qualifier}{column} = :p and {qualifier}{other} = :q"),
        }
    }

    fn query(&mut self) -> String {
        let (t, u) = (self.below(self.tables.len()), self.below(self.tables.len()));
        let (tn, un) = (
            self.tables[t].name.clone(),
            self.tables[u].name.to_ascii_lowercase(),
        );
        let (c, d) = (self.column(t), self.column(u));
        let join = self.of(&["join", "left join", "right join", "full join", ", "]);
        match self.below(50) {
            42.. => self.query_of_first_rows(t, u),
            28.. => self.query_along_keys(),
            13..=27 => self.query_of_derived(t, u),
            0..=2 => format!("select * from {tn} where {}", self.condition("", t)),
            3 => format!(
                "select count(*), max(a), total(b) from {tn} where {}",
                self.condition("", t)
            ),
            4 | 5 if join != ", " => {
                let (on, filter) = (self.condition("y.", u), self.condition("x.", t));
                let on = if self.one_in(2) { "1".to_owned() } else { on };
                let extra = self.of(&["", "x.a = :q and ", "x.k = :p and ", "y.b = :p and "]);
                let join_on = if self.one_in(2) {
                    "1".to_owned()
                } else {
                    format!("x.{c} = y.{d}")
                };
                let condition = if self.one_in(2) {
                    format!("where {filter}")
                } else {
                    String::new()
                };
                format!(
                    "select x.a, y.b from {tn} x {join} {un} y on {extra}{join_on} and {on} {condition}"
                )
            }
            4..=6 => format!(
                "select x.a, y.b from {tn} as x, {un} y where {} and {}",
                self.condition("x.", t),
                self.condition("y.", u)
            ),
            7 => format!(
                "select * from {tn} where {c} in (select {d} from {un} where {})",
                self.condition("", u)
            ),
            8 => format!(
                "select k from {tn} as x where exists (select 1 from {un} y where y.{d} = x.{c} and {})",
                self.condition("y.", u)
            ),
            9 => format!(
                "with z as (select a, b from {tn} where {}) select * from z union all select a, b from {un} where {}",
                self.condition("", t),
                self.condition("", u)
            ),
            10 => format!(
                "select a, (select count(*) from {un} where {}) from {tn} where {} order by 1, 2 limit 2",
                self.condition("", u),
                self.condition("", t)
            ),
            11 => "select a, b from V where a = :p".to_owned(),
            _ => "select body from F where F match 'a OR b' and rowid > 0".to_owned(),
        }
    }

    /// A query of a view or a subquery.
    fn query_of_derived(&mut self, t: usize, u: usize) -> String {
        let (tn, un) = (self.tables[t].name.clone(), self.tables[u].name.clone());
        let (c, d) = (self.column(t), self.column(u));
        let join = self.of(&["join", "left join", "right join", "full join"]);
        let source = match self.below(20) {
            10 => "U".to_owned(),
            11..=15 => format!("({})", self.set_operation()),
            0..=2 => {
                let (on, filter) = (self.condition("y.", u), self.condition("x.", t));
                let on = if self.one_in(2) { "1".to_owned() } else { on };
                let filter = if self.one_in(2) {
                    "1".to_owned()
                } else {
                    filter
                };
                let columns = self.of(&["x.a, y.b", "y.a as a, x.b as b", "x.k as a, y.k as b"]);
                format!(
                    "(select {columns} from {tn} x {join} {un} y on x.{c} = y.{d} and {on} where {filter})"
                )
            }
            3 => format!("(select a, count(*) as n, max(b) as b from {tn} group by a)"),
            4 => format!("(select a, b from {tn} order by {c} limit 2)"),
            5 | 16..=19 => format!("(select {} from {tn})", self.windows()),
            6 => format!("(select a, max(b) as b from {tn})"),
            7 => format!("(select distinct b as a, a as b from {tn})"),
            8 => "V".to_owned(),
            _ => "W".to_owned(),
        };
        let (first, second) = (self.of(&["a", "b"]), self.of(&["a", "b"]));
        let filter = match self.one_in(2) {
            true => format!("z.{first} = :p"),
            false => self.condition_on("z.", first, second),
        };
        if self.one_in(2) {
            return format!("select z.a, z.b from {source} z where {filter}");
        }
        let other = self.column(t);
        format!(
            "select z.a, w.b from {source} z {join} {tn} w on w.{other} = z.{second} where {filter}"
        )
    }

    /// Columns `a` and `b`, the latter of windows.
    fn windows(&mut self) -> &'static str {
        self.of(&[
            "a, row_number() over (partition by a order by k) as b",
            "a, count(*) over () as b",
            "a, count(*) over (partition by b) as b",
            "a, count(*) over (partition by b) + count(*) over (partition by a, b) as b",
            "a, count(*) over (partition by a) + count(*) over (partition by b) as b",
            "b as a, count(*) over (partition by a, b) as b",
        ])
    }

    /// SELECTs of two columns each, with set operations between them.
    fn set_operation(&mut self) -> String {
        let mut query = String::new();
        for index in 0..2 + self.below(2) {
            let table = self.below(self.tables.len());
            let name = self.tables[table].name.clone();
            if index > 0 {
                query += self.of(&[" union all ", " union ", " intersect ", " except "]);
            }
            query += &match self.below(10) {
                0..=2 => format!("select a, b from {name}"),
                3 => format!("select b as a, a as b from {name}"),
                4 => format!("select k as a, b from {name}"),
                5 => format!("select a, max(b) as b from {name} group by a"),
                6 => format!(
                    "select {} from {name} where k > 1",
                    self.of(&["a, b", "b, k"])
                ),
                7 => format!("select max(a) as a, b from {name}"),
                8 => format!(
                    "select a, b from (select * from {name} where {})",
                    self.condition("", table)
                ),
                _ => format!("select {} from {name}", self.windows()),
            };
        }
        query + self.of(&["", "", "", "", " order by a", " order by 1, 2 limit 2"])
    }

    /// A join of two to five sources along their columns, often with subqueries.
    fn query_along_keys(&mut self) -> String {
        let count = 2 + self.below(4);
        self.has_common_table = self.one_in(3);
        let with = if self.has_common_table {
            let (source, table) = (self.below(self.tables.len()), self.below(self.tables.len()));
            let (name, other) = (self.tables[source].name.clone(), &self.tables[table].name);
            let select = format!("select y.k, y.a, z.b from {name} y join {other} z on y.a = z.b");
            let select = self
                .of(&[
                    select.as_str(),
                    &format!("select a as k, k as a, b from {name} y"),
                    &format!("select k, a, b from {name} y union select b, k, a from {other} y"),
                    "select y.k, y.a, y.b from J y",
                ])
                .to_owned();
            format!(
                "with z as ({select} where {}) ",
                self.condition("y.", source)
            )
        } else {
            String::new()
        };
        let mut from = String::new();
        for index in 0..count {
            let source = self.source();
            if index == 0 {
                from = format!("{source} x0");
                continue;
            }
            let before = self.below(index);
            let (c, d) = (self.key(), self.key());
            let join = self.of(&[
                "join",
                "join",
                "join",
                "left join",
                "left join",
                "right join",
            ]);
            let condition = match self.below(8) {
                0 => "using (a)".to_owned(),
                1 => format!(
                    "on x{index}.{c} = x{before}.{d} and x{index}.{} = :q",
                    self.key()
                ),
                2 => format!(
                    "on x{index}.{c} = x{before}.{d} and x{before}.{} = :q",
                    self.key()
                ),
                _ => format!("on x{index}.{c} = x{before}.{d}"),
            };
            from += &format!(" {join} {source} x{index} {condition}");
        }
        let first = self.below(count);
        let (column, other) = (self.key(), self.key());
        let mut filter = self.condition_on(&format!("x{first}."), column, other);
        for _ in 0..self.below(3) {
            filter += &format!(" and {}", self.subquery(count, 0));
        }
        let list = match self.below(4) {
            0 => "count(*)".to_owned(),
            1 => format!("x0.a, ({})", self.correlated(count, "count(*)", 0)),
            _ => format!("x0.a, x{}.b", count - 1),
        };
        self.has_common_table = false;
        format!("{with}select {list} from {from} where {filter}")
    }

    /// A query that takes the first rows of an order.
    fn query_of_first_rows(&mut self, t: usize, u: usize) -> String {
        let (tn, un) = (self.tables[t].name.clone(), self.tables[u].name.clone());
        let (order, c, d) = (self.of(&["a", "b", "b", "k"]), self.key(), self.key());
        let list = self.of(&[
            "x.k, x.a",
            "*",
            "x.b as a, x.a as b",
            "-x.a as a, x.b",
            "x.b",
        ]);
        let direction = self.of(&["", "", " desc", " desc", " asc", " desc nulls first"]);
        let more = self.of(&["", ", x.k", ", x.b desc"]);
        let limit = self.of(&[
            "1",
            "2",
            "3",
            "4",
            "2 offset 1",
            ":q offset 2",
            "1, 2",
            "2 offset (:q - 1) * 2",
            ":p + 1 offset :q - 1",
        ]);
        let join = match self.below(6) {
            0 => format!(" join {un} y on y.{c} = x.{d}"),
            1 => format!(" left join {un} y on y.{c} = x.{d}"),
            2 => format!(", {un} y"),
            _ => String::new(),
        };
        let prefix = match join.is_empty() {
            true => self.of(&["x.", ""]),
            false => self.of(&["x.", "x.", "y."]),
        };
        let filter = match self.below(9) {
            0 => format!(" where {}", self.condition("x.", t)),
            1 => format!(" where x.{c} is not null and {}", self.subquery_of(d)),
            2 => format!(" where \"a\" >= {}", self.literal()),
            _ => String::new(),
        };
        format!(
            "select {list} from {tn} x{join}{filter} order by {prefix}{order}{direction}{more} limit {limit}"
        )
    }

    fn subquery_of(&mut self, column: &str) -> String {
        let (table, key) = (self.below(self.tables.len()), self.key());
        let name = self.tables[table].name.clone();
        format!("exists (select 1 from {name} z where z.{key} = x.{column})")
    }

    fn key(&mut self) -> &'static str {
        self.of(&["k", "a", "b", "a", "b"])
    }

    fn source(&mut self) -> String {
        let table = self.below(self.tables.len());
        let name = self.tables[table].name.clone();
        if self.has_common_table && self.one_in(2) {
            return "Z".to_owned();
        }
        match self.below(14) {
            12 => "U".to_owned(),
            13 => format!("(select a as k, a, b from ({}))", self.set_operation()),
            0 => "W".to_owned(),
            1..=3 => "J".to_owned(),
            4 => {
                let filter = self.condition("", table);
                format!("(select k, b as a, a as b from {name} where {filter})")
            }
            5 => format!("(select max(k) as k, a, b from {name} group by a, b)"),
            _ => name,
        }
    }

    /// A condition with a subquery, `count` sources being around it.
    fn subquery(&mut self, count: usize, depth: usize) -> String {
        let outer = format!("x{}.{}", self.below(count), self.key());
        let (table, key) = (self.below(self.tables.len()), self.key());
        let name = self.tables[table].name.clone();
        let filter = self.condition("", table);
        let not = if self.one_in(5) { "not " } else { "" };
        match self.below(7) {
            0 | 1 => format!("{outer} {not}in (select {key} from {name} where {filter})"),
            2 => format!("{outer} = (select {key} from {name} where {filter} order by k limit 1)"),
            3 => format!("{outer} = (select max({key}) from {name} where {filter})"),
            4 => format!("{outer} {not}in ({})", self.correlated(count, "y.k", depth)),
            _ => format!("{not}exists ({})", self.correlated(count, "1", depth)),
        }
    }

    /// A query whose rows are found by those around it.
    fn correlated(&mut self, count: usize, list: &str, depth: usize) -> String {
        let outer = format!("x{}.{}", self.below(count), self.key());
        let (source, key) = (self.source(), self.key());
        let mut filter = format!("y.{key} = {outer}");
        if self.one_in(2) {
            let (column, other) = (self.key(), self.key());
            filter += &format!(" and {}", self.condition_on("y.", column, other));
        }
        if depth == 0 && self.one_in(4) {
            filter += &format!(" and {}", self.subquery(count, 1));
        }
        let from = match self.below(4) {
            0 => {
                let table = self.below(self.tables.len());
                let other = self.tables[table].name.clone();
                let (c, d) = (self.key(), self.key());
                let join = self.of(&["join", "left join"]);
                format!("{source} y {join} {other} z on z.{c} = y.{d}")
            }
            _ => format!("{source} y"),
        };
        format!("select {list} from {from} where {filter}")
    }

    fn change(&mut self) -> String {
        let t = self.below(self.tables.len());
        let ModelTable { name, key, .. } = &self.tables[t];
        let (name, key) = (name.clone(), *key);
        let (k, a, b) = (self.below(5), self.literal(), self.literal());
        let column = self.of(&["a", "b"]);
        match self.below(16) {
            0..=2 => format!("insert or ignore into {name} (k, a, b) values ({k}, {a}, {b})"),
            3 => format!("insert or replace into {name} (k, a, b) values ({k}, {a}, {b})"),
            4 => format!(
                "insert into {name} (k, a, b) values ({k}, {a}, {b}) on conflict do update set {column} = {a}"
            ),
            5..=7 => format!("update or ignore {name} set {column} = {a} where {key} = {k}"),
            8 => format!("update or replace {name} set a = {a}, b = {b} where {key} = {k}"),
            9 => format!("update or replace {name} set {key} = {k} where a = {a}"),
            10 => format!("delete from {name} where {column} = {a}"),
            11 if self.one_in(3) => format!("delete from {name}"),
            12 if self.one_in(3) => format!("create index if not exists J{k} on {name} (a)"),
            12 if self.one_in(2) => "drop view if exists V".to_owned(),
            12 => format!("create view if not exists V as select a, b from {name}"),
            13 => format!(
                "insert or replace into F (rowid, body) values ({}, 'a b {k}')",
                k + 1
            ),
            14 => format!("update F set body = 'c' where rowid = {}", k + 1),
            _ => format!(
                "insert into {name} (k, a, b) select {k} + 5, b, a from {name} where {key} = {k}"
            ),
        }
    }

    fn run(mut self, feed: FeedKind) -> Result<(u64, u64), TestCaseError> {
        self.has_few_types = self.one_in(2);
        for _ in 0..3 + self.below(3) {
            let value = self.fresh_value();
            self.pool.push(value);
        }
        let schema = self.schema();
        self.script.push(schema.clone());
        let (fixture, others) = match feed {
            FeedKind::Logical => (SqliteFixture::new(&schema), 1),
            FeedKind::Triggers => (SqliteFixture::recorded(&schema), 4),
        };
        let foreign = fixture.foreign();
        foreign.execute_batch("pragma foreign_keys = on").unwrap();
        let mut asked = Vec::new();
        let (mut kept, mut dropped) = (0, 0);
        for _ in 0..5 {
            let change = self.change();
            self.change_with(&fixture, &foreign, &change, false);
        }
        while self.at < self.choices.len() {
            if asked.len() < 8 {
                asked.extend(self.ask(&fixture));
            }
            for asked in &asked {
                if fixture.sink.cached(&asked.key).is_none() {
                    fixture.try_fill(&asked.key, &asked.query, &asked.params);
                }
            }
            let change = self.change();
            let by_other = self.below(5) >= 5 - others;
            self.change_with(&fixture, &foreign, &change, by_other);
            for asked in &asked {
                let Some(entry) = fixture.sink.cached(&asked.key) else {
                    dropped += 1;
                    continue;
                };
                kept += 1;
                // The result may also be an error, because the view is gone.
                let fresh = fixture
                    .try_read(&asked.query, &asked.params)
                    .map(|read| read.results)
                    .unwrap_or_default();
                // An epoch may have evicted the entry before the change; then there is no cached
                // result.
                if sorted(&entry.rows) != sorted(&fresh)
                    && fixture.sink.cached(&asked.key).is_some()
                {
                    let calls = fixture.sink.calls();
                    let message = format!(
                        "{}\n-- stale: {} with {:?}\ncached {:?}\nfresh  {:?}\nlast call {:?}\ndepends on {:?}",
                        self.script.join(";\n"),
                        asked.query.sql(),
                        asked.params,
                        entry.rows,
                        fresh,
                        calls.last(),
                        asked.query.describe()
                    );
                    return Err(TestCaseError::fail(message));
                }
            }
        }
        Ok((kept, dropped))
    }

    fn ask(&mut self, fixture: &SqliteFixture) -> Option<CachedQuery> {
        let sql = self.query();
        // Not every combination is a valid query (a duplicate column).
        let query = fixture.database.prepare(&sql).ok()?;
        let params: Vec<Value> = query.params().iter().map(|_| self.value()).collect();
        let key = format!("{sql} {params:?}");
        self.script.push(format!("-- ask {key}"));
        Some(CachedQuery { query, params, key })
    }

    /// Makes a change. A change that violates a constraint is rolled back, and the cache must stay
    /// correct.
    fn change_with(
        &mut self,
        fixture: &SqliteFixture,
        foreign: &rusqlite::Connection,
        change: &str,
        by_other: bool,
    ) {
        self.script.push(format!(
            "{change}{}",
            if by_other {
                " -- by another program"
            } else {
                ""
            }
        ));
        if by_other {
            let _ = foreign.execute_batch(change);
            fixture.sink.settle();
        } else {
            let _ = fixture.try_write(change, Vec::new());
        }
    }
}

/// Sorted rows, as the order of rows is not guaranteed.
fn sorted(results: &[ResultRows]) -> Vec<String> {
    let mut rows: Vec<String> = results
        .iter()
        .flat_map(|rows| &rows.rows)
        .map(|row| format!("{row:?}"))
        .collect();
    rows.sort();
    rows
}
