//! A walk over a page's templates as rendering them would go, with shapes in the place of values.
//!
//! Both branches of a condition are walked unless one of them is never taken, a loop once, a macro
//! at each call. What the walk does not know it accepts.

use std::collections::{BTreeMap, BTreeSet};

use minijinja::machinery::ast::{Block, Expr, ForLoop, IfCond, Macro, Set, SetBlock, Stmt};

use super::{
    facts::{Facts, list_path, path},
    findings::{Finding, Findings, Parsed, TemplatePlace},
    names::Names,
    scope::{Layer, Scope},
    shape::{Known, Lack, Shape, Why},
};
use millpond_site_format::params::Param;

/// Statements and expressions that one page's walk may take. Macros that call each other twice
/// would otherwise take exponential time.
const STEPS: usize = 300_000;

/// How deep statements, expressions, macros and includes may lie in each other.
const DEPTH: usize = 160;

/// The walk over one page.
pub(super) struct Walk<'t> {
    pub(super) templates: &'t [Parsed<'t>],
    pub(super) names: &'t Names,
    /// The page's parameters.
    pub(super) params: &'t [Param],
    /// The page's template.
    pub(super) page: usize,
    /// The template in which the walk is.
    pub(super) file: usize,
    pub(super) scope: Scope,
    pub(super) facts: Facts,
    pub(super) macros: Vec<Declared<'t>>,
    /// The members of each namespace, joined of all values that were set.
    pub(super) namespaces: Vec<BTreeMap<String, Known>>,
    /// The values of the path for which the page is walked, for messages.
    pub(super) case: String,
    pub(super) blocks: BTreeMap<&'t str, Vec<(usize, &'t Block<'t>)>>,
    /// The block in which the walk is, and which definition of it.
    pub(super) block: Option<(&'t str, usize)>,
    /// The layout that the template extends, once it has said so.
    pub(super) parent: Option<usize>,
    /// True if blocks are not shown where they stand.
    pub(super) skips_blocks: bool,
    /// Conditions around this place.
    pub(super) conditions: usize,
    /// Above 0 nothing is told.
    pub(super) quiet: usize,
    /// True while a loop is walked for what it sets in namespaces.
    pub(super) is_gathering: bool,
    /// The macros in which the walk is.
    pub(super) calls: Vec<usize>,
    pub(super) depth: usize,
    pub(super) steps: usize,
    pub(super) findings: &'t mut Findings,
}

/// A macro that was declared.
#[derive(Clone, Copy)]
pub(super) struct Declared<'t> {
    pub(super) file: usize,
    pub(super) decl: &'t Macro<'t>,
    pub(super) closure: Option<usize>,
}

impl<'t> Walk<'t> {
    /// The place of a name in the template that the walk is in.
    pub(super) fn place(&self, name: &str) -> TemplatePlace {
        let source = self.templates[self.file].source;
        let offset = (name.as_ptr() as usize).wrapping_sub(source.as_ptr() as usize);
        let offset = if offset <= source.len() { offset } else { 0 };
        TemplatePlace {
            file: self.file,
            offset,
            is_lack: false,
        }
    }

    pub(super) fn place_of(&self, expr: &Expr<'_>) -> TemplatePlace {
        TemplatePlace {
            file: self.file,
            offset: expr.span().start_offset as usize,
            is_lack: false,
        }
    }

    pub(super) fn fault(&mut self, finding: &Finding) {
        if self.quiet == 0 {
            self.findings.fault(finding, (self.page, &self.case));
        }
    }

    /// A value is used in a way that it must be there for.
    pub(super) fn need(&mut self, value: &Known) {
        if let Shape::Undefined(why) = &value.shape {
            return self.fault(why);
        }
        match value.lack.as_ref().map(|lack| (lack, lack.why)) {
            None | Some((_, Why::None)) => {}
            Some((lack, Why::Fault)) => self.fault(&lack.finding),
            // Another condition may well be the same as that in which the name is set.
            Some((_, Why::Branch)) if self.conditions > 0 => {}
            Some((lack, _)) => self.doubt(&lack.finding),
        }
    }

    /// Something is perhaps not meant, or may be missing here.
    pub(super) fn doubt(&mut self, finding: &Finding) {
        if self.quiet == 0 {
            self.findings.doubt(finding, (self.page, &self.case));
        }
    }

