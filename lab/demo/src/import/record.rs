//! What the sources are turned into before anything is written.

/// Everything of one import. Relations and topics name articles and topics by slug.
#[derive(Debug, Default)]
pub(super) struct ImportBatch {
    pub(super) articles: Vec<Article>,
    pub(super) topics: Vec<Topic>,
    pub(super) threads: Vec<Thread>,
}

/// One article, ready for its row. The texts are within the limits of the schema.
#[derive(Debug, Clone)]
pub(super) struct Article {
    pub(super) slug: String,
    pub(super) title: String,
    pub(super) summary: String,
    pub(super) published_at: String,
    pub(super) version: Option<String>,
    pub(super) license: Option<String>,
    pub(super) repository: Option<String>,
    pub(super) body_html: String,
    pub(super) body_text: String,
    /// Names, in the order to be shown.
    pub(super) authors: Vec<String>,
    /// Slugs of topics, the first is the article's main one.
    pub(super) topics: Vec<String>,
    pub(super) related: Vec<Relation>,
    pub(super) comments: Vec<Comment>,
}

impl Article {
    pub(super) fn words(&self) -> usize {
        self.body_text.split_whitespace().count()
    }
}

/// From the article that holds it to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Relation {
    pub(super) slug: String,
    pub(super) kind: RelationKind,
}

/// How two articles are related.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RelationKind {
    /// This component is built on the other.
    Needs,
    /// The other component is built on this one.
    NeededBy,
}

impl RelationKind {
    /// The word in the column `related.kind`.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Needs => "needs",
            Self::NeededBy => "needed by",
        }
    }
}

/// A comment that comes with the source; unique by `who` within its article.
#[derive(Debug, Clone)]
pub(super) struct Comment {
    pub(super) who: String,
    pub(super) body: String,
    pub(super) at: String,
}

/// A topic and what it is about.
#[derive(Debug, Clone)]
pub(super) struct Topic {
    pub(super) slug: String,
    pub(super) name: String,
    pub(super) summary: String,
}

/// A thread on the board about a topic, with its opening post.
#[derive(Debug, Clone)]
pub(super) struct Thread {
    pub(super) topic: String,
    pub(super) title: String,
    pub(super) who: String,
    pub(super) body: String,
    pub(super) at: String,
}
