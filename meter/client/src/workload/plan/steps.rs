//! Classes and steps as they are written.

use std::fs;

use regex::bytes::{Regex, RegexBuilder};

use super::section::{Field, Section};
use super::text;
use super::{Common, Names, PlanError};
use crate::Think;
use crate::body::BodyCheck;
use crate::request::{check_field, check_method, own_fields};

use crate::workload::step::{BodyRule, Class, Extract, ExtractSource, RequestStep};
use crate::workload::template::{Encoding, Template, TemplatePart};

/// Steps that a class has at most.
const MOST_STEPS: usize = 10_000;
/// Bytes of a body from a file at most.
const LARGEST_BODY: u64 = 64 << 20;
/// Bytes that a compiled regular expression may take.
const LARGEST_REGEX: usize = 1 << 20;

/// Defaults that the steps of a class get from the class.
struct Usual<'t> {
    think: Option<Think>,
    headers: Vec<(&'t str, Field<'t>)>,
    cookies: bool,
}

/// The class in `section`, whose name and weight are read already.
pub(super) fn class(
    mut section: Section<'_>,
    common: &Common<'_>,
    names: &mut Names,
) -> Result<Class, PlanError> {
    let usual = Usual {
        think: pause(&mut section)?,
        headers: headers(&mut section)?,
        cookies: section
            .find("cookies")
            .map_or(Ok(common.cookies), |flag| flag.flag())?,
    };
    let mut steps = Vec::new();
    match section.find("step") {
        None => {
            steps.push(step(&mut section, &usual, common, names)?);
            section.finish()?;
        }
        Some(list) => {
            section.finish()?;
            let fields = list.list()?;
            if fields.is_empty() || fields.len() > MOST_STEPS {
                return Err(list.error(format!("a class has from 1 to {MOST_STEPS} steps")));
            }
            for field in fields {
                let mut section = field.section("[[class.step]]")?;
                steps.push(step(&mut section, &usual, common, names)?);
                section.finish()?;
            }
        }
    }
    Ok(Class {
        steps,
        cookies: usual.cookies,
        slots: names.slots.len(),
    })
}

fn step(
    section: &mut Section<'_>,
    usual: &Usual<'_>,
    common: &Common<'_>,
    names: &mut Names,
) -> Result<RequestStep, PlanError> {
    let target = target(section.need("target")?, names)?;
    let body = body(section, common, names)?;
    let written = section.find("method");
    let method = match written {
        Some(field) => field.text()?,
        None if body.is_some() => "POST",
        None => "GET",
    };
    if let (Some(field), Err(why)) = (written, check_method(method)) {
        return Err(field.error(why));
    }
    let own = headers(section)?;
    let fields = fields(&own, usual, common, names)?;
    let think = pause(section)?.or(usual.think);
    let repeat = section.find("repeat").map_or(Ok((1, 1)), repeat)?;
    let expect = section
        .find("expect")
        .map_or_else(|| Ok(common.base.expect.clone()), expect)?;
    let check = section.find("check").map(check).transpose()?;
    let written = section.find("extract");
    let extract = written.map_or(Ok(Vec::new()), |field| extract(field, names))?;
    let step = RequestStep {
        method: Some(method.as_bytes().into()),
        target,
        fields,
        body,
        expect,
        check,
        extract,
        think,
        repeat,
    };
    if method == "HEAD" && step.wants_body() {
        return Err(section.error("the answer to HEAD has no body to check or to extract from"));
    }
    Ok(step)
}

fn target(field: Field<'_>, names: &Names) -> Result<Template, PlanError> {
    let compiled = text::compile(field, Encoding::Percent, names)?;
    let mut template = Template::default();
    for (place, part) in compiled.parts.into_iter().enumerate() {
        match part {
            TemplatePart::Text(text) => {
                if place == 0 && !text.starts_with(b"/") {
                    return Err(field.error(
                        "a target begins with / or with a value; the server is said once, by url",
                    ));
                }
                if text
                    .iter()
                    .any(|&byte| byte <= 0x20 || byte == 0x7f || byte == b'#')
                {
                    return Err(field
                        .error("a target has no space, # or control character; write %20 or %23"));
                }
                let mut encoded = Vec::new();
                Encoding::Target.put(&text, &mut encoded);
                template.push_text(&encoded);
            }
            value @ TemplatePart::Value(..) => template.parts.push(value),
        }
    }
    if template.parts.is_empty() {
        return Err(field.error("the target is empty; write / for the root"));
    }
    Ok(template)
}

fn body(
    section: &mut Section<'_>,
    common: &Common<'_>,
    names: &Names,
) -> Result<Option<Template>, PlanError> {
    let (written, file) = (section.find("body"), section.find("body_file"));
    match (written, file) {
        (Some(_), Some(file)) => Err(file.error("either body or body_file, not both")),
        (Some(body), None) => text::compile(body, Encoding::Raw, names).map(Some),
        (None, Some(file)) => {
            let path = common.dir.join(file.text()?);
            let cannot = |why: String| file.error(format!("cannot use {}: {why}", path.display()));
            let about = fs::metadata(&path).map_err(|error| cannot(error.to_string()))?;
            if !about.is_file() || about.len() > LARGEST_BODY {
                return Err(cannot(format!(
                    "a body is a file of at most {} MiB",
                    LARGEST_BODY >> 20
                )));
            }
            let bytes = fs::read(&path).map_err(|error| cannot(error.to_string()))?;
            let mut template = Template::default();
            template.push_text(&bytes);
            Ok(Some(template))
        }
        (None, None) => Ok(None),
    }
}

