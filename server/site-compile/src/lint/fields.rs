//! Fields in the HTML of forms that what they are sent to does not take.

use std::path::PathBuf;

use crate::{
    compile::{Pages, may_be_at::endpoint_at},
    form_tags::{FieldTag, FormTag},
    markup::{misfit, without_comments},
    template::{self, SetAddresses},
};
use millpond_site_format::{
    Problem, folder::Folder, params::Param, route::address_of, suggest::closest,
    write_method::WriteMethod,
};

/// Fields whose names are nearly those of a parameter, and choices of a field that its parameter
/// cannot be. What a name or a value in braces comes to is not known.
pub(super) fn misspelt(folder: &Folder, pages: &Pages) -> Vec<Problem> {
    let set = SetAddresses::new(template::sources(&pages.environment));
    let own = folder.pages.iter();
    let own = own.filter_map(|(name, text)| {
        let stem = name.strip_suffix(".html")?;
        Some((
            PathBuf::from(format!("pages/{name}")),
            &*text.text,
            Some(stem),
        ))
    });
    let shared = folder.templates.iter();
    let shared = shared.map(|(name, text)| (template::file_of(name).into(), &**text, None));
    let mut notes = Vec::new();
    for (file, text, stem) in own.chain(shared) {
        let text = without_comments(text);
        let name = file.to_string_lossy();
        let name = name.strip_prefix("templates/").unwrap_or(&name);
        for form in set.forms(name, &text) {
            let Some(receiver) = receiver(pages, &form, stem) else {
                continue;
            };
            let found = form.fields.iter().flat_map(|field| {
                let repeated = Some(field).filter(|field| form.is_in_loop(field));
                let repeated = repeated.and_then(|field| receiver.of_repeated(field));
                receiver.of_field(field).into_iter().chain(repeated)
            });
            notes.extend(found.map(|FieldNote { at, message, hint }| {
                let at = at.as_ptr() as usize - text.as_ptr() as usize;
                let note = Problem::new(&file, message).at_offset(&text, at);
                note.hint(hint)
            }));
        }
    }
    notes
}

/// Fault of a field, and the text in which it stands.
struct FieldNote<'t> {
    at: &'t str,
    message: String,
    hint: String,
}

/// Page or form that takes the fields of a form.
#[derive(Clone, Copy)]
struct Receiver<'p> {
    /// As messages name it: `POST /albums`.
    method: &'static str,
    route: &'p str,
    params: &'p [Param],
    files: &'p [crate::page::UploadField],
}

impl Receiver<'_> {
    /// Finds the fault in the name of a field, else in the values that it can have.
    fn of_field<'t>(&self, field: &FieldTag<'t>) -> Vec<FieldNote<'t>> {
        let name = field.name;
        let is_field = matches!(&*field.element, "input" | "button" | "select" | "textarea");
        if !is_field || has_braces(name) {
            return Vec::new();
        }
        if let Some(note) = self.of_name(name) {
            return vec![note];
        }
        let is_chosen = matches!(&*field.kind, "radio" | "checkbox" | "hidden" | "submit");
        let own = field.value.filter(|_| is_chosen);
        let values = own.into_iter().chain(field.choices.iter().copied());
        let notes = values.filter_map(|value| self.of_value(name, value));
        notes.collect()
    }

    /// A box that a loop makes several times, for a parameter that takes one value.
    fn of_repeated<'t>(&self, field: &FieldTag<'t>) -> Option<FieldNote<'t>> {
        let name = field.name;
        let mut params = self.params.iter();
        let param = params.find(|param| param.name == name)?;
        (field.kind == "checkbox" && !param.is_list).then(|| FieldNote {
            at: name,
            message: format!(
                "{} {} takes one `{name}`, and a loop makes several boxes of this name",
                self.method, self.route
            ),
            hint: format!(
                "a list takes them all: -- param: {name} {}[]",
                param.type_name()
            ),
        })
    }

    /// A name that no parameter has, but nearly.
    fn of_name<'t>(&self, name: &'t str) -> Option<FieldNote<'t>> {
        let known = self.params.iter().map(|param| param.name.as_str());
        let files = self.files.iter().map(|field| field.line.name.as_str());
        let known: Vec<&str> = known.chain(files).collect();
        if known.contains(&name) {
            return None;
        }
        let plain = name.strip_suffix("[]").unwrap_or(name);
        let near = match known.contains(&plain) {
            true => plain,
            false => closest(plain, known.iter().copied())?,
        };
        Some(FieldNote {
            at: name,
            message: format!("{} {} has no parameter `{name}`", self.method, self.route),
            hint: format!("did you mean `{near}`?"),
        })
    }

    /// A value that the parameter of this name cannot be.
    fn of_value<'t>(&self, name: &str, value: &'t str) -> Option<FieldNote<'t>> {
        if value.is_empty() || has_braces(value) || value.contains('&') {
            return None;
        }
        let param = self.params.iter().find(|param| param.name == name)?;
        let wrong = misfit(param, value)?;
        Some(FieldNote {
            at: value,
            message: format!(
                "{} {} does not take `{value}` for `{name}`",
                self.method, self.route
            ),
            hint: format!("`{name}` {wrong}"),
        })
    }
}

fn has_braces(text: &str) -> bool {
    text.contains('{')
}

/// Finds the page or the form that takes a form. `stem` is the name of the page that has it.
fn receiver<'p>(pages: &'p Pages, form: &FormTag<'_>, stem: Option<&str>) -> Option<Receiver<'p>> {
    let action = match &form.action {
        Some(action) => action.clone(),
        None => address_of(stem?),
    };
    let endpoint = endpoint_at(pages, action.split(['?', '#']).next()?)?;
    if form.method == "post" {
        let post = endpoint.form(WriteMethod::Post)?;
        return Some(Receiver {
            method: "POST",
            route: &post.route,
            params: &post.params,
            files: &post.uploads,
        });
    }
    let page = endpoint.page.as_ref();
    let page = page.filter(|_| form.method == "get")?;
    Some(Receiver {
        method: "GET",
        route: &page.route,
        params: &page.params,
        files: &[],
    })
}
