//! What is known of a value in a template before the template is rendered.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
    sync::Arc,
};

use minijinja::Value;

use super::findings::Finding;

/// A value as far as it is known.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) shape: Shape,
    /// Set if the value may be missing when the template is rendered.
    pub(super) lack: Option<Rc<Lack>>,
}

/// The kind of a value.
#[derive(Clone, Debug)]
pub(super) enum Shape {
    /// Nothing is known: each use is accepted.
    Any,
    None,
    /// A text, a number, a truth value or bytes: it has no members.
    Scalar,
    /// A single value that each render of the page gives.
    Constant(Value),
    Row(Rc<Columns>),
    List(Rc<Known>),
    /// Item that `groupby` gives for each value: `grouper`, and `list` with these items.
    Group(Rc<Known>),
    Members(Rc<Members>),
    /// `request.query`: a member is undefined if the address does not have it.
    Query,
    Loop,
    /// A macro, by its place among the macros of the walk.
    Macro(usize),
    Module(Rc<Module>),
    /// A function of the template engine.
    Function,
    /// The value is undefined, and this is why.
    Undefined(Rc<Finding>),
}

/// The columns of a query's rows.
#[derive(Debug)]
pub(super) struct Columns {
    /// The name of the query, for messages.
    pub(super) of: String,
    pub(super) names: BTreeSet<Arc<str>>,
    /// Columns that are documents on SQLite.
    pub(super) documents: BTreeSet<Arc<str>>,
    /// Shape of each other value: PostgreSQL also gives lists and documents.
    pub(super) cell: Shape,
}

/// A map with all of its keys.
#[derive(Debug)]
pub(super) struct Members {
    pub(super) of: MapKind,
    pub(super) fields: BTreeMap<String, Known>,
}

/// Kind of a map, for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MapKind {
    Params,
    Request,
    /// `form`, or `errors`.
    Form,
    /// One of `errors`.
    Fault,
    Literal,
}

/// Names of `import … as name`.
#[derive(Debug)]
pub(super) struct Module {
    pub(super) file: String,
    pub(super) names: BTreeMap<String, Known>,
}

/// Why a value may be missing.
#[derive(Debug)]
pub(super) struct Lack {
    /// True if the value is then none, which may be printed. Else it is undefined.
    pub(super) is_none: bool,
    /// True if one of the expressions that give the value is undefined for certain.
    pub(super) is_fault: bool,
    /// The expression that tells whether the value is there, such as the query's name.
    pub(super) path: String,
    pub(super) finding: Finding,
}

impl Known {
    pub(super) fn new(shape: Shape) -> Self {
        Self { shape, lack: None }
    }

    pub(super) fn any() -> Self {
        Self::new(Shape::Any)
    }

    pub(super) fn scalar() -> Self {
        Self::new(Shape::Scalar)
    }

    pub(super) fn undefined(finding: Finding) -> Self {
        Self::new(Shape::Undefined(Rc::new(finding)))
    }

    pub(super) fn lacking(mut self, lack: Lack) -> Self {
        self.lack = Some(Rc::new(lack));
        self
    }

    pub(super) fn is_undefined(&self) -> bool {
        matches!(self.shape, Shape::Undefined(_))
    }

    /// Returns the facts that hold for both values, for a value that is one or the other.
    pub(super) fn join(&self, other: &Self) -> Self {
        let (shape, undefined) = match (&self.shape, &other.shape) {
            (Shape::Undefined(_), Shape::Undefined(_)) => (self.shape.clone(), None),
            (Shape::Undefined(why), shape) | (shape, Shape::Undefined(why)) => {
                (shape.clone(), Some(why))
            }
            (one, two) => (join_shapes(one, two), None),
        };
        // That one of the two is undefined says more than that one may be missing.
        let undefined = undefined.map(|why| {
            Rc::new(Lack {
                is_none: false,
                is_fault: true,
                path: String::new(),
                finding: (**why).clone(),
            })
        });
        let lacks = [undefined, self.lack.clone(), other.lack.clone()];
        let lack = lacks.into_iter().flatten().max_by_key(|lack| lack.is_fault);
        Self { shape, lack }
    }
}

fn join_shapes(one: &Shape, two: &Shape) -> Shape {
    match (one, two) {
        (Shape::None, Shape::None) => Shape::None,
        (Shape::Constant(one), Shape::Constant(two)) if one == two => Shape::Constant(one.clone()),
        (Shape::Scalar | Shape::Constant(_), Shape::Scalar | Shape::Constant(_)) => Shape::Scalar,
        (Shape::Row(one), Shape::Row(two)) => Shape::Row(join_columns(one, two)),
        (Shape::List(one), Shape::List(two)) => Shape::List(Rc::new(one.join(two))),
        (Shape::Group(one), Shape::Group(two)) => Shape::Group(Rc::new(one.join(two))),
        (Shape::Members(one), Shape::Members(two)) if Rc::ptr_eq(one, two) => {
            Shape::Members(one.clone())
        }
        (Shape::Module(one), Shape::Module(two)) if Rc::ptr_eq(one, two) => {
            Shape::Module(one.clone())
        }
        (Shape::Macro(one), Shape::Macro(two)) if one == two => Shape::Macro(*one),
        (Shape::Query, Shape::Query) => Shape::Query,
        (Shape::Loop, Shape::Loop) => Shape::Loop,
        (Shape::Function, Shape::Function) => Shape::Function,
        _ => Shape::Any,
    }
}

/// Rows of one query or of another: a column of either may be there.
fn join_columns(one: &Rc<Columns>, two: &Rc<Columns>) -> Rc<Columns> {
    if Rc::ptr_eq(one, two) {
        return one.clone();
    }
    let of = if one.of == two.of {
        one.of.clone()
    } else {
        format!("{}` or `{}", one.of, two.of)
    };
    Rc::new(Columns {
        of,
        names: one.names.union(&two.names).cloned().collect(),
        documents: one.documents.union(&two.documents).cloned().collect(),
        cell: join_shapes(&one.cell, &two.cell),
    })
}
