//! One rendering of a page for all readers of one reading of the model.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, Weak};

use bytes::Bytes;
use http::StatusCode;
use parking_lot::Mutex;

use crate::status::Status;
use pds_web::Response;

use super::links::hash;

/// Bytes of pages kept for further readers, beyond the newest page.
const MAX_KEPT_BYTES: usize = 4 * 1024 * 1024;
/// Pages kept for further readers.
const MAX_KEPT: usize = 32;

/// The content of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rendered {
    /// A page.
    Page(String),
    /// The page for an app that is not configured.
    NoPage(String),
    /// A JSON document.
    Json(String),
}

/// A rendered page as it is sent.
#[derive(Clone, Debug)]
pub(super) struct CachedPage {
    response: fn(Bytes) -> Response,
    text: Bytes,
    tag: String,
}

impl CachedPage {
    pub(super) fn response(self) -> Response {
        (self.response)(self.text).etag(&self.tag)
    }
}

/// The last reading of the model, and the pages rendered from it.
#[derive(Debug, Default)]
pub(super) struct PageCache {
    /// The pointer is weak, because the reading holds the plan.
    status: Weak<Status>,
    /// The pages by path and query.
    pages: HashMap<(String, String), Arc<OnceLock<CachedPage>>>,
}

impl PageCache {
    /// The page at `path` for `query` from the reading `status`; the first reader renders it with `render`, and
    /// concurrent readers wait for it.
    pub(super) fn get_or_render(
        cache: &Mutex<Self>,
        status: &Arc<Status>,
        path: &str,
        query: &str,
        render: impl FnOnce() -> Rendered,
    ) -> CachedPage {
        let entry = cache.lock().entry(status, path, query);
        entry.get_or_init(|| as_sent(render())).clone()
    }

    /// The entry of a page, rendered or not. Drops all other entries if they are of another reading, or too many for a new
    /// entry.
    fn entry(&mut self, status: &Arc<Status>, path: &str, query: &str) -> Arc<OnceLock<CachedPage>> {
        let Self { status: reading, pages } = self;
        let key = (path.to_owned(), query.to_owned());
        let bytes: usize = pages.values().filter_map(|page| page.get()).map(|page| page.text.len()).sum();
        let is_full = pages.len() >= MAX_KEPT || bytes > MAX_KEPT_BYTES;
        if reading.as_ptr() != Arc::as_ptr(status) || (is_full && !pages.contains_key(&key)) {
            pages.clear();
            *reading = Arc::downgrade(status);
        }
        Arc::clone(pages.entry(key).or_default())
    }
}

fn as_sent(rendered: Rendered) -> CachedPage {
    let (response, text): (fn(Bytes) -> Response, String) = match rendered {
        Rendered::Page(text) => (|text| Response::html(StatusCode::OK, text), text),
        Rendered::NoPage(text) => (|text| Response::html(StatusCode::NOT_FOUND, text), text),
        Rendered::Json(text) => (|text| Response::json(StatusCode::OK, text), text),
    };
    let tag = hash(text.as_bytes());
    // Drops the spare capacity of a string that grew.
    CachedPage { response, text: Bytes::from(text.into_boxed_str().into_boxed_bytes()), tag }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::tests::fixture;

    #[tokio::test(start_paused = true)]
    async fn one_reading_of_the_model_is_rendered_once_a_page() {
        let fixture = fixture::fixture(1).await;
        let cache = Mutex::<PageCache>::default();
        let status = fixture.source.status();
        let first = PageCache::get_or_render(&cache, &status, "/", "", || Rendered::Page("a".to_owned()));
        let second = PageCache::get_or_render(&cache, &status, "/", "", || panic!("rendered twice"));
        assert!(std::ptr::eq(first.text.as_ptr(), second.text.as_ptr()));
        let other = PageCache::get_or_render(&cache, &status, "/", "p=2", || Rendered::Page("b".to_owned()));
        assert_eq!(&*other.text, b"b");
        let later = Arc::new((*status).clone());
        let last = PageCache::get_or_render(&cache, &later, "/", "", || Rendered::Page("c".to_owned()));
        assert_eq!(&*last.text, b"c", "another reading is rendered anew");
    }

    #[tokio::test(start_paused = true)]
    async fn the_pages_kept_for_further_readers_are_bounded() {
        let status = fixture::fixture(1).await.source.status();
        let cache = Mutex::<PageCache>::default();
        for n in 0..10 {
            let large = "x".repeat(MAX_KEPT_BYTES / 2) + &n.to_string();
            PageCache::get_or_render(&cache, &status, "/", &n.to_string(), || Rendered::Page(large));
        }
        assert!(cache.lock().pages.len() <= 2);
        for n in 0..100 {
            PageCache::get_or_render(&cache, &status, "/", &n.to_string(), || Rendered::Page(n.to_string()));
        }
        assert!(cache.lock().pages.len() <= MAX_KEPT);
    }
}
