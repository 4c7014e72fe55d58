//! What is known of a value in a template before the template is rendered.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
    sync::Arc,
};

use minijinja::Value;

use super::findings::{Finding, TemplatePlace};

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
    /// No value: the item of a list that is written without any.
    Nothing,
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
    /// The value of `namespace()`, by its place among those of the walk.
    Namespace(usize),
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
    /// One of several shapes, none of which is none, unknown or undefined.
    OneOf(Rc<[Self]>),
}

/// A value that may be of more shapes than this is unknown.
const MOST: usize = 16;

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
    Namespace,
}

/// Names of `import … as name`.
#[derive(Debug)]
pub(super) struct Module {
    pub(super) file: String,
    pub(super) names: BTreeMap<String, Known>,
}

/// A value that may be missing.
#[derive(Debug)]
pub(super) struct Lack {
    pub(super) why: Why,
    /// The expression that tells whether the value is there, such as the query's name. Empty if
    /// only the expression itself does.
    pub(super) path: String,
    pub(super) finding: Finding,
}

/// Why a value may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Why {
    /// The value is then none, which may be printed.
    None,
    /// It is undefined: a name is set in one branch of a condition only. Another condition may be
    /// the same.
    Branch,
    /// It is undefined where the row or the list at the path has nothing.
    Empty,
    /// It is undefined at the path.
    Absent,
    /// One of the expressions that give the value is undefined for certain.
    Fault,
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

    /// True if the value may be none, and is not undefined.
    pub(super) fn may_be_none(&self) -> bool {
        self.lack.as_ref().is_some_and(|lack| lack.why == Why::None)
    }

    /// Returns the facts that hold for both values, for a value that is one or the other.
    pub(super) fn join(&self, other: &Self) -> Self {
        let (shape, lack) = match (&self.shape, &other.shape) {
            (Shape::Undefined(_), Shape::Undefined(_)) | (Shape::None, Shape::None) => {
                (self.shape.clone(), None)
            }
            (Shape::Undefined(why), shape) | (shape, Shape::Undefined(why)) => {
                let lack = Lack {
                    why: Why::Fault,
                    path: String::new(),
                    finding: (**why).clone(),
                };
                (shape.clone(), Some(Rc::new(lack)))
            }
            (Shape::None, Shape::Any) | (Shape::Any, Shape::None) => (Shape::Any, None),
            (Shape::None, shape) | (shape, Shape::None) => {
                (shape.clone(), Some(Rc::new(Lack::none())))
            }
            (one, two) => (join_shapes(one, two), None),
        };
        // That one of the two is undefined says more than that one may be missing.
        let lacks = [lack, self.lack.clone(), other.lack.clone()];
        let lack = lacks.into_iter().flatten().max_by_key(|lack| lack.why);
        Self { shape, lack }
    }

    /// The value where a condition says that it is true, or that it is not.
    pub(super) fn narrowed(self, truth: bool) -> Self {
        let shape = self.shape.narrowed(truth);
        match (truth, self.may_be_none()) {
            (true, _) => Self::new(shape),
            (false, true) => Self::new(shape).join(&Self::new(Shape::None)),
            (false, false) => Self { shape, ..self },
        }
    }

    /// The texts of which the value is one, if it is one of some for certain.
    pub(super) fn texts(&self) -> Option<Vec<String>> {
        let shapes = self.lack.is_none().then(|| self.shape.alternatives())?;
        let texts = shapes.iter().map(|shape| match shape {
            Shape::Constant(value) => value.as_str().map(str::to_owned),
            _ => None,
        });
        texts.collect()
    }

    /// The text of this value and another: known if both are texts that are known.
    pub(super) fn followed_by(&self, other: &Self) -> Self {
        match (self.texts(), other.texts()) {
            (Some(first), Some(then)) if first.len() * then.len() <= MOST => {
                let mut both = Vec::new();
                for one in &first {
                    both.extend(then.iter().map(|two| Value::from(format!("{one}{two}"))));
                }
                Self::one_of(both)
            }
            _ => Self::scalar(),
        }
    }

    /// One of some constants.
    pub(super) fn one_of(values: impl IntoIterator<Item = Value>) -> Self {
        let values = values.into_iter().map(Shape::Constant);
        let one = values.reduce(|one, two| join_shapes(&one, &two));
        Self::new(one.unwrap_or(Shape::Any))
    }
}

impl Lack {
    /// The value may be none because another branch says so. A member of it is told at its place.
    fn none() -> Self {
        let nowhere = TemplatePlace {
            file: 0,
            offset: 0,
            is_lack: true,
        };
        Self {
            why: Why::None,
            path: String::new(),
            finding: Finding::new(nowhere, String::new(), None),
        }
    }
}

