//! Removes tokens from replies, however they are written.
//!
//! If a service echoes a token, it must not become a label or appear on a page or in an error. So tokens are removed
//! from replies before anything else reads them: those of all accounts, in case a service mixes them up, and the
//! previous ones, which usually still work for a while. A token is found as it is, in base64, and with any of its
//! characters escaped as in JSON (`\u002B`, `\/`), a URL (`%2B`) or HTML (`&#43;`, `&plus;`), also nested.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use memchr::memchr3;
use parking_lot::Mutex;

use pds_core::secret::{REDACTED, Secret};

/// A shorter token is not searched for: it might be an ordinary word or number of the reply.
const MIN_BYTES: usize = 12;
/// Escapes within escapes: a JSON text in a JSON text in a JSON text.
const MAX_LAYERS: usize = 3;
/// Escapes are decoded for this many bytes of a reply at a time, which bounds memory.
const CHUNK: usize = 64 * 1024;
/// The most bytes that one byte of a token takes in an escaped reply, unless it is hidden on purpose: `\\\\u0061`.
const MAX_ESCAPED: usize = 16;
/// Length from which the beginning of a token is redacted at the end of a truncated reply.
const MIN_PART: usize = 4;

/// Finds the tokens in use. Cloning shares them.
#[derive(Clone, Debug, Default)]
pub struct Redactor(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// By account: the token in use, and the one before it.
    tokens: HashMap<Arc<str>, Vec<Secret>>,
    /// `None` until it is needed, and if there is nothing to search for.
    matcher: Option<Arc<Matcher>>,
}

#[derive(Debug)]
struct Matcher {
    forms: AhoCorasick,
    tokens: Vec<Secret>,
    /// The length of the longest token.
    longest: usize,
}

impl Redactor {
    /// Sets the token of `account`.
    pub fn add(&self, account: &Arc<str>, token: &Secret) {
        let mut state = self.0.lock();
        let tokens = state.tokens.entry(Arc::clone(account)).or_default();
        tokens.insert(0, token.clone());
        tokens.truncate(2);
        state.matcher = None;
    }

    /// `body` with [`REDACTED`] in place of each token. If it is not `complete`, the beginning of a token at its end
    /// counts as one.
    pub fn reply(&self, mut body: Vec<u8>, complete: bool) -> Vec<u8> {
        let Some(matcher) = self.matcher() else { return body };
        if !complete && let Some(part) = matcher.part_at_end(&body) {
            body.truncate(body.len() - part);
            body.extend_from_slice(REDACTED.as_bytes());
        }
        let spans = matcher.spans(&body);
        if spans.is_empty() { body } else { without(&body, spans) }
    }

    /// As [`Redactor::reply`], for a text.
    pub fn text(&self, text: impl Into<String>) -> String {
        String::from_utf8_lossy(&self.reply(text.into().into_bytes(), true)).into_owned()
    }

    fn matcher(&self) -> Option<Arc<Matcher>> {
        let mut state = self.0.lock();
        if state.matcher.is_none() {
            let tokens = state.tokens.values().flatten();
            state.matcher =
                Matcher::new(tokens.filter(|token| token.expose().len() >= MIN_BYTES)).map(Arc::new);
        }
        state.matcher.clone()
    }
}

