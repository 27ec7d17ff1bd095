//! The status pages, for on-call engineers.
//!
//! Every page is a pure function of the model ([`crate::status`]) and the query. No page calls
//! the service, and every page works without JavaScript. [`StatusPages`] maps paths to them.
//!
//! - `site`: paths, caching, headers.
//! - `query`: filter, order and page of the overview.
//! - `overview`, `detail`, `configuration`, `families`: one page each.
//! - `banner`: the overview's first sentence.
//! - `timeline`: incidents of the last hours.
//! - `layout`: the shared parts of pages.
//! - `plots`: curves and sparklines.
//! - `links`: every address of a page, behind any prefix; styles and scripts.
//! - `format`: numbers, times and verdicts for people.
//! - `cache`: the content of a path, rendered once for all readers; `json`: the model as JSON, whole or in pieces.

mod banner;
mod cache;
mod configuration;
mod detail;
mod families;
mod format;
mod json;
mod layout;
mod links;
mod overview;
mod plots;
mod query;
mod site;
mod timeline;

#[cfg(test)]
mod tests;

pub use cache::Rendered;
pub use links::{Asset, encode};
pub use site::{PagesConfig, StatusPages};
