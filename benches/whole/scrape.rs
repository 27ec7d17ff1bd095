//! A scraper that does nothing with what it gets, so that serving is what is measured.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::process::{Core, number_of, role};

/// A connection that is kept.
pub(crate) struct Scraper {
    stream: TcpStream,
    request: String,
    buffer: Vec<u8>,
}

impl Scraper {
    /// Connects to `url` (`http://127.0.0.1:port/path`).
    pub(crate) fn new(url: &str, gzip: bool) -> Self {
        let (address, path) = url.trim_start_matches("http://").split_once('/').unwrap();
        let encoding = if gzip { "gzip" } else { "identity" };
        let request =
            format!("GET /{path} HTTP/1.1\r\nhost: {address}\r\naccept-encoding: {encoding}\r\n\r\n");
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, request, buffer: vec![0; 256 * 1024] }
    }

    /// Asks once, and hands on the body as it comes. Gives how many bytes came.
    pub(crate) fn get(&mut self, mut body: impl FnMut(&[u8])) -> usize {
        self.stream.write_all(self.request.as_bytes()).unwrap();
        let mut head = Vec::new();
        let (length, begin) = loop {
            let read = self.stream.read(&mut self.buffer).unwrap();
            assert!(read > 0, "the connection was closed");
            head.extend_from_slice(&self.buffer[..read]);
            let Some(end) = head.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
            let text = String::from_utf8_lossy(&head[..end]).to_ascii_lowercase();
            assert!(text.starts_with("http/1.1 200"), "{text}");
            let length =
                text.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
            break (length, head.split_off(end + 4));
        };
        let mut got = begin.len();
        body(&begin);
        let mut tail: Vec<u8> = begin[begin.len().saturating_sub(5)..].to_vec();
        while length.map_or_else(|| tail != b"0\r\n\r\n", |length| got < length) {
            let read = self.stream.read(&mut self.buffer).unwrap();
            assert!(read > 0, "the connection was closed");
            let piece = &self.buffer[..read];
            body(piece);
            got += read;
            tail.extend_from_slice(&piece[read.saturating_sub(5)..]);
            tail.drain(..tail.len().saturating_sub(5));
        }
        got
    }

    /// The whole body of one reply that tells its length.
    pub(crate) fn body(&mut self) -> Vec<u8> {
        let mut whole = Vec::new();
        self.get(|piece| whole.extend_from_slice(piece));
        whole
    }
}

/// Replies a second that two connections get in `time`, from a core that the server does not run on.
pub(crate) fn throughput(url: &str, gzip: bool, time: Duration) -> f64 {
    let mut scrapers = role("scrapers", Core::Last);
    scrapers.args([url, if gzip { "gzip" } else { "plain" }, &time.as_millis().to_string()]);
    number_of(scrapers, REPLIES)
}

const REPLIES: &str = "replies a second ";

/// The process that asks for [`throughput`].
pub(crate) fn ask(url: &str, gzip: bool, time: Duration) {
    let asking: Vec<_> = (0..2)
        .map(|_| {
            let mut scraper = Scraper::new(url, gzip);
            std::thread::spawn(move || {
                scraper.get(|_| ());
                let (began, mut replies) = (Instant::now(), 0.0);
                while began.elapsed() < time {
                    scraper.get(|_| ());
                    replies += 1.0;
                }
                replies / began.elapsed().as_secs_f64()
            })
        })
        .collect();
    println!("{REPLIES}{}", asking.into_iter().map(|thread| thread.join().unwrap()).sum::<f64>());
}

/// The value of the first series of a text page that begins with `name`.
pub(crate) fn value(page: &str, name: &str) -> Option<f64> {
    page.lines().find(|line| line.starts_with(name))?.rsplit_once(' ')?.1.parse().ok()
}
