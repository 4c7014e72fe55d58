//! Errors of `h2` as kinds of failure, with the text for a report.

use h2::{Error, Reason};

use crate::outcome::{FailureKind, Fault};

/// Why a stream ended without a response.
pub(super) fn of_stream(error: &Error) -> Fault {
    if !error.is_remote() {
        return of_connection(error);
    }
    let example = match error.reason() {
        Some(Reason::REFUSED_STREAM) => "the server refused the stream (RST_STREAM)",
        Some(Reason::INTERNAL_ERROR) => "the server has an internal error (RST_STREAM)",
        Some(Reason::CANCEL) => "the server cancelled the stream (RST_STREAM)",
        Some(Reason::PROTOCOL_ERROR) => {
            "the server finds the request against the rules of HTTP/2 (RST_STREAM)"
        }
        Some(Reason::ENHANCE_YOUR_CALM) => "the server asks to be calmer (RST_STREAM)",
        Some(Reason::HTTP_1_1_REQUIRED) => "the server wants HTTP/1.1 for this (RST_STREAM)",
        _ => "the server reset the stream (RST_STREAM)",
    };
    (FailureKind::Reset, Some(example))
}

/// Returns the fault that this side found in the received bytes.
pub(super) fn of_connection(error: &Error) -> Fault {
    let example = match error.reason() {
        Some(Reason::FLOW_CONTROL_ERROR) => "the server sends more than flow control allows",
        Some(Reason::FRAME_SIZE_ERROR) => "a frame of a size that HTTP/2 does not allow",
        Some(Reason::COMPRESSION_ERROR) => "fields that HPACK cannot decode",
        Some(Reason::STREAM_CLOSED) => "a frame on a stream that has ended",
        Some(Reason::ENHANCE_YOUR_CALM) => "too many frames against the rules of HTTP/2",
        _ => "the server breaks the rules of HTTP/2",
    };
    (FailureKind::BadResponse, Some(example))
}
