//! The command as the user typed it, for the records of a measurement.

/// The command line of this process, quoted for a shell, with `program` in place of the path of the
/// program, which is different on each machine. Passwords in URLs are `***`: records are published.
#[must_use]
pub fn command_line(program: &str) -> String {
    let arguments = std::env::args_os().map(|argument| argument.to_string_lossy().into_owned());
    quoted(program, arguments.skip(1).map(without_password))
}

/// Hides the password of a URL.
fn without_password(argument: String) -> String {
    let parts = argument.split_once("://").and_then(|(scheme, rest)| {
        let authority = rest.split(['/', '?', '#']).next()?;
        let (user, _) = authority.rsplit_once('@')?.0.split_once(':')?;
        let after = &rest[authority.rfind('@')?..];
        Some(format!("{scheme}://{user}:***{after}"))
    });
    parts.unwrap_or(argument)
}

fn quoted(program: &str, arguments: impl Iterator<Item = String>) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    let quote = |argument: String| match argument.chars().all(plain) && !argument.is_empty() {
        true => argument,
        false => format!("'{}'", argument.replace('\'', r"'\''")),
    };
    let words = std::iter::once(program.to_owned()).chain(arguments.map(quote));
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::{quoted, without_password};

    #[test]
    fn passwords_are_not_recorded() {
        for (typed, recorded) in [
            (
                "--pg=postgres://me:s@cret@h/db?a=b@c",
                "--pg=postgres://me:***@h/db?a=b@c",
            ),
            ("postgres://me@h:5432/db", "postgres://me@h:5432/db"),
            ("http://h:80/a:b@c", "http://h:80/a:b@c"),
        ] {
            assert_eq!(without_password(typed.to_owned()), recorded);
        }
    }

    #[test]
    fn the_command_can_be_typed_again() {
        let typed = ["load", "http://h/?a=1&b", "-H", "X: it's", ""].map(str::to_owned);
        assert_eq!(
            quoted("millrace", typed.into_iter()),
            r"millrace load 'http://h/?a=1&b' -H 'X: it'\''s' ''"
        );
    }
}
