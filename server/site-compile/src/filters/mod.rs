//! The filters that templates have besides those of Jinja. docs/reference/templates.md has all.
//!
//! A filter that is given none, or an empty text where a text has to mean something, prints
//! nothing. What it cannot write is an error here that names the filter, the value and what it
//! takes; `tolerance` makes a note of that and lets the page come.

mod ago;
mod autolinks;
mod chart;
mod dates;
mod decimal;
mod document;
mod fault;
mod footnotes;
mod links;
#[cfg(test)]
mod manual;
mod markdown;
mod numbers;
mod sanitize;
mod text;
mod tolerance;

use minijinja::{
    Environment, Error, State,
    value::{Kwargs, Value},
};

pub use ago::with_present_time;
pub use dates::moment_of;
pub use document::{DocumentLink, document_links, document_stem};
use fault::unfit_argument;
use millpond_site_format::locale::{Formats, Locale, tags};
pub use sanitize::{Piece, TagText, Tags};
use tolerance::Otherwise;
pub use tolerance::{strictly, with_note};

/// Adds a filter under a name.
type Register = fn(&mut Environment<'_>, String, Formats);

/// The filters of this folder, in the order of their names.
#[rustfmt::skip]
const OWN: [(&str, Register); 17] = [
    ("chart", |environment, name, _| {
        environment.add_filter(name, |rows: Value, options: Kwargs| chart::chart(&rows, &options));
    }),
    ("date", |environment, name, formats| {
        environment.add_filter(name, move |value: Value, format: Option<String>, options: Kwargs| {
            dates::date(&value, format.as_deref(), in_locale("date", &options, formats)?)
        });
    }),
    ("datetime", |environment, name, formats| {
        environment.add_filter(name, move |value: Value, options: Kwargs| {
            dates::datetime(&value, in_locale("datetime", &options, formats)?)
        });
    }),
    ("filesize", |environment, name, formats| {
        environment.add_filter(name, move |value: Value, options: Kwargs| {
            numbers::filesize(&value, in_locale("filesize", &options, formats)?.locale)
        });
    }),
    ("headings", |environment, name, _| {
        environment.add_filter(name, |value: Value, options: Kwargs| document::headings(&value, &options));
    }),
    ("markdown", |environment, name, _| {
        environment.add_filter(name, |state: &State, value: Value, options: Kwargs| markdown::markdown(state, &value, &options));
    }),
    ("money", |environment, name, formats| {
        environment.add_filter(name, move |value: Value, currency: Option<String>, options: Kwargs| {
            numbers::money(&value, currency.as_deref(), &options, formats)
        });
    }),
    ("nl2br", |environment, name, _| {
        environment.add_filter(name, |state: &State, value: Value| text::nl2br(state, &value));
    }),
    ("number", |environment, name, formats| {
        environment.add_filter(name, move |value: Value, places: Option<usize>, options: Kwargs| {
            numbers::number(&value, places, in_locale("number", &options, formats)?.locale)
        });
    }),
    ("pluralize", |environment, name, _| {
        environment.add_filter(name, |value: Value, first: Option<String>, second: Option<String>| {
            numbers::pluralize(&value, first.as_deref(), second.as_deref())
        });
    }),
    ("query", |environment, name, _| {
        environment.add_filter(name, |params: Value, changes: Kwargs| links::query(&params, &changes));
    }),
    ("sanitize", |environment, name, _| {
        environment.add_filter(name, |state: &State, value: Value| sanitize::sanitize(state, &value));
    }),
    ("slug", |environment, name, _| {
        environment.add_filter(name, |value: Value| text::slug(&value));
    }),
    ("striptags", |environment, name, _| {
        environment.add_filter(name, |value: Value| sanitize::striptags(&value));
    }),
    ("timeago", |environment, name, formats| {
        environment.add_filter(name, move |value: Value, options: Kwargs| {
            ago::timeago(&value, in_locale("timeago", &options, formats)?)
        });
    }),
    ("truncate", |environment, name, _| {
        environment.add_filter(name, |value: Value, length: Option<usize>, options: Kwargs| text::truncate(&value, length, &options));
    }),
    ("urlencode", |environment, name, _| {
        environment.add_filter(name, |value: Value| links::urlencode(&value));
    }),
];

/// Filters that give a value as it is if they cannot write it.
const AS_GIVEN: [&str; 6] = ["date", "datetime", "filesize", "money", "number", "timeago"];

/// The names of the filters of this folder.
pub fn names() -> impl Iterator<Item = &'static str> {
    OWN.iter().map(|(name, _)| *name)
}

/// Adds the filters to an environment.
pub fn register(environment: &mut Environment<'_>, formats: Formats) {
    for (name, register) in OWN {
        let inner = format!("__{name}");
        register(environment, inner.clone(), formats);
        let otherwise = match AS_GIVEN.contains(&name) {
            true => Otherwise::Given,
            false => Otherwise::Nothing,
        };
        tolerance::add(environment, name, inner, otherwise);
    }
    tolerance::soften(environment);
}

/// The formats with the locale that the last argument of a filter names, `locale = "de"`. Null and
/// an empty text name none.
fn in_locale(filter: &str, options: &Kwargs, formats: Formats) -> Result<Formats, Error> {
    let tag: Option<String> = options.get("locale")?;
    options.assert_all_used()?;
    let Some(tag) = tag.filter(|tag| !tag.is_empty()) else {
        return Ok(formats);
    };
    let found = Locale::find(&tag).map_err(|near| {
        let what = format!("`{tag}` is no locale");
        match near {
            Some(near) => unfit_argument(filter, &what, &format!("`{near}`, for example")),
            None => unfit_argument(filter, &what, &format!("one of {}", tags())),
        }
    });
    Ok(Formats {
        locale: found?,
        ..formats
    })
}
