//! Random tables, views, subqueries and conditions on them, all with the same columns.

use lab_testkit::Random;

pub(super) const COLUMNS: [(&str, &str); 8] = [
    ("i2", "smallint"),
    ("i4", "integer"),
    ("i8", "bigint"),
    ("t", "text"),
    ("v", "varchar(9)"),
    ("n", "numeric"),
    ("b", "boolean"),
    ("c", "char(3)"),
];
const NUMBERS: [&str; 4] = ["0", "1", "2", "null"];
/// The last one is the sign of kelvin, whose small letter is `k`.
const TEXTS: [&str; 7] = ["'a'", "'A'", "'a '", "''", "null", "'k'", "'\u{212a}'"];
pub(super) const TABLES: [&str; 4] = ["a", "b", "p", "k"];
/// The first sources are tables.
pub(super) const TABLE_SOURCES: usize = 7;
/// An order in which no two different rows are equal, in any collation of the columns.
const ORDER: &str =
    "y.i2, y.i4, y.i8, y.t collate \"C\", y.v collate \"C\", y.n, y.b, y.c collate \"C\"";

/// Random choices, from a seed that is printed.
pub(super) struct Choices {
    random: Random,
    /// Tables and views that may be read.
    pub(super) sources: Vec<String>,
    /// The literals of the parameters of the query that is being made; none are taken in a view.
    pub(super) params: Option<Vec<String>>,
}

impl Choices {
    pub(super) fn new(seed: u64) -> Self {
        let tables = ["a", "b", "p", "p1", "k", "w", "only a"];
        Self {
            random: Random::new(seed),
            sources: tables.map(str::to_owned).to_vec(),
            params: None,
        }
    }

    pub(super) fn below(&mut self, n: usize) -> usize {
        self.random.index(n)
    }

    pub(super) fn of<T: Copy>(&mut self, all: &[T]) -> T {
        *self.random.pick(all)
    }

    pub(super) fn literal(&mut self, column: &str) -> String {
        match column {
            "t" | "v" | "c" => self.of(&TEXTS).to_owned(),
            "b" => self.of(&["true", "false", "null"]).to_owned(),
            "n" => self
                .of(&["0", "1", "0.5", "1.25", "'NaN'", "null"])
                .to_owned(),
            _ => self.of(&NUMBERS).to_owned(),
        }
    }

    /// A literal, or a parameter for it.
    fn value(&mut self, column: &str) -> String {
        let literal = self.literal(column);
        let is_param = !matches!(column, "n" | "c") && self.below(3) == 0;
        match &mut self.params {
            Some(params) if is_param && params.len() < 8 => {
                params.push(literal);
                format!("${}", params.len())
            }
            _ => literal,
        }
    }

    pub(super) fn row(&mut self) -> String {
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
        let value = match self.value(column) {
            null if null == "null" => self.value(column),
            value => value,
        };
        match self.below(25) {
            23 => format!("({value} is null or {name} = {value})"),
            24 => {
                let (literal, also) = (self.literal(column), self.value(column));
                format!("({value} = {literal} or {name} in ({value}, {also}) or {also} is null)")
            }
            21 => {
                let column = self.of(&["t", "t", "v"]);
                format!("lower({alias}.{column}) = lower({})", self.value("t"))
            }
            22 => format!("{} = upper({alias}.t)", self.value("t")),
            18 => format!("({name} = {value} or {name} = {})", self.value(column)),
            19 => {
                let [one, other] = [(); 2].map(|()| self.simple(aliases));
                let second = self.value(column);
                format!("({name} = {value} and {one} or {other} and {name} in ({second}))")
            }
            20 => format!("({} or {})", self.simple(aliases), self.simple(aliases)),
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
            13 => {
                let other = self.of(&aliases.iter().map(String::as_str).collect::<Vec<_>>());
                let pairs = [
                    ("i4", "i8"),
                    ("i2", "i4"),
                    ("t", "v"),
                    ("t", "c"),
                    ("i4", "n"),
                ];
                let (one, two) = self.of(&pairs);
                format!("{alias}.{one} = {other}.{two}")
            }
            _ => self.subquery(alias),
        }
    }

