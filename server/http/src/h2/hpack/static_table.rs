//! The static table (RFC 7541 appendix A).

/// The entry with this index, from 1 on.
pub(crate) fn entry(index: usize) -> Option<(&'static str, &'static str)> {
    ENTRIES.get(index.checked_sub(1)?).copied()
}

/// The index of the first entry with this name in lower case.
pub(crate) fn index_of_name(name: &[u8]) -> Option<usize> {
    let mut entries = ENTRIES.iter();
    let at = entries.position(|(known, _)| known.as_bytes() == name)?;
    Some(at + 1)
}

/// The index of the entry with this name and this value, which is not empty.
pub(crate) fn index_of_field(name: &[u8], value: &[u8]) -> Option<usize> {
    let mut entries = ENTRIES.iter();
    let at = entries.position(|(known, known_value)| {
        !value.is_empty() && known.as_bytes() == name && known_value.as_bytes() == value
    })?;
    Some(at + 1)
}

/// How many entries there are.
pub(crate) const LEN: usize = ENTRIES.len();

const ENTRIES: [(&str, &str); 61] = [
    (":authority", ""),
    (":method", "GET"),
    (":method", "POST"),
    (":path", "/"),
    (":path", "/index.html"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "200"),
    (":status", "204"),
    (":status", "206"),
    (":status", "304"),
    (":status", "400"),
    (":status", "404"),
    (":status", "500"),
    ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
    ("accept-language", ""),
    ("accept-ranges", ""),
    ("accept", ""),
    ("access-control-allow-origin", ""),
    ("age", ""),
    ("allow", ""),
    ("authorization", ""),
    ("cache-control", ""),
    ("content-disposition", ""),
    ("content-encoding", ""),
    ("content-language", ""),
    ("content-length", ""),
    ("content-location", ""),
    ("content-range", ""),
    ("content-type", ""),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("expect", ""),
    ("expires", ""),
    ("from", ""),
    ("host", ""),
    ("if-match", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("if-range", ""),
    ("if-unmodified-since", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("max-forwards", ""),
    ("proxy-authenticate", ""),
    ("proxy-authorization", ""),
    ("range", ""),
    ("referer", ""),
    ("refresh", ""),
    ("retry-after", ""),
    ("server", ""),
    ("set-cookie", ""),
    ("strict-transport-security", ""),
    ("transfer-encoding", ""),
    ("user-agent", ""),
    ("vary", ""),
    ("via", ""),
    ("www-authenticate", ""),
];
