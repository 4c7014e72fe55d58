//! Templates against what their pages give them: what would be an error or an undefined value when
//! a page is asked for is found before.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
    sync::Arc,
};

use minijinja::{Environment, Value, machinery};

use super::{
    arguments,
    facts::Facts,
    findings::{Finding, Findings, Parsed, TemplatePlace},
    names::Names,
    scope::Scope,
    shape::{Columns, Known, Lack, MapKind, Members, Shape, Why},
    syntax_config,
    walk::Walk,
};
use crate::refusal::values::{ERRORS, FAULT_MEMBERS, FORM};
use millpond_site_format::{Problem, params::Param, script::Rows};

/// Names that a page gives its template.
#[derive(Debug)]
pub struct Given {
    /// The template's name.
    pub template: String,
    pub queries: Vec<GivenQuery>,
    /// None if they could not be found out, because a query or a line is wrong.
    pub params: Option<Vec<Param>>,
    /// True if it is an error page, which has neither queries nor a request.
    pub is_error: bool,
    pub forms: GivenForms,
}

/// The fields of the forms that lead back to a page.
#[derive(Debug, Default)]
pub enum GivenForms {
    #[default]
    None,
    /// Not all forms could be read.
    Unknown,
    Fields(Vec<String>),
}

impl Given {
    /// Lists the names of an error page: the parameters of its folder's path, and of the queries of
    /// partials those that may give no row.
    pub fn of_error(template: String, mut queries: Vec<GivenQuery>, params: Vec<Param>) -> Self {
        queries.retain(|query| query.rows != Rows::One);
        Self {
            template,
            queries,
            params: Some(params),
            is_error: true,
            forms: GivenForms::None,
        }
    }
}

/// One of a page's queries.
#[derive(Debug)]
pub struct GivenQuery {
    pub name: String,
    pub rows: Rows,
    /// None if the query does not compile.
    pub columns: Option<Arc<[Arc<str>]>>,
    /// The columns that can be a list or a map, if not all can.
    pub documents: Vec<Arc<str>>,
}

/// Faults of the templates.
#[derive(Debug, Default)]
pub struct Inspection {
    /// Faults that fail as soon as the template is rendered.
    pub errors: Vec<Problem>,
    /// Values that may be missing, depending on the data and the request.
    pub doubts: Vec<Problem>,
}

/// Inspects all templates, and each page with what it gives. `has_documents` is whether a column
/// can be a list or a map, as on PostgreSQL.
pub fn inspect(
    environment: &Environment<'_>,
    sources: &BTreeMap<String, String>,
    pages: &[Given],
    has_documents: bool,
) -> Inspection {
    let templates: Vec<Parsed<'_>> = sources
        .iter()
        .filter_map(|(name, source)| {
            // One that does not parse has been found before.
            let root = machinery::parse(source, name, syntax_config()).ok()?;
            Some(Parsed { name, source, root })
        })
        .collect();
    let names = Names::new(environment, &templates);
    let globals: Vec<String> = environment.globals().map(|(name, _)| name.into()).collect();
    let mut findings = Findings::default();
    for (file, template) in templates.iter().enumerate() {
        for finding in names.unknown(file, template) {
            findings.fault(&finding, (file, ""));
        }
        for finding in arguments::wrong(environment, file, template) {
            findings.fault(&finding, (file, ""));
        }
    }
    let cell = if has_documents {
        Shape::Any
    } else {
        Shape::Scalar
    };
    for given in pages {
        let mut files = templates.iter();
        let Some(page) = files.position(|template| template.name == given.template) else {
            continue;
        };
        let cases = cases(given.params.as_deref().unwrap_or_default());
        findings.cases.insert(page, cases.len());
        for case in cases {
            let mut walk = Walk {
                templates: &templates,
                names: &names,
                params: given.params.as_deref().unwrap_or_default(),
                page,
                file: page,
                scope: Scope::new(roots(given, page, &cell, &case), globals.clone()),
                facts: Facts::default(),
                macros: Vec::new(),
                namespaces: Vec::new(),
                case: shown(&case),
                blocks: BTreeMap::new(),
                block: None,
                parent: None,
                skips_blocks: false,
                conditions: 0,
                quiet: 0,
                is_gathering: false,
                calls: Vec::new(),
                depth: 0,
                steps: 0,
                findings: &mut findings,
            };
            walk.template(page);
        }
    }
    let (errors, doubts) = findings.problems(&templates);
    Inspection { errors, doubts }
}

/// A value for some parts of a page's path.
type Case<'g> = Vec<(&'g str, Value)>;

/// A page with more cases than these is walked once for all.
const MOST_CASES: usize = 12;

/// The values for which a page is walked: each that its path takes, where it takes some values
/// alone.
fn cases(params: &[Param]) -> Vec<Case<'_>> {
    let mut cases = vec![Case::new()];
    for param in params.iter().filter(|param| param.in_path.is_some()) {
        let Some(values) = values_of(param).filter(|it| it.len() * cases.len() <= MOST_CASES)
        else {
            continue;
        };
        let mut all = Vec::new();
        for case in &cases {
            for value in &values {
                let mut case = case.clone();
                case.push((&*param.name, value.clone()));
                all.push(case);
            }
        }
        cases = all;
    }
    cases
}

