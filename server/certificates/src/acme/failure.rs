//! Why an authority gave no certificate, in a sentence for the person who runs the server.

use instant_acme::{Error as AcmeError, Problem};

use super::http_client::TransportFailure;

/// Characters of an authority's text that are passed on.
const LONGEST_DETAIL: usize = 500;
/// Beginning of the types of problems (RFC 8555 section 6.7).
const NAMESPACE: &str = "urn:ietf:params:acme:error:";

/// A failed try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AcmeFailure {
    /// The cause, and what helps.
    pub(super) cause: String,
    /// The type of the authority's problem without its namespace, if there is one.
    pub(super) problem: Option<String>,
}

impl AcmeFailure {
    pub(super) fn new(cause: impl Into<String>) -> Self {
        Self {
            cause: cause.into(),
            problem: None,
        }
    }

    /// True if the authority's problem is of this type.
    pub(super) fn is(&self, problem: &str) -> bool {
        self.problem.as_deref() == Some(problem)
    }

    /// Returns the sentence of an authority's problem document (RFC 8555 section 6.7).
    pub(super) fn of_problem(problem: &Problem) -> Self {
        let kind = problem.r#type.as_deref().unwrap_or_default();
        let kind = kind.strip_prefix(NAMESPACE).unwrap_or(kind);
        let mut detail = printable(problem.detail.as_deref().unwrap_or("no reason was given"));
        // The document of an order with several faults has them one by one.
        for part in &problem.subproblems {
            if let Some(more) = &part.detail {
                detail = format!("{detail}; {}", printable(more));
            }
        }
        // Some authorities sort a failed look-up under the challenge that needed it.
        let is_look_up = detail.to_ascii_lowercase().contains("could not resolve");
        let meaning = meaning(if is_look_up { "dns" } else { kind });
        Self {
            cause: format!("{meaning} ({detail})"),
            problem: Some(kind.to_owned()),
        }
    }
}

impl From<AcmeError> for AcmeFailure {
    fn from(error: AcmeError) -> Self {
        match error {
            AcmeError::Api(problem) => Self::of_problem(&problem),
            AcmeError::Timeout(_) => Self::new("the authority did not finish the order in time"),
            AcmeError::Json(error) => Self::new(format!(
                "the authority's response is no ACME ({error}); is the directory's URL right?"
            )),
            AcmeError::Other(error) => match error.downcast_ref::<TransportFailure>() {
                Some(failure) => Self::new(format!("the authority cannot be reached: {failure}")),
                None => Self::new(printable(&error.to_string())),
            },
            other => Self::new(printable(&other.to_string())),
        }
    }
}

/// Explains a type of problem to the person who runs the server.
fn meaning(kind: &str) -> &'static str {
    match kind {
        "dns" => "DNS: the authority found no address for the name; check its A and AAAA records",
        "connection" => {
            "the authority could not connect to the address that DNS has for the name; check that \
             its A and AAAA records are this server's, and that ports 443 and 80 are open"
        }
        "tls" => {
            "the server at the name's address did not answer the challenge by TLS; check that its \
             A and AAAA records are this server's, and that no proxy before it ends TLS"
        }
        "unauthorized" | "incorrectResponse" => {
            "the authority did not get the right answer from the address that DNS has for the \
             name; check that its A and AAAA records are this server's, and no proxy's"
        }
        "caa" => {
            "the CAA record of the name in DNS does not permit this authority; add the authority \
             to it, or choose a permitted one by acme_directory"
        }
        "rateLimited" => {
            "the authority's rate limit is reached; wait for the next try, as restarts do not \
             help; for experiments set acme_directory to a staging directory"
        }
        "rejectedIdentifier" | "unsupportedIdentifier" => {
            "the authority does not issue certificates for such a name; check its spelling in \
             tls.domains"
        }
        "invalidContact" | "unsupportedContact" => {
            "the authority does not accept the e-mail address in acme_email; correct it, or take \
             it out"
        }
        "userActionRequired" => {
            "the authority's terms have changed and must be accepted; its message says where"
        }
        "externalAccountRequired" => {
            "this authority wants an account that was made on its site, which is not supported; \
             choose another by acme_directory"
        }
        "invalidProfile" => {
            "the authority does not have this profile; choose another in tls.profile, or take it \
             out"
        }
        "accountDoesNotExist" => "the authority does not know the account; a new one is made",
        "badNonce" | "serverInternal" => {
            "the authority has a fault of its own; there is nothing to do but wait"
        }
        _ => "the authority refused",
    }
}

/// A text from outside, made safe for a log: one line, of bounded length.
fn printable(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(LONGEST_DETAIL)
        .collect()
}

#[cfg(test)]
mod tests {
    use instant_acme::Problem;

    use super::AcmeFailure;

    fn failure(kind: &str, detail: &str) -> AcmeFailure {
        AcmeFailure::of_problem(&Problem {
            r#type: Some(format!("urn:ietf:params:acme:error:{kind}")),
            detail: Some(detail.to_owned()),
            status: Some(400),
            subproblems: Vec::new(),
        })
    }

    #[test]
    fn each_cause_has_its_sentence() {
        let cases = [
            ("dns", "check its A and AAAA records"),
            ("connection", "ports 443 and 80 are open"),
            ("caa", "CAA record"),
            ("rateLimited", "staging directory"),
            ("tls", "no proxy before it ends TLS"),
            ("rejectedIdentifier", "check its spelling"),
            ("somethingNew", "the authority refused"),
        ];
        for (kind, part) in cases {
            let failure = failure(kind, "its detail");
            assert!(failure.cause.contains(part), "{failure:?}");
            assert!(failure.cause.ends_with("(its detail)"), "{failure:?}");
            assert!(failure.is(kind));
        }
    }

    #[test]
    fn a_failed_look_up_is_one_of_dns_under_any_type() {
        for kind in ["malformed", "connection"] {
            let failure = failure(kind, "Could not resolve URL \"example.org\"");
            assert!(failure.cause.starts_with("DNS: "), "{failure:?}");
            assert!(failure.is(kind));
        }
    }

    #[test]
    fn a_text_from_outside_stays_one_short_line() {
        let cause = failure("dns", &format!("a\n\u{1b}[31mb{}", "x".repeat(5000))).cause;
        assert!(!cause.contains(char::is_control) && cause.len() < 700);
    }
}
