//! The buffers of a connection that is doing something, lent from the worker's pool. An idle connection has none.

use std::cell::RefCell;

use crate::conn::output::Output;
use crate::h1::Decoder;
use crate::limits::SPARE_BUFFERS;

/// What a connection needs from the first byte of a request to the last byte of its response.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) decoder: Decoder,
    pub(super) output: Output,
}

/// Exchanges for reuse, so that the ready path allocates nothing.
// The box is what is lent: a connection's task stays small, and taking one moves a pointer.
#[derive(Debug, Default)]
pub(crate) struct Pool(#[allow(clippy::vec_box)] RefCell<Vec<Box<Exchange>>>);

impl Pool {
    pub(super) fn take(&self) -> Box<Exchange> {
        let spare = self.0.borrow_mut().pop();
        spare.unwrap_or_else(|| {
            Box::new(Exchange {
                decoder: Decoder::new(),
                output: Output::default(),
            })
        })
    }

    /// Takes an exchange back, unless it grew beyond the usual or there are enough.
    pub(super) fn put(&self, mut exchange: Box<Exchange>) {
        let mut spare = self.0.borrow_mut();
        let usual = exchange.decoder.renew() && exchange.output.is_small();
        if usual && spare.len() < SPARE_BUFFERS {
            spare.push(exchange);
        }
    }
}
