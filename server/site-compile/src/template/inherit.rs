//! Templates that refer to others: layouts and their blocks, `include`, `import`.

use std::rc::Rc;

use minijinja::machinery::ast::{Expr, Extends, FromImport, Import};

use super::{
    findings::{Finding, TemplatePlace},
    scope::Layer,
    shape::{Known, Module, Shape},
    syntax::constant_text,
    walk::Walk,
};
use millpond_site_format::suggest::closest;

impl<'t> Walk<'t> {
    /// Walks a block's definition: 0 is that of the page, those after it are of its layouts.
    pub(super) fn call_block(&mut self, name: &'t str, level: usize) {
        let Some(definitions) = self.blocks.get(name) else {
            let known: Vec<&str> = self.blocks.keys().copied().collect();
            let hint = closest(name, known).map(|near| format!("did you mean `{near}`?"));
            let place = self.place(name);
            let finding = Finding::new(place, format!("there is no block `{name}`"), hint);
            return self.fault(&finding);
        };
        let Some((file, block)) = definitions.get(level).copied() else {
            return;
        };
        if block.required && definitions.len() == 1 {
            let place = self.within(file, |walk| walk.place(block.name));
            let message = format!("the block `{name}` is required, and no template gives it");
            let hint = format!("write {{% block {name} %}}…{{% endblock %}} in the page");
            self.fault(&Finding::new(place, message, Some(hint)));
        }
        let before = self.block.replace((name, level));
        let skips = std::mem::replace(&mut self.skips_blocks, false);
        self.scope.push(Layer::default());
        self.within(file, |walk| walk.stmts(&block.body));
        self.scope.pop();
        self.skips_blocks = skips;
        self.block = before;
    }

    /// A block that no layout shows: what is in it would be lost.
    pub(super) fn hidden_block(&mut self, file: usize, name: &'t str) {
        let call = format!("self.{name}");
        if self
            .templates
            .iter()
            .any(|template| template.source.contains(&call))
        {
            return;
        }
        let known = self.blocks.iter().filter(|(_, definitions)| {
            // Those that a layout defines.
            definitions.last().is_some_and(|(last, _)| *last != file)
        });
        let known: Vec<&str> = known.map(|(known, _)| *known).collect();
        let hint = match closest(name, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if known.is_empty() => "the layout has no blocks".to_owned(),
            None => format!("the layout has: {}", known.join(", ")),
        };
        let place = self.within(file, |walk| walk.place(name));
        let message = format!("the layout has no block `{name}`, so this one is never shown");
        self.fault(&Finding::new(place, message, Some(hint)));
    }

    /// `super()`: the same block in the layout.
    pub(super) fn call_super(&mut self, place: TemplatePlace) {
        let above = self.block.map(|(name, level)| (name, level + 1));
        let exists = above.is_some_and(|(name, level)| {
            let definitions = self.blocks.get(name);
            definitions.is_some_and(|known| known.len() > level)
        });
        match above {
            Some((name, level)) if exists => self.call_block(name, level),
            // A layout that is chosen when the page is rendered may have the block.
            _ if self.scope.is_open => {}
            _ => {
                let message = "super() is the same block in the layout, and there is none";
                self.fault(&Finding::new(place, message.to_owned(), None));
            }
        }
    }

    /// The place of a template among all; those that do not exist are told elsewhere.
    fn find(&self, name: &str) -> Option<usize> {
        let mut templates = self.templates.iter();
        templates.position(|template| template.name == name)
    }

    /// The names of which the template to load is one; none if it can be any, which may set any
    /// name.
    fn loaded(&mut self, name: &'t Expr<'t>) -> Option<Vec<String>> {
        let names = self.needed(name).texts();
        if names.is_none() {
            self.scope.forget();
        }
        names
    }

    pub(super) fn extends(&mut self, extends: &'t Extends<'t>) {
        let names = self.loaded(&extends.name);
        let parent = match names.as_deref() {
            Some([name]) => Some(self.find(name)),
            Some(_) => {
                self.scope.forget();
                None
            }
            None => None,
        };
        self.parent = parent.flatten().or(self.parent);
        // Unless it is certain that the layout shows the blocks, they are walked where they stand.
        self.skips_blocks = parent.is_some() && self.conditions == 0;
        if !self.skips_blocks {
            self.scope.forget();
        }
    }

