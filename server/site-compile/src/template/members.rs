//! Members of values: `row.column`, `params.name`, `request.path`, `loop.index`.

use super::{
    findings::{Finding, TemplatePlace},
    shape::{Columns, Known, Lack, MapKind, Members, Shape},
    walk::Walk,
};
use millpond_site_format::suggest::closest;

/// The members of `loop`.
const LOOP: &[&str] = &[
    "index",
    "index0",
    "revindex",
    "revindex0",
    "first",
    "last",
    "length",
    "depth",
    "depth0",
    "previtem",
    "nextitem",
];

/// The methods of `loop`.
pub(super) const LOOP_METHODS: &[&str] = &["cycle", "changed"];

impl Walk<'_> {
    /// The member of a value that stands at `path`, if that is a path of names.
    pub(super) fn member(
        &mut self,
        base: &Known,
        path: Option<String>,
        name: &str,
        place: TemplatePlace,
    ) -> Known {
        let fault = |message: String, hint: Option<String>| {
            Known::undefined(Finding::new(place, message, hint))
        };
        match &base.shape {
            Shape::Row(columns) => match column(columns, name, place) {
                Ok(cell) => cell_of(base, cell, place),
                Err(finding) => Known::undefined(finding),
            },
            Shape::Members(members) => match members.fields.get(name) {
                Some(value) => value.clone(),
                None => Known::undefined(no_member(members, name, place)),
            },
            Shape::Query => asked(name, place),
            Shape::Loop => loop_member(name, place),
            Shape::Module(module) => self.member_of_module(&module.clone(), None, name, place),
            Shape::Group(list) => match name {
                "grouper" => Known::any(),
                "list" => Known::new(Shape::List(list.clone())),
                _ => fault(
                    format!("a group has no `{name}`"),
                    Some("it has `grouper` and `list`".to_owned()),
                ),
            },
            Shape::List(_) => {
                let what = path.map_or_else(|| "this".to_owned(), |path| format!("`{path}`"));
                let hint = "loop over it, or let the query give one row (:one)";
                let message = format!("{what} is a list: it has no `{name}`");
                fault(message, Some(hint.to_owned()))
            }
            Shape::None => {
                let what = path.map_or_else(|| "this value".to_owned(), |path| format!("`{path}`"));
                fault(format!("{what} is none here: it has no `{name}`"), None)
            }
            Shape::Scalar | Shape::Constant(_) => {
                let what = path.map_or_else(|| "this".to_owned(), |path| format!("`{path}`"));
                let message = format!("{what} is a single value: it has no `{name}`");
                fault(message, None)
            }
            Shape::Macro(_) if !matches!(name, "name" | "arguments" | "caller") => {
                fault(format!("a macro has no `{name}`: call it"), None)
            }
            Shape::Any | Shape::Macro(_) | Shape::Function | Shape::Undefined(_) => Known::any(),
        }
    }
}

/// A column of a row that may not be there.
fn cell_of(row: &Known, cell: Known, place: TemplatePlace) -> Known {
    match &row.lack {
        Some(lack) if lack.is_none => cell.lacking(Lack {
            is_none: false,
            is_fault: false,
            path: lack.path.clone(),
            finding: Finding {
                place: TemplatePlace {
                    is_lack: true,
                    ..place
                },
                ..lack.finding.clone()
            },
        }),
        _ => cell,
    }
}

/// The value of a column, if the query has it.
pub(super) fn column(
    columns: &Columns,
    name: &str,
    place: TemplatePlace,
) -> Result<Known, Finding> {
    if columns.documents.contains(name) {
        return Ok(Known::any());
    }
    if columns.names.contains(name) {
        return Ok(Known::new(columns.cell.clone()));
    }
    let names = || columns.names.iter().map(|name| &**name);
    let hint = match closest(name, names()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("it has: {}", names().collect::<Vec<_>>().join(", ")),
    };
    let message = format!("`{}` has no column `{name}`", columns.of);
    Err(Finding::new(place, message, Some(hint)))
}

fn no_member(members: &Members, name: &str, place: TemplatePlace) -> Finding {
    let names = || members.fields.keys().map(String::as_str);
    let message = match members.of {
        MapKind::Params => format!("the page has no parameter `{name}`"),
        MapKind::Request => format!("`request` has no `{name}`"),
        MapKind::Form => format!("no form that leads to this page has a field `{name}`"),
        MapKind::Fault => format!("an error has no `{name}`"),
        MapKind::Literal => format!("this map has no `{name}`"),
    };
    let hint = match (closest(name, names()), members.of) {
        (Some(near), _) => format!("did you mean `{near}`?"),
        (None, MapKind::Params) => {
            format!("declare it in the page's .sql file: -- param: {name} text")
        }
        (None, _) => format!("it has: {}", names().collect::<Vec<_>>().join(", ")),
    };
    Finding::new(place, message, Some(hint))
}

/// `request.query.NAME`, which is undefined if the address does not have it.
fn asked(name: &str, place: TemplatePlace) -> Known {
    let path = format!("request.query.{name}");
    let message = format!("`{path}` is undefined where the address does not have it");
    let hint = format!(
        "write {{{{ {path} | default('') }}}}, or declare the parameter, which also lets the page be shared: -- param: {name} text = ''"
    );
    Known::any().lacking(Lack {
        is_none: false,
        is_fault: false,
        path,
        finding: Finding::lack(place, message, hint),
    })
}

fn loop_member(name: &str, place: TemplatePlace) -> Known {
    match name {
        "previtem" | "nextitem" => {
            let message = format!("`loop.{name}` is undefined at one end of the list");
            let hint = format!("write {{% if loop.{name} is defined %}}…{{% endif %}} around it");
            Known::any().lacking(Lack {
                is_none: false,
                is_fault: false,
                path: "loop".to_owned(),
                finding: Finding::lack(place, message, hint),
            })
        }
        _ if LOOP.contains(&name) => Known::scalar(),
        _ => {
            let hint = match closest(name, LOOP.iter().chain(LOOP_METHODS).copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("it has: {}", LOOP.join(", ")),
            };
            Known::undefined(Finding::new(
                place,
                format!("`loop` has no `{name}`"),
                Some(hint),
            ))
        }
    }
}
