//! Templates: loading them with precise errors.

use std::collections::BTreeMap;

use minijinja::{Environment, ErrorKind, UndefinedBehavior, syntax::SyntaxConfig};

use crate::{Problem, filters, locale::Formats, page_type, suggest::closest};

/// The error of a render for the owner's log: place and cause, with the causes of the cause.
pub(crate) fn failure(error: &minijinja::Error) -> String {
    let place = match (error.name(), error.line()) {
        (Some(name), Some(line)) => format!("{}:{line}: ", file_of(name)),
        (Some(name), None) => format!("{}: ", file_of(name)),
        _ => String::new(),
    };
    let mut text = format!("{place}{}", error.kind());
    if let Some(detail) = error.detail() {
        text = format!("{text}: {detail}");
    }
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        text = format!("{text}, because {inner}");
        cause = inner.source();
    }
    text
}

/// The limit of one render in minijinja's instructions: an endless loop becomes an error. A page of
/// 50 KB takes some thousands; this limit occupies a worker for some tens of milliseconds.
const FUEL: u64 = 2_000_000;

/// Builds the environment from the templates' names and sources. Pages are named `pages/…`.
pub(crate) fn environment(
    sources: &BTreeMap<String, String>,
    formats: Formats,
) -> Result<Environment<'static>, Vec<Problem>> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    // An error names the value that is undefined. The default is so in debug builds only.
    environment.set_debug(true);
    environment.set_auto_escape_callback(page_type::auto_escape);
    environment.set_formatter(page_type::format);
    environment.set_fuel(Some(FUEL));
    let syntax = SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .build();
    environment.set_syntax(syntax.expect("Jinja's own delimiters are sound"));
    filters::register(&mut environment, formats);
    let mut problems = Vec::new();
    for (name, source) in sources {
        if let Err(error) = environment.add_template_owned(name.clone(), source.clone()) {
            problems.push(syntax_problem(name, source, &error));
        }
        problems.extend(missing_references(name, source, sources));
        problems.extend(unescaped_references(name, source));
    }
    if problems.is_empty() {
        Ok(environment)
    } else {
        Err(problems)
    }
}

/// The file of a template's name, relative to the site folder.
pub(crate) fn file_of(name: &str) -> String {
    if name.starts_with("pages/") {
        name.to_owned()
    } else {
        format!("templates/{name}")
    }
}

fn syntax_problem(name: &str, source: &str, error: &minijinja::Error) -> Problem {
    let problem = Problem::new(
        file_of(name),
        error
            .detail()
            .unwrap_or("the template does not parse")
            .to_owned(),
    );
    let problem = match (error.range(), error.line()) {
        (Some(range), _) => problem.at_offset(source, range.start),
        (None, Some(line)) => problem.at(line, 1),
        (None, None) => problem,
    };
    match error.kind() {
        ErrorKind::SyntaxError => problem.hint("the syntax is Jinja's: {{ value }}, {% if … %} … {% endif %}, {% block name %} … {% endblock %}"),
        _ => problem,
    }
}

/// Tags whose first argument names another template.
const REFERENCES: &[&str] = &["extends", "include", "import", "from"];

/// References to templates that do not exist, which would otherwise fail at the first request.
fn missing_references(
    name: &str,
    source: &str,
    sources: &BTreeMap<String, String>,
) -> Vec<Problem> {
    references(source)
        .filter(|(_, target)| !sources.contains_key(*target))
        .map(|(offset, target)| {
            let problem = Problem::new(file_of(name), format!("there is no template `{target}`"))
                .at_offset(source, offset);
            let known: Vec<_> = sources
                .keys()
                .filter(|name| !name.starts_with("pages/"))
                .map(String::as_str)
                .collect();
            match closest(target, known.iter().copied()) {
                Some(near) => problem.hint(format!("did you mean `{near}`?")),
                None => problem.hint(format!("create templates/{target}")),
            }
        })
        .collect()
}

/// References to pages of a type whose values are escaped otherwise: text of a visitor would become
/// HTML.
fn unescaped_references(name: &str, source: &str) -> Vec<Problem> {
    let escaping = page_type::auto_escape(name);
    references(source)
        .filter(|(_, target)| {
            target.starts_with("pages/") && page_type::auto_escape(target) != escaping
        })
        .map(|(offset, target)| {
            let message = format!("`{target}` is escaped for another type of page than this one");
            Problem::new(file_of(name), message)
                .at_offset(source, offset)
                .hint("move what both show to templates/")
        })
        .collect()
}

