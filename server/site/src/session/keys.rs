//! What cookies are signed with: a secret of the owner's, or a file that the server makes.

use std::{
    env,
    fmt::{self, Write as _},
    fs, io,
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use aws_lc_rs::{
    hmac,
    rand::{SecureRandom as _, SystemRandom},
};

use millpond_site_format::{Problem, config::SHORTEST_KEY, problem::SETTINGS};

/// The name of the file, in the folder of the database.
pub(crate) const FILE: &str = "session.key";
/// The most keys that are tried; a rotation needs two.
const MOST: usize = 16;
/// Keys are derived for this purpose, so a signature here is valid nowhere else: the secret itself
/// is never used.
const PURPOSE: &[u8] = b"millpond session 1";

/// The keys of a site. The first signs, all verify; without a key there are no sessions.
#[derive(Clone, Default)]
pub(crate) struct Keys(Vec<hmac::Key>);

impl fmt::Debug for Keys {
    /// Never the keys themselves.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keys({})", self.0.len())
    }
}

impl Keys {
    /// Keys that stand between white space or commas.
    ///
    /// # Errors
    /// What is wrong with them, as a sentence.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        Self::parse_for("", text)
    }

    /// Reads keys for one of several sites that may read one file: no site accepts what another one
    /// has signed.
    fn parse_for(site: &str, text: &str) -> Result<Self, String> {
        let words = text.split(|c: char| c.is_whitespace() || c == ',');
        let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
        if words.is_empty() {
            return Err("there is no key".to_owned());
        }
        if words.len() > MOST {
            return Err(format!("there are more than {MOST} keys"));
        }
        if let Some(at) = words.iter().position(|word| word.len() < SHORTEST_KEY) {
            return Err(format!(
                "key {} of {} has less than {SHORTEST_KEY} characters",
                at + 1,
                words.len()
            ));
        }
        let key = |word: &&str| {
            let secret = hmac::Key::new(hmac::HMAC_SHA256, word.as_bytes());
            let derived = hmac::sign(&secret, &[PURPOSE, site.as_bytes()].concat());
            hmac::Key::new(hmac::HMAC_SHA256, derived.as_ref())
        };
        Ok(Self(words.iter().map(key).collect()))
    }

    /// The keys that `secret` gives: `env:NAME` names a variable of the environment, anything else
    /// is the keys themselves.
    pub(crate) fn of_secret(secret: &str) -> Result<Self, Problem> {
        let problem = |message: String| {
            Problem::new(SETTINGS, format!("session.secret: {message}")).hint(
                "a key is 32 random characters or more, such as what `openssl rand -hex 32` prints",
            )
        };
        let Some(name) = secret.strip_prefix("env:") else {
            return Self::parse(secret).map_err(problem);
        };
        let text = env::var(name).map_err(|_| {
            Problem::new(
                SETTINGS,
                format!(
                    "session.secret: the environment has no variable `{name}`, or it is not text"
                ),
            )
            .hint(format!(
                "start the server with {name} set to 32 random characters or more"
            ))
        })?;
        Self::parse(&text)
            .map_err(|message| problem(format!("in the variable `{name}`, {message}")))
    }

    /// The keys in the file for the site of this name; none if there is none.
    pub(crate) fn read(path: &Path, site: &str) -> Result<Option<Self>, Problem> {
        let cannot = |error: &io::Error| {
            Problem::new(
                path,
                format!("the keys of sessions cannot be read: {error}"),
            )
        };
        let mode = match fs::metadata(path) {
            Ok(found) => found.permissions().mode(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(cannot(&error)),
        };
        if mode & 0o077 != 0 {
            return Err(Problem::new(
                path,
                "others than its owner may read the keys of sessions, and could sign in as anybody",
            )
            .hint(format!(
                "chmod 600 {0}; if others may have read it, delete it: a new one is made, and everybody signs in again",
                path.display()
            )));
        }
        let text = fs::read_to_string(path).map_err(|error| cannot(&error))?;
        let lines = text
            .lines()
            .filter(|line| !line.trim_start().starts_with('#'));
        let keys = lines.fold(String::new(), |keys, line| keys + line + "\n");
        Self::parse_for(site, &keys).map(Some).map_err(|message| {
            Problem::new(path, message).hint(
                "one key on each line: the first signs, all are good; delete the file to get a new one",
            )
        })
    }

    /// The keys in the file, which is made if there is none. It appears whole or not at all, and of
    /// two servers that make it at once both use the one that was first.
    pub(crate) fn read_or_make(path: &Path, site: &str) -> Result<Self, Problem> {
        if let Some(keys) = Self::read(path, site)? {
            return Ok(keys);
        }
        make(path).map_err(|error| {
            Problem::new(path, format!("the file of keys cannot be made: {error}")).hint(
                "let the server write there, or give it a key: session.secret = \"env:NAME\" in millpond.toml",
            )
        })?;
        let keys = Self::read(path, site)?;
        keys.ok_or_else(|| Problem::new(path, "the file was made, and is gone again"))
    }

    /// Returns the keys of the file, or a key of this process alone if the file cannot be used.
    ///
    /// # Errors
    /// The system has no random bytes.
    pub(crate) fn read_or_random(path: &Path, site: &str) -> Result<Self, Problem> {
        Self::read_or_make(path, site).or_else(|unusable| {
            let random = random().map_err(|_| unusable)?;
            Self::parse_for(site, &random).map_err(|message| Problem::new(path, message))
        })
    }

    /// True if there is no key, so nothing can be signed.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Signs; none without a key.
    pub(crate) fn sign(&self, text: &[u8]) -> Option<hmac::Tag> {
        self.0.first().map(|key| hmac::sign(key, text))
    }

    /// True if one of the keys has signed `text`. The comparison takes the same time wherever two
    /// tags differ.
    pub(crate) fn verify(&self, text: &[u8], tag: &[u8]) -> bool {
        self.0
            .iter()
            .any(|key| hmac::verify(key, text, tag).is_ok())
    }
}

