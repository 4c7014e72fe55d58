//! `form` and `errors` in the template of a page to which forms lead back (coherence.md, rule 24).
//!
//! For a visitor without a flash, which is everybody but one, every field is an empty text and
//! nothing is wrong: the page is the same for all of them. Neither looks at the request.

use std::{collections::BTreeSet, fmt, sync::Arc};

use millpond_db::ValueKind;
use minijinja::value::{Enumerator, Object, ObjectRepr, Value};

use super::flash::{Flash, FlashError};
use millpond_site_format::params::Param;

/// The name under which templates see the values, and that under which they see the faults. What
/// belongs to no field is `errors.form`.
pub const FORM: &str = "form";
pub const ERRORS: &str = "errors";

/// The fields of the forms that lead back to a page.
#[derive(Debug, Default)]
pub struct FormFields {
    pub params: Arc<[Param]>,
    /// Fields whose faults the page does not show, such as a hidden field: a visitor finds them in
    /// `errors.form`.
    pub unshown: BTreeSet<String>,
}

/// `form`: what was typed, by the names of the parameters.
#[derive(Debug)]
pub struct FormValues {
    fields: Arc<FormFields>,
    flash: Option<Arc<Flash>>,
}

/// `errors`: what is wrong, by the names of the parameters; true if anything is.
#[derive(Debug)]
pub struct FormErrors {
    fields: Arc<FormFields>,
    flash: Option<Arc<Flash>>,
}

/// One of the errors: a sentence, its `kind`, and the `action` of the form that was refused.
/// Without a fault it is false and prints nothing.
#[derive(Debug, Default)]
struct FieldFault {
    error: Option<FlashError>,
    action: String,
}

/// The members of an error.
pub const FAULT_MEMBERS: [&str; 2] = ["kind", "action"];

/// Both, for the context of a template.
pub fn roots(fields: &Arc<FormFields>, flash: Option<&Arc<Flash>>) -> [(String, Value); 2] {
    let (fields, flash) = (fields.clone(), flash.cloned());
    let values = FormValues {
        fields: fields.clone(),
        flash: flash.clone(),
    };
    let errors = FormErrors { fields, flash };
    [
        (FORM.to_owned(), Value::from_object(values)),
        (ERRORS.to_owned(), Value::from_object(errors)),
    ]
}

impl Object for FormValues {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.get_value_by_str(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        let param = self.fields.params.iter().find(|param| param.name == key)?;
        let flash = self.flash.as_deref();
        let typed = flash.and_then(|flash| flash.values.iter().find(|(name, _)| name == key));
        let typed = typed
            .map(|(_, values)| values.as_slice())
            .unwrap_or_default();
        Some(match (param.is_list, typed) {
            (true, values) => values.iter().map(|text| shown(param, text)).collect(),
            (false, [text, ..]) => shown(param, text),
            (false, []) => Value::from(""),
        })
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        let names = self.fields.params.iter();
        Enumerator::Values(
            names
                .map(|param| Value::from(param.name.as_str()))
                .collect(),
        )
    }
}

/// Returns a typed text as a value of its type if the value prints that very text: `{% if
/// form.artist == artist.id %}`. All else stays as it was typed.
fn shown(param: &Param, text: &str) -> Value {
    match param.kind {
        ValueKind::Integer => match text.parse::<i64>() {
            Ok(integer) if integer.to_string() == text => Value::from(integer),
            _ => Value::from(text),
        },
        ValueKind::Boolean => match millpond_site_format::param_value::truth(text) {
            Some(truth) => Value::from(truth),
            None => Value::from(text),
        },
        _ => Value::from(text),
    }
}

impl FormErrors {
    /// Returns the fault of a field; of the form as a whole also the faults that are shown at no
    /// field.
    fn of(&self, field: &str) -> FieldFault {
        let errors = self.flash.iter().flat_map(|flash| &flash.errors);
        let is_of = |error: &&FlashError| {
            error.field == field || field == FORM && self.fields.unshown.contains(&error.field)
        };
        let mut errors = errors.filter(is_of).cloned();
        let mut error = errors.next();
        if let (FORM, Some(first)) = (field, &mut error) {
            for other in errors {
                first.sentence = format!("{} {}", first.sentence, other.sentence);
            }
        }
        let action = self.flash.as_ref().map(|flash| flash.action.clone());
        FieldFault {
            error,
            action: action.unwrap_or_default(),
        }
    }

