//! Counts the HTTP/2 frames and TLS records of a connection.
//!
//! A frame costs the client nine bytes, and the server a place in a queue, an acknowledgement or a whole request. A
//! record costs the client 22 bytes, and the server a decryption or a new key. So a flood of `WINDOW_UPDATE`, `PING` or
//! `KeyUpdate` would occupy a processor. A client needs frames in proportion to the bytes that it receives, which it
//! acknowledges, and to the bytes of its requests.

use pds_core::framing::{Framing, Headers};
use tokio::time::Instant;

/// Frames or records in a burst; a handshake and a burst of requests take a dozen.
pub const BURST: f64 = 256.0;

/// Frames or records per second on average; a scrape takes about five.
pub const PER_SECOND: f64 = 64.0;

/// Bytes sent to the client that allow one more frame. Go's client sends two `WINDOW_UPDATE` for each 4 KiB.
pub const SENT_PER_FRAME: f64 = 1024.0;

/// Bytes of requests that allow one more record; the smallest HTTP/2 frame of a request has 13 bytes.
pub const RECEIVED_PER_RECORD: f64 = 8.0;

/// The kind of units, and the bytes that earn them.
#[derive(Clone, Copy, Debug)]
pub struct Units {
    framing: Framing,
    /// Bytes that earn one more unit.
    bytes_per_unit: f64,
    /// The most units that bytes earn.
    max_earned: f64,
}

/// HTTP/2 frames. No client has more than 32 MiB to acknowledge at once.
pub const FRAMES: Units =
    Units { framing: Framing::HTTP2_REQUESTS, bytes_per_unit: SENT_PER_FRAME, max_earned: 32.0 * 1024.0 };

/// TLS records.
pub const RECORDS: Units =
    Units { framing: Framing::TLS, bytes_per_unit: RECEIVED_PER_RECORD, max_earned: BURST };

/// Counts the frames or records of one connection in its bytes as they arrive.
#[derive(Debug)]
pub struct Meter {
    units: Units,
    headers: Headers,
    left: f64,
    refilled: Instant,
}

impl Meter {
    /// For a connection that is about to begin.
    pub fn new(units: Units) -> Self {
        Self { units, headers: Headers::new(units.framing), left: BURST, refilled: Instant::now() }
    }

    /// Adds the units that so many bytes earn.
    pub fn earn(&mut self, bytes: usize) {
        let earned = bytes as f64 / self.units.bytes_per_unit;
        // Credit for a large response is kept, as its acknowledgements come later.
        self.left = (self.left + earned).min(self.units.max_earned);
    }

    /// Counts the units in the bytes that `arrived` and returns their number; `None` if they are too many.
    pub fn count(&mut self, mut arrived: &[u8]) -> Option<u32> {
        let now = Instant::now();
        let refill = (now - self.refilled).as_secs_f64() * PER_SECOND;
        self.refilled = now;
        if self.left < BURST {
            self.left = (self.left + refill).min(BURST);
        }
        let mut units = 0;
        while self.headers.next(&mut arrived).is_some() {
            units += 1;
        }
        self.left -= f64::from(units);
        (self.left >= 0.0).then_some(units)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const PING: &[u8] = b"\0\0\x08\x06\0\0\0\0\0pingping";

    fn frames() -> Meter {
        let mut frames = Meter::new(FRAMES);
        assert_eq!(frames.count(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), Some(0));
        frames
    }

    /// How many pings go through.
    fn pings(frames: &mut Meter) -> usize {
        (0..100_000).take_while(|_| frames.count(PING) == Some(1)).count()
    }

    #[tokio::test(start_paused = true)]
    async fn the_meter_recovers_after_a_flood() {
        let mut frames = frames();
        assert_eq!(pings(&mut frames), 256);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(pings(&mut frames), 63);
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert!((256..=257).contains(&pings(&mut frames)));
    }

    #[tokio::test(start_paused = true)]
    async fn frames_count_the_same_however_they_arrive() {
        let bytes = PING.repeat(200);
        for piece in [1, 7, 9, 17, 1000, 100_000] {
            let mut frames = frames();
            assert!(bytes.chunks(piece).all(|piece| frames.count(piece).is_some()));
            assert_eq!(pings(&mut frames), 56, "{piece}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_large_answer_may_be_acknowledged_in_small_steps() {
        let mut frames = frames();
        frames.earn(16 * 1024 * 1024);
        // Go's client acknowledges each 4 KiB, on the stream and on the connection.
        assert!(pings(&mut frames) > 2 * 4096);
        frames.earn(1024 * 1024 * 1024);
        assert!(pings(&mut frames) <= 32 * 1024, "an old connection has no unbounded budget");
    }

    #[tokio::test(start_paused = true)]
    async fn a_record_is_earned_by_the_bytes_of_requests() {
        let mut records = Meter::new(RECORDS);
        let record = |length: u8| [&[23, 3, 3, 0, length][..], &vec![0; usize::from(length)]].concat();
        // Two of them in two pieces.
        let two = record(200).repeat(2);
        assert_eq!((records.count(&two[..300]), records.count(&two[300..])), (Some(2), Some(0)));
        // One request per record never hits the limit; one byte per record does.
        for bytes in [30, 1] {
            let mut sent = 0;
            while sent < 10_000 && records.count(&record(bytes)).is_some() {
                records.earn(bytes.into());
                sent += 1;
            }
            assert_eq!(sent == 10_000, bytes == 30, "{sent} records of {bytes} bytes");
        }
    }
}
