//! Results to a prepared response.

use std::{collections::BTreeMap, sync::Arc};

use millpond_db as db;
use millpond_http::{Parts, Prepared};
use minijinja::Value;

use crate::{
    core::{Core, Generation},
    object::{QueryResult, template_value},
    page::Page,
    visitor::Visitor,
};

/// What a render came to.
pub(crate) enum Rendered {
    /// Everyone's.
    Page(Arc<Prepared>),
    /// This visitor's only.
    Private(Arc<Prepared>),
    /// A `:one` had no row.
    Missing,
    /// The template failed; the log says how.
    Failed,
}

/// Renders a page from its results.
pub(crate) fn render(
    core: &Core,
    generation: &Generation,
    page: &Page,
    values: &[db::Value],
    objects: &[Arc<QueryResult>],
    visitor: &Arc<Visitor>,
) -> Rendered {
    if objects.iter().any(|object| object.is_missing()) {
        return Rendered::Missing;
    }
    let Some(template) = &page.template else {
        let results = page
            .queries
            .iter()
            .zip(objects)
            .map(|(query, object)| (query.name.clone(), object.json()));
        let json = serde_json::Value::Object(results.collect());
        return Rendered::Page(prepare(
            page,
            "application/json",
            json.to_string().into_bytes(),
            cache_control(page),
        ));
    };
    let mut context: BTreeMap<String, Value> = page
        .queries
        .iter()
        .zip(objects)
        .map(|(query, object)| (query.name.clone(), object.value()))
        .collect();
    let params: BTreeMap<String, Value> = page
        .params
        .iter()
        .zip(values)
        .map(|(param, value)| (param.name.clone(), template_value(value)))
        .collect();
    context.insert("params".to_owned(), Value::from(params));
    context.insert(
        "request".to_owned(),
        Value::from_dyn_object(visitor.clone()),
    );
    let html = generation
        .pages
        .environment
        .get_template(template)
        .and_then(|template| template.render(Value::from(context)));
    match html {
        Ok(html) if visitor.touched() => {
            Rendered::Private(prepare(page, HTML, html.into_bytes(), PRIVATE))
        }
        Ok(html) => Rendered::Page(prepare(page, HTML, html.into_bytes(), cache_control(page))),
        Err(error) => {
            core.log(&format!(
                "{}: {}",
                page.route,
                crate::template::failure(&error)
            ));
            Rendered::Failed
        }
    }
}

const PRIVATE: &str = "private, no-cache";

/// No cache between here and the visitor may keep a page that varies by claims.
fn cache_control(page: &Page) -> &'static str {
    if page.needs.is_none() {
        "no-cache"
    } else {
        PRIVATE
    }
}

/// The media type of pages.
pub(crate) const HTML: &str = "text/html; charset=utf-8";

fn prepare(page: &Page, media_type: &str, body: Vec<u8>, cache_control: &str) -> Arc<Prepared> {
    let vary = page.vary.join(", ");
    let mut fields = vec![("Cache-Control", cache_control)];
    if !vary.is_empty() {
        fields.push(("Vary", &vary));
    }
    Arc::new(Prepared::new(Parts {
        status: 200,
        media_type,
        fields: &fields,
        // It stays for long: no more room than it needs.
        body: body.into_boxed_slice().into(),
        last_modified: None,
        compressible: true,
    }))
}
