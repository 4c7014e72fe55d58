//! Which functions depend on nothing but their arguments (coherence.md, rule 14).
//!
//! PostgreSQL says IMMUTABLE of those that depend on their arguments alone. STABLE ones may read
//! tables, settings and the clock; those in the lists here are PostgreSQL's own, and depend beside
//! their arguments only on what Millpond's sessions fix (the time zone and the styles of dates and
//! intervals) or on what the fingerprint tells (`lc_*`, the configurations of text search, the
//! labels of enums). Nothing that is VOLATILE is ever allowed.

use super::{Depends, READS_CLOCK};

/// Allowed as calls, and as what operators do.
const CALLS: &[&str] = &[
    // They write any value as text, as its type's output function does; see `OUTPUTS`.
    "anytextcat array_to_json array_to_string concat concat_ws format json_agg json_build_array \
     json_build_object json_object_agg jsonb_agg jsonb_build_array jsonb_build_object \
     jsonb_object_agg quote_literal quote_nullable row_to_json textanycat to_json to_jsonb",
    // They depend on the time zone, which is fixed. Not here: `age` of one argument and `timezone`
    // of a time without a date, which ask what day it is, and every function that reads text as a
    // date.
    "date date_eq_timestamptz date_ge_timestamptz date_gt_timestamptz date_le_timestamptz \
     date_lt_timestamptz date_ne_timestamptz date_cmp_timestamptz date_part date_trunc extract \
     generate_series interval_pl_timestamptz jsonb_path_exists_tz jsonb_path_match_tz \
     jsonb_path_query_array_tz jsonb_path_query_first_tz jsonb_path_query_tz make_timestamptz \
     overlaps time timestamp timestamp_cmp_timestamptz timestamp_eq_timestamptz \
     timestamp_ge_timestamptz timestamp_gt_timestamptz timestamp_le_timestamptz \
     timestamp_lt_timestamptz timestamp_ne_timestamptz timestamptz timestamptz_cmp_date \
     timestamptz_cmp_timestamp timestamptz_eq_date timestamptz_eq_timestamp timestamptz_ge_date \
     timestamptz_ge_timestamp timestamptz_gt_date timestamptz_gt_timestamp timestamptz_le_date \
     timestamptz_le_timestamp timestamptz_lt_date timestamptz_lt_timestamp \
     timestamptz_mi_interval timestamptz_ne_date timestamptz_ne_timestamp timestamptz_pl_interval",
    // They depend on `lc_time` and `lc_numeric` for some patterns, which the fingerprint has. Parts
    // of a date that are not given are taken from the year 1, not from today.
    "to_char to_date to_number to_timestamp",
    // They depend on `default_text_search_config` and the configurations, which the fingerprint
    // has.
    "phraseto_tsquery plainto_tsquery to_tsquery to_tsvector ts_headline websearch_to_tsquery",
    // They depend on the catalog, which the fingerprint has.
    "enum_first enum_last enum_range pg_typeof",
];

/// Functions that write a value of a type as text, where PostgreSQL says STABLE because of a
/// setting or the catalog. Not here: `money` and the names of catalog objects (`regclass`).
const OUTPUTS: &str = "\
    array_out date_out enum_out interval_out json_out multirange_out range_out record_out \
    timestamp_out timestamptz_out timetz_out time_out";

/// Functions that read a value of a type from text. Not here: dates and times, since the text may
/// say `now`, and types that may contain them.
const INPUTS: &[&str] = &["enum_in", "interval_in"];

/// Some of `CALLS` use a cast to JSON, if one was created.
const USE_JSON_CASTS: &str = "\
    array_to_json json_agg json_build_array json_build_object json_object_agg jsonb_agg \
    jsonb_build_array jsonb_build_object jsonb_object_agg row_to_json to_json to_jsonb";

/// True if the name is one of these words.
fn has(words: &str, name: &str) -> bool {
    words.split(' ').any(|word| word == name)
}

/// A function as `pg_proc` describes it.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) oid: u32,
    pub(crate) schema: String,
    pub(crate) name: String,
    /// As in `pg_proc.provolatile`.
    pub(crate) volatility: char,
    pub(crate) language: String,
    pub(crate) is_aggregate: bool,
    /// The tree of a body in standard SQL.
    pub(crate) body: Option<String>,
    /// The text of a body in SQL that reads as one in standard SQL would.
    pub(crate) text: Option<FunctionText>,
    /// True if a cast that was created may convert what the body gives.
    pub(crate) is_cast: bool,
    pub(crate) role: Role,
}