    /// A condition that compares columns of one or two references.
    fn simple(&mut self, aliases: &[String]) -> String {
        let aliases: Vec<&str> = aliases.iter().map(String::as_str).collect();
        let (alias, other) = (self.of(&aliases), self.of(&aliases));
        let (column, _) = self.of(&COLUMNS);
        match self.below(3) {
            0 => format!("{alias}.{column} = {other}.{column}"),
            1 => format!("{alias}.{column} is not null"),
            _ => format!("{alias}.{column} = {}", self.value(column)),
        }
    }

    /// A join of two to four sources along their columns, one of them restricted, often with
    /// subqueries.
    pub(super) fn along_keys(&mut self) -> String {
        const KEYS: [&str; 5] = ["i4", "i4", "t", "i8", "i2"];
        let count = 2 + self.below(3);
        let mut from = self.reference("x0", 1);
        for index in 1..count {
            let (before, c) = (self.below(index), self.of(&KEYS));
            let d = match c {
                "t" => self.of(&["t", "t", "v"]),
                _ => self.of(&["i4", "i8", "i2", "i4"]),
            };
            let join = self.of(&["join", "join", "left join", "left join", "right join"]);
            let other = self.reference(&format!("x{index}"), 1);
            from += &format!(" {join} {other} on x{index}.{c} = x{before}.{d}");
        }
        let (first, by) = (self.below(count), self.of(&["i4", "t", "i8"]));
        let mut filter = match self.below(8) {
            0 | 1 => format!("lower(x{first}.t) = lower({})", self.value("t")),
            2 => format!("lower(x{first}.t) = {}", self.value("t")),
            3 => format!("upper(x{first}.v) = upper({})", self.value("t")),
            _ => format!("x{first}.{by} = {}", self.value(by)),
        };
        for _ in 0..self.below(3) {
            let alias = format!("x{}", self.below(count));
            filter += &format!(" and {}", self.subquery(&alias));
        }
        let list = match self.below(3) {
            0 => "count(*)".to_owned(),
            _ => format!("x0.i4, x{}.t, x0.n", count - 1),
        };
        format!("select {list} from {from} where {filter}")
    }

    /// A condition with a subquery that may depend on the reference around it.
    fn subquery(&mut self, alias: &str) -> String {
        let from = self.source();
        let (key, by) = (
            self.of(&["i4", "i8", "t"]),
            self.of(&["i4", "i2", "t", "v"]),
        );
        let value = self.value(by);
        let not = self.of(&["", "", "", "not "]);
        match self.below(8) {
            0 | 1 => {
                format!(
                    "{alias}.{key} {not}in (select z.{key} from {from} z where z.{by} = {value})"
                )
            }
            2 => format!(
                "{alias}.{key} = (select z.{key} from {from} z where z.{by} = {value} order by z.{key} limit 1)"
            ),
            3 => format!(
                "{alias}.{key} = (select max(z.{key}) from {from} z where z.{by} = {value})"
            ),
            4 => format!("{alias}.{key} in (select z.{key} from {from} z)"),
            5 => format!("(select count(*) from {from} z where z.{key} = {alias}.{key}) > 0"),
            6 => format!(
                "{not}exists (select count(*) from {from} z where z.{key} = {alias}.{key} and z.{by} = {value})"
            ),
            _ => format!(
                "{not}exists (select from {from} z where z.{key} = {alias}.{key} and z.{by} = {value})"
            ),
        }
    }

    pub(super) fn conjunction(&mut self, aliases: &[String]) -> String {
        let all: Vec<String> = (0..=self.below(2))
            .map(|_| self.condition(aliases))
            .collect();
        all.join(" and ")
    }

    /// A condition of a view or a subquery: mostly none, so that rows come out.
    fn filter(&mut self, aliases: &[&str]) -> String {
        let aliases: Vec<String> = aliases.iter().map(|alias| (*alias).to_owned()).collect();
        match self.below(3) {
            0 => self.condition(&aliases),
            _ => "true".to_owned(),
        }
    }

    fn source(&mut self) -> String {
        let among = self.of(&[TABLE_SOURCES, self.sources.len()]);
        let index = self.below(among);
        self.sources[index].clone()
    }

    /// A table, a view or a subquery, as `alias`.
    pub(super) fn reference(&mut self, alias: &str, depth: usize) -> String {
        if depth > 0 && self.below(3) == 0 {
            format!("({}) {alias}", self.select(depth - 1))
        } else {
            format!("{} {alias}", self.source())
        }
    }

