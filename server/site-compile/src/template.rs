//! Templates: loading them with precise errors.

use std::collections::BTreeMap;

use minijinja::{AutoEscape, Environment, ErrorKind, UndefinedBehavior, syntax::SyntaxConfig};

use crate::page_type;
use millpond_site_format::{Problem, locale::Formats, suggest::closest};

mod addresses_set;
mod arguments;
mod arithmetic;
mod calls;
mod constants;
mod expressions;
mod facts;
mod filters;
mod findings;
mod inherit;
mod inspect;
mod markdown_uses;
mod members;
mod names;
mod reach;
mod roots;
mod scope;
mod shape;
mod shown_faults;
mod syntax;
mod unclosed;
mod walk;
mod warnings;

pub use addresses_set::SetAddresses;
pub use inspect::{Given, GivenForms, GivenQuery, inspect};
pub use markdown_uses::MarkdownUses;
pub use reach::Reach;
pub use roots::REQUEST_MEMBERS;
pub use shown_faults::ShownFaults;
use unclosed::unclosed;

/// All templates by their names and in their order.
pub fn sources(environment: &Environment<'_>) -> Vec<(String, String)> {
    let all = environment.templates();
    let mut all: Vec<_> = all
        .map(|(name, template)| (name.to_owned(), template.source().to_owned()))
        .collect();
    all.sort_unstable();
    all
}

/// Description of a failed render.
pub struct RenderFailure<'e> {
    /// The error where it arose, which has the template and the place in it.
    pub error: &'e minijinja::Error,
    /// Description of the fault.
    pub sentence: String,
    /// The places from which other templates called this one, the nearest first.
    pub through: Vec<String>,
}

/// Bytes of an expression that a message shows.
const MOST_SHOWN: usize = 80;

/// Reads the error of a render.
pub fn render_failure(error: &minijinja::Error) -> RenderFailure<'_> {
    let mut innermost = error;
    let mut through = Vec::new();
    while let Some(cause) = std::error::Error::source(innermost)
        .and_then(|cause| cause.downcast_ref::<minijinja::Error>())
    {
        through.push(place(innermost));
        innermost = cause;
    }
    let text = innermost.template_source().zip(innermost.range());
    let text = text.and_then(|(source, range)| source.get(range));
    let text = text.filter(|text| text.len() <= MOST_SHOWN && !text.contains('\n'));
    let sentence = match (innermost.kind(), innermost.detail(), text) {
        // What the engine makes of `names[article.kind]` leaves out the map or the key.
        (ErrorKind::UndefinedError, Some(detail), Some(text))
            if detail.contains("[...]") && text.contains('[') =>
        {
            format!("`{text}` is undefined")
        }
        (ErrorKind::UndefinedError, Some(detail), _) => detail.to_owned(),
        (ErrorKind::UndefinedError, None, Some(text)) => {
            format!("a value is undefined in `{text}`")
        }
        (ErrorKind::UndefinedError, None, None) => "a value is undefined".to_owned(),
        (kind, detail, text) => {
            let of_operator = match kind {
                ErrorKind::InvalidOperation => arithmetic::sentence(detail, text),
                _ => None,
            };
            of_operator.unwrap_or_else(|| match (kind, detail, text) {
                (ErrorKind::InvalidOperation, Some(detail), Some(text)) => {
                    format!("{kind}: {detail}, in `{text}`")
                }
                (kind, Some(detail), _) => format!("{kind}: {detail}"),
                (kind, None, _) => kind.to_string(),
            })
        }
    };
    RenderFailure {
        error: innermost,
        sentence,
        through: through.into_iter().rev().flatten().collect(),
    }
}

/// The error of a render for the owner's log: the place where it arose, what it is, and by which
/// templates the render came there.
pub fn failure(error: &minijinja::Error) -> String {
    let RenderFailure {
        error,
        sentence,
        through,
    } = render_failure(error);
    let mut text = match place(error) {
        Some(at) => format!("{at}: {sentence}"),
        None => sentence,
    };
    text.extend(through.iter().map(|at| format!(", called by {at}")));
    match std::error::Error::source(error) {
        Some(cause) => format!("{text}, because {cause}"),
        None => text,
    }
}

/// The file, line and column of an error, as far as they are known.
fn place(error: &minijinja::Error) -> Option<String> {
    let file = file_of(error.name()?);
    let column = error
        .template_source()
        .zip(error.range())
        .map(|(text, range)| Problem::new(&file, "").at_offset(text, range.start).at);
    Some(match (column.flatten(), error.line()) {
        (Some((line, column)), _) => format!("{file}:{line}:{column}"),
        (None, Some(line)) => format!("{file}:{line}"),
        (None, None) => file,
    })
}

/// The limit of one render in minijinja's instructions: an endless loop becomes an error. A page of
/// 50 KB takes some thousands; this limit occupies a worker for some tens of milliseconds.
const FUEL: u64 = 2_000_000;

