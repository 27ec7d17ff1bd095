//! Text that is shown: tokens and control characters in it.

use pds_client::redact::Redactor;
use pds_core::printable::{plain, plain_lines, steers_terminal};
use pds_core::secret::Secret;

/// A token among other text, each of its characters escaped in a way that the input chooses, up to three times over: what
/// is left of it reads as no token, however often escapes are undone.
pub(crate) fn redaction(data: &[u8]) {
    const TOKEN: &str = "s3rvice/acc0unt+t0ken\"of\"p-1";
    let Some((ways, around)) = data.split_at_checked(TOKEN.len().min(data.len())) else { return };
    let mut text = String::new();
    for (index, byte) in TOKEN.bytes().enumerate() {
        match ways.get(index).map_or(0, |way| way % 4) {
            1 => text.push_str(&format!("\\u{byte:04x}")),
            2 => text.push_str(&format!("%{byte:02X}")),
            3 if matches!(byte, b'/' | b'"') => text.extend(['\\', char::from(byte)]),
            _ => text.push(char::from(byte)),
        }
    }
    for _ in 0..ways.first().map_or(0, |way| way / 4 % 3) {
        text = text.replace('\\', "\\\\").replace('"', "\\\"");
    }
    let around = String::from_utf8_lossy(around);
    let redactor = Redactor::default();
    redactor.add(&"p-1".into(), &Secret::new(TOKEN));
    let mut left = redactor.text(format!("{around}{text}{around}"));
    for _ in 0..4 {
        assert!(!left.contains(TOKEN), "{text:?} is left in {left:?}");
        left = unescaped(&left);
    }
}

/// One layer of escapes undone.
fn unescaped(text: &str) -> String {
    let hex = |digits: Option<&str>| char::from_u32(u32::from_str_radix(digits?, 16).ok()?);
    let (mut out, mut rest) = (String::new(), text);
    while let Some(first) = rest.chars().next() {
        let escape = match first {
            '%' => hex(rest.get(1..3)).map(|char| (char, 3)),
            '\\' if rest[1..].starts_with('u') => hex(rest.get(2..6)).map(|char| (char, 6)),
            '\\' => rest[1..].chars().next().filter(|char| "\\\"/".contains(*char)).map(|char| (char, 2)),
            _ => None,
        };
        let (char, length) = escape.unwrap_or((first, first.len_utf8()));
        out.push(char);
        rest = &rest[length..];
    }
    out
}

/// Any text as it reaches a terminal: nothing in it steers, and what does not steer stays.
pub(crate) fn terminal(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    assert!(!plain(&text).contains(steers_terminal));
    assert!(!plain_lines(&text).replace('\n', "").contains(steers_terminal));
    let kept: String = text.chars().filter(|char| !steers_terminal(*char)).collect();
    assert_eq!(plain(&kept), kept);
}
