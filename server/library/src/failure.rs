//! Requests that get no answer of the program: what was wrong, as a status and a sentence.

use std::borrow::Cow;

use crate::response::{IntoResponse, Response, varies_by_accept, vary_by_accept};

/// Why a request is not answered as it was meant: a status from 400 to 599 and a sentence for the
/// client. A handler may return it as an error; the library itself makes 400 (a parameter), 404,
/// 405, 413, 500 (a panic) and 503 (too much at once, or a database that does not respond).
///
/// [`Routes::failures`](crate::Routes::failures) says what they look like, all in one place.
///
/// ```
/// use millpond::{Failure, Request, Routes, quick};
///
/// let mut routes = Routes::new();
/// routes.get("/half/{n}", quick(|_: &Request, n: u64| {
///     if n % 2 == 0 { Ok((n / 2).to_string()) } else { Err(Failure::new(422, "n is odd")) }
/// }));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    status: u16,
    message: String,
    fields: Vec<(Cow<'static, str>, String)>,
}

impl Failure {
    /// A failure with this status and this sentence, which the client sees. Another status becomes
    /// 500.
    #[must_use]
    pub fn new(status: u16, message: impl Into<String>) -> Self {
        Self {
            status: if (400..600).contains(&status) {
                status
            } else {
                500
            },
            message: message.into(),
            fields: Vec::new(),
        }
    }

    /// 400 with this sentence.
    #[must_use]
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, message)
    }

    /// 404 without further words.
    #[must_use]
    pub fn not_found() -> Self {
        Self::new(404, "not found")
    }

    /// Too much at once: 503 with `Retry-After: 1`.
    pub(crate) fn busy() -> Self {
        Self::new(503, "too much at once, try again").with_field("Retry-After", "1")
    }

    /// Replaces the sentence; the status and the field lines stay.
    ///
    /// ```
    /// use millpond::{Failure, NamedValues};
    ///
    /// let failure = NamedValues::new().get::<u8>("count").unwrap_err();
    /// let failure = failure.with_message("How many do you want?");
    /// assert_eq!((failure.status(), failure.message()), (400, "How many do you want?"));
    /// ```
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }

    /// Adds a field line of the response, such as `Retry-After` or `WWW-Authenticate`.
    #[must_use]
    pub fn with_field(
        mut self,
        name: impl Into<Cow<'static, str>>,
        value: impl Into<String>,
    ) -> Self {
        self.fields.push((name.into(), value.into()));
        self
    }

    /// Its status.
    #[must_use]
    pub const fn status(&self) -> u16 {
        self.status
    }

    /// Its sentence.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The field lines that its response has, such as `Allow` of a 405: names and values. A
    /// handler that makes the response by itself gives it these.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.fields.iter().map(|(name, value)| (&**name, &**value))
    }

    /// True if its response has a field line with this name.
    pub(crate) fn has_field(&self, name: &str) -> bool {
        let mut names = self.fields().map(|(name, _)| name);
        names.any(|found| found.eq_ignore_ascii_case(name))
    }

    /// True if its response depends on `Accept`.
    pub(crate) fn varies_by_accept(&self) -> bool {
        varies_by_accept(&self.fields)
    }

    /// Says that its response depends on `Accept`.
    pub(crate) fn vary_by_accept(&mut self) {
        vary_by_accept(&mut self.fields);
    }

    /// Its bytes in memory, beside its own size.
    pub(crate) fn weight(&self) -> usize {
        let fields = self.fields.capacity() * size_of::<(Cow<'static, str>, String)>();
        let texts = self.fields().map(|(name, value)| name.len() + value.len());
        self.message.capacity() + fields + texts.sum::<usize>()
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        Response::failed(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_sentence_keeps_the_rest() {
        let failure = Failure::busy().with_message("later");
        assert_eq!((failure.status(), failure.message()), (503, "later"));
        assert!(failure.fields().eq([("Retry-After", "1")]));
    }
}
