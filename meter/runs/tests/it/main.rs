//! The client against little servers that behave, and against some that do not.

#![allow(
    clippy::disallowed_methods,
    reason = "tests read the clock to give up waiting"
)]

mod addresses;
mod auto;
mod bodies;
mod bottleneck;
mod bottleneck_sweep;
mod calibration;
mod counts;
mod edges;
mod hostile;
mod http2;
mod http2_stub;
mod lab;
mod lateness;
mod null;
mod open;
mod plans;
mod planted;
mod postgres;
mod spin;
mod stub;
mod sweep;
mod throttle;
mod timing;
mod tls;
mod tls_stub;
mod users;
mod workload;
