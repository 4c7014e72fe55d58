//! Generated pages: what `check` calls well renders, with any data and parameters, and a name that
//! nothing gives is refused.
//!
//! `MILLPOND_TEST_ROUNDS` is the number of folders, of forty pages each; `MILLPOND_TEST_SEED` is
//! the first seed.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use lab_torture::Choices;
use millpond_site::{Config, Problem, check};

use crate::support::{TestSite, folder, write};

/// Queries of each page: lists, a row that may not be there, one that always is.
const QUERIES: &str = "-- param: id integer = 1
-- param: q text = ''
-- param: lang text in (en, de) = en
-- name: articles :many
select id, title, body from article where (:q = '' or title = :q) and :lang <> '' order by id;
-- name: comments :many
select who, article_id from comment where article_id = :id order by id;
-- name: article :one?
select id, title, body from article where id = :id;
";

/// A query of the page, or of a template that it shows.
const TOTAL_QUERY: &str = "-- name: total :one
select count(*) as n, max(id) as top from article;
";

/// A query that some pages have, and templates that two pages share ask for.
const SPECIAL_QUERY: &str = "-- name: special :one
select count(*) as n from comment;
";

/// The rows of the filled database.
const ROWS: &str = "insert into comment (article_id, who) values (1, 'Ann'), (1, 'Bo'), (2, 'Cy');";

/// Meaning of a name in a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NameKind {
    /// A row of one of these columns, which is always there.
    Row(&'static [&'static str]),
    /// A row that may not be there.
    Optional(&'static [&'static str]),
    List(&'static [&'static str]),
    Value,
}

const ARTICLE: &[&str] = &["id", "title", "body"];
const COMMENT: &[&str] = &["who", "article_id"];
const TOTAL: &[&str] = &["n", "top"];
const SPECIAL: &[&str] = &["n"];

/// Filters that take any value: what they cannot use is no error of the page.
const ANY_VALUE: &[&str] = &[
    "abs",
    "batch(2) | list",
    "capitalize",
    "date",
    "datetime",
    "date('%H:%M')",
    "filesize",
    "first",
    "float",
    "int",
    "join('-')",
    "last",
    "length",
    "list",
    "markdown",
    "max",
    "min",
    "money",
    "nl2br",
    "number(2)",
    "pluralize",
    "reverse",
    "round(1)",
    "slug",
    "sort",
    "striptags",
    "sum",
    "timeago",
    "title",
    "truncate(3)",
    "unique",
    "urlencode",
];

/// Generates one page and its partials, or what two pages share.
struct PageWriter<'c> {
    choices: Choices<'c>,
    /// Beginning of the names of its files.
    prefix: String,
    /// The names that are known here, the innermost last.
    names: Vec<(String, NameKind)>,
    files: BTreeMap<String, String>,
    macros: String,
    counter: usize,
    /// Loops, branches and macros around this place.
    nesting: usize,
    in_loop: bool,
    in_macro: bool,
    /// True if macros are called here: what a macro includes does not see the other macros.
    calls_macros: bool,
    /// True if wrong names may be written.
    may_err: bool,
    has_erred: bool,
    /// True if a wrong name stands where every render comes by.
    is_certainly_wrong: bool,
    /// Set in templates that two pages share, of which one may have `special`.
    is_shared: bool,
    uses: SharedUses,
}

/// How shared templates use what only one of their pages may have.
#[derive(Clone, Copy, Debug, Default)]
struct SharedUses {
    /// True if a use stands in no condition that proves the name.
    unguarded: bool,
    /// True if a use stands under `flag`.
    flagged: bool,
}

