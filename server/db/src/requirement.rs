//! What a database lacks, as data for `millpond check`.

/// Something that a database lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// Requirement that is missing.
    pub missing: String,
    /// Why it matters.
    pub reason: String,
    /// The statement that mends it.
    pub statement: Option<String>,
    /// True if `millpond check --fix` may run the statement once the owner has agreed: the role has
    /// the right to.
    pub may_fix: bool,
    /// True if the server has to be started anew afterwards.
    pub restart: bool,
}

impl Requirement {
    pub(crate) fn new(missing: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            missing: missing.into(),
            reason: reason.into(),
            statement: None,
            may_fix: false,
            restart: false,
        }
    }

    pub(crate) fn repaired_by(self, statement: impl Into<String>, may_fix: bool) -> Self {
        Self {
            statement: Some(statement.into()),
            may_fix,
            ..self
        }
    }
}
