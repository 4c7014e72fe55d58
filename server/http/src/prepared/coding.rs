//! Content codings (RFC 9110 section 8.4.1): gzip, br (RFC 7932), zstd (RFC 8878).

use std::io::{self, Read, Write};

use brotli::enc::BrotliEncoderParams;
use flate2::Compression;
use flate2::write::GzEncoder;

/// Window of 256 KiB at most: larger ones cost memory for nothing at the size of a page.
const BROTLI_WINDOW: i32 = 18;
/// The largest window of zstd that a client must have memory for: 8 MiB (RFC 9659).
const ZSTD_WINDOW: u32 = 23;
/// Bytes that are decoded at a time to be compared.
const STEP: usize = 16 << 10;

/// A content coding that can be made, in the order of preference among equals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Coding {
    /// Brotli at quality 5: the smallest.
    Brotli,
    /// Zstandard at level 6.
    Zstd,
    /// gzip at level 6: every client has it.
    Gzip,
}

impl Coding {
    /// All of them, the preferred first.
    pub const ALL: [Self; 3] = [Self::Brotli, Self::Zstd, Self::Gzip];

    /// Its name in Content-Encoding.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
        }
    }

    /// Returns the suffix that the coding adds to an entity tag: its name, and the revision of its
    /// encoder. The rest of the tag is of the content alone, and another encoder, or another level,
    /// gives other bytes for it: a client that has half of one and resumes with the other, told by
    /// If-Range that they are the same, would have neither (RFC 9110 section 8.8.1). So every
    /// change of what [`Self::compress`] gives raises the number; the test at the end of this file
    /// notices.
    ///
    /// Codings made beforehand have the number too, though their own bytes are in their tags: a
    /// client gets them once more than it must when it is raised.
    pub(super) const fn suffix(self) -> &'static str {
        match self {
            Self::Brotli => "-br1",
            Self::Zstd => "-zs1",
            Self::Gzip => "-gz1",
        }
    }

    /// The coded content; none if the encoder fails (for want of memory).
    #[must_use]
    pub fn compress(self, content: &[u8]) -> Option<Vec<u8>> {
        match self {
            Self::Gzip => {
                let mut encoder =
                    GzEncoder::new(Vec::with_capacity(content.len() / 2), Compression::new(6));
                encoder.write_all(content).ok()?;
                encoder.finish().ok()
            }
            Self::Brotli => brotli_of(content, 5),
            Self::Zstd => zstd::bulk::compress(content, 6).ok(),
        }
        .map(|mut coded| {
            coded.shrink_to_fit();
            coded
        })
    }

    /// True if a client that decodes `coded` gets `content`, all of it and nothing else. Decoding
    /// ends where `coded` exceeds `content`.
    #[must_use]
    pub fn yields(self, mut coded: &[u8], content: &[u8]) -> bool {
        let is_there = !coded.is_empty();
        let same = match self {
            // One member: not all clients go on to a second.
            Self::Gzip => is_same(flate2::bufread::GzDecoder::new(&mut coded), content)
                .map(|same| same && coded.is_empty()),
            Self::Brotli => is_same(brotli::Decompressor::new(coded, STEP), content),
            Self::Zstd => {
                zstd::stream::read::Decoder::with_buffer(coded).and_then(|mut decoder| {
                    decoder.window_log_max(ZSTD_WINDOW)?;
                    is_same(decoder, content)
                })
            }
        };
        same.unwrap_or(false) && is_there
    }
}

/// Returns the content in [`Coding::Brotli`] as small as it gets, at ten times the cost: for what
/// is made once. None if the encoder fails.
#[must_use]
pub fn smallest_brotli(content: &[u8]) -> Option<Vec<u8>> {
    brotli_of(content, 11)
}

fn brotli_of(content: &[u8], quality: i32) -> Option<Vec<u8>> {
    let mut coded = Vec::with_capacity(content.len() / 2);
    let params = BrotliEncoderParams {
        quality,
        lgwin: BROTLI_WINDOW,
        size_hint: content.len(),
        ..BrotliEncoderParams::default()
    };
    brotli::BrotliCompress(&mut &content[..], &mut coded, &params).ok()?;
    Some(coded)
}

