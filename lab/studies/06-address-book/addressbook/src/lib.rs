//! An address book in XML files, the application of an old article on the performance of a Java
//! server, and every way to make its pages: by streaming, by tree, by XSLT.
//!
//! All ways give the same bytes. What they cost differs, and that is what the program shows.

mod books;
mod entry;
mod error;
mod files;
mod frame;
mod generate;
mod html;
mod lists;
mod names;
mod server;
pub mod sql;
pub mod stream;
pub mod tree;
mod watch;
mod write;
pub mod xslt;

pub use books::Books;
pub use entry::{BookEntry, BookView, Contact, Job, Organisation, PostalAddress, Town};
pub use error::BookError;
pub use files::{DataFile, FILES, Model, make_missing, replace};
pub use server::{AddressBook, serve};
pub use watch::MAX_STALENESS;

/// The stylesheet that makes the same content as [`stream::render`] and [`tree::render`];
/// [`xslt::render`] runs it.
///
/// Its parameters: `base`, the address that the address of each entry begins with; `view`, which is
/// `list`, `search` or `entry`; `value`, the text of a search or the id of an entry.
pub const STYLESHEET: &str = include_str!("addressbook.xsl");
