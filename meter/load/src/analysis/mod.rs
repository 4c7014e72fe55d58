//! Statistics over many runs: pure functions of figures, without sockets, files or clocks.

pub(crate) mod bootstrap;
pub(crate) mod bottleneck;
pub(crate) mod demand;
mod least_squares;
mod resample;
pub(crate) mod steady;
pub(crate) mod student;
pub(crate) mod usl;