impl Shape {
    /// The shapes of which it is one.
    pub(super) fn alternatives(&self) -> &[Self] {
        match self {
            Self::OneOf(all) => all,
            one => std::slice::from_ref(one),
        }
    }

    /// True if a value of this shape can be true, or can be false.
    pub(super) fn may_be(&self, truth: bool) -> bool {
        match self {
            Self::None | Self::Undefined(_) => !truth,
            Self::Constant(value) => value.is_true() == truth,
            Self::Row(_) | Self::Module(_) | Self::Macro(_) | Self::Loop | Self::Function => truth,
            Self::Members(map) if map.of == MapKind::Literal => truth != map.fields.is_empty(),
            Self::OneOf(all) => all.iter().any(|shape| shape.may_be(truth)),
            _ => true,
        }
    }

    /// The shape of those values that are true, or of those that are false.
    pub(super) fn narrowed(&self, truth: bool) -> Self {
        let left = self.alternatives().iter();
        let left = left.filter(|shape| shape.may_be(truth)).cloned();
        left.reduce(|one, two| join_shapes(&one, &two))
            .unwrap_or(Self::Nothing)
    }

    /// The shape of a value that another render may give otherwise.
    pub(super) fn generalized(&self) -> Self {
        let all = self.alternatives().iter().map(|shape| match shape {
            Self::Constant(_) => Self::Scalar,
            shape => shape.clone(),
        });
        all.reduce(|one, two| join_shapes(&one, &two))
            .unwrap_or(Self::Any)
    }
}

fn join_shapes(one: &Shape, two: &Shape) -> Shape {
    let mut all: Vec<Shape> = Vec::new();
    for shape in one.alternatives().iter().chain(two.alternatives()) {
        if matches!(shape, Shape::Scalar) {
            all.retain(|known| !matches!(known, Shape::Constant(_)));
        }
        let merged = all.iter().position(|known| merge(known, shape).is_some());
        match merged {
            Some(at) => all[at] = merge(&all[at], shape).unwrap_or(Shape::Any),
            None => all.push(shape.clone()),
        }
    }
    let is_unknown = all.iter().any(|shape| matches!(shape, Shape::Any));
    match (all.len(), is_unknown) {
        (_, true) => Shape::Any,
        (1, _) => all.swap_remove(0),
        (2..=MOST, _) => Shape::OneOf(all.into()),
        // Of many constants each is a single value.
        (_, _) if all.iter().all(|shape| matches!(shape, Shape::Constant(_))) => Shape::Scalar,
        _ => Shape::Any,
    }
}

/// The shape of both, if one has it.
fn merge(one: &Shape, two: &Shape) -> Option<Shape> {
    let is_same = match (one, two) {
        (Shape::Nothing, shape) | (shape, Shape::Nothing) => return Some(shape.clone()),
        (Shape::Scalar, Shape::Constant(_)) | (Shape::Constant(_), Shape::Scalar) => {
            return Some(Shape::Scalar);
        }
        (Shape::Row(one), Shape::Row(two)) if one.names == two.names => {
            return Some(Shape::Row(join_columns(one, two)));
        }
        (Shape::List(one), Shape::List(two)) => return Some(Shape::List(Rc::new(one.join(two)))),
        (Shape::Group(one), Shape::Group(two)) => {
            return Some(Shape::Group(Rc::new(one.join(two))));
        }
        (Shape::Constant(one), Shape::Constant(two)) => one == two && one.kind() == two.kind(),
        (Shape::Members(one), Shape::Members(two)) if !Rc::ptr_eq(one, two) => {
            return join_members(one, two);
        }
        (Shape::Members(_), Shape::Members(_)) => true,
        (Shape::Module(one), Shape::Module(two)) => Rc::ptr_eq(one, two),
        (Shape::Macro(one), Shape::Macro(two)) => one == two,
        (Shape::Namespace(one), Shape::Namespace(two)) => one == two,
        (Shape::Scalar, Shape::Scalar)
        | (Shape::Query, Shape::Query)
        | (Shape::Loop, Shape::Loop)
        | (Shape::Function, Shape::Function) => true,
        _ => false,
    };
    is_same.then(|| one.clone())
}

/// Maps of one kind that have the same keys.
fn join_members(one: &Members, two: &Members) -> Option<Shape> {
    let has_same = one.of == two.of && one.fields.keys().eq(two.fields.keys());
    let both = || one.fields.iter().zip(two.fields.values());
    let fields = || both().map(|((name, one), two)| (name.clone(), one.join(two)));
    let of = one.of;
    has_same.then(|| {
        Shape::Members(Rc::new(Members {
            of,
            fields: fields().collect(),
        }))
    })
}

/// Rows of one query or of another that has the same columns.
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
        names: one.names.clone(),
        documents: one.documents.union(&two.documents).cloned().collect(),
        cell: join_shapes(&one.cell, &two.cell),
    })
}
