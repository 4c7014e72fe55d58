//! Results to a prepared response.

use std::{collections::BTreeMap, sync::Arc};

use base_clock::Boottime;
use millpond_db as db;
use millpond_http::{Body, Content, Parts, Prepared};
use minijinja::Value;

use super::visitor::Visitor;
use crate::{
    core::{Core, Generation},
    live::script::with_script,
};
use millpond_site_compile::{
    filters::{with_note, with_present_time},
    object::QueryResult,
    page::{Page, csv::csv},
    page_params::PageParams,
    page_type::{CSV, HTML, JSON},
    refusal::{flash::Flash, values::roots},
};

/// Result of a render.
pub(crate) enum Rendered {
    /// Everyone's, and when it ends even if nothing changes.
    Page(Arc<Prepared>, Option<Boottime>),
    /// This visitor's only.
    Private(Arc<Prepared>),
    /// The `:one` at this place had no row, or no bytes; behind the last, a redirect has no value.
    Missing(usize),
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
    if let Some(at) = page.missing(objects) {
        return Rendered::Missing(at);
    }
    if let Some(redirect) = &page.redirect {
        let location = redirect.location(values, objects);
        let is_right = |to: &String| redirect.is_right_slug(to, &page.path.of(values));
        if let Some(location) = location.filter(|to| !is_right(to)) {
            let prepared = redirect.prepare(page, &location, cache_control(page));
            return Rendered::Page(prepared, None);
        }
        if page.template.is_none() {
            return Rendered::Missing(objects.len());
        }
    }
    if let Some(bytes) = &page.bytes {
        return match bytes.prepare(page, objects, cache_control(page)) {
            Some(prepared) => Rendered::Page(prepared, None),
            None => Rendered::Missing(bytes.content.query),
        };
    }
    if page.template.is_none() {
        let results = page.queries.iter().zip(objects).enumerate();
        let mut results = results.filter(|(at, _)| page.guard(*at).is_none());
        // A page of CSV has one query beside its guards.
        if page.page_type.is_csv()
            && let Some((_, (_, object))) = results.next()
        {
            let body = csv(&object.data, page.csv_reader);
            return Rendered::Page(prepare(page, CSV, body, cache_control(page)), None);
        }
        let results = results.map(|(_, (query, object))| (query.name.clone(), object.json()));
        let json = match page.bare {
            Some(at) => objects[at].json(),
            None => serde_json::Value::Object(results.collect()),
        };
        let body = json.to_string().into_bytes();
        let total = page.total.as_ref();
        let total = total.and_then(|(at, column)| objects[*at].whole_number(column));
        let prepared = match total {
            Some(total) => with_total(page, body, total),
            None => prepare(page, JSON, body, cache_control(page)),
        };
        return Rendered::Page(prepared, None);
    }
    match text((core, generation), page, values, objects, visitor, None) {
        Ok((body, _)) if visitor.touched() => {
            Rendered::Private(prepare_text(core, page, body, PRIVATE))
        }
        Ok((body, end)) => Rendered::Page(prepare_text(core, page, body, cache_control(page)), end),
        Err(error) => Rendered::Failed(error),
    }
}

/// Result of a render for a visitor who is led back to a form. It is no [`Rendered`], so that
/// nothing of it can get into the store, or to another visitor.
pub(crate) enum RenderedForm {
    /// For this request alone.
    Alone(Arc<Prepared>),
    /// The `:one` at this place had no row.
    Missing(usize),
    /// The template failed; the log says how.
    Failed,
}

/// Renders a page with what a visitor typed into its form and what is wrong with it.
pub(crate) fn render_with_form(
    site: (&Core, &Generation),
    page: &Page,
    values: &[db::Value],
    objects: &[Arc<QueryResult>],
    visitor: &Arc<Visitor>,
    flash: &Arc<Flash>,
) -> RenderedForm {
    if let Some(at) = page.missing(objects) {
        return RenderedForm::Missing(at);
    }
    // A page with a template, so its redirect can wait: what was typed would be lost by it.
    match text(site, page, values, objects, visitor, Some(flash)) {
        Ok((body, _)) => {
            let media_type = page.page_type.media_type;
            RenderedForm::Alone(prepare(page, media_type, body, ALONE))
        }
        Err(_) => RenderedForm::Failed,
    }
}

