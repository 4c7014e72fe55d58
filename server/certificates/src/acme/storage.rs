//! Where the account and the certificates are kept, by one node or by several.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::private_file;

/// Keeps small values under names. All nodes of a site use one storage, so that one of them asks
/// for a certificate and all of them have it.
///
/// A name has parts of lower-case letters, digits, `.`, `-`, `_`, `:` and `*`, joined by `/`. A
/// value is at most some tens of kilobytes and may hold a private key: only the server may be able
/// to read it. The functions are called on the thread that renews certificates and may wait for a
/// disk or a database.
pub trait CertificateStorage: Send + Sync + 'static {
    /// The value of a name; `None` if it was never stored.
    ///
    /// # Errors
    ///
    /// The storage cannot be read.
    fn load(&self, name: &str) -> io::Result<Option<Vec<u8>>>;

    /// Replaces the value of a name as a whole: a reader sees the old one or the new one, and after
    /// `Ok` it is safe from a crash.
    ///
    /// # Errors
    ///
    /// The storage cannot be written.
    fn store(&self, name: &str, value: &[u8]) -> io::Result<()>;

    /// Takes a lock for `lease`, or prolongs the lease if this object holds it already; `false` if
    /// another node holds it. A lock whose lease is over is free.
    ///
    /// # Errors
    ///
    /// The storage cannot be read or written.
    fn lock(&self, name: &str, lease: Duration) -> io::Result<bool>;

    /// Frees a lock that this object holds; does nothing to the lock of another.
    ///
    /// # Errors
    ///
    /// The storage cannot be written. The lease ends nevertheless.
    fn unlock(&self, name: &str) -> io::Result<()>;

    /// How often each node looks for what others have stored; `None` if no other node uses the
    /// storage. A node that publishes a challenge waits for two such intervals, so that every node
    /// can answer it.
    fn poll_interval(&self) -> Option<Duration>;
}

/// A storage in files with mode 0600, in a folder with mode 0700.
#[derive(Debug)]
pub struct FileStorage {
    folder: PathBuf,
    /// Tells the locks of this object from those of others.
    owner: String,
    poll_interval: Option<Duration>,
}

impl FileStorage {
    /// A storage in `folder`, which is made when the first value is stored; for one process.
    ///
    /// # Errors
    ///
    /// The system has no random bytes.
    pub fn new(folder: &Path) -> io::Result<Self> {
        let mut owner = [0; 8];
        aws_lc_rs::rand::fill(&mut owner).map_err(|_| io::Error::other("no random bytes"))?;
        Ok(Self {
            folder: folder.to_owned(),
            owner: format!("{:016x}", u64::from_be_bytes(owner)),
            poll_interval: None,
        })
    }

    /// Shares the folder with other processes, and looks every `interval` for what the others have
    /// stored.
    #[must_use]
    pub fn shared(mut self, interval: Duration) -> Self {
        self.poll_interval = Some(interval);
        self
    }

    fn path(&self, name: &str) -> io::Result<PathBuf> {
        if name.split('/').all(is_good_part) {
            Ok(self.folder.join(name))
        } else {
            let message = format!("{name:?} cannot be the name of a stored file");
            Err(io::Error::new(ErrorKind::InvalidInput, message))
        }
    }

    /// Does `change` to the lease of a lock, with the file held for that moment.
    fn with_lease<T>(
        &self,
        name: &str,
        change: impl FnOnce(&mut File, Option<Lease>) -> io::Result<T>,
    ) -> io::Result<T> {
        let path = self.path(name)?;
        private_file::create_folder(path.parent().unwrap_or(&self.folder))?;
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        let mut file = options.mode(0o600).open(path)?;
        // The kernel frees this short lock when the file is closed, or when the process ends.
        file.lock()?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        change(&mut file, Lease::parse(&text))
    }

    fn lock_at(&self, name: &str, lease: Duration, now: SystemTime) -> io::Result<bool> {
        self.with_lease(name, |file, old| {
            if old.is_some_and(|old| old.owner != self.owner && old.until > now) {
                return Ok(false);
            }
            let until = now + lease;
            let seconds = until.duration_since(UNIX_EPOCH).unwrap_or_default();
            overwrite(file, &format!("{} {}\n", self.owner, seconds.as_secs()))?;
            Ok(true)
        })
    }
}