impl PageWriter<'_> {
    fn new(choices: Choices<'_>, prefix: String, may_err: bool) -> PageWriter<'_> {
        PageWriter {
            choices,
            prefix,
            names: vec![
                ("articles".to_owned(), NameKind::List(ARTICLE)),
                ("comments".to_owned(), NameKind::List(COMMENT)),
                ("article".to_owned(), NameKind::Optional(ARTICLE)),
                ("total".to_owned(), NameKind::Row(TOTAL)),
            ],
            files: BTreeMap::new(),
            macros: String::new(),
            counter: 0,
            nesting: 0,
            in_loop: false,
            in_macro: false,
            calls_macros: true,
            may_err,
            has_erred: false,
            is_certainly_wrong: false,
            is_shared: false,
            uses: SharedUses::default(),
        }
    }

    fn fresh(&mut self, what: &str) -> String {
        self.counter += 1;
        // A layout would otherwise set names of its page anew.
        let shared = if self.is_shared && !what.contains('_') {
            "g"
        } else {
            ""
        };
        format!("{shared}{what}{}", self.counter)
    }

    fn wrong(&mut self) -> bool {
        let wrong = self.may_err && self.choices.chance(4);
        self.has_erred |= wrong;
        self.is_certainly_wrong |= wrong && self.nesting == 0;
        wrong
    }

    /// A name of this kind, if there is one.
    fn name(&mut self, is: impl Fn(NameKind) -> bool) -> Option<(String, NameKind)> {
        let fitting: Vec<_> = self.names.iter().filter(|(_, kind)| is(*kind)).collect();
        let (name, kind) = self.choices.pick(&fitting)?;
        // A name that was given anew counts as what it is now.
        let last = self.names.iter().rev().find(|(known, _)| known == name);
        (last?.1 == *kind).then(|| (name.clone(), *kind))
    }

    fn column(&mut self, columns: &[&str]) -> String {
        if self.wrong() {
            return "nocolumn".to_owned();
        }
        (*self.choices.pick(columns).unwrap()).to_owned()
    }

    /// An expression that gives a text, a number or none.
    fn value(&mut self, depth: usize) -> String {
        if self.wrong() {
            let wrong = [
                "nothing",
                "params.nothing",
                "request.nothing",
                "total.nothing",
            ];
            return (*self.choices.pick(&wrong).unwrap()).to_owned();
        }
        match self.choices.below(if depth == 0 { 5 } else { 25 }) {
            0 => "'text'".to_owned(),
            1 => "params.q".to_owned(),
            2 if self.in_loop => "loop.index".to_owned(),
            3 => match self.name(|kind| kind == NameKind::Value) {
                Some((name, _)) => name,
                None => "request.path".to_owned(),
            },
            2 | 4 => match self.name(|kind| matches!(kind, NameKind::Row(_))) {
                Some((name, NameKind::Row(columns))) => format!("{name}.{}", self.column(columns)),
                _ => "params.id".to_owned(),
            },
            5 => format!("{} ~ {}", self.value(depth - 1), self.value(depth - 1)),
            6 => format!("({} == {})", self.value(depth - 1), self.value(depth - 1)),
            7 => {
                let filters = ["upper", "trim", "default('-')", "string", "escape"];
                let filter = match self.wrong() {
                    true => "nofilter",
                    false => self.choices.pick(&filters).unwrap(),
                };
                let value = match filter.starts_with("default") {
                    true => self.unused(depth - 1),
                    false => self.value(depth - 1),
                };
                format!("({value} | {filter})")
            }
            8 => format!("({} | length)", self.list().0),
            9 => {
                let condition = self.condition(depth - 1);
                self.nesting += 1;
                let (one, two) = (self.value(depth - 1), self.value(depth - 1));
                self.nesting -= 1;
                format!("({one} if {condition} else {two})")
            }
            10 => {
                let (list, columns) = self.list();
                let column = self.column(columns);
                let how = ["[0]", " | first"];
                let how = *self.choices.pick(&how).unwrap();
                // An empty list: said as a doubt, or not reached.
                format!("({list}{how}).{column}").replace("[0])", ")[0]")
            }
            11 => {
                let (list, columns) = self.list();
                let column = self.column(columns);
                format!("({list} | map(attribute='{column}') | join(', '))")
            }
            12 => match self.name(|kind| matches!(kind, NameKind::Optional(_))) {
                Some((name, NameKind::Optional(columns))) => {
                    let column = self.column(columns);
                    match self.choices.below(3) {
                        0 => format!("{name}.{column}"),
                        1 => format!("({name}.{column} if {name} else '')"),
                        _ => format!("({name} and {name}.{column})"),
                    }
                }
                _ => "''".to_owned(),
            },
            13 => {
                let signs = ["+", "-", "/", "//", "%", "<"];
                let sign = *self.choices.pick(&signs).unwrap();
                format!("({} {sign} {})", self.number(depth), self.number(depth))
            }
            14 => format!("(-{} * 2)", self.number(depth)),
            15 => {
                let (value, text) = (self.value(depth - 1), self.text(depth));
                match self.choices.below(3) {
                    0 => format!("{text}[:2]"),
                    1 => format!("({value} not in {text})"),
                    _ => format!("({value} in {text})"),
                }
            }
            16 => {
                let key = self.value(0);
                let guards = [" | default('-')", " | default(1)", " is defined"];
                // Without a guard it is a doubt, and one doubt is enough for a page.
                let guard = match self.choices.below(8) {
                    0 => "",
                    _ => self.choices.pick(&guards).unwrap(),
                };
                format!("({{'1': 'x', 'One': 'y'}}[{key}]{guard})")
            }
            19 => self.chosen(depth),
            20 => {
                let list = self.list();
                let column = self.column(list.1);
                format!("({0}[0].{column} if {0}[0] else '-')", list.0)
            }
            21 => {
                let key = self.value(0);
                format!("({{'1': 'x', 'One': 'y'}}[{key}] or '-')")
            }
            22 => match self.name(|kind| matches!(kind, NameKind::Row(_))) {
                Some((name, NameKind::Row(columns))) => {
                    format!("dict(a = {name}).a.{}", self.column(columns))
                }
                _ => "''".to_owned(),
            },
            17 | 18 => {
                let filter = *self.choices.pick(ANY_VALUE).unwrap();
                format!("({} | {filter})", self.value(depth - 1))
            }
            _ => {
                let name = ["q", "x"];
                let name = self.choices.pick(&name).unwrap();
                let guard = [" | default('')", " is defined", ""];
                let guard = self.choices.pick(&guard).unwrap();
                format!("(request.query.{name}{guard})")
            }
        }
    }

    /// A member of a map that is one of several.
    fn chosen(&mut self, depth: usize) -> String {
        let condition = self.condition(depth - 1);
        self.nesting += 1;
        let (one, two) = (self.value(depth - 1), self.value(depth - 1));
        self.nesting -= 1;
        let kind = self.choices.below(4);
        let member = if kind < 3 { self.member() } else { "" };
        match kind {
            0 => format!("({{'a': {one}, 'b': 1}} if {condition} else {{'a': {two}}}).{member}"),
            1 => format!("{{'en': {{'a': 1, 'b': 2}}, 'de': {{'a': 'x'}}}}[params.lang].{member}"),
            2 => {
                let key = self.value(0);
                format!("({{'1': {{'a': 1}}}}[{key}] | default({{'a': 'x'}})).{member}")
            }
            _ => format!("({{'a': 1}} if {condition}) | default('-')"),
        }
    }

    /// The name of a member of such a map.
    fn member(&mut self) -> &'static str {
        match self.wrong() {
            true => "nomember",
            false => "a",
        }
    }

    /// A number that is not zero: operators take no others.
    fn number(&mut self, depth: usize) -> String {
        format!("(({}) | float or 1)", self.value(depth - 1))
    }

    fn text(&mut self, depth: usize) -> String {
        format!("(({}) | string or '')", self.value(depth - 1))
    }

    /// A value that is perhaps not used, so that it may be undefined.
    fn unused(&mut self, depth: usize) -> String {
        self.nesting += 1;
        let value = self.value(depth);
        self.nesting -= 1;
        value
    }

    /// A list, with its columns.
    fn list(&mut self) -> (String, &'static [&'static str]) {
        let (name, columns) = match self.name(|kind| matches!(kind, NameKind::List(_))) {
            Some((name, NameKind::List(columns))) => (name, columns),
            _ => ("articles".to_owned(), ARTICLE),
        };
        let name = match self.choices.below(8) {
            7 => format!("({name} if {} else [])", self.condition(0)),
            0 => format!("{name}[:2]"),
            1 => format!("({name} | reverse)"),
            2 => format!("({name} | sort(attribute='{}') | list)", columns[0]),
            3 => format!("({name} | selectattr('{}') | list)", columns[0]),
            _ => name,
        };
        (name, columns)
    }

    fn condition(&mut self, depth: usize) -> String {
        match self.choices.below(if depth == 0 { 4 } else { 12 }) {
            0 if depth == 0 => "articles".to_owned(),
            0 => self.list().0,
            1 => "article".to_owned(),
            2 => "article is not none".to_owned(),
            3 => "total.n > 1".to_owned(),
            9 => "request.query.q".to_owned(),
            10 => format!("{}[0]", self.list().0),
            11 => format!("{{'1': 'x', 'One': ''}}[{}]", self.value(0)),
            4 => format!("not {}", self.condition(depth - 1)),
            5 => format!("({} and {})", self.condition(depth - 1), self.condition(0)),
            6 => format!("({} or {})", self.condition(depth - 1), self.condition(0)),
            7 => format!("{} | length > 0", self.list().0),
            _ => self.value(depth - 1),
        }
    }

    fn body(&mut self, depth: usize) -> String {
        let known = self.names.len();
        let count = 1 + self.choices.below(3);
        let body = (0..count).map(|_| self.statement(depth)).collect();
        self.names.truncate(known);
        body
    }

    fn nested(&mut self, depth: usize) -> String {
        self.nesting += 1;
        let body = self.body(depth);
        self.nesting -= 1;
        body
    }

    fn statement(&mut self, depth: usize) -> String {
        if self.is_shared && depth > 0 && self.choices.chance(30) {
            return self.special(depth);
        }
        let kinds = if depth == 0 { 3 } else { 14 };
        match self.choices.below(kinds) {
            10 => self.namespace(),
            11 => self.set_in_branches(),
            12 => self.import_of_language(),
            0 | 1 => format!("{{{{ {} }}}}", self.value(2)),
            2 => self.set(),
            3 | 4 => self.for_loop(depth),
            5 => {
                let condition = self.condition(2);
                let (one, two) = (self.nested(depth - 1), self.nested(depth - 1));
                format!("{{% if {condition} %}}{one}{{% else %}}{two}{{% endif %}}")
            }
            6 => {
                // A row that is there inside.
                self.names
                    .push(("article".to_owned(), NameKind::Row(ARTICLE)));
                let body = self.nested(depth - 1);
                self.names.pop();
                format!("{{% if article %}}{body}{{% endif %}}")
            }
            7 => {
                let value = self.unused(1);
                let name = self.fresh("w");
                self.names.push((name.clone(), NameKind::Value));
                let body = self.body(depth - 1);
                self.names.pop();
                format!("{{% with {name} = {value} %}}{body}{{% endwith %}}")
            }
            8 => {
                // Sets in a partial go on after it; here they are not used there.
                let file = self.fresh(&format!("{}_", self.prefix));
                let calls = self.calls_macros;
                self.calls_macros &= !self.in_macro;
                let body = self.body(depth - 1);
                self.calls_macros = calls;
                self.files.insert(format!("templates/{file}.html"), body);
                format!("{{% include '{file}.html' %}}")
            }
            9 if self.calls_macros => self.macro_call(depth),
            _ => format!(
                "{{% filter upper %}}{}{{% endfilter %}}",
                self.body(depth - 1)
            ),
        }
    }

    /// A use of what only some pages have, in a condition of some kind.
    fn special(&mut self, depth: usize) -> String {
        self.names
            .push(("special".to_owned(), NameKind::Row(SPECIAL)));
        let body = format!("{{{{ special.n }}}}{}", self.nested(depth - 1));
        self.names.pop();
        let condition = self.condition(1);
        match self.choices.below(8) {
            0 => format!("{{% if special is defined %}}{body}{{% endif %}}"),
            1 => format!("{{% if special is defined and {condition} %}}{body}{{% endif %}}"),
            2 => format!("{{% if special is undefined %}}-{{% else %}}{body}{{% endif %}}"),
            3 => "{{ special.n if special is defined else '-' }}".to_owned(),
            4 => {
                let name = self.fresh("m");
                let _ = write!(
                    self.macros,
                    "{{% macro {name}() %}}{{{{ special.n if special is defined }}}}{{% endmacro %}}"
                );
                match self.in_macro {
                    true => String::new(),
                    false => format!("{{{{ {name}() }}}}"),
                }
            }
            5 | 6 => {
                self.uses.flagged = true;
                let flag = ["flag", "flag | default(false)", "flag == true"];
                let flag = self.choices.pick(&flag).unwrap();
                format!("{{% if {flag} %}}{body}{{% endif %}}")
            }
            _ => {
                self.uses.unguarded = true;
                format!("{{% if {condition} %}}{body}{{% endif %}}")
            }
        }
    }

    /// A namespace that keeps the row of the round before.
    fn namespace(&mut self) -> String {
        let (name, row) = (self.fresh("n"), self.fresh("r"));
        let (list, columns) = self.list();
        self.nesting += 1;
        let (before, last) = (self.column(columns), self.column(columns));
        self.nesting -= 1;
        format!(
            "{{% set {name} = namespace(row = none) %}}{{% for {row} in {list} %}}\
             {{% if {name}.row %}}{{{{ {name}.row.{before} }}}}{{% endif %}}\
             {{% set {name}.row = {row} %}}{{% endfor %}}\
             {{% if {name}.row %}}{{{{ {name}.row.{last} }}}}{{% endif %}}"
        )
    }

    /// A map that is set in both branches of a condition.
    fn set_in_branches(&mut self) -> String {
        let name = self.fresh("s");
        let condition = self.condition(1);
        self.nesting += 1;
        let (one, two) = (self.value(1), self.value(1));
        self.nesting -= 1;
        let member = self.member();
        format!(
            "{{% if {condition} %}}{{% set {name} = {{'a': {one}}} %}}{{% else %}}\
             {{% set {name} = {{'a': {two}, 'b': 1}} %}}{{% endif %}}{{{{ {name}.{member} }}}}"
        )
    }

    /// Texts of a language, which are in a template of their own.
    fn import_of_language(&mut self) -> String {
        let file = self.fresh(&format!("{}_t", self.prefix));
        let (texts, shown) = (self.fresh("x"), self.fresh("y"));
        for lang in ["en", "de"] {
            let text = format!(
                "{{% set t = {{'a': '{lang}'}} %}}{{% macro m(v) %}}{{{{ v }}}}{{% endmacro %}}"
            );
            self.files
                .insert(format!("templates/{file}_{lang}.html"), text);
        }
        let (member, value) = (self.member(), self.value(1));
        format!(
            "{{% from '{file}_' ~ params.lang ~ '.html' import t as {texts}, m as {shown} %}}\
             {{{{ {texts}.{member} }}}}{{{{ {shown}({value}) }}}}"
        )
    }

    fn set(&mut self) -> String {
        let name = self.fresh("s");
        let (value, kind) = match self.choices.below(3) {
            0 => {
                let (list, columns) = self.list();
                (list, NameKind::List(columns))
            }
            1 => ("total".to_owned(), NameKind::Row(TOTAL)),
            _ => (self.unused(1), NameKind::Value),
        };
        self.names.push((name.clone(), kind));
        format!("{{% set {name} = {value} %}}")
    }

    fn for_loop(&mut self, depth: usize) -> String {
        if self.choices.chance(10) {
            let (value, name) = (self.value(1), self.fresh("v"));
            return format!("{{% for {name} in {value} %}}{{{{ {name} }}}}{{% endfor %}}");
        }
        let (list, columns) = self.list();
        let name = self.fresh("r");
        let was = std::mem::replace(&mut self.in_loop, true);
        self.names.push((name.clone(), NameKind::Row(columns)));
        let filter = match self.choices.chance(20) {
            true => {
                self.nesting += 1;
                let column = self.column(columns);
                self.nesting -= 1;
                format!(" if {name}.{column}")
            }
            false => String::new(),
        };
        let body = self.nested(depth - 1);
        self.names.pop();
        self.in_loop = was;
        let otherwise = match self.choices.chance(30) {
            true => format!("{{% else %}}{}", self.nested(depth - 1)),
            false => String::new(),
        };
        format!("{{% for {name} in {list}{filter} %}}{body}{otherwise}{{% endfor %}}")
    }

    /// A macro with a row and a value, declared at the beginning of the page, and a call of it.
    fn macro_call(&mut self, depth: usize) -> String {
        let name = self.fresh("m");
        let outer = std::mem::replace(
            &mut self.names,
            vec![
                ("row".to_owned(), NameKind::Row(TOTAL)),
                ("v".to_owned(), NameKind::Value),
                ("articles".to_owned(), NameKind::List(ARTICLE)),
            ],
        );
        let was = std::mem::replace(&mut self.in_loop, false);
        let was_in_macro = std::mem::replace(&mut self.in_macro, true);
        let body = self.nested(depth - 1);
        self.in_macro = was_in_macro;
        self.names = outer;
        self.in_loop = was;
        let _ = write!(
            self.macros,
            "{{% macro {name}(row, v='-') %}}{body}{{% endmacro %}}"
        );
        let row = match self.name(|kind| kind == NameKind::Row(TOTAL)) {
            Some((row, _)) => row,
            None => "total".to_owned(),
        };
        // Where an argument is undefined, the macro takes its default.
        let value = self.unused(1);
        match self.choices.below(4) {
            0 => format!("{{{{ {name}({row}, {value}) }}}}"),
            1 => format!("{{{{ {name}(row={row}, v={value}) }}}}"),
            2 if self.wrong() => format!("{{{{ {name}({row}, nothing=1) }}}}"),
            _ => format!("{{{{ {name}({row}) }}}}"),
        }
    }

    /// A layout and a partial for two pages.
    fn write_shared(&mut self) {
        let part = self.body(3);
        let macros = std::mem::take(&mut self.macros);
        let name = |what: &str| format!("templates/{}_{what}.html", self.prefix);
        let (part_name, layout_name) = (name("part"), name("layout"));
        self.files.insert(part_name, macros + &part);
        let layout = format!(
            "{}{{% block main %}}{{% endblock %}}{}",
            self.body(2),
            self.body(2)
        );
        let macros = std::mem::take(&mut self.macros);
        self.files.insert(layout_name, macros + &layout);
    }

    /// The page, which shows the files that begin with `shared` if it has one.
    fn write(&mut self, shared: &str, is_special: bool, flag: &str) {
        let page = self.prefix.clone();
        let body = match self.choices.below(4) {
            0 | 1 => self.body(3),
            2 => format!(
                "{{% extends '{shared}_layout.html' %}}{{% block main %}}{}{{% endblock %}}",
                self.body(3)
            ),
            _ => {
                let (head, main) = (self.body(1), self.body(3));
                // Without super() what the layout has in the block is not shown.
                let layout = format!(
                    "{{% block head %}}{{{{ nothing }}}}{{% endblock %}}{}{{% block main %}}{}{{% endblock %}}",
                    self.body(1),
                    self.nested(1)
                );
                let up = if self.choices.chance(50) {
                    "{{ super() }}"
                } else {
                    ""
                };
                self.files
                    .insert(format!("templates/{page}_layout.html"), layout);
                format!(
                    "{{% extends '{page}_layout.html' %}}{{% block head %}}{head}{{% endblock %}}{{% block main %}}{up}{main}{{% endblock %}}"
                )
            }
        };
        // A macro may call those that were written before it.
        let text = match body.strip_prefix("{% extends") {
            Some(rest) => {
                let (extends, rest) = rest.split_once("%}").unwrap();
                format!(
                    "{{% set flag = {flag} %}}{{% extends{extends}%}}{}{rest}",
                    self.macros
                )
            }
            None => format!(
                "{{% set flag = {flag} %}}{}{body}{{% include '{shared}_part.html' %}}",
                self.macros
            ),
        };
        let mut queries = QUERIES.to_owned();
        if is_special {
            queries += SPECIAL_QUERY;
        }
        let mut shown = String::new();
        if self.choices.chance(50) {
            let file = format!("{page}_total");
            shown = format!("{{% include '{file}.html' %}}");
            let partial = format!("templates/{file}");
            self.files.insert(partial.clone() + ".html", String::new());
            self.files.insert(partial + ".sql", TOTAL_QUERY.to_owned());
        } else {
            queries += TOTAL_QUERY;
        }
        self.files
            .insert(format!("pages/{page}.html"), text + &shown);
        self.files.insert(format!("pages/{page}.sql"), queries);
    }
}