    pub(super) fn quietly<T>(&mut self, walk: impl FnOnce(&mut Self) -> T) -> T {
        self.quiet += 1;
        let result = walk(self);
        self.quiet -= 1;
        result
    }

    /// Counts a step; false if the walk has taken too many, or goes too deep. Then names are
    /// forgotten, as those that would have been set are unknown.
    pub(super) fn enter(&mut self) -> bool {
        self.steps += 1;
        if self.steps > STEPS || self.depth >= DEPTH {
            self.scope.forget();
            return false;
        }
        self.depth += 1;
        true
    }

    pub(super) fn stmts(&mut self, stmts: &'t [Stmt<'t>]) {
        for stmt in stmts {
            if self.enter() {
                self.stmt(stmt);
                self.depth -= 1;
            }
        }
    }

    fn stmt(&mut self, stmt: &'t Stmt<'t>) {
        match stmt {
            Stmt::Template(template) => self.stmts(&template.children),
            Stmt::EmitExpr(emit) => {
                let value = self.expr(&emit.expr);
                self.need(&value);
                self.shows_whole(&value, &emit.expr);
            }
            Stmt::EmitRaw(_) => {}
            Stmt::ForLoop(each) => self.for_loop(each),
            Stmt::IfCond(choice) => self.if_cond(choice),
            Stmt::WithBlock(with) => {
                self.scope.push(Layer::default());
                for (target, expr) in &with.assignments {
                    let value = self.expr(expr);
                    self.assign(target, &value);
                }
                self.stmts(&with.body);
                self.scope.pop();
            }
            Stmt::Set(set) => self.set(set),
            Stmt::SetBlock(set) => self.set_block(set),
            Stmt::AutoEscape(escape) => {
                self.needed(&escape.enabled);
                self.stmts(&escape.body);
            }
            Stmt::FilterBlock(filter) => {
                self.stmts(&filter.body);
                self.needed(&filter.filter);
            }
            Stmt::Block(block) => {
                if !self.skips_blocks {
                    self.call_block(block.name, 0);
                }
            }
            Stmt::Import(import) => self.import(import),
            Stmt::FromImport(import) => self.import_names(import),
            Stmt::Extends(extends) => self.extends(extends),
            Stmt::Include(include) => self.include(&include.name, include.ignore_missing),
            Stmt::Macro(decl) => {
                let value = self.declare(decl);
                self.store(decl.name, value);
            }
            Stmt::CallBlock(block) => self.call_with_block(block),
            Stmt::Do(call) => drop(self.call(&call.call, None)),
        }
    }

    fn set(&mut self, set: &'t Set<'t>) {
        let value = self.expr(&set.expr);
        self.assign(&set.target, &value);
    }

    fn set_block(&mut self, set: &'t SetBlock<'t>) {
        self.stmts(&set.body);
        if let Some(filter) = &set.filter {
            self.needed(filter);
        }
        self.assign(&set.target, &Known::scalar());
    }

    /// An expression whose value must be there.
    pub(super) fn needed(&mut self, expr: &'t Expr<'t>) -> Known {
        let value = self.expr(expr);
        self.need(&value);
        value
    }

    pub(super) fn store(&mut self, name: &str, value: Known) {
        self.facts.forget(name);
        self.scope.store(name, value);
    }

    /// Gives a value to a name, or its parts to several.
    pub(super) fn assign(&mut self, target: &'t Expr<'t>, value: &Known) {
        match target {
            Expr::Var(var) => self.store(var.id, value.clone()),
            Expr::List(list) => {
                self.need(value);
                for (at, target) in list.items.iter().enumerate() {
                    let part = match (&value.shape, at) {
                        (Shape::List(item), _) => (**item).clone(),
                        (Shape::Group(item), 1) => Known::new(Shape::List(item.clone())),
                        _ => Known::any(),
                    };
                    self.assign(target, &part);
                }
            }
            Expr::GetAttr(attr) => {
                let base = self.needed(&attr.expr);
                let whole = path(target).unwrap_or_default();
                self.facts
                    .forget(whole.split(['.', '[']).next().unwrap_or_default());
                let place = self.place(attr.name);
                for shape in base.shape.alternatives() {
                    self.set_member(shape, (attr.name, &whole), value, place);
                }
            }
            _ => {}
        }
    }

    /// Sets a member of a namespace. What is read earlier in a loop or a macro may be what is set
    /// later, so a member may be each value that it is given.
    fn set_member(
        &mut self,
        shape: &Shape,
        (name, path): (&str, &str),
        value: &Known,
        place: TemplatePlace,
    ) {
        let is_certain = self.conditions == 0 && !self.scope.may_be_set_later();
        match shape {
            Shape::Namespace(at) => {
                let members = &mut self.namespaces[*at];
                let value = match members.get(name) {
                    Some(known) => known.join(value),
                    None if is_certain => value.clone(),
                    None => value.clone().lacking(Lack {
                        why: Why::Absent,
                        path: path.to_owned(),
                        finding: Finding::lack(
                            place,
                            format!("`{path}` may not be set yet where it is used"),
                            format!("give it a value at the start: namespace({name} = none)"),
                        ),
                    }),
                };
                members.insert(name.to_owned(), value);
            }
            Shape::Any | Shape::Nothing | Shape::Undefined(_) => {}
            _ => {
                let message = format!("`{path}` cannot be set: only a namespace takes values");
                let hint =
                    "write {% set ns = namespace(name = value) %}, then {% set ns.name = other %}";
                self.fault(&Finding::new(place, message, Some(hint.to_owned())));
            }
        }
    }

    fn for_loop(&mut self, each: &'t ForLoop<'t>) {
        let list = self.needed(&each.iter);
        let mut shapes = list.shape.alternatives().iter();
        let is_single = |shape: &Shape| match shape {
            Shape::Scalar => true,
            Shape::Constant(value) => value.try_iter().is_err(),
            _ => false,
        };
        if shapes.any(is_single) {
            let message = "a loop takes a list, and this is a single value".to_owned();
            let hint = "a number is an error there, and a text is each of its letters".to_owned();
            self.doubt(&Finding::new(
                self.place_of(&each.iter),
                message,
                Some(hint),
            ));
        }
        let items = list.shape.alternatives().iter();
        let items = items.map(|shape| match shape {
            Shape::List(item) | Shape::Group(item) => (**item).clone(),
            shape if is_map(shape) => Known::scalar(),
            _ => Known::any(),
        });
        let item = match each.recursive {
            // The inner calls may give other lists.
            true => Known::any(),
            false => items
                .reduce(|one, two| one.join(&two))
                .unwrap_or_else(Known::any),
        };
        if !self.namespaces.is_empty() && !self.is_gathering {
            // A round sees what the rounds before it have set.
            let frames = self.scope.frames.clone();
            self.is_gathering = true;
            self.quietly(|walk| walk.rounds(each, &list, &item));
            self.is_gathering = false;
            self.scope.frames = frames;
        }
        self.rounds(each, &list, &item);
        if !each.else_body.is_empty() {
            self.is_empty_on_error_pages(&each.iter);
            let frames = self.scope.frames.clone();
            self.branch(|walk| walk.stmts(&each.else_body), true);
            let place = self.place_of(&each.iter);
            self.scope.frames = self.scope.join(&self.scope.frames, &frames, place);
        }
    }

    /// Walks the body of a loop over a list of such items.
    fn rounds(&mut self, each: &'t ForLoop<'t>, list: &Known, item: &Known) {
        let before = self.facts.len();
        if let Some(path) = list_path(&each.iter) {
            self.facts.given(path);
        }
        if let Some(filter) = &each.filter_expr {
            self.scope.push(Layer::default());
            self.assign(&each.target, item);
            self.asked(filter);
            self.scope.pop();
        }
        self.scope.push(Layer {
            is_loop: true,
            ..Layer::default()
        });
        self.assign(&each.target, item);
        if list.shape.alternatives().iter().all(is_map)
            && let Expr::Var(key) = &each.target
            && let Some(map) = list_path(&each.iter)
        {
            // The keys of a map are there.
            self.facts.given(format!("{map}[{}]", key.id));
        }
        let is_live = each
            .filter_expr
            .as_ref()
            .is_none_or(|filter| self.assume(filter, true));
        if is_live {
            self.branch(|walk| walk.stmts(&each.body), each.filter_expr.is_some());
        }
        self.scope.pop();
        self.facts.truncate(before);
    }

    fn if_cond(&mut self, choice: &'t IfCond<'t>) {
        self.asked(&choice.expr);
        self.chosen_on_error_pages(choice);
        let frames = self.scope.frames.clone();
        let taken = self.under(&choice.expr, true, |walk| walk.stmts(&choice.true_body));
        let after = std::mem::replace(&mut self.scope.frames, frames);
        let other = self.under(&choice.expr, false, |walk| walk.stmts(&choice.false_body));
        if taken.is_some() && other.is_some() {
            let place = self.place_of(&choice.expr);
            self.scope.frames = self.scope.join(&after, &self.scope.frames, place);
        } else if taken.is_some() {
            self.scope.frames = after;
        }
    }

    /// Walks a branch with what its condition tells; none if the branch is never taken.
    pub(super) fn under<T>(
        &mut self,
        condition: &'t Expr<'t>,
        truth: bool,
        walk: impl FnOnce(&mut Self) -> T,
    ) -> Option<T> {
        let before = self.facts.len();
        let is_live = self.assume(condition, truth);
        let result = is_live.then(|| self.branch(walk, true));
        self.facts.truncate(before);
        result
    }

    fn branch<T>(&mut self, walk: impl FnOnce(&mut Self) -> T, is_conditional: bool) -> T {
        self.conditions += usize::from(is_conditional);
        let result = walk(self);
        self.conditions -= usize::from(is_conditional);
        result
    }

    /// Walks another template's statements, or those of a macro or block in it.
    pub(super) fn within<T>(&mut self, file: usize, walk: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.file, file);
        let result = walk(self);
        self.file = before;
        result
    }

    /// Walks a whole template, and the layouts that it extends.
    pub(super) fn template(&mut self, file: usize) {
        let blocks = std::mem::take(&mut self.blocks);
        let (parent, skips) = (self.parent.take(), self.skips_blocks);
        let mut loaded = BTreeSet::new();
        let mut hidden = Vec::new();
        let mut next = Some(file);
        while let Some(file) = next.filter(|file| loaded.insert(*file)) {
            self.skips_blocks = skips;
            let mut own = Vec::new();
            blocks_of(std::slice::from_ref(&self.templates[file].root), &mut own);
            hidden.retain(|(_, name)| !own.iter().any(|block| block.name == *name));
            for block in own {
                let known = self.blocks.entry(block.name).or_default();
                known.push((file, block));
            }
            let templates = self.templates;
            self.within(file, |walk| {
                walk.stmts(std::slice::from_ref(&templates[file].root));
            });
            next = self.parent.take();
            if next.is_some() && self.skips_blocks {
                let mut own = Vec::new();
                outer_blocks(std::slice::from_ref(&templates[file].root), &mut own);
                hidden.extend(own.iter().map(|block| (file, block.name)));
            }
        }
        for (file, name) in hidden {
            self.hidden_block(file, name);
        }
        self.blocks = blocks;
        (self.parent, self.skips_blocks) = (parent, skips);
    }
}

