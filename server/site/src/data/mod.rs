//! Files as tables: `data/rates.csv` is the table `rates`, and `data/posts/` the table `posts` with
//! the rows of each file in it.
//!
//! The formats are [`millpond_data`]'s, and the rows are changed by the site's own writer, each
//! file whole or not at all, many small files in one transaction. Here it is decided which file is
//! which table's, when a file is looked at, and what the owner is told.
//!
//! - `sources`, `scan`: the files of the folders;
//! - `columns`, `convert`, `declared`: from their values to those of the table;
//! - `fields`: what it lacks; `hiding`: drafts;
//! - `survey`: a file is read, once: it is checked, and its rows are kept until they are applied;
//! - `sync`: one look at all files; `saved`: at a few; `apply`, `batch`: what has changed;
//! - `gone`: what is gone; `held`: its rows stay for a file that is not applied yet;
//! - `gone_folder`: rows that stay without their folder;
//! - `inbox`, `writers`, `thread`: when; `messages`, `twins`: what the owner is told;
//! - `documents`: the Markdown files, for a look at their texts;
//! - `pins`: migrations for files without a table; `trial`: do the tables take the rows?

mod apply;
mod batch;
mod columns;
mod convert;
mod declared;
mod documents;
mod fields;
mod gone;
mod gone_folder;
mod held;
mod hiding;
mod inbox;
mod messages;
mod pins;
mod saved;
mod scan;
mod sources;
mod survey;
mod sync;
#[cfg(test)]
mod tests;
mod thread;
mod trial;
mod twins;
mod writers;

pub(crate) use documents::{DocumentFile, Documents};
pub(crate) use inbox::Inbox;
pub use pins::FilePin;
pub(crate) use pins::{found, pin};
pub(crate) use sources::DataSources;
pub(crate) use thread::DataFiles;
pub(crate) use trial::refused_rows;

/// The folder of the files, below the site's; `[[data]]` names others.
pub(crate) const FOLDER: &str = "data";
