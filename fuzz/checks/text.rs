//! Text that is shown: tokens and control characters in it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pds_core::printable::{is_terminal_control, plain, plain_lines};
use pds_core::redact::Redactor;
use pds_core::secret::Secret;

/// A token among other text, as it is, escaped, in base64 or hexadecimal digits, and cut where the input chooses: no eight characters of
/// it in a row are left.
pub(crate) fn redaction(data: &[u8]) {
    const TOKEN: &str = "s3rvice/acc0unt+t0ken=of.p-1";
    let Some(([way, cut], around)) = data.split_first_chunk() else { return };
    let written = match way % 6 {
        1 => url::form_urlencoded::byte_serialize(TOKEN.as_bytes()).collect(),
        2 => STANDARD.encode(TOKEN),
        3 => TOKEN.replace('/', "\\/").replace('+', "\\u002b"),
        4 => TOKEN.replace('/', "&#47;").replace('+', "&#x2b;"),
        5 => TOKEN.bytes().map(|byte| format!("{byte:02x}")).collect(),
        _ => TOKEN.to_owned(),
    };
    let around = String::from_utf8_lossy(around);
    let redactor = Redactor::default();
    redactor.add(0, &Secret::new(TOKEN));
    let written = &written[..usize::from(*cut).min(written.len())];
    let left = redactor.text(format!("{around} {written}"));
    for part in written.as_bytes().windows(8) {
        let part = std::str::from_utf8(part).unwrap();
        assert!(around.contains(part) || !left.contains(part), "{part} of {written} is left in {left}");
    }
}

/// Any text as it reaches a terminal: nothing in it steers, and what does not steer stays.
pub(crate) fn terminal(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    assert!(!plain(&text).contains(is_terminal_control));
    assert!(!plain_lines(&text).replace('\n', "").contains(is_terminal_control));
    let kept: String = text.chars().filter(|char| !is_terminal_control(*char)).collect();
    assert_eq!(plain(&kept), kept);
}
