//! What a condition tells of the values that it looks at.

use minijinja::machinery::ast::{BinOp, BinOpKind, CallArg, Expr, UnaryOpKind};

use super::{
    shape::{Known, Shape, Why},
    syntax::constant_text,
    walk::Walk,
};

/// Fact about the value of one expression, such as `article` or `request.query.q`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fact {
    /// The value is there, or a condition that looks at it was passed.
    Given,
    /// The value is true.
    True,
    /// The value is undefined, none, an empty list, or false in another way.
    Absent,
    /// `is defined` was asked, and is false.
    Undefined,
    /// The name was set anew: what was known of it before counts no more.
    Forgotten,
}

/// The facts of all conditions that were passed, the newest last.
#[derive(Debug, Default)]
pub(super) struct Facts(Vec<(String, Fact)>);

impl Facts {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Drops the facts of a branch that is left.
    pub(super) fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
    }

    pub(super) fn forget(&mut self, name: &str) {
        self.0.push((name.to_owned(), Fact::Forgotten));
    }

    pub(super) fn given(&mut self, path: String) {
        self.0.push((path, Fact::Given));
    }

    /// The facts about a path, the newest first, since a name in it was set.
    fn of(&self, path: &str) -> impl Iterator<Item = Fact> {
        let newest = self.0.iter().rev();
        let about = newest.filter(move |(known, fact)| match fact {
            Fact::Forgotten => goes_through(path, known),
            _ => known == path,
        });
        let about = about.map(|(_, fact)| *fact);
        about.take_while(|fact| *fact != Fact::Forgotten)
    }

    /// The value of the expression at `path`, with what the conditions tell of it.
    pub(super) fn settle(&self, path: Option<&str>, mut value: Known) -> Known {
        let facts: Vec<Fact> = path.map_or_else(Vec::new, |path| self.of(path).collect());
        for (fact, truth) in [(Fact::True, true), (Fact::Absent, false)] {
            if facts.contains(&fact) && matches!(value.shape, Shape::OneOf(_)) {
                value.shape = value.shape.narrowed(truth);
            }
        }
        let Some(lack) = value.lack.clone() else {
            return value;
        };
        for fact in facts {
            match (fact, lack.why) {
                (Fact::Given | Fact::True, _) => value.lack = None,
                (Fact::Absent, Why::None) if !value.shape.may_be(false) => {
                    return Known::new(Shape::None);
                }
                (Fact::Undefined, Why::None) => return Known::new(Shape::None),
                (Fact::Undefined, _) => return Known::undefined(lack.finding.clone()),
                // It may be undefined, and may be false.
                (Fact::Absent | Fact::Forgotten, _) => continue,
            }
            return value;
        }
        match (self.of(&lack.path).next(), lack.why) {
            (Some(Fact::Given | Fact::True), _) => value.lack = None,
            (Some(Fact::Undefined), _) | (Some(Fact::Absent), Why::Empty) => {
                return Known::undefined(lack.finding.clone());
            }
            _ => {}
        }
        value
    }
}

/// The path of names that an expression is, if it is one.
pub(super) fn path(expr: &Expr<'_>) -> Option<String> {
    match expr {
        Expr::Var(var) => Some(var.id.to_owned()),
        Expr::GetAttr(attr) => Some(format!("{}.{}", path(&attr.expr)?, attr.name)),
        Expr::GetItem(item) => {
            let base = path(&item.expr)?;
            Some(match &item.subscript_expr {
                Expr::Const(key) if key.value.is_integer() => format!("{base}[{}]", key.value),
                key => match constant_text(key) {
                    Some(key) => format!("{base}.{key}"),
                    None => format!("{base}[{}]", path(key)?),
                },
            })
        }
        _ => None,
    }
}

/// True if a path goes through a name, as `names[article.id]` does through `article`.
fn goes_through(path: &str, name: &str) -> bool {
    let mut parts = path.split(['[', ']']);
    parts.any(|part| part.split('.').next() == Some(name))
}

/// The path of the list whose items an expression gives.
pub(super) fn list_path(expr: &Expr<'_>) -> Option<String> {
    match expr {
        Expr::Filter(filter) => list_path(filter.expr.as_ref()?),
        Expr::Slice(slice) => list_path(&slice.expr),
        _ => path(expr),
    }
}

