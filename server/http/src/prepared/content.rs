//! The content of a representation, in memory or in an open file: its bytes for a compressor, and
//! what they weigh.

use std::borrow::Cow;
use std::io;
use std::os::unix::fs::FileExt;

use crate::response::Body;

/// All of it, read from its file if it is in one.
pub(super) fn read(content: &Body) -> io::Result<Cow<'_, [u8]>> {
    match content {
        Body::Empty => Ok(Cow::Borrowed(&[])),
        Body::Bytes(bytes) => Ok(Cow::Borrowed(bytes)),
        Body::File { file, offset, len } => {
            let len = usize::try_from(*len).map_err(|_| io::ErrorKind::FileTooLarge)?;
            let mut bytes = vec![0; len];
            file.read_exact_at(&mut bytes, *offset)?;
            Ok(Cow::Owned(bytes))
        }
        Body::Streamed(_) => Err(io::ErrorKind::Unsupported.into()),
    }
}

/// Bytes of it that the process keeps for it; the opener of a file counts the rest.
pub(super) fn weight(content: &Body) -> usize {
    match content {
        Body::Bytes(bytes) => bytes.len(),
        Body::Empty | Body::File { .. } | Body::Streamed(_) => 0,
    }
}