/// A page with its files.
struct Generated {
    files: BTreeMap<String, String>,
    has_erred: bool,
    is_certainly_wrong: bool,
}

fn generate(page: usize, seed: u64) -> Generated {
    // Two pages, of which one may err, share a layout and a partial.
    let group = format!("g{}", page / 2);
    let choices = Choices::seeded(seed * 1000 + 500 + page as u64 / 2);
    let mut shared = PageWriter::new(choices, group.clone(), false);
    shared.is_shared = true;
    shared.write_shared();
    let choices = Choices::seeded(seed * 1000 + page as u64);
    let mut writer = PageWriter::new(choices, format!("p{page}"), page.is_multiple_of(2));
    let is_special = writer.choices.chance(50);
    let flags = match is_special {
        true => &["true", "false", "(params.q == 'One')"][..],
        false => &["false", "false", "false", "true", "(params.q == 'One')"][..],
    };
    let flag = *writer.choices.pick(flags).unwrap();
    writer.write(&group, is_special, flag);
    let uses = shared.uses;
    let lacks = !is_special && (uses.unguarded || uses.flagged && flag != "false");
    writer.files.extend(shared.files);
    Generated {
        files: writer.files,
        has_erred: writer.has_erred || lacks,
        is_certainly_wrong: writer.is_certainly_wrong,
    }
}

