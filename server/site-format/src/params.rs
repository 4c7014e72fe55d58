//! The declared parameters of a page, from the request to typed values and to the cache key.
//!
//! A list has one form for each set of items: sorted, without an item twice. `in (…)` asks for
//! nothing else, and so `track=6&track=1` is the page of `track=1&track=6`.

use std::borrow::Cow;

use millpond_db::{self as db, Value, ValueKind};

use crate::{
    param_value::{TypedText, list_item, list_of, push_key, typed},
    time_zone::SiteZone,
    today,
    value_rules::ValueRules,
};

/// A list may not have more items than this.
pub const MAX_LIST: usize = 1000;

/// Fault of a parameter that is not given, to stand behind its name.
pub const MISSING: &str = "is missing";

/// A parameter that a page's queries use.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    pub name: String,
    pub kind: ValueKind,
    /// True if it takes any number of values.
    pub is_list: bool,
    /// The values that it may have; any if there are none here.
    pub choices: Box<[Value]>,
    /// Further rules for the value.
    pub rules: Option<Box<ValueRules>>,
    pub default: Option<Value>,
    /// Its place among the path's parameters, if it is one.
    pub in_path: Option<usize>,
    /// The zone whose date it is, if the server gives it and no request ([`today`]).
    pub today: Option<SiteZone>,
}

impl Param {
    /// A parameter that must be given, with any value of its kind.
    pub fn new(name: &str, kind: ValueKind) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            is_list: false,
            choices: [].into(),
            rules: None,
            default: None,
            in_path: None,
            today: None,
        }
    }

    /// True if a request may give the value.
    pub fn allows(&self, value: &Value) -> bool {
        (self.choices.is_empty() || self.choices.contains(value))
            && self.rules.as_ref().is_none_or(|rules| rules.allow(value))
    }

    /// The word for its type in a `-- param:` line.
    pub fn type_name(&self) -> &'static str {
        match self.kind {
            ValueKind::Integer => "integer",
            ValueKind::Real => "real",
            ValueKind::Boolean => "boolean",
            _ => "text",
        }
    }

    /// The texts that it may be, if it is a text that is compared as it is written.
    pub fn texts(&self) -> Vec<String> {
        let is_plain = self.rules.is_none() && !self.is_list;
        let texts = self.choices.iter().filter(|_| is_plain);
        let texts = texts.filter_map(|value| match value {
            Value::Text(text) => Some(text.to_string()),
            _ => None,
        });
        texts.collect()
    }

    /// True if it takes every value of its kind.
    pub fn takes_all(&self) -> bool {
        self.choices.is_empty() && self.rules.is_none()
    }

    /// True if it is a list that keeps the order and the repeats of what was sent.
    pub fn is_as_sent(&self) -> bool {
        self.rules.as_ref().is_some_and(|rules| rules.is_as_sent)
    }

    /// True if an empty text is one of its values, as far as its type says.
    fn is_plain_text(&self) -> bool {
        let format = self.rules.as_ref().and_then(|rules| rules.format);
        format.is_none() && matches!(self.kind, ValueKind::Text | ValueKind::Other)
    }

    /// The range that its value must lie in, to stand behind its name.
    pub fn range(&self) -> Option<String> {
        let range = self.rules.as_ref()?.range()?;
        Some(format!("must be {range}"))
    }
}

/// The parameter of a page or a form with such a query, as the database wants it; none if it wants
/// something else than a date.
pub fn of_today(wanted: &db::Param, zone: SiteZone) -> Option<Param> {
    let kind = wanted.kind.unwrap_or(ValueKind::Text);
    matches!(kind, ValueKind::Text | ValueKind::Other).then(|| Param {
        // No address needs to say it.
        default: Some(Value::Null),
        today: Some(zone),
        ..Param::new(today::TODAY, kind)
    })
}

/// The values of a page that is made again, with the date now.
pub fn with_new_date(params: &[Param], mut values: Vec<Value>) -> Vec<Value> {
    for (param, given) in params.iter().zip(&mut values) {
        if let Some(zone) = param.today {
            *given = today::value(zone);
        }
    }
    values
}