/// True if a loop over such a value gives the names of its columns or members.
fn is_map(shape: &Shape) -> bool {
    matches!(
        shape,
        Shape::Row(_) | Shape::Members(_) | Shape::Namespace(_) | Shape::Query
    )
}

/// All blocks that a template defines, also those within others.
fn blocks_of<'t>(stmts: &'t [Stmt<'t>], blocks: &mut Vec<&'t Block<'t>>) {
    let start = blocks.len();
    outer_blocks(stmts, blocks);
    for at in start..blocks.len() {
        let block = blocks[at];
        blocks_of(&block.body, blocks);
    }
}

/// The blocks that a template defines outside of others.
fn outer_blocks<'t>(stmts: &'t [Stmt<'t>], blocks: &mut Vec<&'t Block<'t>>) {
    for stmt in stmts {
        match stmt {
            Stmt::Template(template) => outer_blocks(&template.children, blocks),
            Stmt::Block(block) => blocks.push(block),
            Stmt::ForLoop(each) => {
                outer_blocks(&each.body, blocks);
                outer_blocks(&each.else_body, blocks);
            }
            Stmt::IfCond(choice) => {
                outer_blocks(&choice.true_body, blocks);
                outer_blocks(&choice.false_body, blocks);
            }
            Stmt::WithBlock(with) => outer_blocks(&with.body, blocks),
            Stmt::SetBlock(set) => outer_blocks(&set.body, blocks),
            Stmt::AutoEscape(escape) => outer_blocks(&escape.body, blocks),
            Stmt::FilterBlock(filter) => outer_blocks(&filter.body, blocks),
            _ => {}
        }
    }
}
