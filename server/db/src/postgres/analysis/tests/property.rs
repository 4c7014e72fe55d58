//! The property: every change that alters a result touches a dependency of the result.
//!
//! The change's tags are those that the feed computes from the rows before and after it, with all
//! old values or with none but the key's.

use std::hash::{BuildHasher, RandomState};

use tokio_postgres::SimpleQueryMessage;

use super::changes;
use super::shapes::{COLUMNS, Choices, TABLE_SOURCES, TABLES, list};
use super::support::AnalysisFixture;
use crate::Value;
use crate::postgres::analysis::{Analysis, Found};
use crate::query::Deps;
use crate::query::QueryAnalysis as _;

const SCHEMA: &str = "
create collation nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
create sequence ids;
create table a (COLUMNS, unique (id));
create table b (COLUMNS, primary key (id));
create table p (COLUMNS) partition by list (i4);
create table p1 partition of p for values in (1, 2);
create table p2 partition of p default;
create table k (unique (id)) inherits (a);
alter table p1 add unique (id);
create view w as select * from a where i4 > 0;
alter table a replica identity full; alter table b replica identity full; alter table k replica identity full;
alter table p1 replica identity full; alter table p2 replica identity full;
";

/// A query whose answers are watched.
pub(super) struct WatchedQuery {
    /// With the literals in place of the parameters.
    pub(super) sql: String,
    pub(super) analysis: Analysis,
    pub(super) params: Vec<Value>,
}

impl Choices {
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
        let alias = format!("x{}_{}", aliases.len(), self.below(1_000_000));
        aliases.push(alias.clone());
        if self.below(16) == 0 {
            let columns = "y.i2, y.i4, y.i8, y.t collate nocase as t, y.v, y.n, y.b, y.c";
            return format!("(select {columns} from {}) {alias}", self.reference("y", 1));
        }
        self.reference(&alias, 2)
    }

    /// Some columns of a source, or what is made of their rows.
    fn few_columns(&mut self) -> String {
        let from = self.reference("y", 1);
        let filter = self.conjunction(&["y".to_owned()]);
        let chosen = self.some();
        let names = |alias: &str| {
            let names = chosen.iter().map(|column| format!("{alias}.{column}"));
            names.collect::<Vec<_>>().join(", ")
        };
        let columns = names("y");
        match self.below(8) {
            0 => format!("select distinct {columns} from {from} where {filter}"),
            1 => {
                let operation =
                    self.of(&["union all", "union", "except", "intersect", "except all"]);
                let (other, second) = (self.reference("z", 1), names("z"));
                format!(
                    "select {columns} from {from} where {filter} {operation} select {second} from {other}"
                )
            }
            2 | 3 => {
                let counted = self.counted();
                format!("select {columns}, {counted} from {from} where {filter} group by {columns}")
            }
            4 => {
                let counted = self.counted();
                format!("select {counted} from {from} where {filter}")
            }
            5 => {
                let order = format!("{columns} limit {}", 1 + self.below(3));
                format!("select {columns} from {from} where {filter} order by {order}")
            }
            _ => format!("select {columns} from {from} where {filter}"),
        }
    }

    /// The first rows of an order.
    fn first_rows(&mut self) -> String {
        let from = match self.below(2) {
            0 => self.of(&["b", "k", "p1", "a"]).to_owned() + " y",
            _ => self.reference("y", 1),
        };
        let key = self.of(&["i2", "i4", "i4", "i8", "n"]);
        let from = match self.below(4) {
            0 => {
                let join = self.of(&["join", "left join", "right join", "full join"]);
                let other = self.reference("z", 1);
                format!("{from} {join} {other} on z.i4 = y.i8")
            }
            // Along a key, so each row of `y` is in one row at most.
            1 => {
                let join = self.of(&["join", "left join", "right join"]);
                let other = self.of(&["b", "k", "p1"]);
                format!(
                    "{from} {join} {other} z on z.id = y.{}",
                    self.of(&["i4", "i8"])
                )
            }
            _ => from,
        };
        let filter = match self.below(2) {
            0 => self.conjunction(&["y".to_owned()]),
            _ => "true".to_owned(),
        };
        let direction = self.of(&["", " desc", " desc nulls last", " nulls first"]);
        let more = self.of(&["", ", y.i8 desc", ", y.id", ", y.id desc", ", y.t, y.id"]);
        let limit = match self.below(4) {
            0 => format!("{} + 1", self.page()),
            _ => (1 + self.below(3)).to_string(),
        };
        let offset = match self.below(5) {
            0 => " offset 1".to_owned(),
            1 => " offset 2".to_owned(),
            2 => format!(" offset ({} - 1) * 1", self.page()),
            _ => String::new(),
        };
        let list = self.of(&["y.t, ", "", "y.n as i4, "]);
        let shown = match self.below(3) {
            0 => "y.id".to_owned(),
            _ => format!("{list}y.{key} as k"),
        };
        format!(
            "select {shown} from {from} where {filter} order by y.{key}{direction}{more} limit {limit}{offset}"
        )
    }

    /// A small number, or a parameter for it.
    fn page(&mut self) -> String {
        let number = (1 + self.below(2)).to_string();
        match &mut self.params {
            Some(params) if params.len() < 8 => {
                params.push(number);
                format!("${}", params.len())
            }
            _ => number,
        }
    }

    /// A query, perhaps with a common table expression that it reads anywhere, once or more often.
    fn query(&mut self) -> String {
        if self.below(4) > 0 {
            return self.plain_query();
        }
        let body = self.select(1);
        let known = self.sources.len();
        self.sources.extend(vec!["cte".to_owned(); known]);
        let query = self.plain_query();
        self.sources.truncate(known);
        match query.strip_prefix("with ") {
            Some(rest) => format!("with cte as ({body}), {rest}"),
            None => format!("with cte as ({body}) {query}"),
        }
    }

    fn plain_query(&mut self) -> String {
        let kind = self.below(6);
        if kind == 5 {
            return self.first_rows();
        }
        if kind == 4 {
            return self.few_columns();
        }
        if kind == 0 {
            return self.along_keys();
        }
        if kind == 1 {
            let (columns, from) = (list(|column| format!("x.{column}")), self.select(1));
            let filter = self.conjunction(&["x".to_owned()]);
            return format!("select {columns} from ({from}) x where {filter}");
        }
        let mut aliases = Vec::new();
        let depth = self.below(3);
        let from = self.factor(&mut aliases, depth);
        let mut columns = Vec::new();
        for alias in &aliases {
            let chosen = self.some();
            columns.extend(chosen.iter().map(|column| format!("{alias}.{column}")));
        }
        let filter = self.conjunction(&aliases);
        match self.below(10) {
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
        let (also, _) = self.of(&COLUMNS);
        let only = match self.below(3) {
            0 => "true".to_owned(),
            _ => format!("{also} is not distinct from {}", self.literal(also)),
        };
        match self.below(5) {
            0 | 1 => format!("insert into {table} values ({})", self.row()),
            2 if self.below(3) == 0 => format!(
                "update {table} set {column} = {column} where {by} = {}",
                self.literal(by)
            ),
            2 | 3 => format!(
                "update {table} set {column} = {} where {by} = {}",
                self.literal(column),
                self.literal(by)
            ),
            _ => format!(
                "delete from {table} where {by} = {} and {only}",
                self.literal(by)
            ),
        }
    }
}

