//! What filters and tests do with a value that they cannot use: the page comes all the
//! same, and the log says what was wrong.
//!
//! A value is what the database or a visitor gives, and is known only when the page is asked for.
//! `check` finds what is wrong with any value ([`strictly`]).

use std::{cell::RefCell, sync::LazyLock};

use minijinja::{
    AutoEscape, Environment, Error, ErrorKind, State, filters, functions, tests,
    value::{Rest, Value, ValueOrKwargs},
};

/// Value in the place of one that cannot be made.
#[derive(Clone, Copy, Debug)]
pub(super) enum Otherwise {
    /// The value that was given, as it is.
    Given,
    /// Null.
    Nothing,
    /// False.
    False,
    /// An empty list.
    Empty,
}

#[derive(Default)]
struct Tolerance {
    is_strict: bool,
    /// The first note of this render.
    note: Option<String>,
}

thread_local! {
    /// Of the render on this thread. A render never leaves its thread.
    static TOLERANCE: RefCell<Tolerance> = RefCell::default();
}

/// Runs something in which a value that cannot be used is an error.
pub fn strictly<T>(run: impl FnOnce() -> T) -> T {
    let set =
        |is_strict| TOLERANCE.with_borrow_mut(|t| std::mem::replace(&mut t.is_strict, is_strict));
    let before = set(true);
    let result = run();
    set(before);
    result
}

/// Runs a render. Also gives the first of its notes for the owner.
pub fn with_note<T>(render: impl FnOnce() -> T) -> (T, Option<String>) {
    TOLERANCE.with_borrow_mut(|tolerance| tolerance.note = None);
    let rendered = render();
    (
        rendered,
        TOLERANCE.with_borrow_mut(|tolerance| tolerance.note.take()),
    )
}

/// The result, or what stands in its place if the values are at fault. Null is none: it only has no
/// result.
pub(super) fn settle(
    result: Result<Value, Error>,
    args: &[Value],
    otherwise: Otherwise,
) -> Result<Value, Error> {
    let error = match result {
        Err(error) if is_of_value(&error) && !args.iter().any(Value::is_undefined) => error,
        result => return result,
    };
    let first = args.first();
    let is_null = first.is_some_and(Value::is_none);
    let is_strict = TOLERANCE.with_borrow_mut(|tolerance| {
        if !is_null && tolerance.note.is_none() {
            tolerance.note = Some(error.detail().unwrap_or_default().to_owned());
        }
        tolerance.is_strict
    });
    if is_strict {
        return Err(error);
    }
    Ok(match otherwise {
        Otherwise::Given => first.cloned().unwrap_or_default(),
        Otherwise::Nothing => Value::from(()),
        Otherwise::False => Value::from(false),
        Otherwise::Empty => Value::from(Vec::<Value>::new()),
    })
}

fn is_of_value(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::InvalidOperation | ErrorKind::BadSerialization | ErrorKind::CannotUnpack
    )
}

/// An undefined value that is no error where it is printed or asked: what an `if` without an `else`
/// gives.
static SILENT: LazyLock<Value> = LazyLock::new(|| {
    let engine = Environment::new();
    let choice = engine.compile_expression("1 if false");
    let value = choice.and_then(|choice| choice.eval(()));
    value.unwrap_or_default()
});

/// Adds a filter that is known under another name, tolerantly.
pub(super) fn add(
    environment: &mut Environment<'_>,
    name: &'static str,
    inner: String,
    otherwise: Otherwise,
) {
    environment.add_filter(name, move |state: &mut State, args: Rest<ValueOrKwargs>| {
        let args = values(state, args);
        let result = state.apply_filter(&inner, &args);
        settle(result, &args, otherwise)
    });
}

/// The name of a filter that fails for an undefined value that is an error where it is printed.
const ASKED: &str = "__asked";

