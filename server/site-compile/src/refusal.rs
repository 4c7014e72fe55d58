//! A form that is refused: what is wrong with it, and how it is shown again.

pub mod fault_kind;
pub mod faults;
pub mod flash;
pub mod invalid;
pub mod upload;
pub mod values;
