//! Live pages: who looks at a page is told when it changes, at the cost of one rendering.
//!
//! A stream depends on the page's entry in the store. When that ends, the [watcher] has the page
//! made again by an ordinary flight; if its entity tag is another, each worker writes the same few
//! bytes to all its [streams](stream), and browsers ask for the page, which is a hit. The bytes of
//! a public page have its [change] too, if that is small: who has the text asks for nothing. A page
//! that is each visitor's own depends on its results, which are read once for all who share them.

pub(crate) mod board;
mod change;
pub(crate) mod script;
pub(crate) mod stream;
pub(crate) mod watcher;
