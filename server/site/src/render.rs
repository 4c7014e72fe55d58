//! Results to a prepared response.

use std::{collections::BTreeMap, sync::Arc};

use base_clock::Boottime;
use millpond_db as db;
use millpond_http::{Parts, Prepared};
use minijinja::Value;

use crate::{
    core::{Core, Generation},
    csv_rows::csv,
    filters::with_present_time,
    object::QueryResult,
    page::Page,
    page_params::PageParams,
    page_type::{CSV, JSON, PageType},
    visitor::Visitor,
};

/// What a render came to.
pub(crate) enum Rendered {
    /// Everyone's, and when it ends even if nothing changes.
    Page(Arc<Prepared>, Option<Boottime>),
    /// This visitor's only.
    Private(Arc<Prepared>),
    /// A `:one` had no row.
    Missing,
    /// The template failed; the log says how.
    Failed(minijinja::Error),
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
    if let Some(bytes) = &page.bytes {
        return match bytes.prepare(page, objects, cache_control(page)) {
            Some(prepared) => Rendered::Page(prepared, None),
            None => Rendered::Missing,
        };
    }
    let Some(template) = &page.template else {
        // A page of CSV has one query.
        if let (true, [object]) = (page.page_type.is_csv(), objects) {
            let body = csv(&object.data);
            return Rendered::Page(prepare(page, CSV, body, cache_control(page)), None);
        }
        let results = page
            .queries
            .iter()
            .zip(objects)
            .map(|(query, object)| (query.name.clone(), object.json()));
        let json = match page.bare {
            Some(at) => objects[at].json(),
            None => serde_json::Value::Object(results.collect()),
        };
        let body = json.to_string().into_bytes();
        return Rendered::Page(prepare(page, JSON, body, cache_control(page)), None);
    };
    let mut context: BTreeMap<String, Value> = page
        .queries
        .iter()
        .zip(objects)
        .map(|(query, object)| (query.name.clone(), object.value()))
        .collect();
    let params = PageParams::new(&page.params, values);
    context.insert("params".to_owned(), Value::from_object(params));
    context.insert(
        "request".to_owned(),
        Value::from_dyn_object(visitor.clone()),
    );
    let (text, end) = with_present_time(|| {
        let template = generation.pages.environment.get_template(template)?;
        template.render(Value::from(context))
    });
    let PageType { media_type, .. } = page.page_type;
    match text.map(|text| page.page_type.body(text)) {
        Ok(body) if visitor.touched() => {
            Rendered::Private(prepare(page, media_type, body, PRIVATE))
        }
        Ok(body) => Rendered::Page(prepare(page, media_type, body, cache_control(page)), end),
        Err(error) => {
            core.log(&format!(
                "{}: {}",
                page.route,
                crate::template::failure(&error)
            ));
            Rendered::Failed(error)
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