impl Matcher {
    /// `None` if there is nothing to search for.
    fn new<'a>(tokens: impl Iterator<Item = &'a Secret>) -> Option<Self> {
        let tokens: Vec<Secret> = tokens.cloned().collect();
        let longest = tokens.iter().map(|token| token.expose().len()).max()?;
        let forms = tokens.iter().flat_map(|token| forms(token.expose().as_bytes()));
        let forms = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(forms).ok()?;
        Some(Self { forms, tokens, longest })
    }

    /// Ranges of tokens in `body`, in order and disjoint.
    fn spans(&self, body: &[u8]) -> Vec<Range<usize>> {
        let mut spans: Vec<_> = self.forms.find_iter(body).map(|found| found.range()).collect();
        let reach = self.longest * MAX_ESCAPED;
        let mut from = 0;
        while let Some(rest) = body.get(from..) {
            let Some(escape) = memchr3(b'\\', b'%', b'&', rest) else { break };
            let start = (from + escape).saturating_sub(reach);
            let end = (from + escape + CHUNK + reach).min(body.len());
            self.escaped(body, start..end, &mut spans);
            from += escape + CHUNK;
        }
        spans.sort_by_key(|span| span.start);
        spans.dedup_by(|later, earlier| {
            let joined = later.start <= earlier.end;
            if joined {
                earlier.end = earlier.end.max(later.end);
            }
            joined
        });
        spans
    }

    /// Adds the ranges of escaped tokens in a chunk of `body`.
    fn escaped(&self, body: &[u8], chunk: Range<usize>, spans: &mut Vec<Range<usize>>) {
        let mut view: Vec<u8> = body.get(chunk.clone()).unwrap_or_default().to_vec();
        // For each byte where it begins in the body, and where the last one ends.
        let mut starts: Vec<usize> = (chunk.start..=chunk.end).collect();
        for _ in 0..MAX_LAYERS {
            let before = view.len();
            (view, starts) = unescape(&view, &starts);
            if view.len() == before {
                break;
            }
            spans.extend(
                self.forms
                    .find_iter(&view)
                    .filter_map(|found| Some(*starts.get(found.start())?..*starts.get(found.end())?)),
            );
        }
    }

    /// How many bytes at the end of `body` are the beginning of a token.
    fn part_at_end(&self, body: &[u8]) -> Option<usize> {
        let part = |token: &Secret| {
            let token = token.expose().as_bytes();
            (MIN_PART..token.len())
                .rev()
                .find(|part| token.get(..*part).is_some_and(|part| body.ends_with(part)))
        };
        self.tokens.iter().filter_map(part).max()
    }
}

/// The texts to search for: the token, and for each alignment the part that every base64 text containing it has in
/// common.
fn forms(token: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = vec![token.to_vec()];
    for before in 0..3 {
        let text = [&[0; 2][..before.min(2)], token].concat();
        // Characters at either end depend on the bytes beside the token.
        let first = if before == 0 { 0 } else { before + 1 };
        let last = usize::from(text.len() % 3 > 0);
        for encoded in [STANDARD_NO_PAD.encode(&text), URL_SAFE_NO_PAD.encode(&text)] {
            forms.extend(encoded.get(first..encoded.len() - last).map(|form| form.as_bytes().to_vec()));
        }
    }
    forms.dedup();
    forms
}

/// Decodes one layer of escapes. The bytes of an escape map to the position where it begins.
fn unescape(view: &[u8], starts: &[usize]) -> (Vec<u8>, Vec<usize>) {
    let (mut out, mut out_starts) = (Vec::with_capacity(view.len()), Vec::with_capacity(starts.len()));
    let mut at = 0;
    while let Some(byte) = view.get(at) {
        let rest = view.get(at..).unwrap_or_default();
        let (decoded, length) = escape(rest).unwrap_or((char::from(*byte), 1));
        match (length, decoded) {
            (1, _) => out.push(*byte),
            (_, decoded) => out.extend_from_slice(decoded.encode_utf8(&mut [0; 4]).as_bytes()),
        }
        out_starts.resize(out.len(), starts.get(at).copied().unwrap_or_default());
        at += length;
    }
    out_starts.extend(starts.last());
    (out, out_starts)
}

/// The character of the escape that `text` begins with, and the escape's length.
fn escape(text: &[u8]) -> Option<(char, usize)> {
    let hex = |digits: &[u8]| u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok();
    match text {
        [b'\\', b'u', digits @ ..] => Some((char::from_u32(hex(digits.get(..4)?)?)?, 6)),
        [b'\\', other @ (b'"' | b'\\' | b'/'), ..] => Some((char::from(*other), 2)),
        [b'&', rest @ ..] => entity(rest),
        [b'%', digits @ ..] => Some((char::from_u32(hex(digits.get(..2)?)?)?, 3)),
        _ => None,
    }
}

