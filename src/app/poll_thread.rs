//! The thread on which the daemon polls, so that nothing the service sends delays a scrape.
//!
//! The work of a library on a reply is not always bounded: a flood of 1xx replies is parsed as long as more arrive. On
//! a thread of its own, that delays only other polls, until `api.timeout` ends it.

use std::io;
use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// The thread. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct PollThread {
    runtime: Handle,
    _running: oneshot::Sender<()>,
}

impl PollThread {
    /// Starts the thread.
    ///
    /// # Errors
    /// If the system has no thread or descriptors left.
    pub(super) fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (running, ended) = oneshot::channel::<()>();
        thread::Builder::new().name("polls".to_owned()).spawn(move || {
            // Only ever dropped.
            let _ = runtime.block_on(ended);
            runtime.shutdown_background();
        })?;
        Ok(Self { runtime: handle, _running: running })
    }

    /// Runs `work` on the thread. Dropping the returned future cancels it.
    pub(super) async fn run<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> T {
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
