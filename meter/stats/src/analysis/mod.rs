//! Statistics over many runs: pure functions of figures, without sockets, files or clocks.

pub mod bootstrap;
pub mod bottleneck;
pub mod demand;
mod least_squares;
mod resample;
pub mod steady;
pub mod student;
pub mod usl;
