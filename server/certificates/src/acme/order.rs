//! One order: from the wish for a certificate to its text.

use instant_acme::{
    Account, AuthorizationStatus, CertificateIdentifier, ChallengeType, Error as AcmeError,
    Identifier, NewOrder, Order, OrderStatus, Problem, RetryPolicy,
};
use rustls::pki_types::Der;

use super::challenges::PublishedChallenge;
use super::failure::AcmeFailure;
use super::shared_challenges::SharedChallenges;
use super::{AcmeOptions, AcmeTiming};
use crate::facts::{CertificateFacts, CertificateName};

/// The profile that authorities have for addresses.
const SHORT_LIVED: &str = "shortlived";
/// How the wait between two looks at an order grows.
const POLL_GROWTH: f32 = 1.5;

/// How an order ended without a certificate.
pub(super) enum OrderFailure {
    /// The name was not proven. Another kind of challenge may do.
    NotProven(AcmeFailure),
    /// Another kind of challenge would not help.
    Other(AcmeFailure),
}

impl<F: Into<AcmeFailure>> From<F> for OrderFailure {
    fn from(failure: F) -> Self {
        Self::Other(failure.into())
    }
}

/// Asks for a certificate for `name`, proven by challenges of one kind. The result is the key and
/// the chain in PEM.
pub(super) async fn order(
    account: &Account,
    name: &CertificateName,
    options: &AcmeOptions,
    old: Option<&CertificateFacts>,
    kind: &ChallengeType,
    shared: &mut SharedChallenges,
) -> Result<String, OrderFailure> {
    let profile = profile(account, name, options)?;
    let mut order = new_order(account, name, profile.as_deref(), old).await?;
    if order.state().status == OrderStatus::Pending {
        prove(&mut order, kind, &options.timing, shared).await?;
    }
    let key = order.finalize().await?;
    let chain = order.poll_certificate(&retries(&options.timing)).await?;
    Ok(key + &chain)
}

/// The profile to ask for. A wish that the authority cannot meet is refused here, with the names of
/// the profiles that it has.
fn profile(
    account: &Account,
    name: &CertificateName,
    options: &AcmeOptions,
) -> Result<Option<String>, AcmeFailure> {
    let mut offered: Vec<&str> = account.profiles().map(|profile| profile.name).collect();
    offered.sort_unstable();
    match &options.profile {
        Some(wanted) if offered.contains(&wanted.as_str()) => Ok(Some(wanted.clone())),
        Some(wanted) if offered.is_empty() => Err(AcmeFailure::new(format!(
            "the authority has no profiles, so none is named {wanted}"
        ))),
        Some(wanted) => Err(AcmeFailure::new(format!(
            "the authority has no profile {wanted}; it has {}",
            offered.join(", ")
        ))),
        None => {
            let is_address = matches!(name, CertificateName::Address(_));
            let is_wanted = is_address && offered.contains(&SHORT_LIVED);
            Ok(is_wanted.then(|| SHORT_LIVED.to_owned()))
        }
    }
}

/// Makes the order, as a replacement of the old certificate if the authority takes it for one (RFC
/// 9773 section 5).
async fn new_order(
    account: &Account,
    name: &CertificateName,
    profile: Option<&str>,
    old: Option<&CertificateFacts>,
) -> Result<Order, AcmeError> {
    let identifiers = [match name {
        CertificateName::Host(host) => Identifier::Dns(host.clone()),
        CertificateName::Address(address) => Identifier::Ip(*address),
    }];
    let plain = || {
        let order = NewOrder::new(&identifiers);
        match profile {
            Some(profile) => order.profile(profile),
            None => order,
        }
    };
    if let Some(replaced) = old.and_then(identifier) {
        match account.new_order(&plain().replaces(replaced)).await {
            // The old one is of another authority or account, or was replaced already. That is no
            // reason to stay without a certificate. What counts against this order alike is found
            // again below.
            Err(AcmeError::Api(problem)) if !is_rate_limit(&problem) => {}
            Err(AcmeError::Unsupported(_)) => {}
            done => return done,
        }
    }
    account.new_order(&plain()).await
}

fn is_rate_limit(problem: &Problem) -> bool {
    AcmeFailure::of_problem(problem).is("rateLimited")
}

/// How renewal information names a certificate (RFC 9773 section 4.1).
pub(super) fn identifier(facts: &CertificateFacts) -> Option<CertificateIdentifier<'static>> {
    let key = facts.authority_key.as_deref()?;
    let identifier =
        CertificateIdentifier::new(Der::from_slice(key), Der::from_slice(&facts.serial));
    Some(identifier.into_owned())
}

