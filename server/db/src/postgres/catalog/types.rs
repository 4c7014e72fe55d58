//! Built-in types, by their oids, which are the same in every version.

pub(crate) const BOOL: u32 = 16;
pub(crate) const INT8: u32 = 20;
pub(crate) const INT2: u32 = 21;
pub(crate) const INT4: u32 = 23;
pub(crate) const TEXT: u32 = 25;
pub(crate) const VARCHAR: u32 = 1043;
pub(crate) const UUID: u32 = 2950;
