//! A run's connections in words.

use millpond_load::Connections;

use crate::number::count;

/// How many there were, and how many of them kept their pace where bandwidth was limited.
pub(super) fn describe(connections: &Connections) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conforming_connections_are_named_where_they_were_counted() {
        let mut connections = Connections {
            asked: 3,
            ..Connections::default()
        };
        assert!(!describe(&connections).contains("conforming"));
        connections.conforming = Some(2);
        assert!(describe(&connections).contains("2 conforming"));
    }
}
