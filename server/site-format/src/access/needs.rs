//! What a page or a form requires of the visitor's session.

use millpond_db::Value;

use super::{ClaimUse, Claims, Condition};

/// A `-- require:` line, or what a `[[require]]` entry asks for: which visitors are admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Require {
    pub condition: Condition,
    /// The path of this site where a visitor without the claim is led. In that of a `-- require:`
    /// line `:name` stands for a part of the page's path.
    pub otherwise: Option<String>,
}

/// All requirements of a page or a form.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionRequirements {
    pub require: Vec<Require>,
    /// The claims that queries are given, and those of `-- vary:`.
    pub claims: Vec<ClaimUse>,
}

/// Decision about a visitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate<'n> {
    Open,
    /// A claim is not there: signing in may help, at this path.
    SignIn(&'n str),
    /// Signing in would not help, or no path for it is configured.
    Closed,
}

impl SessionRequirements {
    /// True if every visitor is the same to it.
    pub fn is_none(&self) -> bool {
        self.require.is_empty() && self.claims.is_empty()
    }

    /// True if the key holds a claim, so that a template may show it.
    pub fn is_in_key(&self, claim: &str) -> bool {
        self.claims.iter().any(|used| used.name == claim)
    }

    /// Decides if a visitor whose session has these claims may pass; none without a session.
    pub fn gate(&self, claims: Option<&Claims>) -> Gate<'_> {
        gate(self.require.iter(), claims)
    }

    /// The claims as the session has them, which is what a template sees: as a kind of value,
    /// different ones may be the same.
    pub fn claims<'s>(
        &'s self,
        session: Option<&'s Claims>,
    ) -> impl Iterator<Item = Option<&'s Value>> {
        self.claims
            .iter()
            .map(move |used| session.and_then(|claims| claims.get(&used.name)))
    }

    /// The values of the claims, in their order.
    pub fn values(&self, session: Option<&Claims>) -> impl Iterator<Item = Value> {
        let nobody = Claims::default();
        self.claims
            .iter()
            .map(move |used| used.value(session.unwrap_or(&nobody)))
    }

    /// The place of a claim as a kind of value among [`SessionRequirements::values`]; it is added
    /// if it is not there.
    pub fn place_of(&mut self, used: ClaimUse) -> usize {
        let found = self.claims.iter().position(|other| *other == used);
        found.unwrap_or_else(|| {
            self.claims.push(used);
            self.claims.len() - 1
        })
    }
}

/// Returns whether a visitor whose session has these claims meets all of these. One who lacks a
/// claim is led to the path of the first that names one.
pub fn gate<'n>(
    all: impl Iterator<Item = &'n Require> + Clone,
    session: Option<&Claims>,
) -> Gate<'n> {
    let mut others = all.clone();
    for wanted in all {
        let claim = session.and_then(|claims| claims.get(&wanted.condition.claim));
        match claim {
            Some(claim) if wanted.condition.is_met_by(claim) => {}
            Some(_) => return Gate::Closed,
            None => {
                let path = others.find_map(|other| other.otherwise.as_deref());
                let path = wanted.otherwise.as_deref().or(path);
                return path.map_or(Gate::Closed, Gate::SignIn);
            }
        }
    }
    Gate::Open
}

#[cfg(test)]
mod tests {
    use super::*;

    fn require(condition: &str, otherwise: Option<&str>) -> Require {
        Require {
            condition: Condition::parse(condition).unwrap(),
            otherwise: otherwise.map(str::to_owned),
        }
    }

    #[test]
    fn which_visitors_may_pass() {
        let session = |claims: &[(&str, Value)]| {
            let claims = claims.iter();
            Claims::new(
                claims
                    .map(|(name, value)| ((*name).to_owned(), value.clone()))
                    .collect(),
            )
        };
        let needs = |require: Vec<Require>| SessionRequirements {
            require,
            claims: Vec::new(),
        };
        let ann = session(&[("user", 1.into()), ("role", "reader".into())]);
        let editor = session(&[("user", 2.into()), ("role", "editor".into())]);
        let user = needs(vec![require("user", Some("/login"))]);
        assert_eq!(user.gate(None), Gate::SignIn("/login"));
        assert_eq!(user.gate(Some(&session(&[]))), Gate::SignIn("/login"));
        assert_eq!(user.gate(Some(&ann)), Gate::Open);
        let closed = needs(vec![require("user", None)]);
        assert_eq!(closed.gate(None), Gate::Closed);
        let editors = needs(vec![require("role = 'editor'", Some("/login"))]);
        assert_eq!(editors.gate(None), Gate::SignIn("/login"));
        // A visitor who is signed in would return from the sign-in page as the same visitor.
        assert_eq!(editors.gate(Some(&ann)), Gate::Closed);
        assert_eq!(editors.gate(Some(&editor)), Gate::Open);
        assert_eq!(needs(Vec::new()).gate(None), Gate::Open);
        let staff = needs(vec![
            require("role in ('editor', 'admin')", None),
            require("user != 3", Some("/login")),
        ]);
        assert_eq!(staff.gate(Some(&editor)), Gate::Open);
        assert_eq!(staff.gate(Some(&ann)), Gate::Closed);
        let barred = session(&[("user", "3".into()), ("role", "admin".into())]);
        assert_eq!(staff.gate(Some(&barred)), Gate::Closed, "all must hold");
        // The path of one line serves the others.
        assert_eq!(staff.gate(None), Gate::SignIn("/login"));
    }

    #[test]
    fn a_claim_of_another_kind_is_nothing_to_a_query_and_still_itself_in_the_key() {
        let needs = SessionRequirements {
            require: Vec::new(),
            claims: vec![ClaimUse {
                name: "admin".to_owned(),
                kind: Some(millpond_db::ValueKind::Integer),
            }],
        };
        let admin = Claims::new(vec![("admin".to_owned(), "yes".into())]);
        let given = |session| needs.values(session).collect::<Vec<_>>();
        assert_eq!(given(Some(&admin)), given(None));
        let keyed = |session| {
            needs
                .claims(session)
                .map(Option::<&Value>::cloned)
                .collect::<Vec<_>>()
        };
        assert_ne!(keyed(Some(&admin)), keyed(None));
    }
}