/// Answers the challenges of an order and waits until the authority has looked.
async fn prove(
    order: &mut Order,
    kind: &ChallengeType,
    timing: &AcmeTiming,
    shared: &mut SharedChallenges,
) -> Result<(), OrderFailure> {
    let challenges = challenges(order, kind).await?;
    shared.publish(&challenges).await?;
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization?;
        if authorization.status == AuthorizationStatus::Pending
            && let Some(mut challenge) = authorization.challenge(kind.clone())
        {
            match challenge.set_ready().await {
                // The authority may have looked already, and answers with what it found.
                Err(AcmeError::Api(problem)) => return Err(not_proven_unless_refused(&problem)),
                done => done?,
            }
        }
    }
    match order.poll_ready(&retries(timing)).await {
        Ok(OrderStatus::Ready) => Ok(()),
        // The order says little; the challenge has the reason.
        Ok(_) => Err(OrderFailure::NotProven(reason(order, None).await)),
        Err(AcmeError::Api(problem)) => match not_proven_unless_refused(&problem) {
            OrderFailure::NotProven(failure) => {
                Err(OrderFailure::NotProven(reason(order, Some(failure)).await))
            }
            refused => Err(refused),
        },
        Err(error) => Err(error.into()),
    }
}

/// Returns the failure that the authority gave for a challenge or an order: the name is not proven,
/// or the request was refused for a reason that has nothing to do with the kind of challenge.
fn not_proven_unless_refused(problem: &Problem) -> OrderFailure {
    let failure = AcmeFailure::of_problem(problem);
    let reasons = [
        "rateLimited",
        "badNonce",
        "serverInternal",
        "accountDoesNotExist",
    ];
    let is_busy = problem
        .status
        .is_some_and(|status| status == 429 || status >= 500);
    if is_busy || reasons.iter().any(|reason| failure.is(reason)) {
        OrderFailure::Other(failure)
    } else {
        OrderFailure::NotProven(failure)
    }
}

/// The open challenges of an order, of this kind.
async fn challenges(
    order: &mut Order,
    kind: &ChallengeType,
) -> Result<Vec<PublishedChallenge>, OrderFailure> {
    let mut challenges = Vec::new();
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization?;
        match authorization.status {
            AuthorizationStatus::Pending => {}
            AuthorizationStatus::Valid => continue,
            _ => return Err(AcmeFailure::new("the authority closed the order").into()),
        }
        let Some(challenge) = authorization.challenge(kind.clone()) else {
            let failure = AcmeFailure::new("the authority does not offer this challenge");
            return Err(OrderFailure::NotProven(failure));
        };
        challenges.push(PublishedChallenge {
            name: challenge.identifier().to_string(),
            token: challenge.token.clone(),
            key_authorization: challenge.key_authorization().as_str().to_owned(),
        });
    }
    Ok(challenges)
}

/// Why the authority refused: what the challenge says, or else the order.
async fn reason(order: &mut Order, of_order: Option<AcmeFailure>) -> AcmeFailure {
    let mut authorizations = order.authorizations();
    while let Some(Ok(mut authorization)) = authorizations.next().await {
        if authorization.refresh().await.is_err() {
            break;
        }
        let problems = authorization.challenges.iter();
        if let Some(problem) = { problems }.find_map(|challenge| challenge.error.as_ref()) {
            return AcmeFailure::of_problem(problem);
        }
    }
    of_order.unwrap_or_else(|| AcmeFailure::new("the authority closed the order without a reason"))
}

fn retries(timing: &AcmeTiming) -> RetryPolicy {
    RetryPolicy::new()
        .initial_delay(timing.order_poll)
        .backoff(POLL_GROWTH)
        .timeout(timing.order_timeout)
}

#[cfg(test)]
mod tests {
    use instant_acme::Problem;

    use super::{OrderFailure, not_proven_unless_refused};

    #[test]
    fn a_refusal_of_the_request_says_nothing_of_the_name() {
        for (kind, status, is_of_the_name) in [
            ("unauthorized", 403, true),
            ("connection", 400, true),
            ("rateLimited", 429, false),
            ("somethingNew", 429, false),
            ("somethingNew", 503, false),
            ("serverInternal", 500, false),
        ] {
            let failure = not_proven_unless_refused(&Problem {
                r#type: Some(format!("urn:ietf:params:acme:error:{kind}")),
                detail: None,
                status: Some(status),
                subproblems: Vec::new(),
            });
            let is_not_proven = matches!(failure, OrderFailure::NotProven(_));
            assert_eq!(is_not_proven, is_of_the_name, "{kind} {status}");
        }
    }
}
