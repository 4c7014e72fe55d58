//! What would reduce the dependencies of a query, and what that costs: advice for the owner.
//!
//! The analyses narrow what they can prove. Where they cannot, they note the cause, and this module
//! has its texts. A cause decides nothing: it is derived from the condition that came closest to a
//! restriction.

/// Why results of a query are invalidated more often than needed, or are not kept, and what would
/// help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// True if the results are kept.
    pub is_kept: bool,
    /// The effect on the results of the query.
    pub effect: String,
    /// The cause of the effect.
    pub cause: String,
    /// Remedy, if there is one, and its cost.
    pub remedy: Option<Remedy>,
}

/// A change that would help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remedy {
    /// The change to make.
    pub change: String,
    /// The cost of the change.
    pub cost: String,
    /// The change as a statement for the database, if it is one.
    pub statement: Option<String>,
}

impl Remedy {
    fn new(change: impl Into<String>, cost: &str) -> Self {
        Self {
            change: change.into(),
            cost: cost.to_owned(),
            statement: None,
        }
    }
}

/// Why a reference to a table is not restricted to some of its rows. Later variants are closer to a
/// restriction, or more specific.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cause {
    /// No condition is on the table alone.
    Unconditional,
    /// No condition, and the query takes only the first rows in some order.
    First,
    /// No condition, and the query computes a count, a sum or a similar aggregate.
    Aggregate,
    /// There is a condition, but no equality.
    NoEquality,
    /// The columns are used within expressions.
    Computed,
    /// A subquery determines its rows.
    Subquery,
    /// The condition is one part of an OR.
    Or,
    /// The rows of another table determine its rows, by this column.
    Join(String),
    /// This column is generated, or its type or collation has equal values in several forms.
    Type(String),
    /// This column is compared with something that is computed, or of another type.
    Value(String),
    /// The list has more values than are considered one by one.
    TooMany,
    /// The equality is in the ON of an outer join, which keeps rows of this side even if it is
    /// false.
    Outer(String),
    /// Its rows are found by those of this table, which has no index by which this column finds
    /// them.
    Index(String, String),
    /// A common table expression has the name of the table.
    Shadowed,
    /// The table is read through this view, and no equality on the view selects its rows.
    View(String),
    /// The table is read through a view or an index.
    Behind(String),
}

/// Advice on tables of which every row counts, grouped by cause.
pub(crate) fn of_whole<'a>(tables: impl Iterator<Item = (String, &'a Cause)>) -> Vec<Advice> {
    let mut by_cause: Vec<(&Cause, Vec<String>)> = Vec::new();
    for (table, cause) in tables {
        match by_cause.iter_mut().find(|(known, _)| *known == cause) {
            Some((_, tables)) => tables.push(table),
            None => by_cause.push((cause, vec![table])),
        }
    }
    by_cause
        .into_iter()
        .map(|(cause, tables)| Advice {
            is_kept: true,
            effect: format!("every change to {} ends its results", tables.join(", ")),
            cause: cause.reason(),
            remedy: cause.remedy(),
        })
        .collect()
}

impl Cause {
    fn reason(&self) -> String {
        match self {
            Self::Unconditional => "no condition selects its rows".into(),
            Self::First => "any row may come to be among the first in that order".into(),
            Self::Aggregate => {
                "any row counts for what is counted or summed, so no condition can help".into()
            }
            Self::NoEquality => "no condition on it is an equality with a value".into(),
            Self::Computed => {
                "its columns are compared within functions or other expressions".into()
            }
            Self::Subquery => "its rows are found by a subquery".into(),
            Self::Or => "its conditions are joined by OR".into(),
            Self::Join(column) => format!("its rows are found by another table's, by {column}"),
            Self::Type(column) => format!(
                "{column} is generated, or of a type or collation whose equal values have several forms"
            ),
            Self::Value(column) => {
                format!("{column} is not compared with a plain value of its own type")
            }
            Self::TooMany => "there are more than 64 values in one IN".into(),
            Self::Outer(column) => {
                format!("the outer join keeps rows even if its ON is false for {column}")
            }
            Self::Index(table, column) => format!(
                "its rows are found by those of {table}, and {table} has no index on {column}"
            ),
            Self::Shadowed => "a WITH of the query has its name".into(),
            Self::View(view) => {
                format!("{view} reads it, and no equality on a column of the view selects its rows")
            }
            Self::Behind(what) => format!("it is read behind {what}, where nothing is narrowed"),
        }
    }

