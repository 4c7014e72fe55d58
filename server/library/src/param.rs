//! Parameters of routes: from the text of an address to a value of a type.

use std::borrow::Cow;
use std::net::IpAddr;

use crate::failure::Failure;

/// Something that a parameter of a route can be. Implement it for types of your own:
///
/// ```
/// use millpond::Param;
///
/// enum Size { Small, Large }
///
/// impl Param for Size {
///     const EXPECTED: &'static str = "small or large";
///
///     fn parse(text: &str) -> Option<Self> {
///         match text {
///             "small" => Some(Self::Small),
///             "large" => Some(Self::Large),
///             _ => None,
///         }
///     }
/// }
/// ```
pub trait Param: Sized + Send + 'static {
    /// Description of a right text, for the sentence of an error: "a whole number".
    const EXPECTED: &'static str;

    /// The value of a text, percent-decoded; none if it is none.
    fn parse(text: &str) -> Option<Self>;

    /// The value of a parameter of the query that was not given; none if it must be given. An
    /// [`Option`] need not be given.
    #[must_use]
    fn absent() -> Option<Self> {
        None
    }

    /// The value of a text of a query or a form. An empty one that is no value counts as not given.
    #[doc(hidden)]
    #[must_use]
    fn parse_given(text: &str) -> Option<Self> {
        let absent = || text.is_empty().then(Self::absent).flatten();
        Self::parse(text).or_else(absent)
    }
}

impl<T: Param> Param for Option<T> {
    const EXPECTED: &'static str = T::EXPECTED;

    fn parse(text: &str) -> Option<Self> {
        T::parse(text).map(Some)
    }

    fn absent() -> Option<Self> {
        Some(None)
    }
}

macro_rules! parsed {
    ($expected:literal: $($type:ty),*) => {
        $(impl Param for $type {
            const EXPECTED: &'static str = $expected;

            fn parse(text: &str) -> Option<Self> {
                text.parse().ok()
            }
        })*
    };
}

parsed!("a text": String);
parsed!("one character": char);
parsed!("an IP address": IpAddr);
parsed!("a whole number from 0 to 255": u8);
parsed!("a whole number from 0 to 65535": u16);
parsed!("a whole number from 0 to 4294967295": u32);
parsed!("a whole number from 0 to 18446744073709551615": u64, usize);
parsed!("a whole number from 0 to 340282366920938463463374607431768211455": u128);
parsed!("a whole number from -128 to 127": i8);
parsed!("a whole number from -32768 to 32767": i16);
parsed!("a whole number from -2147483648 to 2147483647": i32);
parsed!("a whole number from -9223372036854775808 to 9223372036854775807": i64, isize);
parsed!(
    "a whole number from -170141183460469231731687303715884105728 \
     to 170141183460469231731687303715884105727": i128
);

impl Param for f64 {
    const EXPECTED: &'static str = "a number";

    /// Neither infinity nor NaN.
    fn parse(text: &str) -> Option<Self> {
        text.parse().ok().filter(|number: &Self| number.is_finite())
    }
}

impl Param for bool {
    const EXPECTED: &'static str = "true or false";

    /// Also `1`, `on` and the empty text of a bare name (`?verbose`), and `0`, `off`.
    fn parse(text: &str) -> Option<Self> {
        match text {
            "true" | "1" | "on" | "" => Some(true),
            "false" | "0" | "off" => Some(false),
            _ => None,
        }
    }

    fn absent() -> Option<Self> {
        Some(false)
    }
}

/// The most parameters of a route.
pub(crate) const MAX_PARAMS: usize = 8;

/// The texts of a route's parameters: those of the path, then those of the query.
#[derive(Default)]
pub(crate) struct ParamTexts<'a> {
    texts: [Option<Cow<'a, str>>; MAX_PARAMS],
    names: &'a [Box<str>],
    in_path: usize,
}

impl<'a> ParamTexts<'a> {
    pub(crate) fn new(names: &'a [Box<str>], in_path: usize) -> Self {
        Self {
            texts: Default::default(),
            names,
            in_path,
        }
    }

    pub(crate) fn set(&mut self, at: usize, text: Cow<'a, str>) {
        self.texts[at] = Some(text);
    }

