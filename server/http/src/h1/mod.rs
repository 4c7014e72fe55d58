//! HTTP/1.1 as a state machine over bytes: no socket, no clock, no service (RFC 9112).
//!
//! [`Decoder`] is given bytes in pieces of any size and says what they mean; where a byte stream
//! could be read in two ways, it is a [`Refusal`] and the connection ends. How the bytes were cut
//! never changes the outcome, because every check looks at a line that is complete, or at a length
//! that only grows.

mod chunked;
mod decoder;
mod framing;
mod head;
mod refusal;
mod request_line;
#[cfg(test)]
mod tests;

pub(crate) use decoder::{Decoder, Event, Phase, request};
pub(crate) use framing::Framing;
pub(crate) use head::{Head, is_coded};
pub(crate) use refusal::Refusal;
pub(crate) use request_line::{is_authority, is_target, split_query};
