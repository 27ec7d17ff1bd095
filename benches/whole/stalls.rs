//! How late timers fire: those of the thread that serves, and that of a thread that only sleeps.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::scrape::value;

/// How often a timer of the thread that serves was late by more than 50 ms.
pub(crate) async fn of_exporter(client: &reqwest::Client, url: &str) -> f64 {
    let page = client.get(format!("{url}/metrics")).header("accept-encoding", "identity").send().await;
    let page = page.unwrap().text().await.unwrap();
    let total = |part: &str| value(&page, &format!("pds_exporter_loop_stall_seconds{part} ")).unwrap();
    total("_count") - total("_bucket{le=\"0.05\"}")
}

/// A thread that does nothing but look how late its timer is, as often as the exporter does.
pub(crate) struct BareTimer {
    ends: mpsc::Sender<()>,
    late: thread::JoinHandle<u32>,
}

impl BareTimer {
    pub(crate) fn start() -> Self {
        const EVERY: Duration = Duration::from_millis(100);
        let (ends, ended) = mpsc::channel();
        let late = thread::spawn(move || {
            let mut late = 0;
            loop {
                let due = Instant::now() + EVERY;
                match ended.recv_timeout(EVERY) {
                    Err(mpsc::RecvTimeoutError::Timeout) => {
                        late += u32::from(due.elapsed() > Duration::from_millis(50));
                    }
                    _ => return late,
                }
            }
        });
        Self { ends, late }
    }

    /// How often it was late by more than 50 ms.
    pub(crate) fn late(self) -> u32 {
        drop(self.ends);
        self.late.join().unwrap()
    }
}
