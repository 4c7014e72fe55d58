//! Classes of clients, by the words that they use for themselves.

use std::hash::BuildHasher as _;

use foldhash::quality::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

/// Agents whose class is remembered.
const REMEMBERED: usize = 1 << 16;

/// Kind of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AgentClass {
    /// A browser.
    People,
    /// Calls itself a robot, or gives the address of a page about itself.
    Bots,
    /// Another program that gives its name.
    Programs,
    /// No agent, or one that says nothing.
    Unknown,
}

impl AgentClass {
    pub(crate) const ALL: [Self; 4] = [Self::People, Self::Bots, Self::Programs, Self::Unknown];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::People => "people",
            Self::Bots => "bots",
            Self::Programs => "programs",
            Self::Unknown => "unknown",
        }
    }

    /// The class of an agent.
    pub(crate) fn of(agent: &[u8]) -> Self {
        const BOTS: [&[u8]; 5] = [b"bot", b"crawl", b"spider", b"+http", b"+ http"];
        let has = |word: &&[u8]| {
            let mut windows = agent.windows(word.len());
            windows.any(|window| window.eq_ignore_ascii_case(word))
        };
        // A program calls itself by a name and a version, as RFC 9110 has it (10.1.5); a browser
        // says in parentheses where it runs.
        let is_named = agent.first().is_some_and(u8::is_ascii_alphabetic);
        if BOTS.iter().any(has) {
            Self::Bots
        } else if agent.starts_with(b"Mozilla/") || agent.starts_with(b"Opera/") {
            if agent.contains(&b'(') {
                Self::People
            } else {
                Self::Unknown
            }
        } else if is_named && (agent.contains(&b'/') || has(&&b"http"[..])) {
            Self::Programs
        } else {
            Self::Unknown
        }
    }
}

/// Remembers the classes of agents: a log has few, and many lines of each.
#[derive(Default)]
pub(crate) struct AgentClasses {
    known: HashTable<(u64, AgentClass)>,
}

impl AgentClasses {
    /// The class of an agent, and its hash.
    pub(crate) fn class(&mut self, agent: &[u8], hasher: &RandomState) -> (AgentClass, u64) {
        let hash = hasher.hash_one(agent);
        if self.known.len() >= REMEMBERED {
            self.known.clear();
        }
        let entry = self
            .known
            .entry(hash, |known| known.0 == hash, |known| known.0);
        let class = match entry {
            Entry::Occupied(entry) => entry.get().1,
            Entry::Vacant(entry) => entry.insert((hash, AgentClass::of(agent))).get().1,
        };
        (class, hash)
    }
}

#[cfg(test)]
mod tests {
    use super::AgentClass::{self, Bots, People, Programs, Unknown};

    #[test]
    fn clients_are_classed_by_what_they_say() {
        for (agent, class) in [
            (
                "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
                People,
            ),
            (
                "Opera/9.80 (Windows NT 6.1) Presto/2.12.388 Version/12.18",
                People,
            ),
            (
                "Mozilla/5.0 (compatible; ExampleBot/2.1; +http://example.org/bot.html)",
                Bots,
            ),
            ("examplehit/1.1 (+https://example.org/about)", Bots),
            ("Some Spider", Bots),
            ("curl/8.5.0", Programs),
            ("python-requests/2.32", Programs),
            ("Go-http-client/2.0", Programs),
            ("Mozilla/5.0", Unknown),
            ("", Unknown),
            ("\u{0}/1", Unknown),
            ("hello", Unknown),
        ] {
            assert_eq!(AgentClass::of(agent.as_bytes()), class, "{agent}");
        }
    }
}