/// Makes the engine's own filters, tests and functions tolerant.
pub(super) fn soften(environment: &mut Environment<'_>) {
    environment.add_filter(ASKED, filters::upper);
    macro_rules! filters {
        ($($filter:ident),+) => { [$((stringify!($filter), Value::from_function(filters::$filter))),+] };
    }
    let own = filters![
        abs, attr, batch, bool, chain, dictsort, float, format, groupby, int, items, join, length,
        lines, list, map, pprint, reject, rejectattr, reverse, round, select, selectattr, slice,
        sort, split, sum, unique, zip
    ];
    let count = ("count", Value::from_function(filters::length));
    for (name, inner) in own.into_iter().chain([count]) {
        environment.add_filter(name, move |state: &mut State, args: Rest<ValueOrKwargs>| {
            let args = values(state, args);
            let result = inner.call(state, &args);
            settle(named("filter", name, result), &args, Otherwise::Nothing)
        });
    }
    // The engine prints null as None there.
    for (name, inner) in filters![
        capitalize, escape, indent, lower, replace, safe, string, title, trim, upper
    ] {
        let names = [name, if name == "escape" { "e" } else { name }];
        for name in names {
            let inner = inner.clone();
            environment.add_filter(name, move |state: &mut State, args: Rest<ValueOrKwargs>| {
                let args = values(state, args);
                if args.first().is_some_and(Value::is_none)
                    && !matches!(state.auto_escape(), AutoEscape::Json)
                {
                    return Ok(Value::from(()));
                }
                let result = inner.call(state, &args);
                settle(named("filter", name, result), &args, Otherwise::Nothing)
            });
        }
    }
    // What has no items has no greatest: that may be printed, and `default` counts it as missing.
    for (name, inner) in filters![first, last, max, min] {
        environment.add_filter(name, move |state: &mut State, args: Rest<ValueOrKwargs>| {
            let args = values(state, args);
            let result = inner.call(state, &args);
            let is_list = args.first().and_then(Value::as_object).is_some();
            let is_checked = is_list && matches!(name, "first" | "last");
            match settle(named("filter", name, result), &args, Otherwise::Nothing)? {
                value if value.is_undefined() && !is_checked => Ok(SILENT.clone()),
                value => Ok(value),
            }
        });
    }
    macro_rules! tests {
        ($($name:literal $test:ident),+) => { [$(($name, Value::from_function(tests::$test))),+] };
    }
    let own = tests![
        "divisibleby" is_divisibleby, "endingwith" is_endingwith, "even" is_even, "in" is_in,
        "filter" is_filter, "lower" is_lower, "odd" is_odd, "startingwith" is_startingwith,
        "test" is_test, "upper" is_upper
    ];
    for (name, inner) in own {
        environment.add_test(name, move |state: &mut State, args: Rest<ValueOrKwargs>| {
            let args = values(state, args);
            let result = inner.call(state, &args);
            settle(named("test", name, result), &args, Otherwise::False)
        });
    }
    let range = Value::from_function(functions::range);
    environment.add_function(
        "range",
        move |state: &mut State, args: Rest<ValueOrKwargs>| {
            let args = values(state, args);
            let result = range.call(state, &args);
            settle(named("function", "range", result), &args, Otherwise::Empty)
        },
    );
}

/// The arguments, with null for those that are undefined and may be printed.
fn values(state: &mut State, args: Rest<ValueOrKwargs>) -> Vec<Value> {
    let args = args.0.into_iter().map(ValueOrKwargs::into_value);
    args.map(|value| match value.is_undefined() {
        true => match state.apply_filter(ASKED, std::slice::from_ref(&value)) {
            Ok(_) => Value::from(()),
            Err(_) => value,
        },
        false => value,
    })
    .collect()
}

/// The result, with an error that says whose it is.
fn named(what: &str, name: &str, result: Result<Value, Error>) -> Result<Value, Error> {
    result.map_err(|error| match (is_of_value(&error), error.detail()) {
        (true, detail) => {
            let why = detail.map_or_else(|| error.kind().to_string(), str::to_owned);
            Error::new(error.kind(), format!("{what} `{name}`: {why}"))
        }
        _ => error,
    })
}
