//! Errors of operators, such as `n + 1` where `n` is null: the operator, and what to write instead.

/// Returns the sentence on an operator that failed. `detail` is the engine's, `text` the owner's
/// expression if it is short. None if the error is none of an operator.
pub(super) fn sentence(detail: Option<&str>, text: Option<&str>) -> Option<String> {
    let place = text.map_or_else(String::new, |text| format!(" in `{text}`"));
    if let Some(undefined) = detail.and_then(undefined) {
        return Some(undefined.to_owned());
    }
    let Some(detail) = detail else {
        let value = text?.strip_prefix('-')?.trim_start();
        return Some(format!(
            "`-` with what is no number{place}: for null write `-({value} or 0)`"
        ));
    };
    if detail.starts_with("cannot perform a containment check") {
        // The engine says more than the expression here.
        let list = text.and_then(|text| text.rsplit_once(" in "));
        let list = list.map_or("…", |(_, list)| list);
        return Some(format!(
            "`in` with what is no list, map or text: for null write `in ({list} or [])`"
        ));
    }
    let rest = detail.strip_prefix("tried to use ")?;
    let (sign, kinds) = rest.split_once(" operator on unsupported types ")?;
    let (left, right) = kinds.split_once(" and ")?;
    let are_null = [left, right].map(|kind| matches!(kind, "none" | "undefined"));
    if are_null.contains(&true) {
        let remedy = text.and_then(|text| with_zeros(text, sign, are_null));
        let remedy = remedy.unwrap_or_else(|| format!("(… or 0) {sign} …"));
        return Some(format!("`{sign}` with null{place}: write `{remedy}`"));
    }
    let remedy = match sign {
        "+" => "`~` joins texts, and `| float` makes a number of a text",
        _ => "`| float` makes a number of a text",
    };
    Some(format!("`{sign}` with {left} and {right}{place}: {remedy}"))
}

/// Returns the end of an error that says which value is undefined.
fn undefined(detail: &str) -> Option<&str> {
    let (_, end) = detail.rsplit_once(" (").unwrap_or(("", detail));
    let end = end.trim_end_matches(')');
    (end.starts_with('`') && end.ends_with("` is undefined")).then_some(end)
}

/// Returns the expression with zeros for nulls. None if it has the sign more than once.
fn with_zeros(text: &str, sign: &str, are_null: [bool; 2]) -> Option<String> {
    let (left, right) = text.split_once(sign)?;
    if right.contains(sign) {
        return None;
    }
    let part = |text: &str, is_null: bool| match is_null {
        true => format!("({} or 0)", text.trim()),
        false => text.trim().to_owned(),
    };
    let [left, right] = [part(left, are_null[0]), part(right, are_null[1])];
    Some(format!("{left} {sign} {right}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crate::template::{environment, failure};
    use millpond_site_format::locale::Formats;

    /// Returns what a template prints, or its error.
    fn printed(source: &str) -> String {
        let sources = BTreeMap::from([("pages/a.html".to_owned(), source.to_owned())]);
        let (environment, problems) = environment(&sources, Formats::default());
        assert!(problems.is_empty(), "{problems:?}");
        let template = environment.get_template("pages/a.html").unwrap();
        let row = minijinja::context! { none => (), n => 7, text => "abc" };
        let printed = template.render(minijinja::context! { row, none => () });
        printed.unwrap_or_else(|error| failure(&error))
    }

    #[test]
    fn an_operator_with_null_is_an_error_with_its_remedy() {
        for (source, expected) in [
            (
                "é\n {{ row.none + 1 }}",
                "2:5: `+` with null in `row.none + 1`: write `(row.none or 0) + 1`",
            ),
            (
                "{{ 2*none }}",
                "1:4: `*` with null in `2*none`: write `2 * (none or 0)`",
            ),
            (
                "{{ none // none }}",
                "1:4: `//` with null in `none // none`: write `(none or 0) // (none or 0)`",
            ),
            (
                "{{ 1 + 2 + none }}",
                "1:4: `+` with null in `1 + 2 + none`: write `(… or 0) + …`",
            ),
            (
                "{% set m = [] | max %}{{ m - 1 }}",
                "1:26: `-` with null in `m - 1`: write `(m or 0) - 1`",
            ),
            (
                "{{ -row.none }}",
                "1:4: `-` with what is no number in `-row.none`: for null write `-(row.none or 0)`",
            ),
            (
                "{{ 1 in none }}",
                "1:1: `in` with what is no list, map or text: for null write `in (none or [])`",
            ),
        ] {
            assert_eq!(printed(source), format!("pages/a.html:{expected}"));
        }
        let long = "n".repeat(90);
        assert_eq!(
            printed(&format!("{{% set {long} = none %}}{{{{ {long} + 1 }}}}")),
            "pages/a.html:1:111: `+` with null: write `(… or 0) + …`"
        );
        assert_eq!(
            printed("{{ (row.none or 0) + 1 }}{% for x in none %}{{ x }}{% endfor %}"),
            "1"
        );
    }

    #[test]
    fn an_operator_with_another_value_that_is_no_number_says_which() {
        for (source, expected) in [
            (
                "{{ row.text + 1 }}",
                "`+` with string and number in `row.text + 1`: `~` joins texts, and `| float` makes \
                 a number of a text",
            ),
            (
                "{{ [1] - 1 }}",
                "`-` with sequence and number in `[1] - 1`: `| float` makes a number of a text",
            ),
            (
                "{{ row.n / 0 }}",
                "invalid operation: unable to calculate 7 / 0, in `row.n / 0`",
            ),
            ("{{ row.n + nothing }}", "`nothing` is undefined"),
            ("{{ -nothing }}", "`nothing` is undefined"),
        ] {
            let text = printed(source);
            assert!(text.ends_with(&format!(": {expected}")), "{source}: {text}");
        }
    }
}
