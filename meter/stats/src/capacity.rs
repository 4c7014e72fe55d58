//! The search for the capacity of a server: which rate is tried next, and what the trials say.
//!
//! The search doubles the rate until the objective fails, narrows the gap by bisection, and then
//! fits the share of bad requests against the rate. It knows only the counts of trials.

pub mod fit;
pub mod outcome;
pub mod search;
#[cfg(test)]
mod simulation;