    fn remedy(&self) -> Option<Remedy> {
        const SELECT: &str = "\"where column = :parameter\" on an integer or text column";
        const FEWER_ROWS: &str =
            "the query gives these rows alone, so the address has to say which";
        const UPKEEP: &str = "each write keeps that up, by a trigger or in the form";
        Some(match self {
            Self::Unconditional => Remedy::new(format!("add {SELECT}"), FEWER_ROWS),
            Self::First => Remedy::new(
                format!(
                    "order by a number or a time (on SQLite also a text) that is shown and has an index, and last by a unique one; or take the first of a group, by {SELECT}; or keep the first in a small table of their own"
                ),
                UPKEEP,
            ),
            Self::Aggregate => Remedy::new(
                "keep the figure in a table with one row for each value, and select that row",
                UPKEEP,
            ),
            Self::NoEquality => Remedy::new(
                format!("add {SELECT} that holds as well, such as the group of what is looked for"),
                "a column for it, if there is none",
            ),
            Self::Computed => Remedy::new(
                "keep what is computed in a column of its own, not a generated one, and compare that",
                UPKEEP,
            ),
            Self::Subquery => Remedy::new(
                "say the value itself, \"column = :parameter\", where the address has it",
                "nothing where it has; else a longer address",
            ),
            Self::Or => Remedy::new(
                "compare the same column in each part, else write a query for each part",
                "a query more, in the same round trip",
            ),
            Self::Join(column) => Remedy::new(
                format!(
                    "say the value for this table too, \"{column} = :parameter\", where the address has it"
                ),
                "nothing where it has; else a longer address",
            ),
            Self::Type(_) => Remedy::new(
                "compare another column, or keep its values in one form in a plain text column, and compare that",
                UPKEEP,
            ),
            Self::Value(column) => Remedy::new(
                format!("compare it with the parameter alone, \"{column} = :parameter\""),
                "nothing",
            ),
            Self::TooMany => Remedy::new(
                "ask for at most 64 at a time",
                "a query more, in the same round trip",
            ),
            Self::Outer(_) => Remedy::new(
                "put the equality into WHERE, if rows without it are not wanted",
                "nothing",
            ),
            Self::Index(table, column) => Remedy::new(
                format!("\"create index on {table} ({column})\" in a migration"),
                "each write to the table keeps the index up",
            ),
            Self::Shadowed => Remedy::new("give the WITH another name", "nothing"),
            Self::View(_) => Remedy::new(
                format!(
                    "add {SELECT} that the view takes from it unchanged (none passes LIMIT, windows, set operations and aggregates over all rows), or name the table in the query itself"
                ),
                "fewer rows, or the view's text stands in the query",
            ),
            Self::Behind(what) if what.contains("view") => Remedy::new(
                format!("name the table in the query itself, with {SELECT}"),
                "the view's text stands in the query",
            ),
            Self::Behind(_) => return None,
        })
    }
}

/// Advice on a query whose results are not kept. A reason with a quoted text already contains its
/// remedy.
pub(crate) fn uncacheable(reason: &str) -> Advice {
    let says_more = reason.contains('"');
    Advice {
        is_kept: false,
        effect: "its results are not kept, so the database is asked each time".into(),
        cause: reason.into(),
        remedy: (!says_more).then(|| {
            Remedy::new(
                "\"-- max-age: 60s\" below its name keeps them for so long",
                "what is shown may be that old",
            )
        }),
    }
}

/// Advice on a table for which the server does not report old values; by `statement` it reports all
/// of them, if it can.
pub(crate) fn old_values(table: &str, statement: Option<String>, cause: &str) -> Advice {
    let remedy = match statement {
        Some(statement) => Remedy {
            change: format!("\"{statement}\""),
            cost: "each update and deletion writes the whole old row to the log".into(),
            statement: Some(statement),
        },
        None => Remedy::new(
            "\"replica identity using index\" with a unique index on the columns that queries select by: a full identity has \
             the virtual column, and PostgreSQL refuses to update or delete such rows",
            "each update and deletion writes the old values of these columns to the log",
        ),
    };
    Advice {
        is_kept: true,
        effect: format!("every update and deletion in {table} ends its results, of other rows too"),
        cause: cause.into(),
        remedy: Some(remedy),
    }
}
