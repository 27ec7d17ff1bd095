//! The status pages: what an on-call engineer sees.
//!
//! Every page is a pure function of the model ([`crate::status`]) and the query. No page calls
//! the service, and every page works without JavaScript. [`StatusPages`] maps paths to them.
//!
//! - [`site`]: paths, caching, headers; `rendered`: what a path answers.
//! - [`query`]: filter, order and page of the overview.
//! - `overview`, `detail`, `configuration`, `families`: one page each.
//! - `banner`: the overview's first sentence; `chips`: counts, headings and legend of its table.
//! - `strip`: what happened in the last hours.
//! - `layout`: what all pages share.
//! - `plots`: curves and sparklines, drawn by plotters.
//! - [`links`]: every address of a page, behind any prefix.
//! - [`format`](mod@format): numbers and times for people.
//! - `sharing`: one rendering for all readers.
//! - `assets`: styles and scripts, under names that change with their content.

mod assets;
mod banner;
mod chips;
mod configuration;
mod detail;
mod families;
pub mod format;
mod layout;
pub mod links;
mod overview;
mod plots;
pub mod query;
mod rendered;
mod sharing;
pub mod site;
mod strip;

#[cfg(test)]
mod tests;

pub use rendered::Rendered;
pub use site::StatusPages;