/// Fault of one parameter, or of the field that it fills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    pub field: String,
    /// The sentence for the client.
    pub detail: String,
}

/// Fault of a request's parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadParam {
    pub name: String,
    /// The sentence for the client.
    pub sentence: String,
    /// The sentence to stand behind the parameter's name.
    pub wrong: String,
    /// A part of the path cannot be what it is to be: there is no such page.
    pub is_in_path: bool,
}

impl BadParam {
    /// Makes the fault of a parameter, to stand behind its name.
    pub fn new(param: &Param, wrong: &str) -> Self {
        Self {
            name: param.name.clone(),
            sentence: refused(&param.name, wrong),
            wrong: wrong.to_owned(),
            is_in_path: param.in_path.is_some(),
        }
    }

    /// Returns the fault for the list of errors in an answer.
    pub fn error(&self) -> FieldError {
        FieldError {
            field: self.name.clone(),
            detail: self.sentence.clone(),
        }
    }
}

/// The sentence about a parameter that the site or the database does not take.
pub fn refused(name: &str, wrong: &str) -> String {
    format!("The parameter \"{name}\" {}.", wrong.trim_end_matches('.'))
}

/// The sentence about values with which a statement failed. `names` are those of its parameters.
pub fn unusable(names: &[&str]) -> String {
    match names {
        [] => "A value of the request cannot be used.".to_owned(),
        [name] => refused(name, "has a value that cannot be used"),
        names => format!(
            "One of the parameters \"{}\" has a value that cannot be used.",
            names.join("\", \"")
        ),
    }
}

/// The sources of a request's parameters: the path, then the form, then the query string. An
/// undeclared parameter is ignored (coherence.md, rule 15).
#[derive(Clone, Copy, Debug)]
pub struct Given<'r> {
    pub path: &'r [&'r str],
    pub form: &'r [(Cow<'r, str>, Cow<'r, str>)],
    pub query: Option<&'r str>,
}

impl Given<'_> {
    /// The declared parameters, typed.
    pub fn values(&self, params: &[Param]) -> Result<Vec<Value>, BadParam> {
        params.iter().map(|param| self.value(param)).collect()
    }

    /// One of the declared parameters, typed.
    pub fn value(&self, param: &Param) -> Result<Value, BadParam> {
        if param.is_list {
            return self.list(param);
        }
        self.find(param, |found| match found {
            ParamInput::Text(text) => typed(param, text),
            ParamInput::Default(value) => Ok(value.clone()),
        })
    }

    /// Appends the keys of the declared parameters: the same bytes as [`push_key`] for each of
    /// [`Given::values`], without an allocation.
    pub fn push_keys(&self, params: &[Param], key: &mut Vec<u8>) -> Result<(), BadParam> {
        params.iter().try_for_each(|param| {
            if param.is_list {
                push_key(key, &self.list(param)?);
                return Ok(());
            }
            self.find(param, |found| {
                match found {
                    ParamInput::Text(text) => TypedText::of(param, text)?.push_key(key),
                    ParamInput::Default(value) => push_key(key, value),
                }
                Ok(())
            })
        })
    }

    fn find<T>(
        &self,
        param: &Param,
        then: impl FnOnce(ParamInput<'_>) -> Result<T, BadParam>,
    ) -> Result<T, BadParam> {
        if let Some(text) = param.in_path.and_then(|at| self.path.get(at)) {
            return then(ParamInput::Text(text));
        }
        if let Some(zone) = param.today {
            return then(ParamInput::Default(&today::value(zone)));
        }
        // A field that is left empty is not given, if it need not be.
        let given = |text: &str| match &param.default {
            Some(default) if text.is_empty() => then(ParamInput::Default(default)),
            _ => then(ParamInput::Text(text)),
        };
        if let Some(text) = single(param, self.in_form(param))? {
            return given(text);
        }
        let query = self.query.unwrap_or_default();
        match single(param, in_query(query, &param.name))? {
            Some(text) => given(&text),
            // The closure takes the default where nothing is given.
            None if param.default.is_some() => given(""),
            None => Err(BadParam::new(param, MISSING)),
        }
    }

    /// The texts that are given for a parameter.
    pub fn texts(&self, param: &Param) -> Vec<String> {
        let in_form: Vec<String> = self.in_form(param).map(str::to_owned).collect();
        if !in_form.is_empty() {
            return in_form;
        }
        let query = self.query.unwrap_or_default();
        in_query(query, &param.name).map(Cow::into_owned).collect()
    }

    fn in_form(&self, param: &Param) -> impl Iterator<Item = &str> {
        let fields = self.form.iter().filter(|(name, _)| *name == param.name);
        fields.map(|(_, text)| &**text)
    }

    /// The items of a list: those of the form, else those of the query string.
    fn list(&self, param: &Param) -> Result<Value, BadParam> {
        let mut items = Vec::new();
        let mut add = |text: &str| -> Result<(), BadParam> {
            if text.is_empty() && !param.is_as_sent() {
                return Ok(());
            }
            if items.len() == MAX_LIST {
                let wrong = format!("is given more than {MAX_LIST} times");
                return Err(BadParam::new(param, &wrong));
            }
            items.push(match text.is_empty() && !param.is_plain_text() {
                true => Value::Null,
                false => list_item(param, text)?,
            });
            Ok(())
        };
        let mut in_form = self.in_form(param).peekable();
        if in_form.peek().is_some() {
            in_form.try_for_each(&mut add)?;
        } else {
            let query = self.query.unwrap_or_default();
            in_query(query, &param.name).try_for_each(|text| add(&text))?;
        }
        Ok(list_of(param, items))
    }
}