/// The character of the HTML entity whose text after `&` is `rest`, and the entity's length: by number, or by name for
/// what tokens hold.
fn entity(rest: &[u8]) -> Option<(char, usize)> {
    const NAMES: [(&str, char); 11] = [
        ("quot", '"'),
        ("amp", '&'),
        ("apos", '\''),
        ("lt", '<'),
        ("gt", '>'),
        ("plus", '+'),
        ("sol", '/'),
        ("bsol", '\\'),
        ("equals", '='),
        ("period", '.'),
        ("lowbar", '_'),
    ];
    /// Of a number, leading zeros included.
    const MAX_DIGITS: usize = 10;

    let (prefix, radix) = match rest {
        [b'#', b'x' | b'X', ..] => (2, 16),
        [b'#', ..] => (1, 10),
        _ => (0, 0),
    };
    let text = rest.get(prefix..)?;
    let length = text.iter().take(MAX_DIGITS).take_while(|byte| byte.is_ascii_alphanumeric());
    let length = match radix {
        10 => length.take_while(|byte| byte.is_ascii_digit()).count(),
        16 => length.take_while(|byte| byte.is_ascii_hexdigit()).count(),
        _ => length.count(),
    };
    let word = std::str::from_utf8(text.get(..length)?).ok()?;
    let ended = text.get(length) == Some(&b';');
    let decoded = match radix {
        0 => NAMES.iter().find(|(name, _)| *name == word && ended).map(|(_, decoded)| *decoded),
        radix => char::from_u32(u32::from_str_radix(word, radix).ok()?),
    };
    // Browsers read a number without its semicolon, too.
    Some((decoded?, 1 + prefix + length + usize::from(ended)))
}

