//! Reads the elements of DER (X.690 section 10), as far as a certificate needs them.

/// An element: its tag and what is in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DerElement<'a> {
    /// The identifier octet. Tags above 30 do not occur in certificates and are refused.
    pub(crate) tag: u8,
    /// The content octets.
    pub(crate) content: &'a [u8],
    /// The whole element, with tag and length.
    pub(crate) whole: &'a [u8],
}

impl<'a> DerElement<'a> {
    /// The elements within.
    pub(crate) fn reader(&self) -> DerReader<'a> {
        DerReader(self.content)
    }
}

/// Elements one after another.
#[derive(Clone, Debug)]
pub(crate) struct DerReader<'a>(&'a [u8]);

impl<'a> DerReader<'a> {
    /// A reader of `bytes`.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The next element; `None` at the end, or if the bytes are no DER.
    pub(crate) fn next(&mut self) -> Option<DerElement<'a>> {
        let (&tag, after) = self.0.split_first()?;
        if tag & 0x1f == 0x1f {
            return None;
        }
        let (length, content) = length(after)?;
        let (content, rest) = content.split_at_checked(length)?;
        let whole = &self.0[..self.0.len() - rest.len()];
        self.0 = rest;
        Some(DerElement {
            tag,
            content,
            whole,
        })
    }

    /// The next element, which must have this tag.
    pub(crate) fn expect(&mut self, tag: u8) -> Option<DerElement<'a>> {
        self.next().filter(|element| element.tag == tag)
    }

    /// The next element if it has this tag; else nothing is read.
    pub(crate) fn optional(&mut self, tag: u8) -> Option<DerElement<'a>> {
        if self.0.first() == Some(&tag) {
            self.next()
        } else {
            None
        }
    }
}

/// The length that begins `bytes`, and what follows the length.
fn length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (&first, rest) = bytes.split_first()?;
    if first < 0x80 {
        return Some((first.into(), rest));
    }
    // 0x80 is the indefinite form, which DER forbids. Three octets are 16 MiB.
    let count = usize::from(first & 0x7f);
    if count == 0 || count > 3 {
        return None;
    }
    let (octets, rest) = rest.split_at_checked(count)?;
    let length = octets
        .iter()
        .fold(0_usize, |sum, octet| sum << 8 | usize::from(*octet));
    let is_shortest = length >= 0x80 && octets[0] != 0;
    is_shortest.then_some((length, rest))
}

#[cfg(test)]
mod tests {
    use super::DerReader;

    #[test]
    fn elements_are_read_one_after_another() {
        let mut reader = DerReader::new(&[0x02, 1, 5, 0x04, 0x81, 0x80]);
        let number = reader.expect(0x02).unwrap();
        assert_eq!((number.content, number.whole), (&[5][..], &[2, 1, 5][..]));
        assert!(reader.optional(0x30).is_none());
        assert!(reader.next().is_none(), "128 octets are missing");
        let long = [&[0x04, 0x81, 0x80][..], &[7; 128]].concat();
        let octets = DerReader::new(&long).next().unwrap();
        assert_eq!(octets.content, [7; 128]);
    }

    #[test]
    fn what_is_no_der_is_refused() {
        let wrong: [&[u8]; 6] = [
            &[],
            &[0x30],
            &[0x30, 0x80, 0, 0],
            &[0x30, 0x81, 1, 0],
            &[0x30, 0x84, 0, 0, 0, 0],
            &[0x1f, 0x20, 0],
        ];
        for bytes in wrong {
            assert!(DerReader::new(bytes).next().is_none(), "{bytes:?}");
        }
    }
}
