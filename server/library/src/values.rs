//! Named values that are no parameters of a route: of a form, a query, or what a program reads.

use std::borrow::Cow;

use crate::failure::Failure;
use crate::param::{Param, expected, missing};

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
pub struct NamedValues<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> NamedValues<'a> {
    /// No values.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// One more value. A name may have several.
    pub fn push(&mut self, name: impl Into<Cow<'a, str>>, value: impl Into<Cow<'a, str>>) {
        self.0.push((name.into(), value.into()));
    }

    /// The value of `name` as a `T`. An [`Option`] need not be there, and is none if its text is
    /// empty and no text is wanted, as browsers send fields that were not filled in.
    ///
    /// # Errors
    /// 400 if it is not there, is given twice, or is not what a `T` must be.
    pub fn get<T: Param>(&self, name: &str) -> Result<T, Failure> {
        let mut texts = self.all(name);
        let text = texts.next();
        if texts.next().is_some() {
            return Err(Failure::bad_request(format!("{name} is given twice")));
        }
        let Some(text) = text else {
            return T::absent().ok_or_else(|| missing(name, T::EXPECTED));
        };
        T::parse_given(text).ok_or_else(|| Failure::bad_request(expected(name, text, T::EXPECTED)))
    }

    /// All texts of `name`, in order.
    pub fn all<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'s str> {
        let named = self.0.iter().filter(move |(found, _)| found == name);
        named.map(|(_, text)| &**text)
    }
}

impl<'a, N: Into<Cow<'a, str>>, V: Into<Cow<'a, str>>> FromIterator<(N, V)> for NamedValues<'a> {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        let pairs = pairs.into_iter();
        Self(
            pairs
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        )
    }
}
