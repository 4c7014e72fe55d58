//! What the configuration says about files that visitors send.

use std::time::Duration;

/// The folder of the site that uploads are in, and the beginning of their addresses.
pub const UPLOAD_FOLDER: &str = "uploads";

/// The limits of the uploads of a site (`[limits]`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UploadLimits {
    /// Forms with files that are received at once.
    pub at_once: usize,
    /// Bytes of them all.
    pub bytes: usize,
    /// Text of one such form, in bytes.
    pub text: usize,
    /// How long a form with a file that is not taken is read further.
    pub drain: Duration,
}