    pub(super) fn include(&mut self, name: &'t Expr<'t>, may_be_missing: bool) {
        let choices: Option<Vec<&str>> = match name {
            Expr::List(list) => list.items.iter().map(constant_text).collect(),
            Expr::Tuple(list) => list.items.iter().map(constant_text).collect(),
            _ => constant_text(name).map(|name| vec![name]),
        };
        if let Some(choices) = choices {
            return self.include_first(name, &choices, may_be_missing);
        }
        // One of several: the names are those of each.
        let before = self.scope.frames.clone();
        let mut after: Option<Vec<Layer>> = None;
        for choice in self.loaded(name).unwrap_or_default() {
            self.scope.frames.clone_from(&before);
            self.include_first(name, &[&choice], may_be_missing);
            let frames = std::mem::take(&mut self.scope.frames);
            let place = self.place_of(name);
            after = Some(match after {
                Some(after) => self.scope.join(&after, &frames, place),
                None => frames,
            });
        }
        self.scope.frames = after.unwrap_or(before);
        if self.scope.is_open {
            self.scope.forget();
        }
    }

    /// Walks the first of some templates that is there.
    fn include_first(&mut self, name: &'t Expr<'t>, choices: &[&str], may_be_missing: bool) {
        match choices.iter().find_map(|name| self.find(name)) {
            Some(file) if self.depth < 100 => {
                let top = self.scope.frames.last_mut();
                let closure = top.and_then(|frame| frame.closure.take());
                self.template(file);
                if let Some(frame) = self.scope.frames.last_mut() {
                    frame.closure = closure;
                }
            }
            Some(_) => self.scope.forget(),
            None if may_be_missing => {}
            None => self.no_template(name, choices),
        }
    }

    /// One name that is written out and missing is found by another check.
    fn no_template(&mut self, name: &'t Expr<'t>, choices: &[&str]) {
        let message = match choices {
            [one] if constant_text(name).is_none() => {
                Some(format!("there is no template `{one}`, which this may name"))
            }
            [_] => None,
            _ => Some(format!(
                "there is none of the templates {}",
                choices.join(", ")
            )),
        };
        if let Some(message) = message {
            let place = self.place_of(name);
            self.fault(&Finding::new(place, message, None));
        }
        self.scope.forget();
    }

    /// The names that a template sets, as a module.
    fn module(&mut self, expr: &'t Expr<'t>) -> Option<Rc<Module>> {
        self.scope.push(Layer::default());
        self.include(expr, false);
        let frame = self.scope.pop();
        let file = self.quietly(|walk| walk.expr(expr)).texts();
        let file = file.filter(|_| !self.scope.is_open)?;
        let mut names = frame.locals;
        names.retain(|name, _| !name.starts_with('_'));
        Some(Rc::new(Module {
            file: super::file_of(file.first()?),
            names: names.into_iter().collect(),
        }))
    }

    pub(super) fn import(&mut self, import: &'t Import<'t>) {
        let module = self.module(&import.expr);
        let value = module.map_or_else(Known::any, |module| Known::new(Shape::Module(module)));
        self.assign(&import.name, &value);
    }

    pub(super) fn import_names(&mut self, import: &'t FromImport<'t>) {
        let skips = std::mem::replace(&mut self.skips_blocks, true);
        let module = self.module(&import.expr);
        self.skips_blocks = skips;
        for (name, alias) in &import.names {
            let Expr::Var(var) = name else { continue };
            let value = match &module {
                Some(module) => {
                    let place = self.place(var.id);
                    // A name that the module does not set is looked up where it is imported.
                    let outer = self.scope.find(var.id);
                    self.member_of_module(module, outer, var.id, place)
                }
                None => Known::any(),
            };
            self.assign(alias.as_ref().unwrap_or(name), &value);
        }
    }

    pub(super) fn member_of_module(
        &mut self,
        module: &Rc<Module>,
        outer: Option<Known>,
        name: &str,
        place: TemplatePlace,
    ) -> Known {
        if let Some(value) = module.names.get(name).cloned().or(outer) {
            return value;
        }
        let near = closest(name, module.names.keys().map(String::as_str));
        let hint = near.map(|near| format!("did you mean `{near}`?"));
        let message = format!("{} has no macro or value `{name}`", module.file);
        Known::undefined(Finding::new(place, message, hint))
    }
}
