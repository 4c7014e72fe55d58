//! The property: every change that alters a result touches a dependency of the result.
//!
//! The change's tags are computed here from the rows before and after it, all columns known: what
//! the feed reports at its best.

use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasher, RandomState};

use lab_testkit::Random;
use millpond_store::Tag;
use tokio_postgres::SimpleQueryMessage;

use super::support::AnalysisFixture;
use crate::Value;
use crate::postgres::analysis::Analysis;
use crate::postgres::tags::{ColumnName, broad};

const COLUMNS: [(&str, &str); 8] = [
    ("i2", "smallint"),
    ("i4", "integer"),
    ("i8", "bigint"),
    ("t", "text"),
    ("v", "varchar(9)"),
    ("n", "numeric"),
    ("b", "boolean"),
    ("c", "char(3)"),
];
const NUMBERS: [&str; 5] = ["0", "1", "2", "3", "null"];
const TEXTS: [&str; 6] = ["'a'", "'A'", "'a '", "'2'", "''", "null"];
const TABLES: [&str; 4] = ["a", "b", "p", "k"];
const SCHEMA: &str = "
create table a (COLUMNS);
create table b (COLUMNS);
create table p (COLUMNS) partition by list (i4);
create table p1 partition of p for values in (1, 2);
create table p2 partition of p default;
create table k () inherits (a);
create view w as select * from a where i4 > 0;
alter table a replica identity full; alter table b replica identity full; alter table k replica identity full;
alter table p1 replica identity full; alter table p2 replica identity full;
";

/// Random choices, from a seed that is printed.
struct Choices(Random);

impl Choices {
    fn below(&mut self, n: usize) -> usize {
        self.0.index(n)
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        *self.0.pick(all)
    }

    fn literal(&mut self, column: &str) -> String {
        match column {
            "t" | "v" | "c" => self.of(&TEXTS).to_owned(),
            "b" => self.of(&["true", "false", "null"]).to_owned(),
            _ => self.of(&NUMBERS).to_owned(),
        }
    }

    fn row(&mut self) -> String {
        let values: Vec<String> = COLUMNS
            .iter()
            .map(|(column, _)| self.literal(column))
            .collect();
        values.join(", ")
    }

    fn condition(&mut self, aliases: &[String]) -> String {
        let (column, _) = self.of(&COLUMNS);
        let alias = self.of(&aliases.iter().map(String::as_str).collect::<Vec<_>>());
        let name = format!("{alias}.{column}");
        let value = self.literal(column);
        match self.below(14) {
            0..=3 => format!("{name} = {value}"),
            4 => format!("{value} = {name}"),
            5 => format!("{name} in ({value}, {})", self.literal(column)),
            6 => format!("({name} = {value} or {name} is null)"),
            7 => format!("not {name} = {value}"),
            8 => format!("{alias}.b"),
            9 => format!("not {alias}.b"),
            10..=12 => {
                let other = self.of(&aliases.iter().map(String::as_str).collect::<Vec<_>>());
                format!("{name} = {other}.{column}")
            }
            _ => format!(
                "exists (select from {} z where z.i4 = {alias}.i4 and z.t = {})",
                self.of(&TABLES),
                self.literal("t")
            ),
        }
    }

    fn conjunction(&mut self, aliases: &[String]) -> String {
        let all: Vec<String> = (0..=self.below(3))
            .map(|_| self.condition(aliases))
            .collect();
        all.join(" and ")
    }

    fn factor(&mut self, aliases: &mut Vec<String>, depth: usize) -> String {
        if depth > 0 && self.below(3) == 0 {
            let mut inner = Vec::new();
            let left = self.factor(&mut inner, depth - 1);
            aliases.append(&mut inner);
            let first = aliases.len() - 1;
            let right = self.factor(aliases, depth - 1);
            let join = self.of(&["join", "left join", "right join", "full join"]);
            // PostgreSQL joins FULL only by equalities.
            let on = if join == "full join" {
                format!("{}.i4 = {}.i4", aliases[first], aliases[aliases.len() - 1])
            } else {
                self.conjunction(&aliases[first..])
            };
            return format!("({left} {join} {right} on {on})");
        }
        let table = self.of(&["a", "b", "p", "p1", "k", "w", "only a"]);
        let alias = format!("x{}_{}", aliases.len(), self.below(1_000_000));
        aliases.push(alias.clone());
        match self.below(5) {
            0 => format!(
                "(select * from {table} y where {}) {alias}",
                self.conjunction(&["y".to_owned()])
            ),
            _ => format!("{table} {alias}"),
        }
    }

    fn query(&mut self) -> String {
        let mut aliases = Vec::new();
        let from = self.factor(&mut aliases, 2);
        let columns: Vec<String> = aliases
            .iter()
            .map(|alias| format!("{alias}.i4, {alias}.t, {alias}.b"))
            .collect();
        let filter = self.conjunction(&aliases);
        match self.below(4) {
            0 => format!("select count(*) from {from} where {filter}"),
            1 => format!(
                "with q as (select {} from {from} where {filter}) select count(*) from q",
                aliases
                    .iter()
                    .map(|alias| format!("{alias}.i4 as {alias}"))
                    .collect::<Vec<_>>()
                    .join(", ")
            ),
            _ => format!("select {} from {from} where {filter}", columns.join(", ")),
        }
    }

