//! Messages that are posted to others: who does not answer holds up no sample, nor other URLs.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread;
use std::time::Duration;

use crate::Controls;

/// Pauses between the tries to deliver a message. After the last one it is given up.
const PAUSES: [Duration; 5] = [
    Duration::from_secs(1),
    Duration::from_secs(10),
    Duration::from_mins(1),
    Duration::from_mins(5),
    Duration::from_mins(30),
];
/// Messages that wait for one URL.
const MOST_WAITING: usize = 32;

/// The ways to URLs, each with a thread that delivers messages in their order. The threads end
/// after this, and are not waited for.
pub(crate) struct Webhooks {
    ways: HashMap<String, SyncSender<String>>,
    log: fn(&str),
    /// Ends the pauses of the threads when it is dropped.
    _stops: Vec<Sender<()>>,
}

impl Webhooks {
    /// Starts a thread for each URL, which posts through `controls`.
    ///
    /// # Errors
    /// There is no thread.
    pub(crate) fn start<'u>(
        urls: impl Iterator<Item = &'u String>,
        controls: &Arc<dyn Controls>,
        log: fn(&str),
    ) -> io::Result<Self> {
        let (mut ways, mut stops) = (HashMap::new(), Vec::new());
        for url in urls {
            if ways.contains_key(url) {
                continue;
            }
            let (way, inbox) = sync_channel(MOST_WAITING);
            ways.insert(url.clone(), way);
            let (stop, stopped) = channel();
            stops.push(stop);
            let (url, controls) = (url.clone(), Arc::clone(controls));
            let thread = thread::Builder::new().name("webhook".to_owned());
            thread.spawn(move || deliver(&url, (&inbox, &stopped), &*controls, log))?;
        }
        Ok(Self {
            ways,
            log,
            _stops: stops,
        })
    }

    /// Delivers a message, now or later.
    pub(crate) fn post(&self, url: &str, body: String) {
        let way = self.ways.get(url);
        if way.is_some_and(|way| way.try_send(body).is_err()) {
            (self.log)("an alert was not posted: too many wait for the webhook");
        }
    }
}

/// Posts what comes into `inbox`, until all is `stopped`.
fn deliver(
    url: &str,
    (inbox, stopped): (&Receiver<String>, &Receiver<()>),
    controls: &dyn Controls,
    log: fn(&str),
) {
    for body in inbox {
        let mut pauses = PAUSES.iter();
        while let Err(failure) = controls.post(url, &body) {
            let Some(pause) = pauses.next() else {
                // The path of a webhook is often its secret.
                let host = url.split('/').nth(2).unwrap_or_default();
                log(&format!(
                    "an alert was not posted: the webhook at {host} refused it {} times: {failure}",
                    PAUSES.len() + 1
                ));
                break;
            };
            if stopped.recv_timeout(*pause) != Err(RecvTimeoutError::Timeout) {
                return;
            }
        }
    }
}
