//! Topics of components: the categories of the registry by readable names, and keywords that enough
//! components share.

use std::collections::{BTreeMap, HashMap};

use super::cargo::Package;
use super::record::Topic;
use super::text::slug;

/// A keyword is a topic from this number of components on: a topic with one component helps no
/// reader.
const KEYWORD_MIN: usize = 4;

/// At most this many topics for each component.
const PER_COMPONENT: usize = 4;

/// Topic of a component that says nothing about itself.
const REST: &str = "miscellany";

/// Slug, name, and what it is about.
const KNOWN: [(&str, &str, &str); 51] = [
    (
        "algorithms",
        "Algorithms",
        "Ways to get an answer, and what each of them costs.",
    ),
    (
        "api-bindings",
        "Bindings",
        "Other people's interfaces, spoken from here.",
    ),
    (
        "asynchronous",
        "Asynchronous",
        "Waiting for many things at once without a thread for each.",
    ),
    ("authentication", "Authentication", "Knowing who is there."),
    (
        "caching",
        "Caching",
        "Keeping an answer, and knowing when to let it go.",
    ),
    (
        "command-line-interface",
        "Command line",
        "Arguments, help texts, and output that people read.",
    ),
    (
        "command-line-utilities",
        "Utilities",
        "Programs to be run by hand.",
    ),
    ("compression", "Compression", "The same in fewer bytes."),
    (
        "concurrency",
        "Concurrency",
        "Threads, locks, queues, and memory that several of them see.",
    ),
    (
        "config",
        "Configuration",
        "Files in which people say what they want.",
    ),
    (
        "cryptography",
        "Cryptography",
        "Secrets, signatures and hashes.",
    ),
    (
        "data-structures",
        "Data structures",
        "How things lie in memory decides how fast they are found.",
    ),
    (
        "database",
        "Databases",
        "Asking a database, and understanding its answers.",
    ),
    (
        "database-implementations",
        "Database engines",
        "What a database is made of.",
    ),
    (
        "date-and-time",
        "Date and time",
        "Calendars, clocks, and what goes wrong between them.",
    ),
    (
        "development-tools",
        "Tools",
        "For the people who write the rest.",
    ),
    (
        "development-tools-build-utils",
        "Build tools",
        "Run before the compiler does.",
    ),
    (
        "development-tools-debugging",
        "Debugging",
        "Finding out what it really does.",
    ),
    (
        "development-tools-ffi",
        "Foreign code",
        "Calling C, and being called by it.",
    ),
    (
        "development-tools-procedural-macro-helpers",
        "Macros",
        "Programs that write programs.",
    ),
    (
        "development-tools-profiling",
        "Profiling",
        "Where the time and the memory went.",
    ),
    (
        "development-tools-testing",
        "Testing",
        "Showing that it works, or where it does not.",
    ),
    (
        "embedded",
        "Embedded",
        "For machines smaller than the one on the desk.",
    ),
    ("encoding", "Encoding", "Values to bytes and back."),
    (
        "external-ffi-bindings",
        "System libraries",
        "Declarations of what was written in C.",
    ),
    (
        "filesystem",
        "File system",
        "Files, folders, and being told when they change.",
    ),
    (
        "hardware-support",
        "Hardware",
        "What this processor can do that others cannot.",
    ),
    (
        "hash",
        "Hashing",
        "A short name for a long value, and tables that are kept by it.",
    ),
    (
        "internationalization",
        "Internationalisation",
        "The world's scripts and languages.",
    ),
    (
        "io",
        "Input and output",
        "Bytes in, bytes out, and not one too many.",
    ),
    ("linux", "Linux", "One kernel's own interfaces."),
    (
        "localization",
        "Localisation",
        "Numbers, dates and words as they are written there.",
    ),
    (
        "mathematics",
        "Mathematics",
        "Numbers beyond the four operations.",
    ),
    (
        "memory-management",
        "Memory",
        "Where values live, and for how long.",
    ),
    (
        "network-programming",
        "Networking",
        "Sockets, protocols, and addresses.",
    ),
    (
        "no-std",
        "No standard library",
        "Parts that work without an operating system below them.",
    ),
    (
        "no-std-no-alloc",
        "No allocator",
        "Parts that never ask for memory.",
    ),
    (
        "os",
        "Operating systems",
        "Asking the kernel, and its answers.",
    ),
    (
        "os-unix-apis",
        "Unix",
        "System calls under names that one can remember.",
    ),
    (
        "parser-implementations",
        "Parsers",
        "Reading formats that others have defined.",
    ),
    (
        "parsing",
        "Parsing",
        "Tools for reading a language of one's own.",
    ),
    (
        "random",
        "Randomness",
        "Numbers that nobody can guess, or that everybody can repeat.",
    ),
    (
        "rust-patterns",
        "Patterns",
        "Small things that the language leaves to its users.",
    ),
    (
        "science",
        "Science",
        "Simulation, measurement and statistics.",
    ),
    ("serialization", "Serialisation", "Values to text and back."),
    ("template-engine", "Templates", "Text with holes in it."),
    (
        "text-processing",
        "Text",
        "Searching it, splitting it, comparing it.",
    ),
    (
        "unicode",
        "Unicode",
        "Every letter there is, and what to do with it.",
    ),
    (
        "value-formatting",
        "Formatting",
        "Numbers and values as people read them.",
    ),
    (
        "web-programming",
        "Web",
        "HTTP, HTML, URLs, and what else the web is made of.",
    ),
    ("zero-copy", "Zero copy", "Reading without moving."),
];

