//! What `serve --dev` adds while a site is made: an error is a page with its cause, a folder that
//! cannot be used says so in the browser, and pages reload by themselves when a file changes.
//!
//! Without `--dev` nothing of this runs. With it a [`DevService`] stands before the service of the
//! sites, and each site has a [`DevState`]. It responds to the developer only: see `door`.
//!
//! - `state`: what has changed, and what is wrong with the folder;
//! - `stream`: the stream of a page, which is that of a live page with the changes of the folder;
//! - `report`, `failures`, `refusals`, `scope`, `excerpt`: what is known of a failure, without
//!   secrets, as the note of its response;
//! - `page`, `inject`: HTML and JSON of it, and the script in the site's own pages;
//! - `waiting`: a folder that cannot be opened yet.

mod door;
mod excerpt;
pub(crate) mod failures;
mod inject;
mod page;
pub(crate) mod refusals;
pub(crate) mod report;
mod scope;
mod service;
mod state;
mod stream;
mod suggestion;
mod waiting;

pub use door::DEV_ENTRY;
pub(crate) use door::DevDoor;
pub(crate) use report::Report;
pub use service::DevService;
pub(crate) use state::DevState;
pub(crate) use waiting::Waiting;
