//! How many HTTP/2 frames a connection may send. A frame costs the client nine bytes and us a place in a queue, an
//! acknowledgement or a whole request, so a flood of `WINDOW_UPDATE`, `PING`, `SETTINGS` or `RST_STREAM` would occupy
//! a processor. What a client needs follows from what it is sent: acknowledgements of data.

use tokio::time::Instant;

/// Frames at once, before any answer: a handshake and a burst of requests take a dozen.
pub const BURST: f64 = 256.0;

/// Frames per second in the long run; a scrape takes about five.
pub const PER_SECOND: f64 = 64.0;

/// Bytes sent to the client that allow one more frame. Go's client sends two `WINDOW_UPDATE` for each 4 KiB.
pub const BYTES_PER_FRAME: f64 = 1024.0;

/// The most frames that answers earn: no client has more than 32 MiB to acknowledge at once.
const MAX_EARNED: f64 = 32.0 * 1024.0;

/// Length of a frame's header.
const HEADER: usize = 9;

/// What every HTTP/2 client sends first: `PRI * HTTP/2.0`, and so on.
const PREFACE: usize = 24;

/// The frames of one connection, counted in its bytes as they arrive.
#[derive(Debug)]
pub(super) struct FrameBudget {
    left: f64,
    refilled: Instant,
    /// Bytes until the next header begins.
    skip: usize,
    header: [u8; HEADER],
    /// Bytes of the header that have arrived.
    filled: usize,
}

impl FrameBudget {
    /// For a connection that is about to begin.
    pub(super) fn new() -> Self {
        Self { left: BURST, refilled: Instant::now(), skip: PREFACE, header: [0; HEADER], filled: 0 }
    }

    /// Bytes were sent to the client.
    pub(super) fn sent(&mut self, bytes: usize) {
        let earned = bytes as f64 / BYTES_PER_FRAME;
        // What a large answer earns is kept, as its acknowledgements come later.
        self.left = (self.left + earned).min(MAX_EARNED);
    }

    /// Counts the frames in what arrived; `false` if they are too many.
    pub(super) fn allows(&mut self, mut arrived: &[u8]) -> bool {
        let now = Instant::now();
        let refill = (now - self.refilled).as_secs_f64() * PER_SECOND;
        self.refilled = now;
        if self.left < BURST {
            self.left = (self.left + refill).min(BURST);
        }
        while !arrived.is_empty() {
            let skipped = self.skip.min(arrived.len());
            self.skip -= skipped;
            arrived = &arrived[skipped..];
            let taken = (HEADER - self.filled).min(arrived.len());
            self.header[self.filled..self.filled + taken].copy_from_slice(&arrived[..taken]);
            self.filled += taken;
            arrived = &arrived[taken..];
            if self.filled == HEADER {
                let [a, b, c, ..] = self.header;
                self.skip = u32::from_be_bytes([0, a, b, c]) as usize;
                self.filled = 0;
                self.left -= 1.0;
            }
        }
        self.left >= 0.0
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const PING: &[u8] = b"\0\0\x08\x06\0\0\0\0\0pingping";

    fn budget() -> FrameBudget {
        let mut budget = FrameBudget::new();
        assert!(budget.allows(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
        budget
    }

    /// How many pings go through.
    fn pings(budget: &mut FrameBudget) -> usize {
        (0..100_000).take_while(|_| budget.allows(PING)).count()
    }

    #[tokio::test(start_paused = true)]
    async fn the_frame_budget_recovers_after_a_flood() {
        let mut budget = budget();
        assert_eq!(pings(&mut budget), 256);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(pings(&mut budget), 63);
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert!((256..=257).contains(&pings(&mut budget)));
    }

    #[tokio::test(start_paused = true)]
    async fn frames_count_the_same_however_they_arrive() {
        let bytes = PING.repeat(200);
        for piece in [1, 7, 9, 17, 1000, 100_000] {
            let mut budget = budget();
            assert!(bytes.chunks(piece).all(|piece| budget.allows(piece)));
            assert_eq!(pings(&mut budget), 56, "{piece}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_large_answer_may_be_acknowledged_in_small_steps() {
        let mut budget = budget();
        budget.sent(16 * 1024 * 1024);
        // Go's client acknowledges each 4 KiB, on the stream and on the connection.
        assert!(pings(&mut budget) > 2 * 4096);
        budget.sent(1024 * 1024 * 1024);
        assert!(pings(&mut budget) <= 32 * 1024, "an old connection has no unbounded budget");
    }
}
