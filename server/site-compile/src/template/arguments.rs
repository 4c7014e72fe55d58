//! Arguments of filters and tests that are written out: they are tried on a value that fits.

use std::collections::BTreeMap;

use minijinja::{
    Environment, Error, ErrorKind, Value,
    machinery::ast::{CallArg, Expr, UnaryOpKind},
    value::Kwargs,
};

use super::{
    facts::argument,
    findings::{Finding, Parsed, TemplatePlace},
    syntax::visit_stmt,
};
use crate::filters::{strictly, with_present_time};

/// Filters with a value that each of them takes. Those of lists are given an empty one, so that
/// what they would do with items is not tried.
const FILTERS: &[(SampleValue, &[&str])] = &[
    (
        SampleValue::Number,
        &[
            "abs",
            "filesize",
            "float",
            "int",
            "money",
            "number",
            "pluralize",
            "round",
        ],
    ),
    (SampleValue::Moment, &["date", "datetime", "timeago"]),
    (
        SampleValue::Text,
        &[
            "capitalize",
            "headings",
            "indent",
            "lower",
            "markdown",
            "nl2br",
            "replace",
            "sanitize",
            "slug",
            "split",
            "striptags",
            "title",
            "tojson",
            "trim",
            "truncate",
            "upper",
            "urlencode",
        ],
    ),
    (
        SampleValue::List,
        &[
            "batch", "chart", "first", "join", "last", "list", "reverse", "slice", "sort", "unique",
        ],
    ),
    (SampleValue::Map, &["dictsort", "items", "query"]),
];

/// Tests, likewise.
const TESTS: &[(SampleValue, &[&str])] = &[
    (SampleValue::Number, &["divisibleby", "even", "odd"]),
    (SampleValue::Text, &["endingwith", "startingwith"]),
];

#[derive(Clone, Copy)]
enum SampleValue {
    Number,
    Moment,
    Text,
    List,
    Map,
}

impl SampleValue {
    fn value(self) -> Value {
        match self {
            Self::Number => Value::from(1),
            Self::Moment => Value::from("2026-03-03 14:05:06"),
            Self::Text => Value::from("text"),
            Self::List => Value::from(Vec::<Value>::new()),
            Self::Map => Value::from(BTreeMap::<String, Value>::new()),
        }
    }
}

/// The filters and tests of a template that fail with any value because of their arguments.
pub(super) fn wrong(
    environment: &Environment<'_>,
    file: usize,
    template: &Parsed<'_>,
) -> Vec<Finding> {
    let mut found = Vec::new();
    visit_stmt(&template.root, &mut |expr| {
        let (what, name, args) = match expr {
            Expr::Filter(filter) => ("filter", filter.name, &filter.args),
            Expr::Test(test) => ("test", test.name, &test.args),
            _ => return,
        };
        let samples = match what {
            "filter" => FILTERS,
            _ => TESTS,
        };
        let mut samples = samples.iter();
        let Some((sample, _)) = samples.find(|(_, names)| names.contains(&name)) else {
            return;
        };
        let Some((values, are_constants)) = values(sample.value(), args) else {
            return;
        };
        let mut state = environment.empty_state();
        let (tried, _) = strictly(|| {
            with_present_time(|| match what {
                "filter" => state.apply_filter(name, &values).map(drop),
                _ => state.perform_test(name, &values).map(drop),
            })
        });
        // With other values than these there may be no error.
        let is_certain =
            |error: &Error| are_constants || error.kind() == ErrorKind::TooManyArguments;
        if let Err(error) = tried
            && is_certain(&error)
        {
            let place = match args.first().map(argument) {
                Some(first) => first.span().start_offset as usize,
                None => (name.as_ptr() as usize).wrapping_sub(template.source.as_ptr() as usize),
            };
            let place = TemplatePlace {
                file,
                offset: place,
                is_lack: false,
            };
            found.push(Finding::new(place, message(what, name, &error), None));
        }
    });
    found
}

/// Returns the message of the error, with the name of the filter or test once.
fn message(what: &str, name: &str, error: &Error) -> String {
    let text = match error.detail() {
        Some(detail) => detail.to_owned(),
        None => error.kind().to_string(),
    };
    let begin = format!("{what} `{name}`");
    match text.starts_with(&begin) {
        true => text,
        false => format!("{begin}: {text}"),
    }
}

/// The value and the arguments of a call, and whether all of them are written out. None if there
/// may be any number of arguments.
fn values(value: Value, args: &[CallArg<'_>]) -> Option<(Vec<Value>, bool)> {
    let mut values = vec![value];
    let mut named = Vec::new();
    let mut are_constants = true;
    let mut evaluate = |expr: &Expr<'_>| {
        let value = constant(expr);
        are_constants &= value.is_some();
        value.unwrap_or_default()
    };
    for arg in args {
        match arg {
            CallArg::Pos(expr) => values.push(evaluate(expr)),
            CallArg::Kwarg(name, expr) => named.push(((*name).to_owned(), evaluate(expr))),
            CallArg::PosSplat(_) | CallArg::KwargSplat(_) => return None,
        }
    }
    if !named.is_empty() {
        values.push(named.into_iter().collect::<Kwargs>().into());
    }
    Some((values, are_constants))
}

/// The value of an expression that is written out.
pub(super) fn constant(expr: &Expr<'_>) -> Option<Value> {
    match expr {
        Expr::Const(constant) => Some(constant.value.clone()),
        Expr::UnaryOp(op) if matches!(op.op, UnaryOpKind::Neg) => {
            let number = i64::try_from(constant(&op.expr)?).ok()?;
            Some(Value::from(number.checked_neg()?))
        }
        Expr::List(list) => {
            let items = list.items.iter().map(constant);
            items.collect::<Option<Vec<Value>>>().map(Value::from)
        }
        _ => None,
    }
}