/// The parameters, the result and the body of a function in SQL.
pub(crate) type FunctionText = [String; 3];

/// Use of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Call,
    Input,
    Output,
}

/// Meaning of a function for a result that is kept.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It depends on its arguments.
    Fine,
    /// On what its body names.
    Body,
    /// On what the functions that it is made of do.
    Aggregate,
    Objection(String),
}

/// Judges a function. `depends` is what the owner says that functions read, `json_casts` whether
/// casts to JSON were made.
pub(crate) fn judge(function: &Function, depends: &Depends<'_>, json_casts: bool) -> Verdict {
    use crate::postgres::catalog::FIRST_OWN;
    let own = function.oid >= FIRST_OWN;
    let name = function.name.as_str();
    let native = matches!(function.language.as_str(), "c" | "internal");
    if own && function.is_aggregate {
        return Verdict::Aggregate;
    }
    if own && function.body.is_some() {
        return match function.is_cast {
            false => Verdict::Body,
            true => Verdict::Objection(format!(
                "the result of {name}() may be converted by a cast that was created"
            )),
        };
    }
    if own && depends.is_some() {
        return Verdict::Fine;
    }
    if own && !native {
        return Verdict::Objection(format!(
            "{name}() may read tables; write \"-- depends:\" and their names above the query, separated by commas"
        ));
    }
    let listed = match function.role {
        _ if own || function.schema != "pg_catalog" => false,
        Role::Call => {
            CALLS.iter().any(|words| has(words, name)) && !(json_casts && has(USE_JSON_CASTS, name))
        }
        Role::Input => INPUTS.contains(&name),
        Role::Output => has(OUTPUTS, name),
    };
    match function.volatility {
        'i' => Verdict::Fine,
        's' if listed => Verdict::Fine,
        _ if own => Verdict::Objection(format!(
            "{name}() is not IMMUTABLE; write \"-- depends:\" and the tables that it reads above the query, separated by commas"
        )),
        _ => Verdict::Objection(reason(function)),
    }
}

fn reason(function: &Function) -> String {
    const CLOCK: &[&str] = &[
        "now",
        "transaction_timestamp",
        "statement_timestamp",
        "clock_timestamp",
        "timeofday",
        "age",
    ];
    let name = function.name.as_str();
    match (function.role, name) {
        (Role::Input, "timestamp_in" | "timestamptz_in" | "date_in" | "time_in" | "timetz_in") => {
            "a text that is read as a date or time may say 'now'".to_owned()
        }
        (Role::Input, _) => format!("the result of reading a text by {name}() may change"),
        (Role::Output, _) => format!("the result of writing a value by {name}() may change"),
        (Role::Call, _) if CLOCK.contains(&name) => format!("{name}(){READS_CLOCK}"),
        (Role::Call, "nextval" | "currval" | "lastval" | "setval") => {
            format!("{name}() uses a sequence, whose changes no feed reports")
        }
        (Role::Call, "current_setting") => {
            "current_setting() may differ from one session to the next".to_owned()
        }
        (Role::Call, _) => {
            format!("the result of {name}() may differ from one call to the next")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(name: &str, volatility: char, own: bool, language: &str) -> Function {
        Function {
            oid: if own { 20_000 } else { 100 },
            schema: if own { "public" } else { "pg_catalog" }.into(),
            name: name.into(),
            volatility,
            language: language.into(),
            is_aggregate: false,
            body: None,
            text: None,
            is_cast: false,
            role: Role::Call,
        }
    }

    #[test]
    fn what_is_not_known_to_depend_on_its_arguments_is_refused() {
        let fine = |function: &Function, depends: &Depends<'_>| {
            judge(function, depends, false) == Verdict::Fine
        };
        assert!(fine(&function("lower", 'i', false, "internal"), &None));
        assert!(fine(&function("concat", 's', false, "internal"), &None));
        assert!(!fine(&function("now", 's', false, "internal"), &None));
        assert!(!fine(&function("concat", 's', true, "c"), &None));
        assert!(!fine(&function("concat", 'v', false, "internal"), &None));
        assert!(fine(&function("similarity", 'i', true, "c"), &None));
        assert!(!fine(&function("mine", 'i', true, "plpgsql"), &None));
        assert!(fine(&function("mine", 'v', true, "plpgsql"), &Some(&[])));
        assert!(!fine(
            &function("random", 'v', false, "internal"),
            &Some(&[])
        ));
        let to_json = function("to_json", 's', false, "internal");
        assert!(judge(&to_json, &None, true) != Verdict::Fine);
    }
}