/// Returns a new key, as it stands in a file.
fn random() -> io::Result<String> {
    let mut random = [0; 32];
    SystemRandom::new()
        .fill(&mut random)
        .map_err(|_| io::Error::other("the system has no random bytes"))?;
    Ok(hex(&random))
}

/// Returns bytes in hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn make(path: &Path) -> io::Result<()> {
    let text = format!(
        "# Whoever has this can sign in as anybody. The first key signs, all are good.\n{}\n",
        random()?
    );
    let draft = draft(path);
    let written = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&draft)
        .and_then(|mut file| {
            io::Write::write_all(&mut file, text.as_bytes())?;
            file.sync_all()
        });
    let linked = written.and_then(|()| match fs::hard_link(&draft, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        linked => linked,
    });
    let _ = fs::remove_file(&draft);
    linked
}

/// A hidden name of this process, so that neither the watch nor another server takes it for the
/// file.
fn draft(path: &Path) -> PathBuf {
    path.with_file_name(format!(".{FILE}.{}", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag_of(keys: &Keys) -> Vec<u8> {
        keys.sign(b"text").unwrap().as_ref().to_vec()
    }

    #[test]
    fn the_first_signs_and_all_are_good() {
        let (old, new) = ("a".repeat(32), "b".repeat(32));
        let before = Keys::parse(&old).unwrap();
        let after = Keys::parse(&format!("{new},\n {old}")).unwrap();
        let other = Keys::parse(&"c".repeat(64)).unwrap();
        assert!(after.verify(b"text", &tag_of(&before)));
        assert!(!before.verify(b"text", &tag_of(&after)));
        assert!(!other.verify(b"text", &tag_of(&after)));
        assert!(!after.verify(b"texs", &tag_of(&after)));
        assert!(!after.verify(b"text", &tag_of(&after)[..31]));
        assert!(Keys::default().sign(b"text").is_none());
        assert!(!Keys::default().verify(b"text", &tag_of(&after)));
        // The secret signs nothing by itself.
        let bare = hmac::Key::new(hmac::HMAC_SHA256, old.as_bytes());
        assert!(!before.verify(b"text", hmac::sign(&bare, b"text").as_ref()));
    }

    #[test]
    fn weak_secrets_are_refused() {
        for text in ["", " , ", "short", &format!("{} short", "a".repeat(32))] {
            assert!(Keys::parse(text).is_err(), "{text:?}");
        }
        assert!(Keys::of_secret("env:").is_err());
        let unset = Keys::of_secret("env:MILLPOND_TEST_IS_NOT_SET").unwrap_err();
        assert!(
            unset.message.contains("MILLPOND_TEST_IS_NOT_SET"),
            "{unset}"
        );
        assert!(!format!("{:?}", Keys::parse(&"k".repeat(32))).contains("kk"));
    }

    #[test]
    fn a_file_is_made_once_and_for_its_owner_alone() {
        let dir = lab_testkit::fast_dir();
        let path = dir.path().join(FILE);
        assert!(Keys::read(&path, "a.db").unwrap().is_none());
        let made = Keys::read_or_make(&path, "a.db").unwrap();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        let again = Keys::read_or_make(&path, "a.db").unwrap();
        assert_eq!(tag_of(&made), tag_of(&again));
        assert_eq!(
            fs::read_dir(dir.path()).unwrap().count(),
            1,
            "no draft stays"
        );
        let other = Keys::read_or_make(&path, "b.db").unwrap();
        assert!(!other.verify(b"text", &tag_of(&made)), "another site's");
        make(&path).unwrap();
        let third = Keys::read_or_make(&path, "a.db").unwrap();
        assert_eq!(tag_of(&made), tag_of(&third), "the first one counts");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let open = Keys::read_or_make(&path, "a.db").unwrap_err();
        assert!(open.message.contains("others than its owner"), "{open}");
        assert!(open.hint.unwrap().contains("chmod 600"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&path, "# nothing\n").unwrap();
        assert!(Keys::read(&path, "a.db").is_err());
    }
}
