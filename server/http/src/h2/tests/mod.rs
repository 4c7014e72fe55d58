//! Each rule of RFC 9113 and RFC 9218 by bytes, the bounds against attacks, and another
//! implementation as an oracle.

mod allocations;
mod attacks;
mod cuts;
mod ending;
mod flow;
mod frames;
mod heads;
mod inspect;
mod oracle;
mod pipe;
mod responses;
mod streams;
pub(crate) mod support;
