//! Members of values: `row.column`, `params.name`, `request.path`, `loop.index`.

use super::{
    findings::{Finding, TemplatePlace},
    shape::{Columns, Known, Lack, MapKind, Members, Shape, Why},
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
        path: Option<&str>,
        name: &str,
        place: TemplatePlace,
    ) -> Known {
        let all = base.shape.alternatives().iter();
        let all: Vec<Known> = all
            .map(|shape| self.member_of(shape, path, name, place))
            .collect();
        let shown = path.unwrap_or_default();
        let value = match &all[..] {
            [one] => one.clone(),
            all => chosen(all, shown, name, place),
        };
        match &base.shape {
            Shape::Any => value,
            _ => cell_of(base, value, shown, place),
        }
    }

    fn member_of(
        &mut self,
        base: &Shape,
        path: Option<&str>,
        name: &str,
        place: TemplatePlace,
    ) -> Known {
        let fault = |message: String, hint: Option<String>| {
            Known::undefined(Finding::new(place, message, hint))
        };
        let of_map = |members: &Members| match members.fields.get(name) {
            Some(value) => value.clone(),
            None => Known::undefined(no_member(members, name, place)),
        };
        match base {
            Shape::Row(columns) => column(columns, name, place).unwrap_or_else(Known::undefined),
            Shape::Members(members) => of_map(members),
            Shape::Namespace(at) => of_map(&Members {
                of: MapKind::Namespace,
                fields: self.namespaces[*at].clone(),
            }),
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
            Shape::Any
            | Shape::Nothing
            | Shape::Macro(_)
            | Shape::Function
            | Shape::Undefined(_)
            | Shape::OneOf(_) => Known::any(),
        }
    }
}

/// The member `name` of a value that is one of several, of which some may not have it.
fn chosen(all: &[Known], path: &str, name: &str, place: TemplatePlace) -> Known {
    let is_near = |value: &&Known| match &value.shape {
        Shape::Undefined(why) => (why.hint.as_ref()).is_some_and(|it| it.starts_with("did you")),
        _ => false,
    };
    let there = all.iter().filter(|value| !value.is_undefined()).cloned();
    match there.reduce(|one, two| one.join(&two)) {
        None => all.iter().find(is_near).unwrap_or(&all[0]).clone(),
        Some(value) if all.iter().any(Known::is_undefined) => {
            let whose = match path {
                "" => "some of the values here have".to_owned(),
                path => format!("some of the values that `{path}` may be have"),
            };
            let shown = format!("{path}.{name}");
            let message = format!("{whose} no `{name}`");
            let hint = format!("write {{% if {shown} is defined %}}…{{% endif %}} around it");
            let hint = (!path.is_empty()).then_some(hint);
            let place = TemplatePlace {
                is_lack: true,
                ..place
            };
            value.lacking(Lack {
                why: Why::Absent,
                path: shown,
                finding: Finding::new(place, message, hint),
            })
        }
        Some(value) => value,
    }
}

/// A member of a value that may be none.
fn cell_of(row: &Known, cell: Known, path: &str, place: TemplatePlace) -> Known {
    let Some(lack) = row.lack.as_ref().filter(|lack| lack.why == Why::None) else {
        return cell;
    };
    if cell.is_undefined() {
        return cell;
    }
    let place = TemplatePlace {
        is_lack: true,
        ..place
    };
    let finding = match (&*lack.path, path) {
        ("", "") => Finding::new(place, "this value may be none here".to_owned(), None),
        ("", path) => {
            let hint = format!("write {{% if {path} %}}…{{% endif %}} around what needs it");
            Finding::new(place, format!("`{path}` may be none here"), Some(hint))
        }
        _ => Finding {
            place,
            ..lack.finding.clone()
        },
    };
    let path = if lack.path.is_empty() {
        path
    } else {
        &lack.path
    };
    cell.lacking(Lack {
        why: Why::Empty,
        path: path.to_owned(),
        finding,
    })
}

/// The value of a column, if the query has it.
fn column(columns: &Columns, name: &str, place: TemplatePlace) -> Result<Known, Finding> {
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
        MapKind::Namespace => format!("nothing sets `{name}` of this namespace before"),
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
        why: Why::Absent,
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
                why: Why::Absent,
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
