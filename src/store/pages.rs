//! Pages of metrics, rendered off the I/O threads.
//!
//! Each format is kept compressed: rendered at the first request after a change, once for all concurrent requests, and
//! handed out as shared bytes. Plain pages and parts of a page go out while they are rendered, and are not kept:
//! rendering is faster than decompressing, and plain text takes ten times the memory of the values it shows.
//!
//! A kept page has two parts. Samples from the service change with a poll and are kept until then. The exporter's own
//! metrics change all the time; they are rendered at most once per second, and only the page's end is replaced.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use flate2::Crc;
use tokio::sync::Mutex;
use tokio::time::{Duration, Instant};

use pds_exposition::Format;
use pds_telemetry::Telemetry;
use pds_web::{Encoding, ResponseBody};

use super::Store;
use super::filter::Filter;
use super::gzip::{Segment, Writer};
use super::render::Snapshot;

/// A page could not be rendered: a bug, which was logged as a panic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the page could not be rendered, because of a bug in the exporter; see its log")]
pub struct RenderPanicked;

/// How long the exporter's own metrics (requests, CPU, memory) are reused.
const FRESH: Duration = Duration::from_secs(1);

/// A compressed page of more series than this is sent while it is rendered, and kept if nothing changes meanwhile. A
/// series takes about eight bytes of it.
const MAX_WHOLE: usize = 200_000;

/// How a page is written.
type Form = (Format, Encoding);

/// The pages of a store. Cloning shares them.
#[derive(Clone, Debug)]
pub struct Pages(Arc<PagesInner>);

#[derive(Debug)]
struct PagesInner {
    store: Store,
    telemetry: Telemetry,
    /// The page of each format. The lock is held while a page is rendered: one request renders it and the others wait,
    /// even if that request is cancelled.
    text: Arc<Mutex<Option<Ready>>>,
    open_metrics: Arc<Mutex<Option<Ready>>>,
}

/// A compressed page.
#[derive(Debug)]
struct Ready {
    version: u64,
    samples: Segment,
    /// When the first samples go stale.
    samples_until: Option<Instant>,
    end: Bytes,
    end_until: Instant,
}

impl Ready {
    fn body(&self) -> ResponseBody {
        ResponseBody::Parts(self.samples.pieces.iter().chain([&self.end]).cloned().collect())
    }
}

impl Pages {
    /// The pages of `store`, each with the exporter's own metrics at its end.
    pub fn new(store: Store, telemetry: Telemetry) -> Self {
        Self(Arc::new(PagesInner { store, telemetry, text: Arc::default(), open_metrics: Arc::default() }))
    }

    /// The page, or the part of it that `filter` selects: gzip, or plain for any other encoding. `held` is kept until
    /// rendering has ended, even if this future is dropped before.
    ///
    /// # Errors
    /// If rendering panics.
    pub async fn page(
        &self,
        format: Format,
        encoding: Encoding,
        filter: &Filter,
        held: impl Send + Clone + 'static,
    ) -> Result<ResponseBody, RenderPanicked> {
        let (pages, rendering) = (self.clone(), held.clone());
        if encoding != Encoding::Gzip || !filter.is_empty() {
            let filter = filter.clone();
            let taken = tokio::task::spawn_blocking(move || {
                let _rendering = rendering;
                pages.0.store.snapshot(Instant::now(), &filter)
            });
            return Ok(self.stream(taken.await.map_err(|_| RenderPanicked)?, (format, encoding), held));
        }
        let mut kept = Arc::clone(self.kept(format)).lock_owned().await;
        let now = Instant::now();
        let version = self.0.store.version();
        // Frees the outdated page first, so that memory never holds both.
        let before = kept.take();
        let before = before
            .filter(|ready| ready.version == version && ready.samples_until.is_none_or(|until| until > now));
        if let Some(ready) = before.as_ref().filter(|ready| ready.end_until > now) {
            let body = ready.body();
            *kept = before;
            return Ok(body);
        }
        // The page is kept even if this request is cancelled.
        let made = tokio::task::spawn_blocking(move || {
            let _rendering = rendering;
            let made = match before {
                Some(before) => Ok(pages.with_new_end(before, format, now)),
                None => pages.ready(format, now),
            };
            made.map(|ready| kept.insert(ready).body())
        });
        match made.await.map_err(|_| RenderPanicked)? {
            Ok(body) => Ok(body),
            Err(large) => Ok(self.stream(large, (format, encoding), held)),
        }
    }

    /// Renders the compressed page. Returns the snapshot instead if the page is too large to be kept whole.
    fn ready(&self, format: Format, now: Instant) -> Result<Ready, Snapshot> {
        let snapshot = self.0.store.snapshot(now, &Filter::default());
        if snapshot.series() > MAX_WHOLE {
            return Err(snapshot);
        }
        let send = |_| Ok::<(), Infallible>(());
        let Ok(ready) = self.render(&snapshot, (format, Encoding::Gzip), || true, send);
        ready.ok_or(snapshot)
    }

    fn with_new_end(&self, ready: Ready, format: Format, now: Instant) -> Ready {
        let end = self.end((format, Encoding::Gzip), &Filter::default(), &ready.samples.crc);
        Ready { end, end_until: now + FRESH, ..ready }
    }