fn without(body: &[u8], spans: Vec<Range<usize>>) -> Vec<u8> {
    let (mut out, mut from) = (Vec::with_capacity(body.len()), 0);
    for span in spans {
        out.extend_from_slice(body.get(from..span.start).unwrap_or_default());
        out.extend_from_slice(REDACTED.as_bytes());
        from = span.end;
    }
    out.extend_from_slice(body.get(from..).unwrap_or_default());
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TOKEN: &str = "s3rvice+acc0unt/t0ken\"=";

    fn redactor() -> Redactor {
        let redactor = Redactor::default();
        redactor.add(&"default".into(), &Secret::new(TOKEN));
        redactor
    }

    #[test]
    fn a_token_is_found_however_it_is_written() {
        let redactor = redactor();
        let json = serde_json::to_string(TOKEN).unwrap();
        let json = json.trim_matches('"').to_owned();
        let again = serde_json::to_string(&json).unwrap();
        let unicode: String = TOKEN.bytes().map(|byte| format!("\\u{byte:04X}")).collect();
        let percent =
            percent_encoding::utf8_percent_encode(TOKEN, percent_encoding::NON_ALPHANUMERIC).to_string();
        for form in [
            TOKEN.to_owned(),
            json.clone(),
            json.replace('/', "\\/"),
            json.replace('+', "\\u002b"),
            again.trim_matches('"').to_owned(),
            unicode.replace('\\', "\\\\"),
            unicode,
            TOKEN.replace('+', "&#43;").replace('/', "&sol;").replace('"', "&quot;"),
            TOKEN.replace('+', "&#x2b;").replace('=', "&equals;"),
            TOKEN.bytes().map(|byte| format!("&#{byte:03};")).collect(),
            percent.replace('%', "%25"),
            percent,
        ] {
            assert_eq!(redactor.text(format!("x{form}y")), "x[redacted]y", "{form}");
        }
        for before in ["", "x", "xy", "Bearer ", "user:"] {
            for encoded in
                [STANDARD_NO_PAD, URL_SAFE_NO_PAD].map(|engine| engine.encode(format!("{before}{TOKEN}!")))
            {
                let redacted = redactor.text(&encoded);
                assert!(redacted.contains(REDACTED) && redacted.len() < 25, "{encoded}: {redacted}");
            }
        }
    }

    #[test]
    fn tokens_of_every_account_are_found_and_so_is_the_one_before() {
        let redactor = redactor();
        redactor.add(&"p-1".into(), &Secret::new("another-t0ken"));
        redactor.add(&"p-1".into(), &Secret::new("its-succe55or"));
        let text = format!("{TOKEN} another-t0ken its-succe55or");
        assert_eq!(redactor.text(&text), "[redacted] [redacted] [redacted]");
        redactor.add(&"p-1".into(), &Secret::new("third-t0ken-of-it"));
        assert_eq!(redactor.text("another-t0ken its-succe55or"), "another-t0ken [redacted]");
    }

    #[test]
    fn what_broke_off_in_the_midst_of_a_token_shows_nothing_of_it() {
        let cut = |body: &str, complete| String::from_utf8(redactor().reply(body.into(), complete)).unwrap();
        assert_eq!(cut("bad token s3rvice+ac", false), "bad token [redacted]");
        assert_eq!(cut("bad token s3rvice+ac", true), "bad token s3rvice+ac");
        assert_eq!(cut("s3r", false), "s3r", "no part worth anything");
    }

    #[test]
    fn other_text_stays_as_it_is() {
        let redactor = redactor();
        for text in [
            "",
            "\\",
            "%",
            "&",
            "&#",
            "&#x;",
            "&nope;",
            "\\u",
            "\\u00",
            "%4",
            "{\"a\":\"\\u00e4\\n\\\"\"}",
            "100%",
            "\\ud83d\\ude00",
        ] {
            assert_eq!(redactor.text(text), text);
        }
        let short = Redactor::default();
        short.add(&"default".into(), &Secret::new("name"));
        assert_eq!(short.text(r#"{"name":"a"}"#), r#"{"name":"a"}"#, "a word of the reply is no secret");
        assert_eq!(Redactor::default().text("nothing to hide"), "nothing to hide");
    }

    #[test]
    fn a_token_at_the_edge_of_a_chunk_is_found() {
        let unicode: String = TOKEN.bytes().map(|byte| format!("\\u{byte:04x}")).collect();
        for before in (CHUNK - 400..CHUNK + 10).step_by(7).chain([3 * CHUNK - 60]) {
            let body = format!("\\n{}{unicode}{}", "x".repeat(before), "\\n".repeat(CHUNK));
            let redacted = redactor().text(&body);
            assert!(redacted.contains(REDACTED) && !redacted.contains("\\u"), "{before}");
        }
    }

    proptest! {
        #[test]
        fn no_json_text_that_was_decoded_holds_a_token(
            before in "[a-z\\\\%\"/é]{0,9}", after in "[a-z\\\\%\"/é]{0,9}", escaped in prop::collection::vec(0..4_u8, 23),
        ) {
            let plain = |text: &str| { let json = serde_json::to_string(text).unwrap(); json[1..json.len() - 1].to_owned() };
            let token: String = TOKEN.chars().zip(escaped).map(|(char, how)| match (how, char) {
                (0, _) => format!("\\u{:04x}", u32::from(char)),
                (1, '/' | '"') => format!("\\{char}"),
                _ => plain(&char.to_string()),
            }).collect();
            let body = format!("\"{}{token}{}\"", plain(&before), plain(&after));
            prop_assert_eq!(serde_json::from_str::<String>(&body).unwrap(), format!("{before}{TOKEN}{after}"));
            let redacted = redactor().text(&body);
            if let Ok(decoded) = serde_json::from_str::<String>(&redacted) {
                prop_assert!(!decoded.contains(TOKEN), "{}", decoded);
            }
        }
    }
}
