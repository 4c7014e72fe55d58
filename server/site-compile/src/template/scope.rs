//! The names that a template sees at one point, as the template engine looks them up.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use super::{
    findings::{Finding, TemplatePlace},
    shape::{Known, Lack, Shape, Why},
};

/// One layer of names: a loop, a block, a `with`, a macro's arguments.
#[derive(Clone, Debug, Default)]
pub(super) struct Layer {
    pub(super) locals: BTreeMap<String, Known>,
    /// True if `loop` is known here.
    pub(super) is_loop: bool,
    /// The names that macros declared in this layer see, which later assignments change.
    pub(super) closure: Option<usize>,
    /// The names that the macro that is called sees.
    pub(super) enclosed: Option<usize>,
}

impl Layer {
    /// A value as macros of this layer see it: those of a loop see what earlier rounds have set.
    fn seen_later(&self, value: &Known) -> Known {
        match self.is_loop {
            true => value.clone().generalized(),
            false => value.clone(),
        }
    }
}

/// All names that are known at one point.
#[derive(Debug)]
pub(super) struct Scope {
    pub(super) frames: Vec<Layer>,
    closures: Vec<BTreeMap<String, Known>>,
    /// Names that the page gives: its queries, `params` and `request`.
    roots: BTreeMap<String, Known>,
    /// The engine's functions.
    globals: Vec<String>,
    /// True once something may have set any name: then a name that is not known is accepted.
    pub(super) is_open: bool,
}

impl Scope {
    pub(super) fn new(roots: BTreeMap<String, Known>, globals: Vec<String>) -> Self {
        Self {
            frames: vec![Layer::default()],
            closures: Vec::new(),
            roots,
            globals,
            is_open: false,
        }
    }

    /// Returns the meaning of a name; none if nothing gives it.
    pub(super) fn find(&self, name: &str) -> Option<Known> {
        self.find_in(&self.frames, name)
    }

    fn find_in(&self, frames: &[Layer], name: &str) -> Option<Known> {
        for frame in frames.iter().rev() {
            if let Some(value) = frame.locals.get(name) {
                return Some(value.clone());
            }
            if frame.is_loop && name == "loop" {
                return Some(Known::new(Shape::Loop));
            }
            let enclosed = frame.enclosed.map(|at| &self.closures[at]);
            if let Some(value) = enclosed.and_then(|names| names.get(name)) {
                return Some(value.clone());
            }
        }
        if let Some(value) = self.roots.get(name) {
            return Some(value.clone());
        }
        if self.globals.iter().any(|global| global == name) {
            return Some(Known::new(Shape::Function));
        }
        self.is_open.then(Known::any)
    }

    pub(super) fn store(&mut self, name: &str, value: Known) {
        let top = self.frames.last_mut().expect("there is always a frame");
        if let Some(closure) = top.closure {
            add(&mut self.closures[closure], name, &top.seen_later(&value));
        }
        top.locals.insert(name.to_owned(), value);
    }

    pub(super) fn push(&mut self, frame: Layer) {
        self.frames.push(frame);
    }

    pub(super) fn pop(&mut self) -> Layer {
        self.frames.pop().expect("each frame is popped once")
    }

    /// Keeps what a macro that is declared here sees: the names that it mentions, and those that
    /// are stored in this layer later. Nothing as long as no macro of the layer mentions any.
    pub(super) fn enclose(&mut self, mentioned: &BTreeSet<&str>) -> Option<usize> {
        let mut visible = self.visible();
        visible.retain(|name, _| mentioned.contains(name.as_str()));
        let top = self.frames.last_mut().expect("there is always a frame");
        if mentioned.is_empty() {
            return top.closure;
        }
        let closure = *top.closure.get_or_insert_with(|| {
            self.closures.push(BTreeMap::new());
            self.closures.len() - 1
        });
        for (name, value) in visible {
            add(&mut self.closures[closure], &name, &top.seen_later(&value));
        }
        Some(closure)
    }

    fn visible(&self) -> BTreeMap<String, Known> {
        let mut names = BTreeMap::new();
        for frame in &self.frames {
            if let Some(enclosed) = frame.enclosed {
                names.extend(self.closures[enclosed].clone());
            }
            if frame.is_loop {
                names.insert("loop".to_owned(), Known::new(Shape::Loop));
            }
            names.extend(frame.locals.clone());
        }
        names
    }