    /// A SELECT that gives the columns, each with its name.
    pub(super) fn select(&mut self, depth: usize) -> String {
        if self.below(5) == 0 {
            return self.set_operation(depth);
        }
        let from = self.reference("y", depth);
        match self.below(8) {
            6 => self.some_columns(&from),
            7 => self.counts(&from),
            0 => format!(
                "select {} from {from} where {}",
                columns(),
                self.filter(&["y"])
            ),
            1 => self.join(&from, depth),
            2 => self.groups(&from),
            3 => self.expressions(&from, depth),
            _ => self.choice(&from),
        }
    }

    /// A set operation, whose arms may be set operations, too.
    fn set_operation(&mut self, depth: usize) -> String {
        let arm = |choices: &mut Self| {
            if depth > 0 {
                return choices.select(depth - 1);
            }
            let from = choices.reference("y", 0);
            let text = choices.of(&["y.t", "y.t", "y.t collate nocase as t", "y.v::text as t"]);
            let columns = columns().replace("y.t", text);
            format!(
                "select {columns} from {from} where {}",
                choices.filter(&["y"])
            )
        };
        let [one, other] = [(); 2].map(|()| arm(self));
        let operations = [
            "union all",
            "union",
            "except",
            "intersect",
            "except all",
            "intersect all",
        ];
        let operation = self.of(&operations);
        let query = format!("({one}) {operation} ({other})");
        match self.below(6) {
            // In a total order.
            0 if !query.contains("nocase") => {
                format!(
                    "{query} order by 1, 2, 3, 4, 5, 6, 7, 8 limit {}",
                    1 + self.below(4)
                )
            }
            _ => query,
        }
    }

