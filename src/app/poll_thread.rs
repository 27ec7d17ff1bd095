//! A thread for all exchanges with the service, so that nothing the service sends delays a scrape.
//!
//! The work of a library on a reply is not always bounded: a flood of 1xx replies is parsed as long as more arrive. On
//! a thread of its own, that delays only other requests, until `api.timeout` ends it.

use std::io;
use std::sync::Arc;
use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// The thread. Cloning shares it; it ends with the last clone.
#[derive(Clone, Debug)]
pub struct Network {
    runtime: Handle,
    _running: Arc<oneshot::Sender<()>>,
}

impl Network {
    /// Starts the thread.
    ///
    /// # Errors
    /// If the system has no thread or descriptors left.
    pub fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (running, ended) = oneshot::channel::<()>();
        thread::Builder::new().name("network".to_owned()).spawn(move || {
            // Only ever dropped.
            let _ = runtime.block_on(ended);
            runtime.shutdown_background();
        })?;
        Ok(Self { runtime: handle, _running: Arc::new(running) })
    }

    /// Runs `work` on the thread. Dropping the returned future cancels it.
    pub async fn run<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> T {
        let mut tasks = JoinSet::new();
        tasks.spawn_on(work, &self.runtime);
        match tasks.join_next().await {
            Some(Ok(result)) => result,
            Some(Err(error)) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            // The thread has ended, and so does the daemon.
            _ => std::future::pending().await,
        }
    }
}