/// A value of a result from its text.
fn result_value(text: Option<String>) -> Value {
    match text {
        None => Value::Null,
        Some(text) => match text.parse() {
            Ok(integer) => Value::Integer(integer),
            Err(_) => text.as_str().into(),
        },
    }
}

/// The rows of a query as text, in one order.
pub(super) fn rows(fixture: &AnalysisFixture, sql: &str) -> Option<Vec<Vec<Option<String>>>> {
    let mut rows = in_order(fixture, sql)?;
    rows.sort();
    Some(rows)
}

/// The rows of a query as text, in its order.
fn in_order(fixture: &AnalysisFixture, sql: &str) -> Option<Vec<Vec<Option<String>>>> {
    let messages = fixture
        .runtime
        .block_on(fixture.client.simple_query(sql))
        .ok()?;
    let rows: Vec<Vec<Option<String>>> = messages
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
    Some(rows)
}

/// The value of a literal.
fn value(literal: &str) -> Value {
    match literal {
        "null" => Value::Null,
        "true" => Value::Boolean(true),
        "false" => Value::Boolean(false),
        text if text.starts_with('\'') => text.trim_matches('\'').into(),
        number => Value::Integer(number.parse().unwrap()),
    }
}

/// A query that the server carries out.
fn watched(fixture: &AnalysisFixture, choices: &mut Choices) -> WatchedQuery {
    loop {
        choices.params = Some(Vec::new());
        let text = choices.query();
        let literals = choices.params.take().unwrap();
        let mut sql = text.clone();
        for (index, literal) in literals.iter().enumerate() {
            sql = sql.replace(&format!("${}", index + 1), literal);
        }
        // Some outer joins have conditions that PostgreSQL cannot carry out, and some collations
        // are in conflict. `$1 = null` leaves the type of a parameter open.
        if rows(fixture, &sql).is_some()
            && let Ok(analysis) = fixture.analyse(&text)
        {
            let params = literals.iter().map(|literal| value(literal)).collect();
            return WatchedQuery {
                sql,
                analysis,
                params,
            };
        }
    }
}

