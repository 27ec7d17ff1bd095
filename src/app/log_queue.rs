//! The queue of log lines. Logging never waits: if the queue is full, the line is dropped and counted.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;
use std::time::Duration;

use prometheus::IntCounter;

/// Maximum number of queued lines. A reader that pauses for some seconds loses none.
const MAX_QUEUED_LINES: usize = 1024;

/// How long an exit waits until the lines are written.
const MAX_FLUSH: Duration = Duration::from_secs(1);

/// A message to the writing thread.
enum Work {
    Line(Vec<u8>),
    /// Replies once the lines before it are written.
    Flush(Sender<()>),
}

/// A writer that never waits: a separate thread writes the lines. Cloning shares it.
#[derive(Clone, Debug)]
pub(super) struct LogQueue {
    work: SyncSender<Work>,
    dropped: IntCounter,
}

impl LogQueue {
    /// Starts the thread that writes to `out`. Counts lines that do not fit or cannot be written in `dropped`; once
    /// `out` takes lines again, `format` makes a line with their number.
    ///
    /// # Errors
    /// If the system has no thread left.
    pub(super) fn start(
        out: impl Write + Send + 'static,
        dropped: IntCounter,
        format: impl Fn(u64) -> String + Send + 'static,
    ) -> io::Result<Self> {
        let (work, queued) = sync_channel(MAX_QUEUED_LINES);
        let counted = dropped.clone();
        thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || write_lines(&queued, out, &counted, format))?;
        Ok(Self { work, dropped })
    }

    /// Waits until the queued lines are written, for a second at most.
    pub(super) fn flush(&self) {
        let queue = self.work.clone();
        // Without a thread, nothing waits.
        let _ = wait_for(move || {
            let (done, written) = channel();
            let _ = queue.send(Work::Flush(done));
            let _ = written.recv();
        });
    }
}

impl Write for LogQueue {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.work.try_send(Work::Line(line.to_vec())).is_err() {
            self.dropped.inc();
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write_lines(
    queued: &Receiver<Work>,
    mut out: impl Write,
    dropped: &IntCounter,
    format: impl Fn(u64) -> String,
) {
    let mut reported = 0;
    for work in queued {
        match work {
            Work::Line(line) if out.write_all(&line).and_then(|()| out.flush()).is_ok() => {
                let lost = dropped.get() - reported;
                if lost > 0 && out.write_all(format(lost).as_bytes()).is_ok() {
                    reported += lost;
                }
            }
            Work::Line(_) => dropped.inc(),
            // The other end has stopped waiting.
            Work::Flush(done) => drop(done.send(())),
        }
    }
}

/// Writes `text` to standard error on a separate thread, and waits for a second at most: a process ends even if nobody
/// reads its output.
pub(super) fn write_last_line(text: String) {
    let line = text.clone();
    // The text may report that there is no thread left.
    if wait_for(move || drop(writeln!(io::stderr(), "{line}"))).is_err() {
        let _ = writeln!(io::stderr(), "{text}");
    }
}

/// Runs `work` on a separate thread, and waits for a second at most.
fn wait_for(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let (working, ended) = channel::<()>();
    thread::Builder::new().spawn(move || {
        work();
        drop(working);
    })?;
    let _ = ended.recv_timeout(MAX_FLUSH);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, mpsc};

    use parking_lot::Mutex;

    use super::*;

    /// A reader that takes a line when permitted, and fails while the disk is full.
    #[derive(Clone)]
    struct Reader {
        let_go: Arc<Mutex<mpsc::Receiver<io::Result<()>>>>,
        read: Arc<Mutex<String>>,
    }

    impl Write for Reader {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            self.let_go.lock().recv().unwrap_or(Ok(()))?;
            self.read.lock().push_str(&String::from_utf8_lossy(line));
            Ok(line.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn started() -> (LogQueue, IntCounter, mpsc::Sender<io::Result<()>>, Arc<Mutex<String>>) {
        let dropped = IntCounter::new("dropped", "x").unwrap();
        let (go, let_go) = mpsc::channel();
        let read = Arc::new(Mutex::new(String::new()));
        let reader = Reader { let_go: Arc::new(Mutex::new(let_go)), read: Arc::clone(&read) };
        (
            LogQueue::start(reader, dropped.clone(), |lost| format!("dropped lines={lost}\n")).unwrap(),
            dropped,
            go,
            read,
        )
    }

    #[test]
    fn lines_that_nobody_reads_are_dropped_counted_and_reported_once() {
        let (mut log, dropped, go, read) = started();
        for number in 0..MAX_QUEUED_LINES + 100 {
            log.write_all(format!("line {number}\n").as_bytes()).unwrap();
        }
        // The writer may hold one line.
        assert!((99..=100).contains(&dropped.get()), "{}", dropped.get());
        let lost = dropped.get();
        drop(go);
        log.flush();
        let read = read.lock();
        let reports: Vec<_> = read.lines().filter(|line| line.contains("dropped")).collect();
        assert!(matches!(reports[..], [line] if line.ends_with(&format!("lines={lost}"))), "{reports:?}");
        assert_eq!(read.lines().count() as u64 - 1 + lost, MAX_QUEUED_LINES as u64 + 100);
    }

    #[test]
    fn a_line_that_cannot_be_written_counts_as_dropped() {
        let (mut log, dropped, go, read) = started();
        go.send(Err(io::ErrorKind::StorageFull.into())).unwrap();
        drop(go);
        log.write_all(b"lost\n").unwrap();
        log.write_all(b"written\n").unwrap();
        log.flush();
        assert_eq!(dropped.get(), 1);
        assert!(read.lock().starts_with("written\n"), "{}", read.lock());
        assert!(read.lock().ends_with("lines=1\n"), "{}", read.lock());
    }
}
