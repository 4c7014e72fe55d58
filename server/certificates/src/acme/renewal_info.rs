//! When the authority wants certificates to be renewed (RFC 9773).

use std::time::Duration;

use instant_acme::{Account, Error as AcmeError};

use super::managed::ManagedCertificate;
use super::order;
use super::schedule::RenewalWindow;

/// An authority is asked for renewal information once a minute at most (RFC 9773 section 4.3.2).
const SHORTEST_WINDOW_INTERVAL: Duration = Duration::from_secs(60);

/// Asks for the windows of these certificates, where the last word of the authority is old. A
/// failure leaves two thirds of the lifetime as the rule.
pub(super) async fn ask_for_windows(
    managed: &mut [ManagedCertificate],
    account: Option<&Account>,
    longest: Duration,
) {
    let now = base_clock::wall();
    let mut is_reached = true;
    for managed in managed
        .iter_mut()
        .filter(|managed| managed.wants_window(now))
    {
        managed.ask_window_at = now + longest / 4;
        let identifier = managed
            .served
            .as_ref()
            .and_then(|served| order::identifier(served.facts()));
        let (Some(account), Some(identifier)) = (account, identifier) else {
            continue;
        };
        // An authority that does not answer is not asked for each name, which takes long.
        if !is_reached {
            continue;
        }
        match account.renewal_info(&identifier).await {
            Ok((info, again)) => {
                managed.window = Some(RenewalWindow {
                    start: info.suggested_window.start.into(),
                    end: info.suggested_window.end.into(),
                });
                managed.ask_window_at = now + again.max(SHORTEST_WINDOW_INTERVAL).min(longest);
            }
            Err(AcmeError::Api(_)) => {}
            Err(_) => is_reached = false,
        }
    }
}