/// The first of the lists that are kept as they were sent which has another number of values than
/// one before it: they are the columns of rows.
pub fn uneven(params: &[Param], values: &[Value]) -> Option<BadParam> {
    let all = params.iter().zip(values);
    let mut lists = all.filter_map(|(param, value)| match value {
        Value::Json(json) if param.is_as_sent() => Some((param, json.as_array()?.len())),
        _ => None,
    });
    let (first, count) = lists.next()?;
    let (param, _) = lists.find(|(_, other)| *other != count)?;
    let wrong = format!("must be given as often as \"{}\"", first.name);
    Some(BadParam::new(param, &wrong))
}

/// Input for a parameter.
enum ParamInput<'f> {
    Text(&'f str),
    Default(&'f Value),
}

/// The values of `name` in a query string. Pairs without an escape, which most are, are compared in
/// place.
fn in_query<'q>(query: &'q str, name: &'q str) -> impl Iterator<Item = Cow<'q, str>> {
    let mut rest = query;
    std::iter::from_fn(move || {
        while !rest.is_empty() {
            let pair = Pair::first(rest);
            rest = rest.get(pair.text.len() + 1..).unwrap_or_default();
            if let Some(value) = pair.value_of(name) {
                return Some(value);
            }
        }
        None
    })
}

/// One `name=value` of a query string.
struct Pair<'q> {
    text: &'q str,
    equals: Option<usize>,
    escaped: bool,
}

impl<'q> Pair<'q> {
    /// Up to the first ampersand, looked at once.
    fn first(query: &'q str) -> Self {
        let (mut end, mut equals, mut escaped) = (query.len(), None, false);
        for (at, byte) in query.bytes().enumerate() {
            match byte {
                b'&' => {
                    end = at;
                    break;
                }
                b'=' if equals.is_none() => equals = Some(at),
                b'%' | b'+' => escaped = true,
                _ => {}
            }
        }
        Self {
            text: &query[..end],
            equals,
            escaped,
        }
    }

    fn value_of(&self, name: &str) -> Option<Cow<'q, str>> {
        if self.escaped {
            let (found, value) = form_urlencoded::parse(self.text.as_bytes()).next()?;
            return (found == name).then_some(value);
        }
        let (found, value) = match self.equals {
            Some(at) => (&self.text[..at], &self.text[at + 1..]),
            None => (self.text, ""),
        };
        (found == name && !self.text.is_empty()).then_some(Cow::Borrowed(value))
    }
}

