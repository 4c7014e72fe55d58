//! Calls: macros, functions, `super()`, `caller()`, methods.

use std::{collections::BTreeMap, rc::Rc};

use minijinja::machinery::ast::{Call, CallArg, CallBlock, CallType, Expr, Macro};

use super::{
    facts::{argument, path},
    findings::{Finding, TemplatePlace},
    members::LOOP_METHODS,
    scope::Layer,
    shape::{Known, MapKind, Members, Shape},
    syntax::{enclosed, uses_caller},
    walk::{Declared, Walk},
};
use millpond_site_format::suggest::closest;

/// Arguments of a call of a macro.
#[derive(Clone, Default)]
struct Arguments<'t> {
    positional: Vec<Known>,
    named: Vec<(&'t str, Known)>,
    /// True if a list or a map was spread out, so that any argument may be there.
    is_spread: bool,
    caller: Option<Known>,
}

impl<'t> Walk<'t> {
    pub(super) fn declare(&mut self, decl: &'t Macro<'t>) -> Known {
        let closure = self.scope.enclose(&enclosed(decl));
        self.macros.push(Declared {
            file: self.file,
            decl,
            closure,
        });
        Known::new(Shape::Macro(self.macros.len() - 1))
    }

    /// `{% call name() %}…{% endcall %}`
    pub(super) fn call_with_block(&mut self, block: &'t CallBlock<'t>) {
        let caller = self.declare(&block.macro_decl);
        let value = self.call(&block.call, Some(caller));
        self.need(&value);
    }

    pub(super) fn call(&mut self, call: &'t Call<'t>, caller: Option<Known>) -> Known {
        match call.identify_call() {
            CallType::Function("super") => {
                let place = self.place_of(&call.expr);
                self.call_super(place);
                Known::scalar()
            }
            CallType::Function(name) => self.call_name(name, call, caller),
            CallType::Block(name) => {
                self.call_block(name, 0);
                Known::scalar()
            }
            CallType::Method(base, name) => self.call_method(base, name, call, caller),
            CallType::Object(callee) => {
                self.needed(callee);
                self.arguments(&call.args, true);
                Known::any()
            }
        }
    }

    fn call_name(&mut self, name: &'t str, call: &'t Call<'t>, caller: Option<Known>) -> Known {
        let place = self.place(name);
        let Some(callee) = self.scope.find(name) else {
            let known = self.scope.callable();
            let near = closest(name, known.iter().map(String::as_str));
            let hint = match near {
                Some(near) => Some(format!("did you mean `{near}`?")),
                None if self.names.is_filter(name) => {
                    Some(format!("it is a filter: {{{{ value | {name} }}}}"))
                }
                None => Some(format!("there are: {}", known.join(", "))),
            };
            let message = format!("there is no function or macro `{name}`");
            self.fault(&Finding::new(place, message, hint));
            self.arguments(&call.args, true);
            return Known::any();
        };
        let callee = self.facts.settle(Some(name), callee);
        self.call_value(&callee, name, place, call, caller)
    }

    /// Calls what a name or a member stands for.
    fn call_value(
        &mut self,
        callee: &Known,
        name: &str,
        place: TemplatePlace,
        call: &'t Call<'t>,
        caller: Option<Known>,
    ) -> Known {
        self.need(callee);
        match &callee.shape {
            Shape::Macro(_) | Shape::OneOf(_) => {
                let mut given = self.arguments(&call.args, false);
                given.caller = caller;
                for shape in callee.shape.alternatives() {
                    if let Shape::Macro(id) = shape {
                        self.call_macro(*id, given.clone(), place);
                    }
                }
                Known::scalar()
            }
            Shape::Function => {
                let given = self.arguments(&call.args, true);
                match name {
                    "range" => Known::new(Shape::List(Known::scalar().into())),
                    "dict" | "namespace" => self.made_map(given, name == "namespace"),
                    _ => Known::any(),
                }
            }
            Shape::Any | Shape::Nothing | Shape::Undefined(_) => {
                self.arguments(&call.args, false);
                Known::any()
            }
            Shape::Loop => {
                self.arguments(&call.args, true);
                Known::scalar()
            }
            _ => {
                self.arguments(&call.args, false);
                let message = format!("`{name}` is a value and cannot be called");
                let hint = format!("write it without the brackets: {{{{ {name} }}}}");
                self.fault(&Finding::new(place, message, Some(hint)));
                Known::any()
            }
        }
    }