/// Builds the environment from the templates' names and sources, and says what is wrong with them.
/// Pages are named `pages/…`. A template that does not parse is not in the environment.
pub fn environment(
    sources: &BTreeMap<String, String>,
    formats: Formats,
) -> (Environment<'static>, Vec<Problem>) {
    let mut environment = Environment::new();
    // What is undefined fails where it is printed and is false where it is asked, as in Jinja.
    environment.set_undefined_behavior(UndefinedBehavior::SemiStrict);
    // An error names the value that is undefined. The default is so in debug builds only.
    environment.set_debug(true);
    environment.set_auto_escape_callback(page_type::auto_escape);
    environment.set_formatter(page_type::format);
    environment.set_fuel(Some(FUEL));
    environment.set_syntax(syntax_config());
    crate::filters::register(&mut environment, formats);
    let mut problems = Vec::new();
    for (name, source) in sources {
        if let Err(error) = environment.add_template_owned(name.clone(), source.clone()) {
            problems.push(syntax_problem(name, source, &error));
        }
        problems.extend(missing_references(name, source, sources));
        problems.extend(unescaped_references(name, source));
    }
    (environment, problems)
}

fn syntax_config() -> SyntaxConfig {
    let syntax = SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .build();
    syntax.expect("Jinja's own delimiters are sound")
}

/// The file of a template's name, relative to the site folder.
pub fn file_of(name: &str) -> String {
    if name.starts_with("pages/") {
        name.to_owned()
    } else {
        format!("templates/{name}")
    }
}

fn syntax_problem(name: &str, source: &str, error: &minijinja::Error) -> Problem {
    if let Some(problem) = unclosed(&file_of(name), source) {
        return problem;
    }
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
        .filter(|(at, target)| {
            // A macro takes the escaping of its caller, a template that is included has its own.
            let is_included = source[..*at]
                .trim_end_matches(['"', '\''])
                .trim_end()
                .ends_with("include");
            let is_page = target.starts_with("pages/");
            let is_escaped_by_itself = is_page || is_included && escaping != AutoEscape::None;
            is_escaped_by_itself && page_type::auto_escape(target) != escaping
        })
        .map(|(offset, target)| {
            let message = format!("`{target}` is escaped for another type of page than this one");
            Problem::new(file_of(name), message)
                .at_offset(source, offset)
                .hint(
                    "what pages of several types show is a macro in templates/, which is imported",
                )
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
        // The rest of a name that is put together is known when the page is followed.
        let is_whole = !rest[target.len() + 2..]
            .trim_start()
            .starts_with(['~', '|', '+']);
        let excused = tag.contains("ignore missing") || !is_whole;
        let offset = target.as_ptr() as usize - source.as_ptr() as usize;
        (!excused).then_some((offset, target))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A release build would name nothing otherwise, and tests would not show it.
    #[test]
    fn an_undefined_value_is_named_in_every_build() {
        assert!(environment(&BTreeMap::new(), Formats::default()).0.debug());
    }

    #[test]
    fn a_failed_render_names_the_expression_with_its_place() {
        let sources = [
            (
                "pages/a.html",
                "x\n{% for a in [{'b': 1}] %}{{ a.titel }}{% endfor %}",
            ),
            ("pages/b.html", "{% include 'part.html' %}"),
            ("part.html", "\n\n {{ 'é' }}{{ nothing.here }}"),
            ("pages/c.html", "{{ 'x'() }}"),
            (
                "pages/d.html",
                "{% set names = {'a': 1} %}{% set t = {'kind': 'b'} %}{{ names[t.kind] }}",
            ),
        ];
        let sources = sources.map(|(name, source)| (name.to_owned(), source.to_owned()));
        let (environment, _) = environment(&sources.into(), Formats::default());
        let fails = |name: &str| {
            let template = environment.get_template(name).unwrap();
            failure(&template.render(()).unwrap_err())
        };
        assert_eq!(
            fails("pages/a.html"),
            "pages/a.html:2:29: `a.titel` is undefined"
        );
        assert_eq!(
            fails("pages/b.html"),
            "templates/part.html:3:14: `nothing` is undefined, called by pages/b.html:1:4"
        );
        assert!(fails("pages/c.html").starts_with("pages/c.html:1:4: invalid operation: "));
        assert_eq!(
            fails("pages/d.html"),
            "pages/d.html:1:57: `names[t.kind]` is undefined"
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
        let faults = |pairs: &[(&str, &str)]| {
            let (_, problems) = environment(&sources(pairs), Formats::default());
            let problems = problems.iter().map(ToString::to_string);
            problems.collect::<Vec<_>>().join("\n")
        };
        assert_eq!(
            faults(&[
                ("layout.html", ""),
                ("pages/a.html", "\n {% extends \"layuot.html\" %}")
            ]),
            "pages/a.html:2:14: there is no template `layuot.html`\n  hint: did you mean `layout.html`?"
        );
        assert!(faults(&[("a.html", "x\n{% if a %}")]).starts_with("templates/a.html:2:"));
        for excused in [
            "{% include 'b.html' ignore missing %}",
            "{% include 'b' ~ '.html' %}",
            "{% from 'b' ~ x import y %}",
        ] {
            assert_eq!(faults(&[("a.html", excused)]), "", "{excused}");
        }
    }
}
