//! Ready pages: made when first asked for after a change, off the I/O threads, by one of those who ask, and
//! handed to all of them as shared bytes.

use std::convert::Infallible;
use std::io::{self, Write as _};
use std::sync::Arc;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use tokio::sync::{Mutex, mpsc};
use tokio::time::{Duration, Instant};

use crate::catalogue::Format;
use crate::own::Own;

use super::Store;
use super::render::{Filter, Snapshot};

/// How a page is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Coding {
    /// Not at all.
    Identity,
    /// gzip, level 1: a higher level takes longer than rendering the page and saves a scraper on the same
    /// network nothing.
    Gzip,
}

/// A page, whole or in pieces.
#[derive(Debug)]
pub enum Body {
    /// The whole page, shared with whoever asks for it meanwhile.
    Whole(Bytes),
    /// Its pieces as they are rendered, none of them an error. The sender stops when the receiver is dropped.
    Pieces(mpsc::Receiver<io::Result<Bytes>>),
}

/// The longest a page is handed out while nothing changes. The exporter's own metrics (CPU, memory) move
/// without a change of the store; nobody scrapes more often than this and looks at those.
const FRESH: Duration = Duration::from_secs(1);

/// Plain pages of more series than this are streamed and not kept: at a hundred bytes a series the page would
/// take more memory than the values it shows.
const KEPT_SERIES: usize = 20_000;

/// How much a piece of a streamed page may gather before it is handed on.
const PIECES: usize = 4;

/// The pages of a store. Cloning shares them.
#[derive(Clone, Debug)]
pub struct Pages(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    store: Store,
    own: Own,
    /// One place for each format and coding. Its lock is held while the page is made, so that of many who ask
    /// one makes it and the others wait for that.
    ready: [Mutex<Option<Ready>>; 4],
}

#[derive(Debug)]
struct Ready {
    version: u64,
    until: Instant,
    page: Bytes,
}

impl Pages {
    /// The pages of `store`, each with the metrics of `own` at its end.
    #[must_use]
    pub fn new(store: Store, own: Own) -> Self {
        Self(Arc::new(Inner { store, own, ready: Default::default() }))
    }

    /// The page, or the part of it that `filter` names.
    pub async fn page(&self, format: Format, coding: Coding, filter: &Filter) -> Body {
        if !filter.is_empty() {
            let snapshot = self.0.store.snapshot(Instant::now());
            return self.stream(snapshot, format, coding, filter.clone());
        }
        let place = usize::from(format == Format::OpenMetrics) * 2 + usize::from(coding == Coding::Gzip);
        let Some(place) = self.0.ready.get(place) else { return Body::Whole(Bytes::new()) };
        let mut ready = place.lock().await;
        let now = Instant::now();
        if let Some(ready) = &*ready
            && ready.version == self.0.store.version()
            && ready.until > now
        {
            return Body::Whole(ready.page.clone());
        }
        let snapshot = self.0.store.snapshot(now);
        if coding == Coding::Identity && snapshot.series() > KEPT_SERIES {
            *ready = None;
            return self.stream(snapshot, format, coding, Filter::default());
        }
        let version = snapshot.version();
        let until = snapshot.stale_at().map_or(now + FRESH, |stale| stale.min(now + FRESH));
        // The page before is of no use to anyone who asks now; it need not stand in memory beside the new one.
        *ready = None;
        let own = self.0.own.clone();
        let made = tokio::task::spawn_blocking(move || whole(&snapshot, &own, format, coding)).await;
        let page = Bytes::from(made.unwrap_or_default());
        *ready = Some(Ready { version, until, page: page.clone() });
        Body::Whole(page)
    }

    /// Renders on a thread of its own, handing on piece after piece.
    fn stream(&self, snapshot: Snapshot, format: Format, coding: Coding, filter: Filter) -> Body {
        let (sender, receiver) = mpsc::channel(PIECES);
        let own = self.0.own.clone();
        tokio::task::spawn_blocking(move || {
            let mut send = |piece: &[u8]| match piece.is_empty() {
                true => Ok(()),
                // Fails when the scraper has gone; nothing more is rendered then.
                false => sender.blocking_send(Ok(Bytes::copy_from_slice(piece))),
            };
            match coding {
                Coding::Identity => {
                    let _ = write(&snapshot, &own, format, &filter, &mut send);
                }
                Coding::Gzip => {
                    let page = gzip(|out| write(&snapshot, &own, format, &filter, out));
                    let _ = send(&page);
                }
            }
        });
        Body::Pieces(receiver)
    }
}

/// The whole page in memory.
fn whole(snapshot: &Snapshot, own: &Own, format: Format, coding: Coding) -> Vec<u8> {
    let all = Filter::default();
    match coding {
        Coding::Identity => {
            let mut page = Vec::new();
            let Ok(()) = write(snapshot, own, format, &all, &mut |chunk: &[u8]| {
                page.extend_from_slice(chunk);
                Ok::<(), Infallible>(())
            });
            page.shrink_to_fit();
            page
        }
        Coding::Gzip => gzip(|out| write(snapshot, own, format, &all, out)),
    }
}

/// What `write` hands on, compressed. Writing into memory can't fail.
fn gzip(write: impl FnOnce(&mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()>) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let _ = write(&mut |chunk| encoder.write_all(chunk));
    let mut page = encoder.finish().unwrap_or_default();
    page.shrink_to_fit();
    page
}

/// The wanted part of the page: the store's, the exporter's own, and the format's trailer.
fn write<E>(
    snapshot: &Snapshot,
    own: &Own,
    format: Format,
    filter: &Filter,
    mut out: &mut (impl FnMut(&[u8]) -> Result<(), E> + ?Sized),
) -> Result<(), E> {
    snapshot.write(format, filter, &mut |chunk: &[u8]| out(chunk))?;
    let mut end = Vec::with_capacity(16 * 1024);
    if filter.spans_targets() {
        own.write(&mut end, format, |family| filter.wants(family));
    }
    end.extend_from_slice(format.trailer().as_bytes());
    (&mut out)(&end)
}
