//! Values on their way to PostgreSQL, as text that the server reads, and back, from its binary
//! forms.
//!
//! *There*: the server knows how to read every type from text, enums, domains and extensions
//! included, so parameters are sent as text and the server says what does not fit. Only what it
//! would read otherwise than the caller meant is looked at here.
//!
//! *Back*: the driver asks for binary results. The common types are read from them into the text
//! that PostgreSQL itself would write; a column of any other type is cast to text by the server
//! (see [`super::prepare`]).

mod array;
mod calendar;
mod column;
mod exact;
mod network;
mod numeric;
mod parameter;

pub(crate) use column::Decoder;
pub(crate) use exact::has_exact_text;
pub(crate) use parameter::{Bound, fits};
