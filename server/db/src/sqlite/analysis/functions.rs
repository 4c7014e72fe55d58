//! Which functions depend on their arguments alone (coherence.md, rule 14).

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, Select, Value,
    Visit, Visitor,
};

use super::scope::last_part;
use super::walk::{walk, walk_expressions};

/// SQLite's own functions whose results depend on nothing but their arguments, the rows they are
/// given and the tables that the query reads anyway (those of full-text search).
const DETERMINISTIC: &str = "\
    -> ->> abs acos acosh asin asinh atan atan2 atanh avg bm25 ceil ceiling char coalesce concat \
    concat_ws cos cosh count cume_dist degrees dense_rank exp first_value floor format glob \
    group_concat hex highlight if ifnull iif instr json json_array json_array_length json_each \
    json_error_position json_extract json_group_array json_group_object json_insert json_object \
    json_patch json_pretty json_quote json_remove json_replace json_set json_tree json_type \
    json_valid jsonb jsonb_array jsonb_extract jsonb_group_array jsonb_group_object jsonb_insert \
    jsonb_object jsonb_patch jsonb_remove jsonb_replace jsonb_set lag last_value lead length like \
    likelihood likely ln log log10 log2 lower ltrim match matchinfo max min mod nth_value ntile \
    nullif octet_length offsets percent_rank pi pow power printf quote radians rank replace round \
    row_number rtrim sign sin sinh snippet soundex sqrt string_agg substr substring subtype sum \
    tan tanh total trim trunc typeof unhex unicode unistr unistr_quote unlikely upper zeroblob";

/// Functions that have one result for each row. `min` and `max` are not among them: with one
/// argument they aggregate.
const OF_ONE_ROW: &str = "\
    abs char coalesce concat concat_ws date datetime format hex ifnull iif instr json json_array \
    json_extract json_object julianday length lower ltrim nullif printf quote replace round rtrim \
    sign strftime substr time typeof unixepoch upper";

/// True for a plain `count(*)`.
pub(super) fn counts_rows(function: &Function) -> bool {
    function.filter.is_none()
        && function.over.is_none()
        && function.within_group.is_empty()
        && last_part(&function.name).as_deref() == Some("count")
        && function.args.to_string() == "(*)"
}

/// True if the function certainly neither aggregates nor needs a window.
pub(super) fn is_of_one_row(name: &str) -> bool {
    has(OF_ONE_ROW, name)
}

/// True if the name is one of these words.
fn has(words: &str, name: &str) -> bool {
    words.split(' ').any(|word| word == name)
}

/// Functions that depend on their arguments, unless an argument is `'now'`. Whether it was is
/// detected while they run (`sqlite/clockwatch.rs`).
const DATE: &[&str] = &[
    "date",
    "datetime",
    "julianday",
    "strftime",
    "time",
    "timediff",
    "unixepoch",
];

/// Words of SQL for the present.
const PRESENT: &[&str] = &["current_date", "current_time", "current_timestamp"];

/// The functions but for those that read the clock and do nothing else.
pub(super) fn without_clock(functions: &BTreeSet<String>) -> BTreeSet<String> {
    let others = functions
        .iter()
        .filter(|name| !PRESENT.contains(&name.as_str()));
    others.cloned().collect()
}

/// Why one of the functions makes a query uncacheable, if any does.
pub(crate) fn objection(functions: &BTreeSet<String>, clock_is_watched: bool) -> Option<String> {
    let unknown = functions.iter().find(|function| {
        let function = function.as_str();
        let date = clock_is_watched && DATE.contains(&function);
        !has(DETERMINISTIC, function) && !date
    })?;
    Some(match unknown.as_str() {
        name if PRESENT.contains(&name) => {
            format!("{} reads the clock", name.to_ascii_uppercase())
        }
        name => format!("the result of {name}() may differ from one call to the next"),
    })
}

/// Finds a date function whose text shows that it reads the clock, so that `check` can report it
/// without running the statement.
pub(crate) fn reads_clock(tree: &impl Visit) -> Option<String> {
    clock_function(tree).map(|function| format!("{function}() reads the clock"))
}

/// The date function that the text shows to read the clock.
pub(crate) fn clock_function(tree: &impl Visit) -> Option<String> {
    let mut finder = ClockReadFinder(None);
    let _ = walk(tree, &mut finder);
    finder.0
}

/// Holds the function that was found.
struct ClockReadFinder(Option<String>);

impl Visitor for ClockReadFinder {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let Expr::Function(Function { name, args, .. }) = expr else {
            return ControlFlow::Continue(());
        };
        let name = name.to_string().to_ascii_lowercase();
        let FunctionArguments::List(list) = args else {
            return ControlFlow::Continue(());
        };
        // strftime's first argument is the format.
        let times = usize::from(name == "strftime");
        let now = list.args.len() <= times || list.args.iter().skip(times).any(is_now);
        if DATE.contains(&name.as_str()) && now {
            self.0 = Some(name);
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

fn is_now(argument: &FunctionArg) -> bool {
    let FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(value))) = argument else {
        return false;
    };
    matches!(&value.value, Value::SingleQuotedString(text) if text.trim().eq_ignore_ascii_case("now"))
}

/// True if the rows are aggregated: in groups, or into one row.
pub(super) fn aggregates(select: &Select) -> bool {
    const FUNCTIONS: [&str; 7] = ["count", "sum", "total", "avg", "min", "max", "group_concat"];
    let groups = match &select.group_by {
        GroupByExpr::All(_) => true,
        GroupByExpr::Expressions(columns, _) => !columns.is_empty(),
    };
    let is_aggregate = |expr: &Expr| match expr {
        Expr::Function(function) => {
            let name = function.name.to_string().to_ascii_lowercase();
            function.over.is_none() && FUNCTIONS.contains(&name.as_str())
        }
        _ => false,
    };
    let found = walk_expressions(&select.projection, |expr| match is_aggregate(expr) {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    });
    groups || found.is_break()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_listed_is_refused() {
        let check =
            |function: &str, watched| objection(&BTreeSet::from([function.to_owned()]), watched);
        assert_eq!(check("count", true), None);
        assert_eq!(check("date", true), None);
        assert!(check("date", false).is_some());
        assert!(check("random", true).is_some_and(|reason| reason.contains("random()")));
        assert_eq!(
            check("current_timestamp", true).as_deref(),
            Some("CURRENT_TIMESTAMP reads the clock")
        );
    }
}