    /// The end of a page: the exporter's own families and the format's trailer; `before` is the checksum of the samples.
    fn end(&self, (format, encoding): Form, filter: &Filter, before: &Crc) -> Bytes {
        let mut end = Vec::with_capacity(16 * 1024);
        if filter.spans_targets() {
            self.0.telemetry.write(&mut end, format, |family| filter.wants(family));
        }
        end.extend_from_slice(format.trailer().as_bytes());
        let mut writer = Writer::new(encoding, false);
        writer.write(&end);
        writer.close(before)
    }

    fn kept(&self, format: Format) -> &Arc<Mutex<Option<Ready>>> {
        match format {
            Format::Text => &self.0.text,
            Format::OpenMetrics => &self.0.open_metrics,
        }
    }

    /// Renders on a separate thread and sends each piece; `held` is kept until that has ended.
    fn stream(&self, snapshot: Snapshot, form: Form, held: impl Send + 'static) -> ResponseBody {
        let pages = self.clone();
        ResponseBody::streamed(snapshot.bytes(), move |send| {
            let _held = held;
            // Fails when the scraper has disconnected; rendering stops then.
            let _ = pages.send(&snapshot, form, send);
        })
    }

    /// Renders `snapshot` to `send`. Keeps a compressed page that is whole and up to date.
    pub(super) fn send<E>(
        &self,
        snapshot: &Snapshot,
        form: Form,
        send: impl FnMut(Bytes) -> Result<(), E>,
    ) -> Result<(), E> {
        let is_whole = form.1 == Encoding::Gzip && snapshot.filter.is_empty();
        let is_kept = || is_whole && self.0.store.version() == snapshot.version;
        if let Some(ready) = self.render(snapshot, form, is_kept, send)? {
            *self.kept(form.0).blocking_lock() = Some(ready);
        }
        Ok(())
    }

    /// Renders `snapshot` to `send`, piece by piece. Returns the page if `is_kept` all the while.
    fn render<E>(
        &self,
        snapshot: &Snapshot,
        (format, encoding): Form,
        is_kept: impl Fn() -> bool,
        mut send: impl FnMut(Bytes) -> Result<(), E>,
    ) -> Result<Option<Ready>, E> {
        let mut kept = Some(Vec::new());
        let mut pass = |piece: Bytes| {
            kept = kept.take().filter(|_| is_kept());
            kept.iter_mut().for_each(|kept| kept.push(piece.clone()));
            send(piece)
        };
        let mut writer = Writer::new(encoding, true);
        snapshot.write(format, &mut |chunk: &[u8]| {
            writer.write(chunk);
            writer.take_piece().map_or(Ok(()), &mut pass)
        })?;
        let (last, crc) = writer.pause();
        pass(last)?;
        let end = self.end((format, encoding), &snapshot.filter, &crc);
        send(end.clone())?;
        let (version, samples_until) = (snapshot.version, snapshot.stale_at);
        let ready = |pieces| {
            let samples = Segment { pieces, crc };
            Ready { version, samples, samples_until, end, end_until: Instant::now() + FRESH }
        };
        Ok(kept.filter(|_| is_kept()).map(ready))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::large_store;
    use super::*;

    const GZIP: Form = (Format::Text, Encoding::Gzip);

    #[tokio::test(start_paused = true)]
    async fn a_page_whose_request_is_given_up_is_rendered_once_and_kept() {
        let (store, _) = large_store(100);
        let pages = Pages::new(store, Telemetry::new(false).unwrap());
        let all = Filter::default();
        let held = Arc::new(());
        for _ in 0..20 {
            let given_up = pages.page(GZIP.0, GZIP.1, &all, Arc::clone(&held));
            if tokio::time::timeout(Duration::ZERO, given_up).await.is_ok() {
                // The render is done.
                break;
            }
            assert!(Arc::strong_count(&held) <= 2, "only one render holds it");
        }
        // Held by the only render.
        assert!(Arc::clone(pages.kept(GZIP.0)).lock_owned().await.is_some());
    }

    /// Panics when the metrics are written.
    struct Panics;

    impl prometheus::core::Collector for Panics {
        fn desc(&self) -> Vec<&prometheus::core::Desc> {
            Vec::new()
        }

        fn collect(&self) -> Vec<prometheus::proto::MetricFamily> {
            panic!("as the test asks")
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_render_that_panics_is_an_error_or_breaks_the_page_off() {
        let (store, _) = large_store(1);
        let telemetry = Telemetry::new(false).unwrap();
        telemetry.registry().register(Box::new(Panics)).unwrap();
        let pages = Pages::new(store, telemetry);
        let page = pages.page(GZIP.0, GZIP.1, &Filter::default(), ()).await;
        assert!(matches!(page, Err(RenderPanicked)));
        let large = pages.page(Format::Text, Encoding::Identity, &Filter::default(), ()).await;
        let Ok(ResponseBody::Channel { mut pieces, .. }) = large else { panic!("a plain page is streamed") };
        let mut last = None;
        while let Some(piece) = pieces.recv().await {
            last = Some(piece);
        }
        assert!(last.is_some_and(|piece| piece.is_err()), "a part must not pass for the whole");
    }
}
