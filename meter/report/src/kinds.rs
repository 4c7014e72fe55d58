//! Kinds of errors in words.

/// A kind of error in words.
pub(crate) fn kind_name(kind: &str) -> String {
    match kind {
        "connect_refused" => "connection refused",
        "connect_failed" => "connection failed",
        "no_source_port" => "no source port left",
        "timeout" => "no answer in time",
        "closed_early" => "closed before the end of the answer",
        "reset" => "connection reset",
        "bad_response" => "not a valid response",
        "shed" => "past the deadline before it could be sent",
        "tls" => "TLS failed",
        "bad_body" => "a body that fails its check",
        "no_match" => "a value that was to be extracted is missing",
        "unsolicited" => "bytes that answer no request",
        "status_4xx" => "status 4xx",
        "status_5xx" => "status 5xx",
        "status_other" => "another status than expected",
        other => other,
    }
    .to_owned()
}