    /// The map or the namespace of these arguments.
    fn made_map(&mut self, given: Arguments<'t>, is_namespace: bool) -> Known {
        let mut fields = match given.positional.first().map(|map| &map.shape) {
            None if !given.is_spread => BTreeMap::new(),
            Some(Shape::Members(map)) if !given.is_spread => map.fields.clone(),
            _ => return Known::any(),
        };
        let named = given.named.into_iter();
        fields.extend(named.map(|(name, value)| (name.to_owned(), value)));
        if is_namespace {
            self.namespaces.push(fields);
            return Known::new(Shape::Namespace(self.namespaces.len() - 1));
        }
        let of = MapKind::Literal;
        Known::new(Shape::Members(Rc::new(Members { of, fields })))
    }

    fn call_method(
        &mut self,
        base: &'t Expr<'t>,
        name: &'t str,
        call: &'t Call<'t>,
        caller: Option<Known>,
    ) -> Known {
        let value = self.needed(base);
        let place = self.place(name);
        match &value.shape {
            shape if shape.alternatives().iter().any(is_module) => {
                let callee = self.member(&value, path(base).as_deref(), name, place);
                return self.call_value(&callee, name, place, call, caller);
            }
            Shape::Row(_)
            | Shape::List(_)
            | Shape::Scalar
            | Shape::Constant(_)
            | Shape::Group(_)
            | Shape::Query => {
                let hint = match self.names.is_filter(name) {
                    true => format!("there is a filter of this name: {{{{ value | {name} }}}}"),
                    false => "values have filters, such as {{ value | upper }}".to_owned(),
                };
                let what = path(base).map_or_else(|| "this".to_owned(), |p| format!("`{p}`"));
                let message = format!("{what} has no method `{name}`");
                self.fault(&Finding::new(place, message, Some(hint)));
            }
            Shape::Loop if !LOOP_METHODS.contains(&name) => {
                let near = closest(name, LOOP_METHODS.iter().copied());
                let hint = near.map(|near| format!("did you mean `{near}`?"));
                let message = format!("`loop` has no method `{name}`");
                self.fault(&Finding::new(place, message, hint));
            }
            _ => {}
        }
        self.arguments(&call.args, false);
        Known::any()
    }

