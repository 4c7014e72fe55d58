//! Whose process the server is: PostgreSQL refuses to run as root.

use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use crate::Error;
use crate::error::system;

/// The accounts that are taken, the first that exists.
const ACCOUNTS: [&str; 2] = ["postgres", "nobody"];

/// An account other than our own; `None` where we are not root and stay who we are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Account(Option<(u32, u32)>);

impl Account {
    /// Ourselves, or an unprivileged account if we are root.
    pub(crate) fn unprivileged() -> Result<Self, Error> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Self(None));
        }
        let passwd = fs::read_to_string("/etc/passwd").map_err(system("read /etc/passwd"))?;
        ACCOUNTS
            .iter()
            .find_map(|name| ids(&passwd, name))
            .map(|ids| Self(Some(ids)))
            .ok_or_else(|| {
                Error(format!(
                    "cannot run PostgreSQL as root, nor as {}: there is no such account",
                    ACCOUNTS.join(" or ")
                ))
            })
    }

    /// Gives a folder to the account.
    pub(crate) fn own(self, folder: &Path) -> Result<(), Error> {
        match self.0 {
            Some((user, group)) => chown(folder, Some(user), Some(group))
                .map_err(system(format!("give {} away", folder.display()))),
            None => Ok(()),
        }
    }

    /// Lets a command run as the account. The standard library then drops the supplementary groups
    /// of root.
    pub(crate) fn run(self, command: &mut Command) -> &mut Command {
        match self.0 {
            Some((user, group)) => command.uid(user).gid(group),
            None => command,
        }
    }
}

/// User and group of a name in the text of `/etc/passwd`; root is not taken under any name.
fn ids(passwd: &str, name: &str) -> Option<(u32, u32)> {
    let fields = passwd
        .lines()
        .map(|line| line.split(':').collect::<Vec<_>>())
        .find(|fields| fields.first() == Some(&name))?;
    let ids = (fields.get(2)?.parse().ok()?, fields.get(3)?.parse().ok()?);
    (ids.0 != 0).then_some(ids)
}

#[cfg(test)]
mod tests {
    use super::ids;

    #[test]
    fn accounts_are_found_and_root_is_not_taken() {
        let passwd = "root:x:0:0::/:/bin/sh\npostgres:x:101:104:P,,,:/var:/bin/bash\nnobody:x:0:0::/:/bin/sh\n";
        assert_eq!(ids(passwd, "postgres"), Some((101, 104)));
        assert_eq!(ids(passwd, "post"), None);
        assert_eq!(ids(passwd, "nobody"), None);
    }
}