impl CertificateStorage for FileStorage {
    fn load(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        match fs::read(self.path(name)?) {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn store(&self, name: &str, value: &[u8]) -> io::Result<()> {
        let path = self.path(name)?;
        private_file::create_folder(path.parent().unwrap_or(&self.folder))?;
        private_file::replace(&path, value)
    }

    fn lock(&self, name: &str, lease: Duration) -> io::Result<bool> {
        self.lock_at(name, lease, base_clock::wall())
    }

    fn unlock(&self, name: &str) -> io::Result<()> {
        self.with_lease(name, |file, old| {
            if old.is_some_and(|old| old.owner == self.owner) {
                overwrite(file, "")?;
            }
            Ok(())
        })
    }

    fn poll_interval(&self) -> Option<Duration> {
        self.poll_interval
    }
}

/// Owner of a lock, and its end: `OWNER SECONDS` in the file.
struct Lease {
    owner: String,
    until: SystemTime,
}

impl Lease {
    fn parse(text: &str) -> Option<Self> {
        let (owner, seconds) = text.trim().split_once(' ')?;
        let seconds: u32 = seconds.parse().ok()?;
        Some(Self {
            owner: owner.to_owned(),
            until: UNIX_EPOCH + Duration::from_secs(seconds.into()),
        })
    }
}

fn overwrite(file: &mut File, text: &str) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn is_good_part(part: &str) -> bool {
    let is_good =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-_:*".contains(&byte);
    !part.is_empty() && !part.starts_with('.') && part.bytes().all(is_good)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::time::Duration;

    use super::{CertificateStorage as _, FileStorage};

    #[test]
    fn a_stored_value_is_loaded_and_private() {
        let folder = tempfile::tempdir().unwrap();
        let storage = FileStorage::new(&folder.path().join("acme")).unwrap();
        assert_eq!(storage.load("a/b.pem").unwrap(), None);
        for value in [b"one", b"two"] {
            storage.store("a/b.pem", value).unwrap();
            assert_eq!(storage.load("a/b.pem").unwrap().unwrap(), value);
        }
        let path = folder.path().join("acme/a/b.pem");
        let mode = std::fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let files = std::fs::read_dir(folder.path().join("acme/a")).unwrap();
        assert_eq!(files.count(), 1, "nothing is left of the replacement");
    }

    #[test]
    fn a_name_does_not_leave_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let storage = FileStorage::new(folder.path()).unwrap();
        for name in ["../a", "/a", "a//b", "", ".a", "a/../b", "A", "a b"] {
            assert!(storage.store(name, b"x").is_err(), "{name:?}");
        }
        storage.store("x/*.example.org.pem", b"x").unwrap();
        storage.store("x/2001:db8::1.pem", b"x").unwrap();
    }

    #[test]
    fn one_of_two_has_the_lock_until_it_is_freed_or_its_lease_ends() {
        let folder = tempfile::tempdir().unwrap();
        let one = FileStorage::new(folder.path()).unwrap();
        let other = FileStorage::new(folder.path()).unwrap();
        let lease = Duration::from_secs(60);
        let now = base_clock::wall();
        assert!(one.lock_at("lock", lease, now).unwrap());
        assert!(!other.lock_at("lock", lease, now).unwrap());
        let later = now + lease * 3 / 4;
        assert!(one.lock_at("lock", lease, later).unwrap(), "prolonged");
        let later = now + lease * 3 / 2;
        assert!(!other.lock_at("lock", lease, later).unwrap());
        other.unlock("lock").unwrap();
        assert!(!other.lock_at("lock", lease, later).unwrap());
        one.unlock("lock").unwrap();
        assert!(other.lock_at("lock", lease, now).unwrap());
        assert!(one.lock_at("lock", lease, now + 2 * lease).unwrap());
        assert!(
            !other.lock_at("lock", lease, now + 2 * lease).unwrap(),
            "lost"
        );
    }
}