    /// The arguments of a call. A function must have them all; a macro need not use them.
    fn arguments(&mut self, args: &'t [CallArg<'t>], are_needed: bool) -> Arguments<'t> {
        let mut given = Arguments::default();
        for arg in args {
            let value = self.expr(argument(arg));
            if are_needed {
                self.need(&value);
            }
            match arg {
                CallArg::Pos(_) => given.positional.push(value),
                CallArg::Kwarg(name, _) => given.named.push((name, value)),
                CallArg::PosSplat(_) | CallArg::KwargSplat(_) => given.is_spread = true,
            }
        }
        given
    }

    fn call_macro(&mut self, id: usize, given: Arguments<'t>, place: TemplatePlace) -> Known {
        let declared = self.macros[id];
        self.fits(&declared, &given, place);
        let active = self.calls.iter().filter(|active| **active == id).count();
        if active > 1 || self.calls.len() > 12 {
            return Known::scalar();
        }
        let frame = Layer {
            enclosed: declared.closure,
            ..Layer::default()
        };
        let frames = std::mem::replace(&mut self.scope.frames, vec![Layer::default(), frame]);
        let facts = std::mem::take(&mut self.facts);
        let block = self.block.take();
        self.calls.push(id);
        self.within(declared.file, |walk| {
            walk.enter_macro(declared.decl, given, place);
            if active > 0 {
                // Calls further within, with other values, are not walked.
                walk.scope.generalize();
            }
            walk.stmts(&declared.decl.body);
        });
        self.calls.pop();
        self.block = block;
        self.facts = facts;
        self.scope.frames = frames;
        if self.scope.is_open {
            self.scope.forget();
        }
        Known::scalar()
    }

    /// Gives a macro's arguments their names. Those that are missing have the default, or are
    /// undefined.
    fn enter_macro(&mut self, decl: &'t Macro<'t>, given: Arguments<'t>, place: TemplatePlace) {
        let first_default = decl.args.len() - decl.defaults.len();
        let is_spread = given.is_spread;
        let mut positional = given.positional.into_iter();
        let mut absent = Vec::new();
        for (at, arg) in decl.args.iter().enumerate() {
            let Expr::Var(var) = arg else { continue };
            let named = given.named.iter().find(|(name, _)| *name == var.id);
            let value = positional
                .next()
                .or_else(|| named.map(|(_, value)| value.clone()))
                .or_else(|| is_spread.then(Known::any));
            let default = at.checked_sub(first_default).map(|at| &decl.defaults[at]);
            match (value, default) {
                (Some(value), None) => self.scope.store(var.id, value),
                (Some(value), Some(_))
                    if !value.is_undefined() && (value.lack.is_none() || value.may_be_none()) =>
                {
                    self.scope.store(var.id, value);
                }
                (value, Some(default)) => absent.push((var.id, value, default)),
                (None, None) => {
                    let message = format!(
                        "the macro `{}` is called without `{}`, which it uses",
                        decl.name, var.id
                    );
                    let value = Known::undefined(Finding::new(place, message, None));
                    self.scope.store(var.id, value);
                }
            }
        }
        for (name, value, default) in absent {
            let default = self.expr(default);
            let value = value.filter(|value| !value.is_undefined());
            let value = value.map_or(default.clone(), |value| {
                let given = Known {
                    lack: None,
                    ..value
                };
                given.join(&default)
            });
            self.scope.store(name, value);
        }
        let caller = given.caller.unwrap_or_else(|| {
            let message = format!(
                "the macro `{}` uses caller(), and no {{% call %}} block calls it",
                decl.name
            );
            Known::undefined(Finding::new(place, message, None))
        });
        self.scope.store("caller", caller);
    }

    /// Notes arguments of a call that the macro does not take.
    fn fits(&mut self, declared: &Declared<'t>, given: &Arguments<'t>, place: TemplatePlace) {
        let decl = declared.decl;
        let takes = decl.args.len();
        if given.positional.len() > takes {
            let message = format!(
                "the macro `{}` takes {takes} {}, and {} are given",
                decl.name,
                if takes == 1 { "argument" } else { "arguments" },
                given.positional.len()
            );
            self.fault(&Finding::new(place, message, None));
        }
        if given.caller.is_some() && !uses_caller(decl) {
            let message = format!("the macro `{}` does not use caller()", decl.name);
            let hint = format!("call it without a block: {{{{ {}() }}}}", decl.name);
            self.fault(&Finding::new(place, message, Some(hint)));
        }
        let names: Vec<&str> = decl
            .args
            .iter()
            .filter_map(|arg| match arg {
                Expr::Var(var) => Some(var.id),
                _ => None,
            })
            .collect();
        for (name, _) in &given.named {
            if !names.contains(name) && *name != "caller" {
                let near = closest(name, names.iter().copied());
                let hint = near.map(|near| format!("did you mean `{near}`?"));
                let message = format!("the macro `{}` has no argument `{name}`", decl.name);
                let place = self.place(name);
                self.fault(&Finding::new(place, message, hint));
            }
        }
    }
}

const fn is_module(shape: &Shape) -> bool {
    matches!(shape, Shape::Module(_))
}