/// The pages that a problem is about: files are named for their page, or for two that share them.
fn pages_of(problem: &Problem) -> Vec<usize> {
    let number = |name: &str| -> usize {
        let digits = name[1..].split(['_', '.']).next().unwrap();
        digits.parse().unwrap_or_else(|_| panic!("{problem}"))
    };
    let name = problem.file.file_stem().unwrap().to_string_lossy();
    if name.starts_with('p') {
        return vec![number(&name)];
    }
    match problem.message.split_once("(for pages/") {
        Some((_, page)) => vec![number(page)],
        None => vec![number(&name) * 2, number(&name) * 2 + 1],
    }
}

/// Writes the files of the pages that are kept into a new folder.
fn folder_of<'g>(pages: impl Iterator<Item = &'g Generated>) -> tempfile::TempDir {
    let dir = folder(&[]);
    for page in pages {
        let files: Vec<(&str, &str)> = page
            .files
            .iter()
            .map(|(name, text)| (name.as_str(), text.as_str()))
            .collect();
        write(dir.path(), &files);
    }
    dir
}

fn said(dir: &std::path::Path) -> (Vec<Problem>, Vec<Problem>) {
    match check(dir, &Config::read(dir).unwrap()) {
        Ok(report) => (Vec::new(), report.notes),
        Err(problems) => (problems, Vec::new()),
    }
}

