//! The signals that end the demo.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::failure::{DemoFailure, DemoResult};

/// Returns a flag that SIGINT, SIGTERM and SIGHUP set. The process goes on until it reads the flag,
/// so that it stops its servers and removes its temporary folder.
pub(crate) fn stop_flag() -> DemoResult<Arc<AtomicBool>> {
    let stop = Arc::<AtomicBool>::default();
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        flag::register(signal, Arc::clone(&stop))
            .map_err(|error| DemoFailure::new(format!("cannot listen for signals: {error}")))?;
    }
    Ok(stop)
}

/// Fails if a signal has asked the demo to stop.
pub(crate) fn check(stop: &AtomicBool) -> DemoResult {
    match stop.load(Ordering::SeqCst) {
        true => Err(DemoFailure::new("interrupted")),
        false => Ok(()),
    }
}
