//! What the configuration says about static files.

/// The settings of static files (`[static]`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaticOptions {
    /// Bytes that copies of files and their codings may take (`static.memory`).
    pub memory: usize,
    /// The largest file that is copied into memory (`static.in_memory`).
    pub in_memory: usize,
    /// The smallest copy that is sent by `sendfile` (`static.sendfile_from`).
    pub sendfile_from: usize,
    /// True if symbolic links may lead out of the folder (`static.follow_links`).
    pub follow_links: bool,
}

impl Default for StaticOptions {
    fn default() -> Self {
        Self {
            memory: 256_000_000,
            in_memory: 4 << 20,
            sendfile_from: 64 << 10,
            follow_links: false,
        }
    }
}