pub(super) fn headers<'t>(
    section: &mut Section<'t>,
) -> Result<Vec<(&'t str, Field<'t>)>, PlanError> {
    let Some(field) = section.find("headers") else {
        return Ok(Vec::new());
    };
    let entries = field.section("headers")?.entries();
    Ok(entries
        .into_iter()
        .map(|(name, _, value)| (name, value))
        .collect())
}

/// The fields of a step: its own before its class's before the command's before the client's.
fn fields(
    own: &[(&str, Field<'_>)],
    usual: &Usual<'_>,
    common: &Common<'_>,
    names: &Names,
) -> Result<Template, PlanError> {
    let mut written: Vec<(&str, Field<'_>)> = own.to_vec();
    let inherited = usual
        .headers
        .iter()
        .filter(|(name, _)| !has(own.iter().map(|(name, _)| *name), name));
    written.extend(inherited);
    let given: Vec<_> = common
        .base
        .headers
        .iter()
        .filter(|(name, _)| !has(written.iter().map(|(name, _)| *name), name))
        .collect();
    let all = written.iter().map(|(name, _)| *name);
    let all = all.chain(given.iter().map(|(name, _)| name.as_str()));
    let mut template = Template::default();
    template.push_text(own_fields(|name| has(all.clone(), name), &common.authority).as_bytes());
    for (name, value) in &written {
        check_field(name, value.text()?).map_err(|why| value.error(why))?;
        if usual.cookies && name.eq_ignore_ascii_case("cookie") {
            return Err(
                value.error("cookies = true writes the Cookie field; leave one of both out")
            );
        }
        template.push_text(format!("{name}: ").as_bytes());
        template.append(text::compile(*value, Encoding::Field, names)?);
        template.push_text(b"\r\n");
    }
    for (name, value) in given {
        check_field(name, value)
            .map_err(|why| PlanError::of(common.file, format!("a field of the command: {why}")))?;
        template.push_text(format!("{name}: {value}\r\n").as_bytes());
    }
    if !common.base.keep_alive {
        template.push_text(b"Connection: close\r\n");
    }
    Ok(template)
}

fn has<'n>(mut names: impl Iterator<Item = &'n str>, name: &str) -> bool {
    names.any(|other| other.eq_ignore_ascii_case(name))
}

fn pause(section: &mut Section<'_>) -> Result<Option<Think>, PlanError> {
    let Some(field) = section.find("think") else {
        return Ok(None);
    };
    field
        .text()?
        .parse()
        .map(Some)
        .map_err(|why: crate::Error| field.error(why.to_string()))
}

fn repeat(field: Field<'_>) -> Result<(u32, u32), PlanError> {
    let times = |field: &Field<'_>| field.whole(1..=1_000_000).map(|times| times as u32);
    if !field.is_list() {
        return times(&field).map(|times| (times, times));
    }
    match field.list()?.as_slice() {
        [least, most] => {
            let (least, most) = (times(least)?, times(most)?);
            if least > most {
                return Err(field.error("repeat ends before it begins"));
            }
            Ok((least, most))
        }
        _ => Err(field.error("repeat is a number, or the least and the greatest: [1, 5]")),
    }
}

fn expect(field: Field<'_>) -> Result<Vec<u16>, PlanError> {
    let fields = field.list()?;
    if fields.is_empty() {
        return Err(
            field.error("without a status nothing would be good; leave expect out for 200 to 399")
        );
    }
    fields
        .iter()
        .map(|field| field.whole(100..=999).map(|status| status as u16))
        .collect()
}

fn check(field: Field<'_>) -> Result<BodyRule, PlanError> {
    let mut section = field.section("check")?;
    let (key, value) = section.one_of(&["regex", "contains", "sha256"])?;
    section.finish()?;
    let text = value.text()?;
    let check = match key {
        "regex" => BodyCheck::matches(text),
        "sha256" => BodyCheck::sha256(text),
        _ => return Ok(BodyRule::Contains(text.as_bytes().into())),
    };
    check
        .map(BodyRule::Body)
        .map_err(|why| value.error(one_line(&why)))
}

fn extract(field: Field<'_>, names: &mut Names) -> Result<Vec<Extract>, PlanError> {
    let mut all = Vec::new();
    for (name, _, field) in field.section("extract")?.entries() {
        super::values::check_name(name, &field)?;
        if names.choices.iter().any(|(choice, _)| choice == name) {
            return Err(field.error(format!("{name:?} is the name of a [choice]")));
        }
        let mut section = field.section(format!("extract {name:?}"))?;
        let (key, value) = section.one_of(&["regex", "pointer", "field"])?;
        section.finish()?;
        let text = value.text()?.to_owned();
        let from = match key {
            "regex" => ExtractSource::Regex(Box::new(regex(value)?)),
            "pointer" if text.is_empty() || text.starts_with('/') => ExtractSource::Pointer(text),
            "pointer" => return Err(value.error("a JSON pointer (RFC 6901) begins with /")),
            _ => ExtractSource::Field(text),
        };
        let slot = names
            .slots
            .iter()
            .position(|known| known == name)
            .unwrap_or_else(|| {
                names.slots.push(name.to_owned());
                names.slots.len() - 1
            });
        all.push(Extract { slot, from });
    }
    Ok(all)
}

fn regex(field: Field<'_>) -> Result<Regex, PlanError> {
    RegexBuilder::new(field.text()?)
        .size_limit(LARGEST_REGEX)
        .build()
        .map_err(|error| field.error(one_line(&error)))
}

fn one_line(error: &dyn std::fmt::Display) -> String {
    error.to_string().replace('\n', " ")
}