    fn change(&mut self) -> String {
        let table = self.of(&TABLES);
        let (column, _) = self.of(&COLUMNS);
        let (by, _) = self.of(&COLUMNS);
        match self.below(4) {
            0 | 1 => format!("insert into {table} values ({})", self.row()),
            2 => format!(
                "update {table} set {column} = {} where {by} = {}",
                self.literal(column),
                self.literal(by)
            ),
            _ => format!("delete from {table} where {by} = {}", self.literal(by)),
        }
    }
}

/// The rows of a query as text, in one order.
fn rows(fixture: &AnalysisFixture, sql: &str) -> Option<Vec<Vec<Option<String>>>> {
    let messages = fixture
        .runtime
        .block_on(fixture.client.simple_query(sql))
        .ok()?;
    let mut rows: Vec<Vec<Option<String>>> = messages
        .iter()
        .filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(
                (0..row.len())
                    .map(|at| row.get(at).map(str::to_owned))
                    .collect(),
            ),
            _ => None,
        })
        .collect();
    rows.sort();
    Some(rows)
}

/// All rows of all tables, with how often each is there.
fn contents(fixture: &AnalysisFixture) -> BTreeMap<(&'static str, Vec<Option<String>>), usize> {
    let mut all = BTreeMap::new();
    for (table, from) in [("a", "only a"), ("b", "b"), ("p", "p"), ("k", "k")] {
        for row in rows(fixture, &format!("select * from {from}")).unwrap() {
            *all.entry((table, row)).or_default() += 1;
        }
    }
    all
}

/// What the change between two states touches.
fn touched(
    fixture: &AnalysisFixture,
    before: &BTreeMap<(&'static str, Vec<Option<String>>), usize>,
    after: &BTreeMap<(&'static str, Vec<Option<String>>), usize>,
) -> HashSet<Tag> {
    let mut tags = HashSet::new();
    for key in before.keys().chain(after.keys()) {
        if before.get(key) == after.get(key) {
            continue;
        }
        let (table, row) = key;
        let oid: u32 = fixture.texts(&format!("select '{table}'::regclass::oid::text"))[0]
            .parse()
            .unwrap();
        let family = fixture.catalog.families.of(oid).unwrap();
        tags.insert(broad(family));
        let relation = fixture.catalog.relation(oid).unwrap();
        for (column, value) in relation.columns.iter().zip(row) {
            if let (Some(class), Some(value)) = (fixture.catalog.class(column), value) {
                let name = ColumnName::new(family, &column.name, class);
                tags.extend(name.touched_by(value.as_bytes()));
            }
        }
    }
    tags
}

#[test]
fn a_change_that_matters_touches_a_dependency() {
    let variable = |name: &str| {
        std::env::var(name)
            .ok()
            .and_then(|value| value.parse::<u64>().ok())
    };
    let seed = variable("MILLPOND_PROPTEST_SEED").unwrap_or_else(|| RandomState::new().hash_one(0));
    let rounds = variable("MILLPOND_PROPTEST_CASES").unwrap_or(30);
    println!("MILLPOND_PROPTEST_SEED={seed}");
    let mut choices = Choices(Random::new(seed));
    let columns: Vec<String> = COLUMNS
        .iter()
        .map(|(name, of)| format!("{name} {of}"))
        .collect();
    let fixture = AnalysisFixture::new(&SCHEMA.replace("COLUMNS", &columns.join(", ")));
    let (mut narrow, mut changed) = (0, 0);
    for _ in 0..rounds {
        let mut watched: Vec<(String, Analysis)> = Vec::new();
        while watched.len() < 12 {
            let sql = choices.query();
            // Some outer joins have conditions that PostgreSQL cannot carry out.
            if rows(&fixture, &sql).is_some() {
                let analysis = fixture.analyse(&sql).unwrap();
                narrow += usize::from(analysis.wanted().next().is_some());
                watched.push((sql, analysis));
            }
        }
        for _ in 0..8 {
            let before = contents(&fixture);
            let answers: Vec<_> = watched.iter().map(|(sql, _)| rows(&fixture, sql)).collect();
            let change = choices.change();
            fixture.run(&change);
            let tags = touched(&fixture, &before, &contents(&fixture));
            for ((sql, analysis), answer) in watched.iter().zip(answers) {
                if rows(&fixture, sql) == answer {
                    continue;
                }
                changed += 1;
                let deps = analysis.deps(&[] as &[Value]);
                assert_eq!(deps.uncacheable, None, "{sql}");
                assert!(
                    deps.tags.iter().any(|tag| tags.contains(tag)),
                    "seed {seed}: {change}\nmade another answer of\n{sql}\nwhich depends on {:?}",
                    analysis.describe()
                );
            }
        }
    }
    println!("{narrow} narrow queries, {changed} answers changed");
    assert!(
        narrow > 0 && changed > 0,
        "{narrow}, {changed}: this proves nothing"
    );
}
