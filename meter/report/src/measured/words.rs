//! Parts of a run in words.

use millrace_runs::{Connections, Run};

use crate::number::count;

/// The number of connections, and how many of them kept their pace if bandwidth was limited.
pub(super) fn connections(connections: &Connections) -> String {
    let mut text = format!(
        "{} asked for, {} established, {} opened in all",
        count(connections.asked),
        count(connections.established),
        count(connections.opened)
    );
    if let Some(conforming) = connections.conforming {
        text.push_str(&format!(
            "; {} conforming (320 kbit/s or more, 99 % good answers)",
            count(conforming)
        ));
    }
    text
}

/// The table row with the number of connections that kept their pace; `None` if bandwidth was not
/// limited.
pub(super) fn conforming(connections: &Connections) -> Option<Vec<String>> {
    let conforming = count(connections.conforming?);
    Some(vec![
        "conforming connections".to_owned(),
        format!("{conforming} of {}", count(connections.asked)),
    ])
}

/// Describes each kind of error beyond its count; `name` names a kind.
pub(super) fn examples(run: &Run, name: fn(&str) -> String) -> impl Iterator<Item = String> {
    let examples = run.error_examples.iter();
    examples.map(move |(kind, example)| format!("{}: {example}", name(kind)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conforming_connections_are_named_where_they_were_counted() {
        let mut run = Connections {
            asked: 3,
            ..Connections::default()
        };
        assert!(!connections(&run).contains("conforming"));
        assert_eq!(conforming(&run), None);
        run.conforming = Some(2);
        assert!(connections(&run).contains("2 conforming"));
        assert_eq!(conforming(&run).unwrap()[1], "2 of 3");
    }
}
