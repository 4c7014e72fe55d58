//! Named values that are no parameters of a route: of a form, a query, or what a program reads.

use std::borrow::Cow;

use crate::failure::Failure;
use crate::pairs::pairs;
use crate::param::{Param, expected, missing, not_utf8};

/// Named texts that are read as types: the fields of a [form](crate::Request::form_values), the
/// [query](crate::Request::query_values), or what a program collects, such as the attributes of an
/// element of XML.
///
/// ```
/// use millpond::NamedValues;
///
/// let values: NamedValues = [("count", "3"), ("size", "")].into_iter().collect();
/// assert_eq!(values.get::<u16>("count")?, 3);
/// assert_eq!(values.get::<Option<u16>>("size")?, None);
/// let failure = values.get::<bool>("count").unwrap_err();
/// assert_eq!(failure.message(), r#"count: "3" is not true or false"#);
/// # Ok::<(), millpond::Failure>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedValues<'a> {
    /// A name that is given again right after itself stands here once: a client may give many
    /// values to a long name.
    pub(crate) names: Vec<Cow<'a, str>>,
    /// The place of a name, and its text.
    pairs: Vec<(usize, Cow<'a, str>)>,
    /// The names of values that were sent and are not UTF-8.
    malformed: Vec<Cow<'a, str>>,
}

impl<'a> NamedValues<'a> {
    /// No values.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            names: Vec::new(),
            pairs: Vec::new(),
            malformed: Vec::new(),
        }
    }

    /// Those of a query or of a form.
    pub(crate) fn decoded(encoded: &'a [u8]) -> Self {
        let mut values = Self::new();
        for pair in pairs(encoded) {
            if !pair.is_utf8 {
                values.malformed.push(pair.name.clone());
            }
            values.push(pair.name, pair.value);
        }
        values
    }

    /// One more value. A name may have several.
    pub fn push(&mut self, name: impl Into<Cow<'a, str>>, value: impl Into<Cow<'a, str>>) {
        let name = name.into();
        if self.names.last() != Some(&name) {
            self.names.push(name);
        }
        self.pairs.push((self.names.len() - 1, value.into()));
    }

    /// Several values of one name.
    pub(crate) fn push_all(
        &mut self,
        name: Cow<'a, str>,
        values: impl IntoIterator<Item = Cow<'a, str>>,
    ) {
        self.names.push(name);
        let place = self.names.len() - 1;
        self.pairs
            .extend(values.into_iter().map(|value| (place, value)));
    }

    /// The value of `name` as a `T`. An [`Option`] need not be there, and is none if its text is
    /// empty and no text is wanted, as browsers send fields that were not filled in.
    ///
    /// # Errors
    /// 400 if it is not there, is given twice, is not UTF-8, or is not what a `T` must be.
    pub fn get<T: Param>(&self, name: &str) -> Result<T, Failure> {
        let mut texts = self.all(name);
        let text = texts.next();
        if texts.next().is_some() {
            return Err(Failure::bad_request(format!("{name} is given twice")));
        }
        if self.malformed.iter().any(|malformed| malformed == name) {
            return Err(not_utf8(name));
        }
        let Some(text) = text else {
            return T::absent().ok_or_else(|| missing(name, T::EXPECTED));
        };
        T::parse_given(text).ok_or_else(|| Failure::bad_request(expected(name, text, T::EXPECTED)))
    }

    /// All texts of `name`, in order. What is not UTF-8 is U+FFFD in them.
    pub fn all<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'s str> {
        let is_named = move |(place, _): &&(usize, _)| self.names[*place] == name;
        let named = self.pairs.iter().filter(is_named);
        named.map(|(_, text)| &**text)
    }
}

impl<'a, N: Into<Cow<'a, str>>, V: Into<Cow<'a, str>>> FromIterator<(N, V)> for NamedValues<'a> {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        let mut values = Self::new();
        for (name, value) in pairs {
            values.push(name, value);
        }
        values
    }
}