    /// The names that could have been meant: of the page, and set by templates.
    pub(super) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.roots.keys().cloned().collect();
        names.extend(self.visible().into_keys());
        names
    }

    /// The names that can be called.
    pub(super) fn callable(&self) -> Vec<String> {
        let macros = self.visible().into_iter();
        let macros = macros.filter(|(_, value)| matches!(value.shape, Shape::Macro(_)));
        let macros = macros.map(|(name, _)| name);
        macros.chain(self.globals.iter().cloned()).collect()
    }

    /// True if the page is an error page, which has no request.
    pub(super) fn is_of_error(&self) -> bool {
        !self.roots.contains_key("request")
    }

    /// True if this point is reached several times, with other names each time: in a loop or a
    /// macro.
    pub(super) fn may_be_set_later(&self) -> bool {
        let mut frames = self.frames.iter();
        frames.any(|frame| frame.is_loop || frame.enclosed.is_some())
    }

    /// True if a name is what the page gives, and nothing that a template has set.
    pub(super) fn is_root(&self, name: &str) -> bool {
        let is_set = self.frames.iter().any(|frame| {
            let enclosed = frame.enclosed.map(|at| &self.closures[at]);
            frame.locals.contains_key(name)
                || enclosed.is_some_and(|names| names.contains_key(name))
        });
        self.roots.contains_key(name) && !is_set
    }

    /// The names that the page gives.
    pub(super) fn roots(&self) -> impl Iterator<Item = &str> {
        self.roots.keys().map(String::as_str)
    }

    /// Forgets what is known of the names that templates set, as anything may have set them.
    pub(super) fn forget(&mut self) {
        self.is_open = true;
        let closures = self.closures.iter_mut();
        let locals = self.frames.iter_mut().map(|frame| &mut frame.locals);
        for names in locals.chain(closures) {
            names.values_mut().for_each(|value| *value = Known::any());
        }
    }

    /// Values that are set in this layer count as those of any call.
    pub(super) fn generalize(&mut self) {
        let top = self.frames.last_mut().expect("there is always a frame");
        for value in top.locals.values_mut() {
            *value = value.clone().generalized();
        }
    }

    /// The names after two branches of which one is taken; the place is that of the condition.
    pub(super) fn join(&self, one: &[Layer], two: &[Layer], place: TemplatePlace) -> Vec<Layer> {
        let mut joined = one.to_vec();
        for (depth, frame) in joined.iter_mut().enumerate() {
            let (mine, other) = (&one[depth], &two[depth]);
            frame.closure = mine.closure.or(other.closure);
            let names = mine.locals.keys().chain(other.locals.keys());
            frame.locals = names
                .map(|name| {
                    let value = |frames: &[Layer]| {
                        let own = frames[depth].locals.get(name).cloned();
                        own.or_else(|| self.find_in(&frames[..depth], name))
                    };
                    (name.clone(), join(name, value(one), value(two), place))
                })
                .collect();
        }
        joined
    }
}

/// A closure is seen by calls before and after an assignment.
fn add(names: &mut BTreeMap<String, Known>, name: &str, value: &Known) {
    let joined = names
        .get(name)
        .map_or_else(|| value.clone(), |known| known.join(value));
    names.insert(name.to_owned(), joined);
}

fn join(name: &str, one: Option<Known>, two: Option<Known>, place: TemplatePlace) -> Known {
    match (one, two) {
        (Some(one), Some(two)) => one.join(&two),
        (Some(value), None) | (None, Some(value)) => {
            let message = format!("`{name}` is set in one branch of this condition only");
            let hint =
                format!("set it before the condition, or write {{{{ {name} | default('') }}}}");
            let finding = Finding::lack(place, message, hint);
            let lack = value.lack.clone();
            let lack = lack.unwrap_or_else(|| {
                Rc::new(Lack {
                    why: Why::Branch,
                    path: String::new(),
                    finding,
                })
            });
            Known {
                lack: Some(lack),
                ..value
            }
        }
        (None, None) => Known::any(),
    }
}
