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

/// The content of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rendered {
    /// A page.
    Page(String),
    /// The page for a path without a page.
    NoPage(String),
    /// A JSON document.
    Json(String),
    /// Style, script or icon: (content type, content).
    Asset(&'static str, &'static str),
}

/// A rendered page as it is sent.
#[derive(Clone, Debug)]
pub(super) struct Made {
    response: fn(Bytes) -> Response,
    text: Bytes,
    tag: String,
}

impl Made {
    pub(super) fn response(self) -> Response {
        (self.response)(self.text).etag(&self.tag)
    }
}

/// The response for an unknown path.
pub(super) fn nothing() -> Response {
    Response::text(StatusCode::NOT_FOUND, "There is nothing at this path.\n")
}

/// The last reading of the model, and the pages rendered from it by path and query. The pointer is weak, because the reading
/// holds the plan.
#[derive(Debug, Default)]
pub(super) struct Sharing(Mutex<(Weak<Status>, Pages)>);

type Pages = HashMap<(String, String), Arc<OnceLock<Made>>>;

impl Sharing {
    /// The page at `path` for `query` from the reading `status`; the first reader renders it with `render`, and
    /// concurrent readers wait for it.
    pub(super) fn made(
        &self,
        status: &Arc<Status>,
        path: &str,
        query: &str,
        render: impl FnOnce() -> Rendered,
    ) -> Made {
        let place = self.place(status, path, query);
        place.get_or_init(|| as_sent(render())).clone()
    }

    /// The entry of a page, rendered or not. Drops all other entries if they are of another reading, or too many for a new
    /// entry.
    fn place(&self, status: &Arc<Status>, path: &str, query: &str) -> Arc<OnceLock<Made>> {
        let (reading, pages) = &mut *self.0.lock();
        let page = (path.to_owned(), query.to_owned());
        let bytes: usize = pages.values().filter_map(|made| made.get()).map(|made| made.text.len()).sum();
        let is_full = pages.len() >= MAX_KEPT || bytes > MAX_KEPT_BYTES;
        if reading.as_ptr() != Arc::as_ptr(status) || (is_full && !pages.contains_key(&page)) {
            pages.clear();
            *reading = Arc::downgrade(status);
        }
        Arc::clone(pages.entry(page).or_default())
    }
}

fn as_sent(rendered: Rendered) -> Made {
    let (response, text): (fn(Bytes) -> Response, String) = match rendered {
        Rendered::Page(text) => (|text| Response::html(StatusCode::OK, text), text),
        Rendered::NoPage(text) => (|text| Response::html(StatusCode::NOT_FOUND, text), text),
        Rendered::Json(text) => (|text| Response::json(StatusCode::OK, text), text),
        Rendered::Asset(..) => (|_| nothing(), String::new()),
    };
    let tag = hash(text.as_bytes());
    // Drops the spare capacity of a string that grew.
    Made { response, text: Bytes::from(text.into_boxed_str().into_boxed_bytes()), tag }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::tests::fixture;

    #[tokio::test(start_paused = true)]
    async fn one_reading_of_the_model_is_rendered_once_a_page() {
        let fixture = fixture::fixture(1).await;
        let sharing = Sharing::default();
        let status = fixture.source.status();
        let first = sharing.made(&status, "/", "", || Rendered::Page("a".to_owned()));
        let second = sharing.made(&status, "/", "", || panic!("rendered twice"));
        assert!(std::ptr::eq(first.text.as_ptr(), second.text.as_ptr()));
        let other = sharing.made(&status, "/", "page=2", || Rendered::Page("b".to_owned()));
        assert_eq!(&*other.text, b"b");
        let later = Arc::new((*status).clone());
        let made = sharing.made(&later, "/", "", || Rendered::Page("c".to_owned()));
        assert_eq!(&*made.text, b"c", "another reading is rendered anew");
    }

    #[tokio::test(start_paused = true)]
    async fn the_pages_kept_for_further_readers_are_bounded() {
        let status = fixture::fixture(1).await.source.status();
        let sharing = Sharing::default();
        for n in 0..10 {
            let large = "x".repeat(MAX_KEPT_BYTES / 2) + &n.to_string();
            sharing.made(&status, "/", &n.to_string(), || Rendered::Page(large));
        }
        assert!(sharing.0.lock().1.len() <= 2);
        for n in 0..100 {
            sharing.made(&status, "/config", &n.to_string(), || Rendered::Page(n.to_string()));
        }
        assert!(sharing.0.lock().1.len() <= MAX_KEPT);
    }
}