fn single<T>(param: &Param, mut all: impl Iterator<Item = T>) -> Result<Option<T>, BadParam> {
    let first = all.next();
    match all.next() {
        Some(_) => Err(BadParam::new(param, "is given twice")),
        None => Ok(first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gather(
        params: &[Param],
        path: &[&str],
        form: &[(Cow<'_, str>, Cow<'_, str>)],
        query: Option<&str>,
    ) -> Result<Vec<Value>, BadParam> {
        let given = Given { path, form, query };
        let values = given.values(params);
        let (mut direct, mut by_value) = (Vec::new(), Vec::new());
        let pushed = given.push_keys(params, &mut direct);
        for value in values.iter().flatten() {
            push_key(&mut by_value, value);
        }
        assert_eq!(pushed.err(), values.as_ref().err().cloned());
        if values.is_ok() {
            assert_eq!(direct, by_value, "a hit and a fill must agree on the key");
        }
        values
    }

    fn param(name: &str, kind: ValueKind, default: Option<Value>, in_path: Option<usize>) -> Param {
        Param {
            default,
            in_path,
            ..Param::new(name, kind)
        }
    }

    #[test]
    fn path_before_form_before_query() {
        let id = [param("id", ValueKind::Integer, None, None)];
        let form = [(Cow::from("id"), Cow::from("2"))];
        let in_path = [param("id", ValueKind::Integer, None, Some(0))];
        assert_eq!(
            gather(&in_path, &["1"], &form, Some("id=3")),
            Ok(vec![Value::Integer(1)])
        );
        assert_eq!(
            gather(&id, &[], &form, Some("id=3")),
            Ok(vec![Value::Integer(2)])
        );
        assert_eq!(
            gather(&id, &[], &[], Some("utm_source=x&id=3")),
            Ok(vec![Value::Integer(3)])
        );
    }

    #[test]
    fn bad_ones_are_named() {
        let id = [param("id", ValueKind::Integer, None, None)];
        for (query, expected) in [
            (None, "The parameter \"id\" is missing."),
            (Some("id=1&id=1"), "The parameter \"id\" is given twice."),
            (Some("id="), "The parameter \"id\" must be a whole number."),
            (
                Some("id=1.0"),
                "The parameter \"id\" must be a whole number.",
            ),
            (
                Some("id=9223372036854775808"),
                "The parameter \"id\" is too large.",
            ),
        ] {
            let found = gather(&id, &[], &[], query).unwrap_err();
            assert_eq!(
                (&*found.sentence, found.is_in_path),
                (expected, false),
                "{query:?}"
            );
        }
        for (query, expected) in [
            ("%69d=5", 5),
            ("&&id=6&", 6),
            ("ids=1&xid=2&id=7", 7),
            ("id=%2B8&a+b=%zz", 8),
            ("a=b=c&id=9", 9),
        ] {
            assert_eq!(
                gather(&id, &[], &[], Some(query)),
                Ok(vec![Value::Integer(expected)]),
                "{query}"
            );
        }
        let text = [param("q", ValueKind::Text, Some("none".into()), None)];
        for (query, expected) in [
            ("q=a+b%26c", "a b&c"),
            ("q", "none"),
            ("q=", "none"),
            ("=x", "none"),
            ("", "none"),
        ] {
            assert_eq!(
                gather(&text, &[], &[], Some(query)),
                Ok(vec![expected.into()]),
                "{query}"
            );
        }
        let real = [param("x", ValueKind::Real, None, None)];
        assert!(gather(&real, &[], &[], Some("x=nan")).is_err());
        let ticked = [param("b", ValueKind::Boolean, Some(false.into()), None)];
        for (query, expected) in [
            (None, Some(false)),
            (Some("b=on"), Some(true)),
            (Some("b=TRUE"), Some(true)),
            (Some("b=0"), Some(false)),
            (Some("b=2"), None),
            (Some("b="), Some(false)),
        ] {
            assert_eq!(
                gather(&ticked, &[], &[], query).ok(),
                expected.map(|truth| vec![truth.into()]),
                "{query:?}"
            );
        }
    }

    #[test]
    fn an_empty_field_is_not_given_where_it_need_not_be() {
        for default in [Value::Null, 7.into()] {
            let page = [param(
                "page",
                ValueKind::Integer,
                Some(default.clone()),
                None,
            )];
            let field = [(Cow::from("page"), Cow::from(""))];
            for query in [None, Some("page="), Some("page")] {
                let found = gather(&page, &[], &[], query);
                assert_eq!(found, Ok(vec![default.clone()]), "{query:?}");
            }
            // The form's field was there, so the address does not count.
            let found = gather(&page, &[], &field, Some("page=3"));
            assert_eq!(found, Ok(vec![default]));
        }
    }

    #[test]
    fn a_value_is_one_of_those_that_are_declared() {
        let sort = Param {
            choices: ["title".into(), "-title".into()].into(),
            ..param("sort", ValueKind::Text, Some("title".into()), None)
        };
        let gather = |query| gather(std::slice::from_ref(&sort), &[], &[], query);
        assert_eq!(gather(Some("sort=-title")), Ok(vec!["-title".into()]));
        assert_eq!(gather(Some("sort=")), Ok(vec!["title".into()]));
        let refused = gather(Some("sort=1;drop")).unwrap_err();
        assert_eq!(
            refused.sentence,
            "The parameter \"sort\" must be one of title, -title."
        );
    }

    #[test]
    fn a_list_has_one_form_for_each_set_of_items() {
        let list = |kind| Param {
            is_list: true,
            ..Param::new("t", kind)
        };
        let items = |kind, form: &[(Cow<'_, str>, Cow<'_, str>)], query: Option<&str>| {
            let values = gather(&[list(kind)], &[], form, query)?;
            let Value::Json(json) = &values[0] else {
                panic!("{values:?}")
            };
            Ok::<_, BadParam>(json.to_string())
        };
        for (kind, query, expected) in [
            (ValueKind::Integer, "t=6&t=1&x=9&t=06&t=-1&t=", "[-1,1,6]"),
            (ValueKind::Integer, "", "[]"),
            (ValueKind::Integer, "t=", "[]"),
            (
                ValueKind::Text,
                "t=b&t=a&t=%22%5D&t=b",
                "[\"\\\"]\",\"a\",\"b\"]",
            ),
            (ValueKind::Real, "t=2&t=-0.5&t=2.0", "[-0.5,2.0]"),
            (ValueKind::Boolean, "t=on&t=no&t=1", "[false,true]"),
        ] {
            let found = items(kind, &[], Some(query));
            assert_eq!(found.as_deref(), Ok(expected), "{query}");
        }
        let form = [6, 1].map(|id| (Cow::from("t"), Cow::from(id.to_string())));
        let found = items(ValueKind::Integer, &form, Some("t=9"));
        assert_eq!(found.as_deref(), Ok("[1,6]"));
        let many = "t=1&".repeat(MAX_LIST);
        assert!(items(ValueKind::Integer, &[], Some(&many)).is_ok());
        for (kind, query, expected) in [
            (
                ValueKind::Integer,
                many + "t=1",
                "is given more than 1000 times",
            ),
            (
                ValueKind::Integer,
                "t=1&t=x".into(),
                "must be a whole number",
            ),
            (
                ValueKind::Text,
                "t=a%00".into(),
                "must not have a character of code zero in it",
            ),
        ] {
            let refused = items(kind, &[], Some(&query)).unwrap_err();
            assert_eq!(refused.sentence, format!("The parameter \"t\" {expected}."));
        }
    }

    #[test]
    fn equal_values_have_equal_keys_and_others_not() {
        let key = |values: &[Value]| {
            let mut key = Vec::new();
            values.iter().for_each(|value| push_key(&mut key, value));
            key
        };
        let id = [param("id", ValueKind::Integer, None, None)];
        assert_eq!(
            key(&gather(&id, &[], &[], Some("id=07")).unwrap()),
            key(&gather(&id, &[], &[], Some("id=%37")).unwrap())
        );
        assert_ne!(
            key(&["a".into(), "bc".into()]),
            key(&["ab".into(), "c".into()])
        );
        assert_ne!(key(&["7".into()]), key(&[7.into()]));
        assert_ne!(key(&[true.into()]), key(&[1.into()]));
        let document = serde_json::json!({ "a": 1 });
        assert_ne!(
            key(&[document.to_string().as_str().into()]),
            key(&[document.into()])
        );
    }
}
