//! Which response is sent first (RFC 9218).
//!
//! The tree of RFC 7540 is not kept: our SETTINGS say so, and its frames are only checked.

/// How urgent a response is (RFC 9218 section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Priority {
    /// From 0, the most urgent, to 7.
    pub(crate) urgency: u8,
    /// True if the client can use parts of the response, so that responses of one urgency are sent
    /// by turns.
    pub(crate) is_incremental: bool,
}

impl Default for Priority {
    fn default() -> Self {
        Self {
            urgency: 3,
            is_incremental: false,
        }
    }
}

impl Priority {
    /// Applies the value of a `priority` field or of a PRIORITY_UPDATE frame: a dictionary of
    /// structured fields. Members that are unknown, of another type or out of range are ignored
    /// (section 4).
    pub(crate) fn update(&mut self, value: &[u8]) {
        for member in Members(value) {
            let item = member.split(|&b| b == b';').next().unwrap_or_default();
            match item.trim_ascii() {
                [b'u', b'=', digit @ b'0'..=b'7'] => self.urgency = digit - b'0',
                b"i" | b"i=?1" => self.is_incremental = true,
                b"i=?0" => self.is_incremental = false,
                _ => {}
            }
        }
    }

    /// The priority that `value` asks for.
    pub(crate) fn parse(value: &[u8]) -> Self {
        let mut priority = Self::default();
        priority.update(value);
        priority
    }
}

/// The members of a dictionary. A comma in a quoted string separates nothing.
struct Members<'a>(&'a [u8]);

impl<'a> Iterator for Members<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.0.is_empty() {
            return None;
        }
        let (mut is_quoted, mut is_escaped) = (false, false);
        let end = self.0.iter().position(|&byte| {
            let is_end = byte == b',' && !is_quoted;
            is_quoted ^= byte == b'"' && !is_escaped;
            is_escaped = byte == b'\\' && is_quoted && !is_escaped;
            is_end
        });
        let end = end.unwrap_or(self.0.len());
        let member = &self.0[..end];
        self.0 = self.0.get(end + 1..).unwrap_or_default();
        Some(member)
    }
}

#[cfg(test)]
mod tests {
    use super::Priority;

    /// RFC 9218 sections 4 and 5.
    #[test]
    fn priority_fields_are_read_and_what_is_unknown_is_ignored() {
        for (value, urgency, is_incremental) in [
            ("", 3, false),
            ("u=0", 0, false),
            ("u=7, i", 7, true),
            ("i=?1,u=5", 5, true),
            ("i, i=?0", 3, false),
            ("u=1;a=b, i;c", 1, true),
            ("u=8", 3, false),
            ("u=-1", 3, false),
            ("u=2.0", 3, false),
            ("u=\"1\"", 3, false),
            ("u", 3, false),
            ("i=1", 3, false),
            ("U=1, I", 3, false),
            ("x=\"a,u=1,\\\",i\", u=2", 2, false),
            (", ,u=4,", 4, false),
            ("u=1, u=6", 6, false),
        ] {
            let expected = Priority {
                urgency,
                is_incremental,
            };
            assert_eq!(Priority::parse(value.as_bytes()), expected, "{value}");
        }
    }
}