    pub(crate) fn is_set(&self, at: usize) -> bool {
        self.texts[at].is_some()
    }

    /// The texts as part of a key: equal bytes are equal texts.
    pub(crate) fn push_key(&self, key: &mut Vec<u8>) {
        for text in &self.texts[..self.names.len()] {
            match text {
                Some(text) => {
                    key.push(1);
                    key.extend_from_slice(&(text.len() as u64).to_le_bytes());
                    key.extend_from_slice(text.as_bytes());
                }
                None => key.push(0),
            }
        }
    }

    fn read<T: Param>(&self, at: usize) -> Result<T, Failure> {
        let value = match &self.texts[at] {
            Some(text) if at < self.in_path => T::parse(text),
            Some(text) => T::parse_given(text),
            None => T::absent(),
        };
        value.ok_or_else(|| self.fault(at, T::EXPECTED))
    }

    /// Returns the failure of a text that does not fit: in the path the address does not exist.
    fn fault(&self, at: usize, expected: &str) -> Failure {
        let name = self.names.get(at).map_or("?", |name| name);
        match &self.texts[at] {
            Some(text) if at < self.in_path => {
                Failure::new(404, self::expected(name, text, expected))
            }
            Some(text) => Failure::bad_request(self::expected(name, text, expected)),
            None => missing(name, expected),
        }
    }
}

/// Says that the text of `name` is not what it must be.
pub(crate) fn expected(name: &str, text: &str, expected: &str) -> String {
    format!("{name}: {} is not {expected}", quoted(text))
}

/// Says that `name` must be there.
pub(crate) fn missing(name: &str, expected: &str) -> Failure {
    Failure::bad_request(format!("{name} is missing ({expected})"))
}

/// Says that the value of `name` is not UTF-8.
pub(crate) fn not_utf8(name: &str) -> Failure {
    Failure::bad_request(format!("{name} is not UTF-8"))
}

/// A text of a client within a sentence: short, and without control characters.
pub(crate) fn quoted(text: &str) -> String {
    const LONGEST: usize = 60;
    let end = (0..=LONGEST.min(text.len()))
        .rev()
        .find(|&at| text.is_char_boundary(at))
        .unwrap_or_default();
    let more = if end < text.len() { "…" } else { "" };
    format!("{:?}{more}", &text[..end])
}

/// The parameters of a function that handles a route: a tuple of [`Param`]s.
pub trait Params: Sized + Send + 'static {
    #[doc(hidden)]
    const COUNT: usize;

    #[doc(hidden)]
    fn read(texts: &ReadParams<'_, '_>) -> Result<Self, Failure>;
}

/// The texts that [`Params`] are read from.
#[doc(hidden)]
pub struct ReadParams<'t, 'a>(pub(crate) &'t ParamTexts<'a>);

macro_rules! tuples {
    ($($count:literal: $($name:ident $at:literal),*;)*) => {
        $(impl<$($name: Param),*> Params for ($($name,)*) {
            const COUNT: usize = $count;

            fn read(_texts: &ReadParams<'_, '_>) -> Result<Self, Failure> {
                Ok(($(_texts.0.read::<$name>($at)?,)*))
            }
        })*
    };
}

tuples! {
    0: ;
    1: A 0;
    2: A 0, B 1;
    3: A 0, B 1, C 2;
    4: A 0, B 1, C 2, D 3;
    5: A 0, B 1, C 2, D 3, E 4;
    6: A 0, B 1, C 2, D 3, E 4, F 5;
    7: A 0, B 1, C 2, D 3, E 4, F 5, G 6;
    8: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_range_of_a_whole_number_is_said_and_is_true() {
        macro_rules! check {
            ($($type:ty)*) => {
                $(
                    let (least, most) = (<$type>::MIN, <$type>::MAX);
                    assert_eq!(
                        <$type as Param>::EXPECTED,
                        format!("a whole number from {least} to {most}")
                    );
                    assert_eq!(<$type as Param>::parse(&most.to_string()), Some(most));
                    assert_eq!(<$type as Param>::parse(&format!("{most}0")), None);
                )*
            };
        }
        check!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize);
    }
}
