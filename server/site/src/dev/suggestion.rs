//! What was probably meant by a name that nothing gives.

use millpond_site_compile::{page::Page, template::REQUEST_MEMBERS};
use millpond_site_format::{script::Rows, suggest::closest};

/// Names in a list of what there is.
const MAX_SUGGESTED: usize = 16;

/// Advice about `sentence`, the error of a render, if that is about a name.
pub(super) fn suggestion(sentence: &str, page: &Page) -> Option<String> {
    let name = sentence.split('`').nth(1)?;
    if !sentence.contains("undefined") {
        return None;
    }
    if let Some((map, _)) = name.split_once('[') {
        return Some(format!(
            "`{map}` has no such member with this data: `{{{{ {name} | default('') }}}}` prints nothing then"
        ));
    }
    match name.rsplit_once('.') {
        Some((owner, member)) => of_member(owner, member, page),
        None => {
            let queries = page.queries.iter().map(|query| query.name.as_str());
            let known: Vec<&str> = queries.chain(["params", "request"]).collect();
            if known.contains(&name) {
                return None;
            }
            let near = closest(name, known.iter().copied());
            near.map(|near| format!("did you mean `{near}`?"))
                .or_else(|| list("the page has", &known))
        }
    }
}

fn of_member(owner: &str, member: &str, page: &Page) -> Option<String> {
    let params: Vec<&str> = page.params.iter().map(|param| &*param.name).collect();
    if let Some(query) = page.queries.iter().find(|query| query.name == owner)
        && query.rows == Rows::Many
    {
        return Some(format!(
            "`{owner}` is a list of rows: its columns are found in `{{% for row in {owner} %}}`"
        ));
    }
    let columns = columns(owner, page);
    let known = match owner {
        "params" => params,
        "request" => REQUEST_MEMBERS.to_vec(),
        _ => columns.iter().map(String::as_str).collect(),
    };
    if known.contains(&member) {
        return Some(format!(
            "`{owner}` has no value with this data: `{{% if {owner} %}}` finds out"
        ));
    }
    let near = closest(member, known.iter().copied());
    near.map(|near| format!("did you mean `{owner}.{near}`?"))
        .or_else(|| list("there is", &known))
}

/// The columns of the query of this name; of all queries for the variable of a loop.
fn columns(owner: &str, page: &Page) -> Vec<String> {
    let is_named = page.queries.iter().any(|query| query.name == owner);
    let queries = page.queries.iter();
    let queries = queries.filter(|query| !is_named || query.name == owner);
    let columns = queries.flat_map(|query| query.statements[0].query.columns().to_vec());
    columns.map(|column| column.to_string()).collect()
}

fn list(start: &str, names: &[&str]) -> Option<String> {
    let names: Vec<_> = names
        .iter()
        .take(MAX_SUGGESTED)
        .map(|n| format!("`{n}`"))
        .collect();
    (!names.is_empty()).then(|| format!("{start} {}", names.join(", ")))
}