const PAGES: usize = 40;

/// One folder: how many of its pages are called well, and how many wrong.
fn round(seed: u64) -> (usize, usize) {
    let generated: Vec<Generated> = (0..PAGES).map(|page| generate(page, seed)).collect();
    let shown = |page: usize| format!("seed {seed}, page {page}: {:#?}", generated[page].files);
    let (errors, _) = said(folder_of(generated.iter()).path());
    let mut wrong: Vec<usize> = errors.iter().flat_map(pages_of).collect();
    wrong.sort_unstable();
    wrong.dedup();
    for (page, generated) in generated.iter().enumerate() {
        let is_refused = wrong.contains(&page);
        assert!(
            is_refused || !generated.is_certainly_wrong,
            "passed: {}",
            shown(page)
        );
        if is_refused && !generated.has_erred {
            // Where a condition says that a value is missing, its use is a fault and no doubt.
            let said = errors.iter();
            let said: Vec<_> = said.filter(|e| pages_of(e).contains(&page)).collect();
            let missing = [
                " is none here",
                "` is none where",
                "may have no row here",
                "is undefined where",
                "this map has no `",
            ];
            let is_branch = said
                .iter()
                .all(|e| missing.iter().any(|part| e.message.contains(part)));
            assert!(is_branch, "{said:?}: {}", shown(page));
        }
    }
    let kept = |wrong: &[usize]| {
        let pages = generated.iter().enumerate();
        let pages = pages.filter(|(page, _)| !wrong.contains(page));
        folder_of(pages.map(|(_, generated)| generated))
    };
    let (errors, doubts) = said(kept(&wrong).path());
    assert!(errors.is_empty(), "{errors:?}");
    let refused = wrong.len();
    wrong.extend(doubts.iter().flat_map(pages_of));
    let site = TestSite::open(kept(&wrong), millpond_site::SiteOptions::default());
    let well: Vec<usize> = (0..PAGES).filter(|page| !wrong.contains(page)).collect();
    let connection = site.foreign();
    for change in ["delete from article", "", ROWS] {
        if change == ROWS {
            let articles = "insert into article values (1, 'One', 'a < b'), (2, 'Two', null);";
            connection.execute_batch(articles).unwrap();
        }
        connection.execute_batch(change).unwrap();
        for page in &well {
            for query in [
                "",
                "?id=1&q=One",
                "?id=2&x=1",
                "?q=none&id=9",
                "?q=&lang=de&id=1",
            ] {
                let answer = site.get(&format!("/p{page}{query}"));
                assert_eq!(answer.status, 200, "{query}, {}", shown(*page));
            }
        }
    }
    (well.len(), refused)
}

#[test]
fn what_check_calls_well_renders() {
    let number = |name: &str, otherwise: u64| {
        let given = std::env::var(name).ok();
        given.map_or(otherwise, |text| text.parse().expect("a number"))
    };
    let first = number("MILLPOND_TEST_SEED", 1);
    let rounds = number("MILLPOND_TEST_ROUNDS", 3);
    let (mut well, mut wrong) = (0, 0);
    for seed in first..first + rounds {
        let (kept, refused) = round(seed);
        well += kept;
        wrong += refused;
    }
    // The generator would otherwise test nothing.
    let all = rounds as usize * PAGES;
    assert!(
        well * 20 > all && wrong * 10 > all,
        "{well} well, {wrong} wrong of {all}"
    );
}
