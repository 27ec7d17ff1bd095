//! The system's name lookup, which blocks a thread for as long as no name server answers.

use std::error::Error;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::sync::Semaphore;

/// Lookups at a time. A lookup keeps its thread even if nobody waits for it any more; the state file needs threads, too.
const MAX_LOOKUPS: usize = 4;

/// Looks names up, a few at a time.
#[derive(Clone, Debug)]
pub(super) struct Resolver {
    places: Arc<Semaphore>,
    lookup: fn(&str) -> io::Result<Vec<SocketAddr>>,
    patience: Duration,
}

impl Resolver {
    /// The system's lookup; no caller waits longer than `patience`.
    pub(super) fn new(patience: Duration) -> Self {
        let lookup = |name: &str| Ok((name, 0).to_socket_addrs()?.collect());
        Self { places: Arc::new(Semaphore::new(MAX_LOOKUPS)), lookup, patience }
    }
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let Self { places, lookup, patience } = self.clone();
        let found = async move {
            let place = places.acquire_owned().await?;
            let look_up = move || {
                let _place = place;
                lookup(name.as_str())
            };
            Ok::<_, Box<dyn Error + Send + Sync>>(tokio::task::spawn_blocking(look_up).await??)
        };
        Box::pin(async move {
            let found = tokio::time::timeout(patience, found).await;
            let found = found.map_err(|_| format!("no name server answers within {patience:?}"))??;
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    static BEGUN: AtomicUsize = AtomicUsize::new(0);
    static SERVER: Mutex<()> = Mutex::new(());

    fn lookup(_: &str) -> io::Result<Vec<SocketAddr>> {
        BEGUN.fetch_add(1, Ordering::SeqCst);
        drop(SERVER.lock());
        Ok(vec![([127, 0, 0, 1], 0).into()])
    }

    #[tokio::test]
    #[expect(clippy::await_holding_lock, reason = "it stands for a name server that does not answer")]
    async fn lookups_that_hang_fail_and_take_a_few_threads_only() {
        let mut resolver = Resolver { lookup, ..Resolver::new(Duration::ZERO) };
        let resolve = |resolver: &Resolver| resolver.resolve("api.example.com".parse().unwrap());
        let silent = SERVER.lock().unwrap();
        for _ in 0..100 {
            let error = resolve(&resolver).await.err().unwrap().to_string();
            assert_eq!(error, "no name server answers within 0ns");
        }
        drop(silent);
        resolver.patience = Duration::from_secs(60);
        assert_eq!(resolve(&resolver).await.unwrap().count(), 1);
        let _all = resolver.places.acquire_many(4).await.unwrap();
        assert_eq!(BEGUN.load(Ordering::SeqCst), MAX_LOOKUPS + 1);
    }
}
