//! Plans in TOML: read, checked, and compiled to a [`Workload`].

mod error;
mod section;
mod steps;
mod streams;
#[cfg(test)]
mod tests;
mod text;
mod values;

use std::path::Path;

use toml::de::DeTable;

pub use error::PlanError;

use super::Workload;
use super::alias::Alias;
use crate::url::Url;
use crate::{Plan, RequestPlan};
use section::{Field, PlanText, Section};

/// Classes that a plan has at most.
const MOST_CLASSES: usize = 1000;

/// The names that a template may use.
#[derive(Default)]
struct Names {
    /// Tables with their columns.
    tables: Vec<(String, Vec<String>)>,
    /// Choices, and whether they are paths.
    choices: Vec<(String, bool)>,
    /// Names of the values that the class's steps extracted so far.
    slots: Vec<String>,
}

/// The data that all classes share.
struct Common<'p> {
    /// The folder of the plan, from which its files are named.
    dir: &'p Path,
    file: &'p Path,
    base: &'p RequestPlan,
    authority: String,
    cookies: bool,
}

impl Workload {
    /// Reads the plan in `text`. Names of files are relative to the folder of `file`. The URL of
    /// `base` overrides the plan's URL; its fields, keep-alive and expected statuses are defaults
    /// for the plan.
    ///
    /// # Errors
    ///
    /// The first mistake in the plan, or in a file that it names, with line and column.
    pub fn parse(text: &str, file: &Path, base: &Plan) -> Result<Self, PlanError> {
        let source = PlanText { file, text };
        let table = DeTable::parse(text).map_err(|error| {
            let offset = error.span().map_or(text.len(), |span| span.start);
            source.error(
                offset,
                format!("not TOML: {}", error.message().replace('\n', ", ")),
            )
        })?;
        let mut top = Section::whole(source, table.get_ref());
        let seed = top
            .find("seed")
            .map_or(Ok(1), |seed| seed.whole(0..=i64::MAX))?;
        let (url, parsed) = server(&mut top, base)?;
        let dir = file.parent().unwrap_or(Path::new(""));
        let cookies = top.find("cookies").map_or(Ok(false), |flag| flag.flag())?;
        let mut names = Names::default();
        let tables = values::tables(top.find("data"), dir, &mut names)?;
        let choices = values::choices(top.find("choice"), dir, &mut names)?;
        let common = Common {
            dir,
            file,
            base: &base.request,
            authority: parsed.authority.clone(),
            cookies,
        };
        let written = top.need("class")?;
        let streams = top.find("streams");
        let streams = streams.map(|field| streams::streams(field, &common));
        let streams = streams.transpose()?.map(Box::new);
        top.finish()?;
        let (kinds, weights) = classes(written, &common, &mut names)?;
        let (class_names, classes) = kinds.into_iter().unzip();
        Ok(Self {
            seed: seed as u64,
            origin: Self::origin(&url, &parsed.authority),
            url,
            host: parsed.host,
            names: class_names,
            classes,
            mix: Alias::new(&weights),
            tables,
            choices,
            script: None,
            streams,
        })
    }
}

/// The server of `base`, or the plan's server.
fn server(top: &mut Section<'_>, base: &Plan) -> Result<(String, Url), PlanError> {
    let written = top.find("url");
    let own = written.map(|field| field.text()).transpose()?;
    let url = match own {
        _ if !base.target.url.is_empty() => base.target.url.as_str(),
        Some(own) => own,
        None => {
            return Err(top.error(
                "no server: give its URL with the command, or url = \"http://…\" in the plan",
            ));
        }
    };
    let parsed = Url::parse(url).map_err(|error| match written {
        Some(field) if base.target.url.is_empty() => field.error(error.to_string()),
        _ => top.error(error.to_string()),
    })?;
    Ok((url.to_owned(), parsed))
}

type Kinds = Vec<(String, super::step::Class)>;

/// The classes with their names, and their weights.
fn classes(
    written: Field<'_>,
    common: &Common<'_>,
    names: &mut Names,
) -> Result<(Kinds, Vec<f64>), PlanError> {
    let list = written.list()?;
    if list.is_empty() || list.len() > MOST_CLASSES {
        return Err(written.error(format!("a plan has from 1 to {MOST_CLASSES} classes")));
    }
    let mut kinds = Kinds::new();
    let mut weights = Vec::new();
    for field in list {
        let mut section = field.section("[[class]]")?;
        let name = section.need("name")?;
        let text = name.text()?;
        if kinds.iter().any(|(other, _)| other == text) {
            return Err(name.error(format!("there is another class {text:?}")));
        }
        let weight = section
            .find("weight")
            .map_or(Ok(1.0), |weight| weight.number())?;
        names.slots.clear();
        kinds.push((text.to_owned(), steps::class(section, common, names)?));
        weights.push(weight);
    }
    if weights.iter().all(|weight| *weight == 0.0) {
        return Err(written.error("every class has the weight 0: none would be chosen"));
    }
    Ok((kinds, weights))
}