/// The path of the list all of whose items an expression gives: if it is empty, so is the list.
fn whole_list_path(expr: &Expr<'_>) -> Option<String> {
    match expr {
        Expr::Filter(filter) if matches!(filter.name, "list" | "sort" | "reverse" | "unique") => {
            whole_list_path(filter.expr.as_ref()?)
        }
        _ => path(expr),
    }
}

/// The paths that an expression looks at in any case, and the beginnings of each.
fn looked_at(expr: &Expr<'_>, paths: &mut Vec<String>) {
    paths.extend(path(expr));
    match expr {
        Expr::GetAttr(attr) => looked_at(&attr.expr, paths),
        Expr::GetItem(item) => looked_at(&item.expr, paths),
        Expr::Slice(slice) if !matches!(slice.expr, Expr::Var(_)) => looked_at(&slice.expr, paths),
        Expr::UnaryOp(op) => looked_at(&op.expr, paths),
        Expr::BinOp(op) if !matches!(op.op, BinOpKind::ScAnd | BinOpKind::ScOr) => {
            looked_at(&op.left, paths);
            looked_at(&op.right, paths);
        }
        Expr::Compare(compare) => {
            looked_at(&compare.expr, paths);
            compare.ops.iter().for_each(|op| looked_at(&op.expr, paths));
        }
        // An empty list has a length, and can be joined: it need not have items.
        Expr::Filter(filter) if !matches!(filter.name, "default" | "d") => match &filter.expr {
            Some(Expr::Var(_)) | None => {}
            Some(expr) => looked_at(expr, paths),
        },
        Expr::Test(test) if !matches!(test.name, "defined" | "undefined") => {
            looked_at(&test.expr, paths);
        }
        _ => {}
    }
}

/// True if a comparison of a length with a number tells that the list has items, or has none.
fn tells_length(op: &BinOp<'_>, truth: bool) -> Option<(String, bool)> {
    let Expr::Filter(filter) = &op.left else {
        return None;
    };
    let Expr::Const(number) = &op.right else {
        return None;
    };
    if !matches!(filter.name, "length" | "count") {
        return None;
    }
    let list = filter.expr.as_ref()?;
    let number = number.value.as_i64()?;
    let has_items = match (op.op, truth, number) {
        (BinOpKind::Gt, true, 0..) | (BinOpKind::Gte | BinOpKind::Eq, true, 1..) => true,
        (BinOpKind::Ne, true, 0) | (BinOpKind::Eq, false, 0) => true,
        (BinOpKind::Lt, false, 1..) | (BinOpKind::Lte, false, 0..) => true,
        (BinOpKind::Gt, false, 0) | (BinOpKind::Gte, false, 1) => false,
        (BinOpKind::Ne, false, 0) | (BinOpKind::Eq, true, 0) => false,
        (BinOpKind::Lt, true, 1) | (BinOpKind::Lte, true, 0) => false,
        _ => return None,
    };
    let path = match has_items {
        true => list_path(list),
        false => whole_list_path(list),
    };
    Some((path?, has_items))
}

impl<'t> Walk<'t> {
    /// Adds what is known where `condition` is `truth`; false if it cannot.
    pub(super) fn assume(&mut self, condition: &'t Expr<'t>, truth: bool) -> bool {
        if let Some(value) = self.constant(condition) {
            return value.is_true() == truth;
        }
        match condition {
            Expr::UnaryOp(not) if matches!(not.op, UnaryOpKind::Not) => {
                self.assume(&not.expr, !truth)
            }
            Expr::BinOp(both) => match (both.op, truth) {
                (BinOpKind::ScAnd, true) | (BinOpKind::ScOr, false) => {
                    self.assume(&both.left, truth) && self.assume(&both.right, truth)
                }
                // It is not known which of the two decides.
                (BinOpKind::ScAnd | BinOpKind::ScOr, _) => {
                    let before = self.facts.len();
                    let left = self.assume(&both.left, truth);
                    let right = self.assume(&both.right, truth);
                    self.facts.truncate(before);
                    left || right
                }
                _ => {
                    self.compared(both, truth);
                    true
                }
            },
            Expr::Test(test) => match (test.name, truth) {
                ("defined", _) => self.assume_defined(&test.expr, truth),
                ("undefined", _) => self.assume_defined(&test.expr, !truth),
                ("none", true) => {
                    self.tell(&test.expr, false);
                    true
                }
                _ => {
                    self.mention(condition);
                    true
                }
            },
            Expr::Filter(filter) if matches!(filter.name, "length" | "count") => {
                let path = match truth {
                    true => filter.expr.as_ref().and_then(list_path),
                    false => filter.expr.as_ref().and_then(whole_list_path),
                };
                match path {
                    Some(path) => self.fact(path, truth),
                    None => self.mention(condition),
                }
                true
            }
            _ => {
                self.tell(condition, truth);
                true
            }
        }
    }

