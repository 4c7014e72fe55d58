//! Figures of the parts of a process, by their names.

use millpond_http::Stats;
use serde_json::{Map, Value};

/// A part that gives figures of what it has done since the start.
pub trait Figures {
    /// Adds its figures, each under a name of its own.
    fn add_to(&self, figures: &mut Map<String, Value>);
}

/// Figures of the connections; refusals by their statuses.
impl Figures for Stats {
    fn add_to(&self, figures: &mut Map<String, Value>) {
        let refused = self.refused.iter();
        let refused: Map<String, Value> = refused
            .map(|(status, count)| (status.to_string(), (*count).into()))
            .collect();
        for (name, count) in self.counts() {
            figures.insert(name.to_owned(), count.into());
        }
        figures.insert("refused".to_owned(), refused.into());
    }
}
