//! Fields in the HTML of forms that what they are sent to does not take.

use std::path::PathBuf;

use millpond_http::path;

use super::Pages;
use crate::{
    Problem,
    filters::{Piece, TagText, Tags},
    folder::Folder,
    markup::{VALUE, address, attribute, misfit, without_comments},
    methods::WriteMethod,
    params::Param,
    route::address_of,
    suggest::closest,
    template,
};

/// Fields whose names are nearly those of a parameter, and choices of a field that its parameter
/// cannot be. What a name or a value in braces comes to is not known.
pub(super) fn misspelt(folder: &Folder, pages: &Pages) -> Vec<Problem> {
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
        let mut reader = FormReader::default();
        for piece in Tags::with_fields(&text) {
            let found = reader.read(pages, stem, piece);
            notes.extend(found.map(|Remark { at, message, hint }| {
                let at = at.as_ptr() as usize - text.as_ptr() as usize;
                let note = Problem::new(&file, message).at_offset(&text, at);
                note.hint(hint)
            }));
        }
    }
    notes
}

/// What is wrong, and the text in which it is.
struct Remark<'t> {
    at: &'t str,
    message: String,
    hint: String,
}

/// What takes the fields of a form.
#[derive(Clone, Copy)]
struct Receiver<'p> {
    /// As messages name it: `POST /albums`.
    method: &'static str,
    route: &'p str,
    params: &'p [Param],
    files: &'p [crate::uploads::UploadField],
}

/// The form and the `select` in which the reader is.
#[derive(Default)]
struct FormReader<'p, 't> {
    receiver: Option<Receiver<'p>>,
    select: Option<&'t str>,
}

impl<'p, 't> FormReader<'p, 't> {
    fn read(
        &mut self,
        pages: &'p Pages,
        stem: Option<&str>,
        piece: Piece<'t>,
    ) -> Option<Remark<'t>> {
        match piece {
            Piece::Start(tag) if tag.name == "form" => {
                self.receiver = receiver(pages, &tag, stem);
                None
            }
            Piece::End(name) if name == "form" => {
                *self = Self::default();
                None
            }
            Piece::End(name) if name == "select" => {
                self.select = None;
                None
            }
            Piece::Start(tag) => self.field(&tag),
            Piece::End(_) | Piece::Text(_) => None,
        }
    }

    fn field(&mut self, tag: &TagText<'t>) -> Option<Remark<'t>> {
        let receiver = self.receiver?;
        let name = attribute(tag, "name").filter(|name| !has_braces(name));
        match &*tag.name {
            "select" => {
                self.select = name;
                receiver.of_name(name?)
            }
            "textarea" => receiver.of_name(name?),
            "option" => receiver.of_value(self.select?, attribute(tag, "value")?),
            "input" | "button" => {
                let kind = attribute(tag, "type").unwrap_or_default();
                let is_chosen = ["radio", "checkbox", "hidden", "submit"]
                    .iter()
                    .any(|known| kind.eq_ignore_ascii_case(known));
                let value = attribute(tag, "value").filter(|_| is_chosen);
                let of_value = || receiver.of_value(name?, value?);
                receiver.of_name(name?).or_else(of_value)
            }
            _ => None,
        }
    }
}

impl Receiver<'_> {
    /// A name that no parameter has, but nearly.
    fn of_name<'t>(&self, name: &'t str) -> Option<Remark<'t>> {
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
        Some(Remark {
            at: name,
            message: format!("{} {} has no parameter `{name}`", self.method, self.route),
            hint: format!("did you mean `{near}`?"),
        })
    }

    /// A value that the parameter of this name cannot be.
    fn of_value<'t>(&self, name: &str, value: &'t str) -> Option<Remark<'t>> {
        if value.is_empty() || has_braces(value) || value.contains('&') {
            return None;
        }
        let param = self.params.iter().find(|param| param.name == name)?;
        let wrong = misfit(param, value)?;
        Some(Remark {
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

/// What a `<form>` sends to. `stem` is the name of the page that has it.
fn receiver<'p>(pages: &'p Pages, tag: &TagText<'_>, stem: Option<&str>) -> Option<Receiver<'p>> {
    let method = attribute(tag, "method").unwrap_or("get");
    let action = match attribute(tag, "action") {
        Some(action) => address(action)?,
        None => address_of(stem?),
    };
    let place = action.split(['?', '#']).next()?.replace(VALUE, "1");
    let place = path::normalize(&place).ok()?;
    let found = pages.router.find(&place)?;
    let endpoint = &pages.endpoints[found.page];
    if method.eq_ignore_ascii_case("post") {
        let form = endpoint.form(WriteMethod::Post)?;
        return Some(Receiver {
            method: "POST",
            route: &form.route,
            params: &form.params,
            files: &form.uploads,
        });
    }
    let page = endpoint.page.as_ref();
    let page = page.filter(|_| method.eq_ignore_ascii_case("get"))?;
    Some(Receiver {
        method: "GET",
        route: &page.route,
        params: &page.params,
        files: &[],
    })
}
