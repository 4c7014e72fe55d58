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
    /// A name with several values may stand here once: a client may give many to a long name.
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

    /// Returns the values of a query or of a form.
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
        self.push_all(name.into(), [value.into()]);
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
        self.check_utf8(name)?;
        let Some(text) = text else {
            return T::absent().ok_or_else(|| missing(name, T::EXPECTED));
        };
        parsed(name, text)
    }

    /// All values of `name`, each as a `T`, in order; empty if there is none. An empty text of an
    /// [`Option`] is none, as in [`get`](Self::get).
    ///
    /// ```
    /// use millpond::NamedValues;
    ///
    /// let values: NamedValues = [("size", "3"), ("size", "5")].into_iter().collect();
    /// assert_eq!(values.get_all::<u16>("size")?, [3, 5]);
    /// assert!(values.get_all::<u16>("colour")?.is_empty());
    /// # Ok::<(), millpond::Failure>(())
    /// ```
    ///
    /// # Errors
    /// 400 if one of them is not UTF-8, or is not what a `T` must be.
    pub fn get_all<T: Param>(&self, name: &str) -> Result<Vec<T>, Failure> {
        self.check_utf8(name)?;
        self.all(name).map(|text| parsed(name, text)).collect()
    }

    fn check_utf8(&self, name: &str) -> Result<(), Failure> {
        match self.malformed.iter().any(|malformed| malformed == name) {
            true => Err(not_utf8(name)),
            false => Ok(()),
        }
    }

    /// All texts of `name`, in order. What is not UTF-8 is U+FFFD in them.
    pub fn all<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'s str> {
        let is_named = move |(place, _): &&(usize, _)| self.names[*place] == name;
        let named = self.pairs.iter().filter(is_named);
        named.map(|(_, text)| &**text)
    }
}

fn parsed<T: Param>(name: &str, text: &str) -> Result<T, Failure> {
    T::parse_given(text).ok_or_else(|| Failure::bad_request(expected(name, text, T::EXPECTED)))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_values_of_a_name_are_read_or_none() {
        let values = NamedValues::decoded(b"n=1&n=22&m=3&n=333&bad=1&bad=%ff&empty=");
        assert_eq!(values.get_all("n"), Ok(vec![1_u16, 22, 333]));
        assert_eq!(values.get_all("none"), Ok(Vec::<u16>::new()));
        assert_eq!(values.get_all("empty"), Ok(vec![None::<u16>]));
        let message = |name| values.get_all::<u8>(name).unwrap_err().message().to_owned();
        assert_eq!(
            message("n"),
            r#"n: "333" is not a whole number from 0 to 255"#
        );
        assert_eq!(message("bad"), "bad is not UTF-8");
        assert_eq!(values.get_all::<u8>("n").unwrap_err().status(), 400);
    }
}