    /// Some of the columns.
    pub(super) fn some(&mut self) -> Vec<&'static str> {
        let count = 1 + self.below(3);
        (0..count).map(|_| self.of(&COLUMNS).0).collect()
    }

    /// Aggregates of `y`, in most of which no order of the rows has a part.
    pub(super) fn counted(&mut self) -> String {
        const ALL: [&str; 12] = [
            "count(*)",
            "count(y.n)",
            "count(distinct y.t)",
            "sum(y.i4)",
            "max(y.i8)",
            "min(y.i2)",
            "max(y.t)",
            "avg(y.i8)",
            "bool_or(y.b)",
            "sum(y.i2) filter (where y.b)",
            "max(y.n)",
            "string_agg(y.t, ',' order by y.t collate \"C\")",
        ];
        let all: Vec<&str> = (0..=self.below(2)).map(|_| self.of(&ALL)).collect();
        all.join(", ")
    }

    /// A SELECT of some columns, with constants for the others.
    fn some_columns(&mut self, from: &str) -> String {
        let chosen = self.some();
        let columns = list(|column| match chosen.contains(&column) {
            true => format!("y.{column}"),
            false => constant(column),
        });
        format!("select {columns} from {from} where {}", self.filter(&["y"]))
    }

    /// A SELECT that counts the rows of groups.
    fn counts(&mut self, from: &str) -> String {
        let keys: Vec<&str> = self.some();
        let columns = list(|column| match column {
            column if keys.contains(&column) => format!("y.{column}"),
            "i8" => "count(*) as i8".to_owned(),
            "i4" => "max(y.i4) as i4".to_owned(),
            "t" => "min(y.t) as t".to_owned(),
            "b" => "bool_and(y.b) as b".to_owned(),
            column => constant(column),
        });
        format!(
            "select {columns} from {from} group by y.{}",
            keys.join(", y.")
        )
    }

    /// A SELECT in which rows have to do with each other.
    fn choice(&mut self, from: &str) -> String {
        let columns = columns();
        let (first, _) = self.of(&COLUMNS);
        let count = 1 + self.below(6);
        let filter = self.filter(&["y"]);
        match self.below(6) {
            0 => format!(
                "select distinct on (y.{first}) {columns} from {from} order by y.{first}, {ORDER}"
            ),
            1 => format!("select {columns} from {from} order by y.{first}, {ORDER} limit {count}"),
            2 => format!(
                "select {columns} from {from} where {filter} order by y.{first}, {ORDER} offset {count}"
            ),
            3 | 4 => {
                const KEYS: [&str; 5] = [
                    "",
                    "partition by y.t",
                    "partition by y.t::bpchar",
                    "partition by y.i4, y.t",
                    "partition by y.i4",
                ];
                let count = format!("(count(*) over ({}))::numeric as n", self.of(&KEYS));
                let most = format!("max(y.i8) over ({} order by y.i2) as i8", self.of(&KEYS));
                let columns = columns.replace("y.n", &count);
                let columns = match self.below(2) {
                    0 => columns.replace("y.i8", &most),
                    _ => columns,
                };
                format!("select {columns} from {from}")
            }
            _ => format!("select {} from {from} where {filter}", list(aggregated)),
        }
    }

    /// A SELECT that computes, or has other SELECTs in it.
    fn expressions(&mut self, from: &str, depth: usize) -> String {
        let columns = columns();
        let other = self.reference("z", depth);
        let filter = self.filter(&["y"]);
        match self.below(7) {
            0 => format!("select distinct {columns} from {from} where {filter}"),
            1 => format!(
                "select (y.i2 + 0)::smallint as i2, y.i4 + 0 as i4, y.i4::bigint as i8, y.t || '' as t, \
                 y.t::varchar as v, y.n, not y.b as b, y.c from {from}"
            ),
            2 => format!(
                "select y.i2, y.i8 as i4, y.i4 as i8, y.v::text as t, y.t::varchar as v, y.n, y.b, y.c \
                 from {from} where {filter}"
            ),
            3 => format!("select {columns}, generate_series(1, 2) as s from {from}"),
            4 => {
                let inner = format!("(select max(z.i4) from {other} where z.t = y.t) as i4");
                format!("select {} from {from}", columns.replace("y.i4", &inner))
            }
            5 => format!(
                "with q as (select {columns} from {from} where {filter}) select {columns} from q y"
            ),
            _ => {
                let near = self.reference("y", depth);
                format!(
                    "select {columns} from {other}, lateral \
                     (select {columns} from {near} where y.i4 = z.i4 order by {ORDER} limit 1) y"
                )
            }
        }
    }

    fn join(&mut self, from: &str, depth: usize) -> String {
        let other = self.reference("z", depth);
        let join = self.of(&["join", "left join", "right join", "full join"]);
        let on = match (join, self.below(3)) {
            ("full join", _) | (_, 0) => "y.i4 = z.i4".to_owned(),
            _ => self.conjunction(&["y".to_owned(), "z".to_owned()]),
        };
        let columns = list(|column| format!("{}.{column}", self.of(&["y", "z"])));
        match self.below(4) {
            0 => format!("select {columns} from {from} {join} {other} on {on}"),
            1 => {
                let rest = list(|column| match column {
                    "i4" => "i4".to_owned(),
                    _ => format!("y.{column}"),
                });
                format!("select {rest} from {from} {join} {other} using (i4)")
            }
            _ => format!(
                "select {columns} from {from} {join} {other} on {on} where {}",
                self.filter(&["y", "z"])
            ),
        }
    }

    fn groups(&mut self, from: &str) -> String {
        let keys: Vec<&str> = (0..=self.below(3)).map(|_| self.of(&COLUMNS).0).collect();
        let columns = list(|column| match keys.contains(&column) {
            true => format!("y.{column}"),
            false => aggregated(column),
        });
        let by = format!("y.{}", keys.join(", y."));
        match self.below(5) {
            0 => format!("select {columns} from {from} group by rollup ({by})"),
            1 => format!("select {columns} from {from} group by {by} having count(*) > 1"),
            2 => format!(
                "select distinct on (y.{}) {columns} from {from} group by {by} order by {by}",
                keys[0]
            ),
            _ => format!(
                "select {columns} from {from} where {} group by {by}",
                self.filter(&["y"])
            ),
        }
    }
}

/// The columns of `y`.
fn columns() -> String {
    list(|column| format!("y.{column}"))
}

/// An expression for each column.
pub(super) fn list(expression: impl FnMut(&'static str) -> String) -> String {
    let all: Vec<String> = COLUMNS
        .iter()
        .map(|(column, _)| *column)
        .map(expression)
        .collect();
    all.join(", ")
}

/// A null with the column's name and type.
fn constant(column: &str) -> String {
    let found = COLUMNS.iter().find(|(name, _)| *name == column);
    format!("null::{} as {column}", found.map_or("text", |(_, of)| of))
}

/// An aggregate with the column's name and type.
fn aggregated(column: &str) -> String {
    match column {
        "b" => "bool_or(y.b) as b".to_owned(),
        "v" => "max(y.v)::varchar as v".to_owned(),
        _ => format!("max(y.{column}) as {column}"),
    }
}
