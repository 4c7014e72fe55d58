//! The files of a site folder, as the program that answers requests: pages, forms and templates.
//!
//! This crate runs when a site is opened or read again. It asks the database what statements need
//! and give; it answers no request. What it finds wrong, the owner reads before a visitor does.
//!
//! - `compile`: files to [`compile::Pages`], with every fault named;
//! - `page`: what a page and a form are; `object`: rows for templates and as JSON;
//! - `page_type`, `page_bytes`, `page_redirect`, `page_end`: what a page answers with, until when;
//! - `guard`, `invalid`, `form_faults`, `form_values`: who may enter; a form that is refused;
//! - `template`: what templates use, found before a request; `filters`: what they write with;
//! - `error_pages`: pages of the site's own for errors.

// Only the site uses this crate: docs stand where a name does not say it, as within one crate.
#![allow(missing_docs)]

pub mod compile;
pub mod error_pages;
pub mod filters;
pub mod form_tags;
pub mod lint;
pub mod markup;
pub mod object;
pub mod page;
pub mod page_params;
pub mod page_type;
pub mod refusal;
pub mod robots;
pub mod template;