/// The text of a page that has a template, and when it ends even if nothing changes. The log has an
/// error of the template.
fn text(
    (core, generation): (&Core, &Generation),
    page: &Page,
    values: &[db::Value],
    objects: &[Arc<QueryResult>],
    visitor: &Arc<Visitor>,
    flash: Option<&Arc<Flash>>,
) -> Result<(Vec<u8>, Option<Boottime>), minijinja::Error> {
    let template = page.template.as_deref().unwrap_or_default();
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
    if let Some(fields) = &page.forms {
        context.extend(roots(fields, flash));
    }
    let ((text, end), note) = with_note(|| {
        with_present_time(|| {
            let template = generation.pages.environment.get_template(template)?;
            template.render(Value::from(context))
        })
    });
    if let Some(note) = note {
        core.log_request(&format!("{}: {note}", page.route));
    }
    match text {
        Ok(text) => Ok((page.page_type.body(text), end)),
        Err(error) => {
            core.log(&format!(
                "{}: {}",
                page.route,
                millpond_site_compile::template::failure(&error)
            ));
            Err(error)
        }
    }
}

const PRIVATE: &str = "private, no-cache";

/// No memory keeps a page with what a visitor typed, not even the visitor's own.
const ALONE: &str = "private, no-store";

/// No cache between here and the visitor may keep a page that varies by claims.
fn cache_control(page: &Page) -> &'static str {
    if page.needs.is_none() {
        "no-cache"
    } else {
        PRIVATE
    }
}

/// The text of a template, with the script that keeps it up to date if the page is live.
fn prepare_text(core: &Core, page: &Page, body: Vec<u8>, cache_control: &str) -> Arc<Prepared> {
    let media_type = page.page_type.media_type;
    if !core.live.is_live(page) || page.page_type.media_type != HTML {
        return prepare(page, media_type, body, cache_control);
    }
    let (tagged, body) = with_script(&body);
    prepare_tagged(page, (media_type, None), cache_control, tagged, body)
}

/// Rows as JSON with the number of all rows in a field. A 304 repeats no such field, so the entity
/// tag tells the number too.
fn with_total(page: &Page, body: Vec<u8>, total: i64) -> Arc<Prepared> {
    let total = total.to_string();
    let tagged = [&body[..], b"\n", total.as_bytes()].concat();
    let of = (JSON, Some(&*total));
    prepare_tagged(page, of, cache_control(page), tagged, body)
}

/// Prepares a page of a type, with the number of all rows if there is one, whose entity tag is that
/// of `tagged`.
fn prepare_tagged(
    page: &Page,
    (media_type, total): (&str, Option<&str>),
    cache_control: &str,
    tagged: Vec<u8>,
    body: Vec<u8>,
) -> Arc<Prepared> {
    let vary = page.vary_field();
    let mut fields = vec![("Cache-Control", cache_control)];
    fields.extend(total.map(|total| ("X-Total-Count", total)));
    if !vary.is_empty() {
        fields.push(("Vary", &vary));
    }
    let parts = Parts {
        status: 200,
        media_type,
        fields: &fields,
        body: tagged.into(),
        last_modified: None,
        compressible: true,
    };
    let content = Content {
        identity: Body::Bytes(body.into_boxed_slice().into()),
        codings: Vec::new(),
    };
    Arc::new(Prepared::with_content(&parts, content))
}

fn prepare(page: &Page, media_type: &str, body: Vec<u8>, cache_control: &str) -> Arc<Prepared> {
    let vary = page.vary_field();
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
