//! HTTP/2 as a state machine over bytes: no socket, no clock, no service (RFC 9113, 7541, 9218).
//!
//! A [`Session`] is one connection. Its driver gives it the bytes of the client and gets
//! [events](SessionEvent): requests that are complete. It gives back responses, and lets the
//! session write frames of all streams into one buffer:
//!
//! ```text
//! while let Some(event) = session.receive(&mut input, &mut context) { … respond(…) or later }
//! session.write(&mut out, room, files, now)      one send
//! while let Some(stream) = session.next_ended() { access log; buffers.give_back(stream) }
//! session.deadline(limits)                       then session.expire(limits, now)
//! ```
//!
//! - `receive`: bytes become frames; `headers`, `data`, `frames`: what each frame means.
//! - `known`: requests that come again, whose heads are not decoded.
//! - `streamed`: bodies that the driver takes as they arrive.
//! - `hpack`: the compression of heads; `head_reader`: header lists become requests or are refused.
//! - `write`: responses become frames, by `priority` and within the windows of `flow`.
//! - `waste`: work that a client causes and that brings nothing forward is bounded.
//! - `shutdown`: the end in two steps, and what happens when time is up.
//!
//! What a client could use to exhaust the server is bounded here: streams, with those whose
//! handlers still run; fields of a head, while they are decoded; pieces of a head; frames that wait
//! to be sent; time in which a window stays shut. What requests and responses hold is counted for
//! the driver (`holdings`), which bounds it for all connections together.

mod data;
mod flow;
pub(crate) mod frame;
mod frames;
mod head;
mod head_reader;
mod headers;
mod holdings;
pub(crate) mod hpack;
mod known;
mod pieces;
mod priority;
mod receive;
mod respond;
mod response_head;
mod session;
mod settings;
mod shutdown;
mod stream;
mod streamed;
mod streams;
#[cfg(test)]
pub(crate) mod tests;
mod waste;
mod write;

pub(crate) use frame::ErrorCode;
pub(crate) use holdings::StreamHolding;
pub(crate) use known::KnownResponse;
pub(crate) use pieces::PieceDemand;
pub(crate) use response_head::encode_fields;
pub(crate) use session::{ReceiveContext, Session, SessionEvent};
pub(crate) use stream::{SharedBuffers, StreamId};
pub(crate) use write::FileReader;
