//! Who may enter: the lines of `.sql` files and the entries of the settings that speak of sessions
//! and claims. What a session is signed with is `session`.

mod claims;
mod condition;
mod guard;
mod lines;
mod needs;
mod sql;

pub(crate) use claims::{ClaimUse, Claims, MOST_CLAIMS};
pub(crate) use condition::Condition;
pub(crate) use guard::GuardLine;
pub(crate) use lines::{
    ClaimLine, DirectiveLine, Fault, From, SessionLines, VerifyLine, WORDS, is_path,
};
pub(crate) use needs::{Gate, Require, SessionRequirements, gate};
pub(crate) use sql::{PREFIX as RESERVED, passive, with_claims};