/// The literal names after `extends`, `include`, `import` and `from`, with their positions. `ignore
/// missing` exempts a tag.
fn references(source: &str) -> impl Iterator<Item = (usize, &str)> {
    source.match_indices("{%").filter_map(move |(start, _)| {
        let tag = &source[start + 2..];
        let tag = &tag[..tag.find("%}")?];
        let body = tag.trim_start_matches(['-', '+']).trim_start();
        let word = REFERENCES.iter().find(|word| {
            body.strip_prefix(**word)
                .is_some_and(|rest| rest.starts_with([' ', '\t', '\n', '"', '\'']))
        })?;
        let rest = body[word.len()..].trim_start();
        let quote = rest
            .chars()
            .next()
            .filter(|quote| matches!(quote, '"' | '\''))?;
        let target = &rest[1..];
        let target = &target[..target.find(quote)?];
        let excused = tag.contains("ignore missing");
        let offset = target.as_ptr() as usize - source.as_ptr() as usize;
        (!excused).then_some((offset, target))
    })
}

/// Names that a page's template reads and that are never supplied.
pub(crate) fn unknown_names(
    environment: &Environment<'_>,
    name: &str,
    source: &str,
    known: &[&str],
) -> Vec<Problem> {
    let Ok(template) = environment.get_template(name) else {
        return Vec::new();
    };
    let globals: Vec<String> = environment
        .globals()
        .map(|(name, _)| name.to_owned())
        .collect();
    let mut names: Vec<_> = template.undeclared_variables(false).into_iter().collect();
    names.sort_unstable();
    names
        .iter()
        .filter(|unknown| {
            !known.contains(&unknown.as_str()) && !globals.iter().any(|global| global == *unknown)
        })
        .map(|unknown| {
            let problem = Problem::new(
                file_of(name),
                format!("nothing gives the template `{unknown}`"),
            );
            let problem = match word_at(source, unknown) {
                Some(offset) => problem.at_offset(source, offset),
                None => problem,
            };
            match closest(unknown, known.iter().copied()) {
                Some(near) => problem.hint(format!("did you mean `{near}`?")),
                None => problem.hint(format!(
                    "a template sees the page's queries by name, `params` and `request`; here: {}",
                    known.join(", ")
                )),
            }
        })
        .collect()
}

/// The first place of `word` as a whole word inside a tag.
fn word_at(source: &str, word: &str) -> Option<usize> {
    let inside = |at: usize| {
        let before = &source[..at];
        let open = before.rfind("{{").max(before.rfind("{%"));
        let close = before.rfind("}}").max(before.rfind("%}"));
        open > close
    };
    let is_word = |byte: Option<&u8>| {
        byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte == b'.')
    };
    source.match_indices(word).map(|(at, _)| at).find(|&at| {
        let bytes = source.as_bytes();
        inside(at)
            && !is_word(at.checked_sub(1).and_then(|before| bytes.get(before)))
            && !bytes
                .get(at + word.len())
                .is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A release build would name nothing otherwise, and tests would not show it.
    #[test]
    fn an_undefined_value_is_named_in_every_build() {
        assert!(
            environment(&BTreeMap::new(), Formats::default())
                .unwrap()
                .debug()
        );
    }

    #[test]
    fn faults_have_a_place_and_a_hint() {
        let sources = |pairs: &[(&str, &str)]| {
            pairs
                .iter()
                .map(|(name, source)| ((*name).to_owned(), (*source).to_owned()))
                .collect()
        };
        let faults = |pairs: &[(&str, &str)]| match environment(&sources(pairs), Formats::default())
        {
            Ok(_) => String::new(),
            Err(problems) => problems
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join("\n"),
        };
        assert_eq!(
            faults(&[
                ("layout.html", ""),
                ("pages/a.html", "\n {% extends \"layuot.html\" %}")
            ]),
            "pages/a.html:2:14: there is no template `layuot.html`\n  hint: did you mean `layout.html`?"
        );
        assert!(faults(&[("a.html", "x\n{% if a %}")]).starts_with("templates/a.html:2:"));
        assert_eq!(
            faults(&[("a.html", "{% include 'b.html' ignore missing %}")]),
            ""
        );
        let pages = sources(&[(
            "pages/a.html",
            "{{ artcle.title }} {{ article.x }}{{ request.path }}",
        )]);
        let environment = environment(&pages, Formats::default()).unwrap();
        let unknown = unknown_names(
            &environment,
            "pages/a.html",
            &pages["pages/a.html"],
            &["article", "params", "request"],
        );
        assert_eq!(
            unknown[0].to_string(),
            "pages/a.html:1:4: nothing gives the template `artcle`\n  hint: did you mean `article`?"
        );
        assert_eq!(unknown.len(), 1);
    }
}
