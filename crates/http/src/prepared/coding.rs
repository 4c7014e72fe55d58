//! Content codings (RFC 9110 section 8.4.1): gzip, br (RFC 7932), zstd (RFC 8878).

use std::io::Write;

use brotli::enc::BrotliEncoderParams;
use flate2::Compression;
use flate2::write::GzEncoder;

/// Window of 256 KiB at most: larger ones cost memory for nothing at the size of a page.
const BROTLI_WINDOW: i32 = 18;

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

    /// What it adds to an entity tag.
    pub(super) const fn suffix(self) -> &'static str {
        match self {
            Self::Brotli => "-br",
            Self::Zstd => "-zs",
            Self::Gzip => "-gz",
        }
    }

    /// The coded content; none if the encoder fails (for want of memory).
    pub(super) fn compress(self, content: &[u8]) -> Option<Vec<u8>> {
        match self {
            Self::Gzip => {
                let mut encoder =
                    GzEncoder::new(Vec::with_capacity(content.len() / 2), Compression::new(6));
                encoder.write_all(content).ok()?;
                encoder.finish().ok()
            }
            Self::Brotli => {
                let mut coded = Vec::with_capacity(content.len() / 2);
                let params = BrotliEncoderParams {
                    quality: 5,
                    lgwin: BROTLI_WINDOW,
                    size_hint: content.len(),
                    ..BrotliEncoderParams::default()
                };
                brotli::BrotliCompress(&mut &content[..], &mut coded, &params).ok()?;
                Some(coded)
            }
            Self::Zstd => zstd::bulk::compress(content, 6).ok(),
        }
        .map(|mut coded| {
            coded.shrink_to_fit();
            coded
        })
    }
}