    /// A value that is there, or not. Without a path all that the expression mentions counts as
    /// looked at.
    fn tell(&mut self, expr: &'t Expr<'t>, is_there: bool) {
        if let Expr::Filter(_) | Expr::Slice(_) = expr {
            // Some of a list are there: the list is not empty. None are there: that tells nothing.
            if let Some(path) = list_path(expr).filter(|_| is_there) {
                self.fact(path, true);
            }
            return;
        }
        // What the expression goes through was looked at, too: `loop` in `loop.first`.
        match is_there {
            true => self.mention(expr),
            false => self.mention_through(expr),
        }
        if let Some(path) = path(expr) {
            self.fact(path, is_there);
        }
    }

    /// An expression that is not true may be undefined, but what it goes through is there.
    fn mention_through(&mut self, expr: &Expr<'_>) {
        match expr {
            Expr::GetAttr(attr) => self.mention(&attr.expr),
            // The list may have fewer items.
            Expr::GetItem(item) if matches!(item.subscript_expr, Expr::Const(_)) => {
                self.mention_through(&item.expr);
            }
            Expr::GetItem(item) => self.mention(&item.expr),
            Expr::Var(_) => {}
            expr => self.mention(expr),
        }
    }

    fn compared(&mut self, op: &'t BinOp<'t>, truth: bool) {
        if let Some((path, has_items)) = tells_length(op, truth) {
            return self.fact(path, has_items);
        }
        self.mention(&op.left);
        self.mention(&op.right);
    }

    fn fact(&mut self, path: String, is_there: bool) {
        let fact = if is_there { Fact::True } else { Fact::Absent };
        self.facts.0.push((path, fact));
    }

    /// All that an expression looks at counts as there: it fails otherwise, or it is a question
    /// about just that.
    fn mention(&mut self, expr: &Expr<'_>) {
        let mut paths = Vec::new();
        looked_at(expr, &mut paths);
        self.facts
            .0
            .extend(paths.into_iter().map(|path| (path, Fact::Given)));
    }

    /// True if an expression with this value is never undefined: columns of a query are there also
    /// where nothing is known of what they hold.
    fn is_certainly_defined(&mut self, expr: &'t Expr<'t>, value: &Known) -> bool {
        let lack = value.lack.as_ref();
        // A choice without `else` gives what is undefined where others give none.
        if lack.is_some_and(|lack| lack.why != Why::None || lack.path.is_empty()) {
            return false;
        }
        match (&value.shape, expr) {
            (Shape::Undefined(_), _) => false,
            (Shape::Any, Expr::GetAttr(attr)) => {
                let base = self.quietly(|walk| walk.expr(&attr.expr));
                base.lack.is_none()
                    && matches!(&base.shape, Shape::Row(of) if of.names.contains(attr.name))
            }
            (Shape::Any, _) => false,
            _ => true,
        }
    }

    fn assume_defined(&mut self, expr: &'t Expr<'t>, is_defined: bool) -> bool {
        let value = self.quietly(|walk| walk.expr(expr));
        if is_defined {
            self.mention(expr);
            return !value.is_undefined();
        }
        if self.is_certainly_defined(expr, &value) {
            return false;
        }
        if let Some(path) = path(expr) {
            self.facts.0.push((path, Fact::Undefined));
        }
        true
    }
}

/// The arguments of a call, whichever way they are given.
pub(super) fn argument<'t>(argument: &'t CallArg<'t>) -> &'t Expr<'t> {
    match argument {
        CallArg::Pos(expr)
        | CallArg::Kwarg(_, expr)
        | CallArg::PosSplat(expr)
        | CallArg::KwargSplat(expr) => expr,
    }
}