/// True if `reader` gives `content` and then ends.
fn is_same(mut reader: impl Read, mut content: &[u8]) -> io::Result<bool> {
    let mut step = [0; STEP];
    loop {
        let read = reader.read(&mut step)?;
        if read == 0 {
            return Ok(content.is_empty());
        }
        let Some(rest) = content.strip_prefix(&step[..read]) else {
            return Ok(false);
        };
        content = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::super::etag::ContentHash;
    use super::*;

    #[test]
    fn what_is_coded_is_known_from_what_is_cut_longer_or_other() {
        let content: Vec<u8> = (0..100_000_u32)
            .flat_map(|n| n.wrapping_mul(n).to_le_bytes())
            .collect();
        for coding in Coding::ALL {
            for content in [&content[..], b"a"] {
                let coded = coding.compress(content).unwrap();
                assert!(coding.yields(&coded, content), "{coding:?}");
                let longer = [content, b"x"].concat();
                assert!(!coding.yields(&coded, &longer), "{coding:?}");
                assert!(!coding.yields(content, content), "{coding:?}");
                let trailed = [&coded[..], b"trail"].concat();
                // The decoder does not read behind the end of a brotli stream.
                let is_known = coding == Coding::Brotli;
                assert_eq!(coding.yields(&trailed, content), is_known, "{coding:?}");
                for cut in [0, 1, coded.len() / 2, coded.len() - 1] {
                    assert!(!coding.yields(&coded[..cut], content), "{coding:?} {cut}");
                }
            }
            let coded = coding.compress(&content).unwrap();
            assert!(!coding.yields(&coded, &content[1..]), "{coding:?}");
            let shorter = &content[..content.len() - 1];
            assert!(!coding.yields(&coded, shorter), "{coding:?}");
        }
    }

    #[test]
    fn a_window_that_clients_need_not_have_is_not_sent_to_them() {
        let content = vec![b'x'; 100];
        // A frame with a window of 16 MiB: magic number, no flags, window, one raw block that is
        // the last.
        let frame = |window: u8| {
            let head = [0x28, 0xb5, 0x2f, 0xfd, 0, window, 0x21, 0x03, 0];
            [&head[..], &content].concat()
        };
        assert!(Coding::Zstd.yields(&frame(13 << 3), &content));
        assert!(!Coding::Zstd.yields(&frame(14 << 3), &content));
    }

    /// Text in which some words are more frequent than others, as in a language.
    fn words(len: usize) -> Vec<u8> {
        const WORDS: [&str; 16] = [
            "mill", "the ", "<p>", "water", "</p>\n", "of ", "wheel ", "and ", "stone, ", "grain",
            " is", "ing ", "href=\"/", "\">", "round ", "19",
        ];
        let mut random = 1_u64;
        let mut text = Vec::with_capacity(len + 8);
        while text.len() < len {
            // The generator of Knuth's MMIX; its upper bits are the good ones.
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let (one, other) = (random >> 60, random >> 56 & 15);
            text.extend_from_slice(WORDS[usize::try_from(one.min(other)).unwrap()].as_bytes());
        }
        text
    }

    /// Of a short page, a usual one, and one longer than the windows of gzip and brotli.
    #[test]
    fn an_encoder_that_gives_other_bytes_raises_its_revision() {
        for (coding, suffix, hash) in [
            (Coding::Brotli, "-br1", "6ccefca8b9867603bc33b69ce485d147"),
            (Coding::Zstd, "-zs1", "5c06954466f80033cd71208cf791eab2"),
            (Coding::Gzip, "-gz1", "21e1662b67457c3d7bee37c004f64b31"),
        ] {
            let coded: Vec<u8> = [600, 20_000, 400_000]
                .into_iter()
                .flat_map(|len| coding.compress(&words(len)).unwrap())
                .collect();
            assert_eq!(
                (ContentHash::of(&coded).tag(None), coding.suffix()),
                (format!("\"{hash}\""), suffix),
                "the encoder of {} gives other bytes than before: raise the revision in `Coding::suffix`, and then put \
                 the new hash and suffix here",
                coding.name()
            );
        }
    }
}
