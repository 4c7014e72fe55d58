//! The user that a process of root becomes.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::process::{Gid, Uid, geteuid};
use rustix::thread::{set_no_new_privs, set_thread_groups, set_thread_res_gid, set_thread_res_uid};

/// The users of the system. Others, of a directory service, are named by their numbers.
const USERS: &str = "/etc/passwd";

/// A user with its group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Its name, or its number where it has none.
    pub name: String,
    uid: u32,
    gid: u32,
}

impl User {
    /// Finds a user by its name or its numbers, as `1000` or `1000:1000`.
    ///
    /// # Errors
    /// A sentence, if there is no such user.
    pub fn find(user: &str) -> Result<Self, String> {
        let users = fs::read_to_string(USERS).unwrap_or_default();
        find(user, &users).ok_or_else(|| {
            format!("`{user}` is no user in {USERS}, and no numbers such as 1000:1000")
        })
    }

    /// Returns the owner of a folder.
    ///
    /// # Errors
    /// The folder cannot be inspected.
    pub fn owner(folder: &Path) -> io::Result<Self> {
        let (uid, gid) = fs::metadata(folder).map(|of| (of.uid(), of.gid()))?;
        let users = fs::read_to_string(USERS).unwrap_or_default();
        let known = find(&uid.to_string(), &users).filter(|user| user.name != uid.to_string());
        Ok(known.unwrap_or(Self {
            name: uid.to_string(),
            uid,
            gid,
        }))
    }

    /// True if it may do everything.
    #[must_use]
    pub const fn is_root(&self) -> bool {
        self.uid == 0
    }

    /// Makes this process one of the user, without further groups. There is no way back. To be
    /// called while the process has one thread.
    ///
    /// # Errors
    /// The process is not root's.
    pub fn assume(&self) -> io::Result<()> {
        let (uid, gid) = (Uid::from_raw(self.uid), Gid::from_raw(self.gid));
        set_thread_groups(&[])?;
        set_thread_res_gid(gid, gid, gid)?;
        set_thread_res_uid(uid, uid, uid)?;
        Ok(())
    }
}

/// True if this process is root's.
#[must_use]
pub fn is_root() -> bool {
    geteuid().is_root()
}

/// No program that this process starts gets more rights than it has.
///
/// # Errors
/// The kernel refuses.
pub fn give_up_new_ones() -> io::Result<()> {
    Ok(set_no_new_privs(true)?)
}

/// Finds a user in the text of the users.
fn find(user: &str, users: &str) -> Option<User> {
    let mut all = users.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?.to_owned();
        let [uid, gid] = [fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?];
        Some(User { name, uid, gid })
    });
    let (uid, gid) = match user.split_once(':') {
        Some((uid, gid)) => (uid.parse::<u32>().ok()?, Some(gid.parse::<u32>().ok()?)),
        None => match user.parse() {
            Ok(uid) => (uid, None),
            Err(_) => return all.find(|known| known.name == user),
        },
    };
    let known = all.find(|known| known.uid == uid);
    let name = known
        .as_ref()
        .map_or(uid.to_string(), |known| known.name.clone());
    let gid = gid.or(known.map(|known| known.gid)).unwrap_or(uid);
    Some(User { name, uid, gid })
}

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn users_are_found_by_name_and_number() {
        let users = "root:x:0:0:root:/root:/bin/sh\nblog:x:990:991::/srv/blog:/bin/false\n";
        for (given, expected) in [
            ("blog", Some(("blog", 990, 991))),
            ("990", Some(("blog", 990, 991))),
            ("990:5", Some(("blog", 990, 5))),
            ("1234", Some(("1234", 1234, 1234))),
            ("root", Some(("root", 0, 0))),
            ("blo", None),
            ("990:x", None),
            ("-1", None),
        ] {
            let found = find(given, users);
            let found = found.as_ref().map(|user| (&*user.name, user.uid, user.gid));
            assert_eq!(found, expected, "{given}");
        }
    }
}
