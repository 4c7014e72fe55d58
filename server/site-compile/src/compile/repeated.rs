//! One cause that many queries show: a table or column that is missing, because the migration that
//! makes it has another name for it.

use millpond_site_format::Problem;

/// Further places that are written out.
const SHOWN: usize = 3;

/// The problems, with one for all queries that lack the same table or column: it stands at the
/// first of them and names the places of the others.
pub(super) fn merged(problems: Vec<Problem>) -> Vec<Problem> {
    let mut merged: Vec<(Problem, Vec<String>)> = Vec::new();
    for problem in problems {
        let cause = missing(&problem);
        let same = cause.and_then(|cause| {
            let mut known = merged.iter_mut();
            known.find(|(known, _)| missing(known) == Some(cause) && known.hint == problem.hint)
        });
        match same {
            Some((_, places)) => places.push(place(&problem)),
            None => merged.push((problem, Vec::new())),
        }
    }
    let merged = merged.into_iter();
    merged
        .map(|(problem, places)| with(problem, &places))
        .collect()
}

/// Returns the table or column that a query lacks, as the database names it.
fn missing(problem: &Problem) -> Option<&str> {
    let (_, said) = problem.message.strip_prefix("query `")?.split_once("`: ")?;
    let is_missing = said.starts_with("no such ")
        || said.ends_with(" does not exist")
        || said.contains(" has no column named ");
    is_missing.then_some(said)
}

fn place(problem: &Problem) -> String {
    let file = problem.file.display();
    match problem.at {
        Some((line, column)) => format!("{file}:{line}:{column}"),
        None => file.to_string(),
    }
}

fn with(mut problem: Problem, places: &[String]) -> Problem {
    let (shown, more) = places.split_at(places.len().min(SHOWN));
    problem.message += &match (shown.join(", "), more.len()) {
        (_, 0) if shown.is_empty() => String::new(),
        (shown, 0) => format!(" (also at {shown})"),
        (shown, more) => format!(" (also at {shown} and {more} more)"),
    };
    problem
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_cause_is_one_problem() {
        let lacks = |file: &str, said: &str, hint: &str| {
            let problem = Problem::new(file, format!("query `a`: {said}")).at(2, 3);
            problem.hint(hint)
        };
        let table = |file: &str| lacks(file, "no such table: album", "did you mean albun?");
        let relation = "relation \"album\" does not exist";
        let problems = vec![
            table("a.sql"),
            lacks("b.sql", "near \"form\": syntax error", ""),
            table("c.sql"),
            lacks("c.sql", "near \"form\": syntax error", ""),
            lacks("d.sql", "no such table: album", "another hint"),
            lacks("e.sql", relation, ""),
            lacks("f.sql", relation, ""),
        ];
        let said: Vec<String> = merged(problems)
            .iter()
            .map(|problem| problem.message.clone())
            .collect();
        assert_eq!(
            said,
            [
                "query `a`: no such table: album (also at c.sql:2:3)",
                "query `a`: near \"form\": syntax error",
                "query `a`: near \"form\": syntax error",
                "query `a`: no such table: album",
                "query `a`: relation \"album\" does not exist (also at f.sql:2:3)",
            ]
        );
        let many = ["a", "b", "c", "d", "e", "f"].map(table);
        assert_eq!(
            merged(many.into())[0].message,
            "query `a`: no such table: album (also at b:2:3, c:2:3, d:2:3 and 2 more)"
        );
    }
}
