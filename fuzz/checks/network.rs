//! Frames, records and headers, before anything reads a request or reply.

use std::time::Duration;

use http::header::{DATE, HeaderMap, HeaderValue, RETRY_AFTER};
use jiff::Timestamp;
use pds_web::limits::{BURST, FRAMES, Meter, RECORDS, Units};

/// Any bytes as TLS records and as HTTP/2 frames, in pieces as long as the first byte says: they are counted alike however
/// they arrive, and a burst at most goes through.
pub(crate) fn frames(data: &[u8]) {
    let Some((piece, bytes)) = data.split_first() else { return };
    // The bucket earns nothing while time stands still.
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().expect("a runtime");
    let _standing = runtime.enter();
    for (framing, preface, header, length) in [(FRAMES, 24, 9, 0..3), (RECORDS, 0, 5, 3..5)] {
        let (mut units, mut rest) = (0, bytes.get(preface..).unwrap_or_default());
        while let Some(head) = rest.get(..header) {
            let length = head[length.clone()].iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
            rest = rest.get(header + length..).unwrap_or_default();
            units += 1;
        }
        let expected = Some(units).filter(|units| f64::from(*units) <= BURST);
        let counted = |kind: Units, piece: usize| -> Option<u32> {
            let mut meter = Meter::new(kind);
            bytes.chunks(piece).map(|piece| meter.count(piece)).sum()
        };
        for piece in [usize::from(*piece).max(1), bytes.len().max(1)] {
            assert_eq!(counted(framing, piece), expected, "{framing:?} in pieces of {piece}");
        }
    }
}

/// Any two lines as `Retry-After` and `Date`: no wait is longer than an hour, and each is the one that the headers say.
pub(crate) fn retry_after(data: &[u8]) {
    const NOW: i64 = 1_767_225_600;
    let mut headers = HeaderMap::new();
    for (name, line) in [RETRY_AFTER, DATE].into_iter().zip(data.split(|byte| *byte == b'\n')) {
        headers.extend(HeaderValue::from_bytes(line).ok().map(|value| (name, value)));
    }
    let wait = pds_client::retry_after(&headers, Timestamp::from_second(NOW).expect("a time"));
    let text = |name| Some(headers.get(name)?.to_str().ok()?.trim());
    let date = |name| {
        let date = httpdate::parse_http_date(text(name)?).ok()?;
        let seconds = i64::try_from(date.duration_since(std::time::UNIX_EPOCH).ok()?.as_secs()).ok()?;
        // The last days of the year 9999 are beyond the times of the client.
        Some(seconds.min(Timestamp::MAX.as_second()))
    };
    let seconds = text(RETRY_AFTER).and_then(|text| {
        let beyond = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().or(beyond.then_some(u64::MAX))
    });
    let until = date(RETRY_AFTER).map(|until| until.saturating_sub(date(DATE).unwrap_or(NOW)).max(0) as u64);
    let expected = seconds.or(until).map(|seconds| Duration::from_secs(seconds.min(3600)));
    assert_eq!(wait, expected, "{headers:?}");
}