    fn is_name(&self, key: &str) -> bool {
        key == FORM || self.fields.params.iter().any(|param| param.name == key)
    }
}

impl Object for FormErrors {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.get_value_by_str(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        self.is_name(key).then(|| Value::from_object(self.of(key)))
    }

    /// The fields that have a fault.
    fn enumerate(self: &Arc<Self>) -> Enumerator {
        let errors = self.flash.iter().flat_map(|flash| &flash.errors);
        let errors = errors.filter(|error| self.is_name(&error.field));
        Enumerator::Values(
            errors
                .map(|error| Value::from(error.field.as_str()))
                .collect(),
        )
    }
}

impl Object for FieldFault {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        match key.as_str()? {
            "kind" => Some(Value::from(
                self.error.as_ref().map_or("", |error| error.kind.as_str()),
            )),
            "action" => Some(Value::from(self.action.as_str())),
            _ => None,
        }
    }

    fn is_true(self: &Arc<Self>) -> bool {
        self.error.is_some()
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.error.as_ref().map_or("", |error| &error.sentence))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use minijinja::{AutoEscape, Environment, UndefinedBehavior};

    use super::*;

    fn rendered(template: &str, flash: Option<Flash>) -> String {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::SemiStrict);
        environment.set_auto_escape_callback(|_| AutoEscape::Html);
        let params = [
            Param::new("title", ValueKind::Text),
            Param::new("artist", ValueKind::Integer),
            Param::new("live", ValueKind::Boolean),
            Param {
                is_list: true,
                ..Param::new("track", ValueKind::Integer)
            },
            Param::new("version", ValueKind::Integer),
        ];
        let fields = Arc::new(FormFields {
            params: params.into(),
            unshown: ["version".to_owned()].into(),
        });
        let flash = flash.map(Arc::new);
        let context = BTreeMap::from(roots(&fields, flash.as_ref()));
        environment.render_str(template, context).unwrap()
    }

    const PAGE: &str = "{{ form.title }}|{{ form.artist == 7 }}|{{ 6 in form.track }}|\
        {% if form.live %}live{% endif %}|{% if errors.title %}{{ errors.title }} \
        {{ errors.title.kind }}{% endif %}|{{ errors.form }}{{ errors.artist.kind }}|\
        {% for name in errors %}{{ name }}: {{ errors[name] }};{% endfor %}|\
        {{ form.title or 'Old' }}|{{ 'again' if errors else 'first' }}|\
        {{ errors.form.action == '/albums/' ~ 7 ~ '/edit' }}";

    #[test]
    fn without_a_flash_nothing_is_typed_and_nothing_is_wrong() {
        assert_eq!(rendered(PAGE, None), "|False|False|||||Old|first|False");
    }

    #[test]
    fn what_was_typed_is_shown_escaped_and_as_what_it_is() {
        let value = |name: &str, texts: &[&str]| {
            let texts = texts.iter().map(|text| (*text).to_owned());
            (name.to_owned(), texts.collect())
        };
        let error = |field: &str, kind: &str, sentence: &str| FlashError {
            field: field.to_owned(),
            kind: kind.to_owned(),
            sentence: sentence.to_owned(),
        };
        let flash = Flash {
            path: "/".to_owned(),
            action: "/albums/7/edit".to_owned(),
            values: vec![
                value("title", &["<b>"]),
                value("artist", &["7"]),
                value("live", &["on"]),
                value("track", &["6", "x"]),
                value("other", &["no parameter of the form"]),
            ],
            errors: vec![
                error("title", "unique", "Title <exists>."),
                error("form", "check", "No."),
                error("version", "missing", "Version must be filled in."),
                error("other", "check", "nor is this"),
            ],
        };
        assert_eq!(
            rendered(PAGE, Some(flash)),
            "&lt;b&gt;|True|True|live|Title &lt;exists&gt;. unique|No. Version must be filled in.|\
             title: Title &lt;exists&gt;.;form: No. Version must be filled in.;\
             version: Version must be filled in.;|&lt;b&gt;|again|True"
        );
    }
}