/// The topics of each component by id, and all that occur.
pub(super) fn of<'p>(packages: &[&'p Package]) -> (HashMap<&'p str, Vec<String>>, Vec<Topic>) {
    let mut shared: HashMap<String, usize> = HashMap::new();
    for package in packages {
        for keyword in package.keywords.iter().map(|keyword| normal(keyword)) {
            *shared.entry(keyword).or_default() += 1;
        }
    }
    let mut chosen: HashMap<&str, Vec<String>> = HashMap::new();
    let mut held: HashMap<String, usize> = HashMap::new();
    for package in packages {
        let keywords = package.keywords.iter().map(|keyword| normal(keyword));
        let keywords = keywords.filter(|keyword| {
            shared
                .get(keyword)
                .is_some_and(|&count| count >= KEYWORD_MIN)
        });
        let mut topics: Vec<String> = Vec::new();
        for topic in package
            .categories
            .iter()
            .map(|category| normal(category))
            .chain(keywords)
        {
            if !topics.contains(&topic) {
                topics.push(topic);
            }
        }
        // Half of all components work without the standard library; their other topics say more
        // about them.
        topics.sort_by_key(|topic| topic.starts_with("no-std"));
        topics.truncate(PER_COMPONENT);
        for topic in &topics {
            *held.entry(topic.clone()).or_default() += 1;
        }
        chosen.insert(package.id.as_str(), topics);
    }
    let mut all: BTreeMap<String, Topic> = BTreeMap::new();
    for topics in chosen.values_mut() {
        // A keyword may have lost its holders to their better topics.
        topics.retain(|topic| {
            known(topic).is_some() || held.get(topic).is_some_and(|&count| count >= KEYWORD_MIN)
        });
        if topics.is_empty() {
            topics.push(REST.to_owned());
        }
        for topic in topics {
            all.entry(topic.clone()).or_insert_with(|| describe(topic));
        }
    }
    (chosen, all.into_values().collect())
}

/// The slug of a category (`development-tools::testing`) or keyword, with its usual spelling.
fn normal(name: &str) -> String {
    let slug = slug(name);
    match slug.as_str() {
        "nostd" => "no-std".to_owned(),
        "async" | "futures" => "asynchronous".to_owned(),
        "cli" | "terminal" | "argument" | "arg" => "command-line-interface".to_owned(),
        "parse" | "parser" => "parsing".to_owned(),
        "string" | "strings" => "text-processing".to_owned(),
        "date" | "time" | "calendar" => "date-and-time".to_owned(),
        "rng" => "random".to_owned(),
        "mutex" | "rwlock" => "concurrency".to_owned(),
        "serde" => "serialization".to_owned(),
        "build-dependencies" => "development-tools-build-utils".to_owned(),
        "macros" | "macro" | "syn" | "derive" => {
            "development-tools-procedural-macro-helpers".to_owned()
        }
        "hashmap" | "map" => "hash".to_owned(),
        "http" | "html" => "web-programming".to_owned(),
        "ffi" => "development-tools-ffi".to_owned(),
        _ => slug,
    }
}

fn known(slug: &str) -> Option<&'static (&'static str, &'static str, &'static str)> {
    KNOWN.iter().find(|(known, ..)| *known == slug)
}

fn describe(slug: &str) -> Topic {
    let (name, summary) = match known(slug) {
        Some((_, name, summary)) => ((*name).to_owned(), (*summary).to_owned()),
        None if slug == REST => (
            "Miscellany".to_owned(),
            "Parts that fit in no drawer.".to_owned(),
        ),
        None => (title(slug), String::new()),
    };
    Topic {
        slug: slug.to_owned(),
        name,
        summary,
    }
}

/// `zero-copy` as `Zero copy`.
fn title(slug: &str) -> String {
    let spaced = slug.replace('-', " ");
    let mut letters = spaced.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_topics_are_sorted_and_within_the_schema() {
        assert!(KNOWN.is_sorted_by(|a, b| a.0 < b.0));
        assert!(KNOWN.iter().all(|(known, ..)| slug(known) == *known));
    }

    #[test]
    fn different_spellings_give_one_topic() {
        assert_eq!(normal("no_std"), normal("nostd"));
        assert_eq!(
            normal("development-tools::testing"),
            "development-tools-testing"
        );
        assert_eq!(describe("zero-copy").name, "Zero copy");
    }
}