/// The values that a parameter may have as a template sees them, if it takes some alone.
fn values_of(param: &Param) -> Option<Vec<Value>> {
    let values = param.choices.iter().map(|value| match value {
        millpond_db::Value::Text(text) => Some(Value::from(&**text)),
        millpond_db::Value::Integer(number) => Some(Value::from(*number)),
        _ => None,
    });
    let values: Option<Vec<Value>> = values.collect();
    values.filter(|values| !values.is_empty() && !param.is_list)
}

/// A case for messages: `` `lang` is `de` ``.
fn shown(case: &Case<'_>) -> String {
    let parts = case.iter();
    let parts = parts.map(|(name, value)| format!("`{name}` is `{value}`"));
    parts.collect::<Vec<_>>().join(" and ")
}

/// A parameter as a template sees it.
fn param_value(param: &Param, case: &Case<'_>) -> Known {
    let is_optional = param.default == Some(millpond_db::Value::Null);
    match case.iter().find(|(name, _)| *name == param.name) {
        Some((_, value)) => Known::new(Shape::Constant(value.clone())),
        None => match values_of(param) {
            Some(values) if is_optional => Known::one_of(values).join(&Known::new(Shape::None)),
            Some(values) => Known::one_of(values),
            None => Known::any(),
        },
    }
}

/// The names that a page gives: its queries, `params` and `request`.
fn roots(given: &Given, page: usize, cell: &Shape, case: &Case<'_>) -> BTreeMap<String, Known> {
    let queries = given.queries.iter();
    let mut roots: BTreeMap<String, Known> = queries
        .map(|query| (query.name.clone(), result(query, page, cell)))
        .collect();
    let map = |of, fields| Known::new(Shape::Members(Rc::new(Members { of, fields })));
    let params = given.params.as_ref().map(|params| {
        let names = params.iter();
        map(
            MapKind::Params,
            names
                .map(|param| (param.name.clone(), param_value(param, case)))
                .collect(),
        )
    });
    if given.is_error {
        let names = super::roots::ERROR_ROOTS.iter();
        roots.extend(names.map(|name| ((*name).to_owned(), Known::scalar())));
        let has_params = given.params.iter().any(|params| !params.is_empty());
        roots.extend(
            params
                .filter(|_| has_params)
                .map(|it| ("params".to_owned(), it)),
        );
        return roots;
    }
    let request = super::roots::REQUEST_MEMBERS.iter().map(|field| {
        let value = match *field {
            "query" => Known::new(Shape::Query),
            "headers" | "claims" => Known::any(),
            _ => Known::scalar(),
        };
        ((*field).to_owned(), value)
    });
    roots.insert("params".to_owned(), params.unwrap_or_else(Known::any));
    if matches!(given.forms, GivenForms::Unknown) {
        roots.insert(FORM.to_owned(), Known::any());
        roots.insert(ERRORS.to_owned(), Known::any());
    }
    if let GivenForms::Fields(fields) = &given.forms {
        let names = || fields.iter().cloned();
        let typed = names().map(|name| (name, Known::any())).collect();
        let members = FAULT_MEMBERS.map(|name| (name.to_owned(), Known::scalar()));
        let fault = || map(MapKind::Fault, members.clone().into());
        let faults = names().chain([FORM.to_owned()]);
        let faults = faults.map(|name| (name, fault())).collect();
        roots.insert(FORM.to_owned(), map(MapKind::Form, typed));
        roots.insert(ERRORS.to_owned(), map(MapKind::Form, faults));
    }
    roots.insert(
        "request".to_owned(),
        map(MapKind::Request, request.collect()),
    );
    roots
}

/// Returns the shape of a query under its name.
fn result(query: &GivenQuery, page: usize, cell: &Shape) -> Known {
    let row = match &query.columns {
        Some(columns) => Known::new(Shape::Row(Rc::new(Columns {
            of: query.name.clone(),
            names: columns.iter().cloned().collect::<BTreeSet<_>>(),
            documents: query.documents.iter().cloned().collect(),
            cell: cell.clone(),
        }))),
        None => return Known::any(),
    };
    match query.rows {
        Rows::One => row,
        Rows::Optional => {
            let name = &query.name;
            let message = format!("`{name}` is none where the query gives no row (:one?)");
            let hint = format!("write {{% if {name} %}}…{{% endif %}} around what needs it");
            let place = TemplatePlace {
                file: page,
                offset: 0,
                is_lack: true,
            };
            row.lacking(Lack {
                why: Why::None,
                path: name.clone(),
                finding: Finding::lack(place, message, hint),
            })
        }
        Rows::Many | Rows::Exec => Known::new(Shape::List(Rc::new(row))),
    }
}

#[cfg(test)]
mod tests;
