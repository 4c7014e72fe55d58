//! The command as it was typed, for the records of a measurement.

/// The arguments of this process as a shell would take them. The path of the program is the machine's business.
pub(crate) fn typed() -> String {
    let arguments = std::env::args_os().map(|argument| argument.to_string_lossy().into_owned());
    quoted(arguments.skip(1))
}

fn quoted(arguments: impl Iterator<Item = String>) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    let quote = |argument: String| match argument.chars().all(plain) && !argument.is_empty() {
        true => argument,
        false => format!("'{}'", argument.replace('\'', r"'\''")),
    };
    let words = std::iter::once("millpond".to_owned()).chain(arguments.map(quote));
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn the_command_can_be_typed_again() {
        let typed = ["load", "http://h/?a=1&b", "-H", "X: it's", ""].map(str::to_owned);
        assert_eq!(
            quoted(typed.into_iter()),
            r"millpond load 'http://h/?a=1&b' -H 'X: it'\''s' ''"
        );
    }
}
