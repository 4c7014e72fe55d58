//! Pages of tables that are joined along keys, on both databases: hits while rows change, and what
//! a miss costs with witnesses and without.

mod churn;
mod judged;
mod round_trips;
mod shop;
mod witnesses;

pub(crate) use churn::run as churn;
pub(crate) use witnesses::run as witnesses;