/// Returns the dependencies of a query.
pub(super) fn deps(fixture: &AnalysisFixture, query: &WatchedQuery) -> Deps {
    let result: Vec<Vec<Value>> = in_order(fixture, &query.sql)
        .unwrap_or_default()
        .into_iter()
        .map(|row| row.into_iter().map(result_value).collect())
        .collect();
    let mut found = Found::of_rows(&result);
    for witness in query.analysis.witnesses() {
        let mut sql = witness.shape.text.clone();
        let params = witness.params(&query.params).unwrap();
        for (index, value) in params.iter().enumerate() {
            let literal = match value {
                Value::Null => "null".to_owned(),
                Value::Text(text) => format!("'{text}'"),
                Value::Boolean(truth) => truth.to_string(),
                Value::Integer(integer) => integer.to_string(),
                other => panic!("{other:?}"),
            };
            let typed = format!("{literal}::{}", witness.shape.params[index].name());
            sql = sql.replace(&format!("${}", index + 1), &typed);
        }
        let rows = rows(fixture, &sql).unwrap_or_else(|| panic!("{sql}"));
        let value = |text: Option<String>| text.map_or(Value::Null, |text| text.as_str().into());
        let rows = rows
            .into_iter()
            .map(|row| row.into_iter().map(value).collect());
        found.add(witness, &query.params, &rows.collect::<Vec<_>>());
    }
    query.analysis.deps(&query.params, &found)
}

/// Lists the views.
fn views(fixture: &AnalysisFixture) -> String {
    let all =
        "select format('%s: %s', viewname, definition) from pg_views where schemaname = 'public'";
    fixture.texts(all).join("\n")
}

/// Makes views of tables and of each other, instead of those there were.
fn make_views(fixture: &mut AnalysisFixture, choices: &mut Choices) {
    for view in choices.sources.drain(TABLE_SOURCES..) {
        fixture.run(&format!("drop view if exists {view} cascade"));
    }
    let mut count = 0;
    while count < 16 {
        let view = format!("v{count}");
        let made = format!("create view {view} as {}", choices.select(1));
        let is_made = fixture
            .runtime
            .block_on(fixture.client.batch_execute(&made));
        if is_made.is_ok() {
            choices.sources.push(view);
            count += 1;
        }
    }
    fixture.reload();
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
    let mut choices = Choices::new(seed);
    let columns = COLUMNS.map(|(name, of)| format!("{name} {of}")).join(", ");
    // The key has no part in any query: it only tells which row is which.
    let columns = format!("{columns}, id int not null default nextval('ids')");
    let mut fixture = AnalysisFixture::new(&SCHEMA.replace("COLUMNS", &columns));
    fixture.run("set statement_timeout = '2s'");
    for (table, column) in [
        ("a", "i4"),
        ("a", "t"),
        ("b", "i4"),
        ("b", "i8"),
        ("p", "i4"),
        ("p", "t"),
        ("k", "i4"),
        ("k", "t"),
        ("b", "t"),
    ] {
        fixture.run(&format!("create index on {table} ({column})"));
    }
    for table in TABLES {
        fixture.run(&format!("create index on {table} (lower(t))"));
        fixture.run(&format!("create index on {table} (upper(v))"));
    }
    for table in TABLES.repeat(4) {
        fixture.run(&format!("insert into {table} values ({})", choices.row()));
    }
    let (mut narrow, mut witnessed, mut first, mut changed) = (0, 0, 0, 0);
    for round in 0..rounds {
        if round % 10 == 0 {
            make_views(&mut fixture, &mut choices);
        }
        let all: Vec<_> = (0..12).map(|_| watched(&fixture, &mut choices)).collect();
        let view = changes::view(&fixture, &all);
        let is_narrow =
            |query: &&WatchedQuery| query.analysis.wanted().any(|rows| rows.key.is_some());
        narrow += all.iter().filter(is_narrow).count();
        let is_witnessed = |query: &&WatchedQuery| !query.analysis.witnesses().is_empty();
        witnessed += all.iter().filter(is_witnessed).count();
        let takes_first = |query: &&WatchedQuery| {
            let lines = query.analysis.describe();
            lines.iter().any(|line| line.contains("among the first"))
        };
        first += all.iter().filter(takes_first).count();
        for _ in 0..8 {
            let before = changes::contents(&fixture, &["a", "b", "p"]);
            let answers: Vec<_> = all
                .iter()
                .map(|query| (rows(&fixture, &query.sql), deps(&fixture, query)))
                .collect();
            let change: Vec<String> = (0..=choices.below(3)).map(|_| choices.change()).collect();
            let (change, is_full) = (change.join("; "), choices.below(4) > 0);
            fixture.run(&change);
            let after = changes::contents(&fixture, &["a", "b", "p"]);
            let tags = changes::touched(&fixture, &view, &before, &after, is_full);
            for (WatchedQuery { sql, analysis, .. }, (answer, deps)) in all.iter().zip(answers) {
                let now = rows(&fixture, sql);
                if now == answer || now.is_none() || answer.is_none() {
                    continue;
                }
                changed += 1;
                assert_eq!(deps.uncacheable, None, "{sql}");
                assert!(
                    deps.tags.iter().any(|tag| tags.contains(tag)),
                    "seed {seed}: {change} (all old values: {is_full})\nmade another answer of\n{sql}\nwhich depends on {:?}\nwith the views\n{}",
                    analysis.describe(),
                    views(&fixture)
                );
            }
        }
    }
    println!(
        "{narrow} narrow queries, {witnessed} with witnesses, {first} of first rows, {changed} answers changed"
    );
    assert!(
        narrow > 0 && changed > 0,
        "{narrow}, {changed}: this proves nothing"
    );
}
