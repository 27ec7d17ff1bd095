//! The limits for clients, as the documentation lists them.

use std::time::Duration;

use pds_core::memory::{Holder, MemoryBudget};

use super::Limits;
use super::body::PIECE;
use super::connection::MAX_STREAMS;
use super::connection_state::MAX_REQUESTS;
use super::frames::{BURST, BYTES_PER_FRAME, PER_SECOND};
use super::request_slots::{LARGEST, MAX_WAIT, MAX_WAITING};

/// What is limited, and to how much, with the defaults.
#[must_use]
pub fn rows() -> Vec<(String, String)> {
    let limits = Limits::default();
    let seconds = |time: Duration| format!("{} s", time.as_secs());
    let row = |what: &str, value: String| (what.to_owned(), value);
    vec![
        row("a TLS handshake", seconds(limits.handshake_timeout)),
        row("a request's header to arrive", seconds(limits.header_timeout)),
        row("size of a request's header", format!("{} KiB", limits.max_header_bytes / 1024)),
        row("requests in progress", "`--web.max-requests`".to_owned()),
        row("requests in progress of one connection", MAX_REQUESTS.to_string()),
        row("requests that wait for a slot", format!("{MAX_WAITING}, each for {}", seconds(MAX_WAIT))),
        row("requests in progress when the exporter stops", seconds(limits.drain_timeout)),
        row("a client that reads nothing of an answer", seconds(limits.unread_timeout)),
        (format!("a client to read {} KiB of an answer", PIECE / 1024), seconds(limits.write_timeout)),
        (
            "unread answers of all clients".to_owned(),
            format!(
                "{} MiB or less, as memory allows; none counts with more than 1/{LARGEST} of it",
                MemoryBudget::default().share(Holder::Answers).bytes() / 1024 / 1024
            ),
        ),
        row("connections at once", limits.max_connections.to_string()),
        row("a connection without a request", seconds(limits.idle_timeout)),
        row("age of a connection", seconds(limits.max_connection_age)),
        row("streams of an HTTP/2 connection", MAX_STREAMS.to_string()),
        row("frames of an HTTP/2 connection at once", BURST.to_string()),
        row("frames of an HTTP/2 connection per second", PER_SECOND.to_string()),
        row("further frames for each KiB sent to the client", (1024.0 / BYTES_PER_FRAME).to_string()),
    ]
}
