//! Who may enter: the lines of `.sql` files and the entries of the settings that speak of sessions
//! and claims. What a session is signed with is `session`.

mod claims;
mod condition;
mod guard;
mod lines;
mod needs;
mod sql;

pub use claims::{ClaimUse, Claims, MOST_CLAIMS};
pub use condition::Condition;
pub use guard::GuardLine;
pub use lines::{
    ClaimLine, DirectiveLine, From, LineFault, SessionLines, VerifyLine, WORDS, is_path,
};
pub use needs::{Gate, Require, SessionRequirements, gate};
pub use sql::{PREFIX as RESERVED, with_claims};
