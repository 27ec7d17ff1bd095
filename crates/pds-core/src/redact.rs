//! Removes secrets from what others have written: replies, and error texts of libraries.
//!
//! If a service echoes a token, it must not become a label or appear on a page or in an error. A secret is found as it
//! is, in hexadecimal digits, and in base64, also within a longer text that is encoded, such as `user:password`; each of
//! them also with characters escaped as in URLs, JSON or HTML. A word that begins like a secret is redacted to its end, so
//! a secret that is cut off is found as well. Redact before you shorten.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, Input, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use parking_lot::Mutex;

use super::secret::{REDACTED, Secret};

/// A shorter token is not searched for in replies: it might be an ordinary word or number.
const MIN_TOKEN_BYTES: usize = 12;
/// The shortest beginning of a secret that counts as one.
const MIN_PART: usize = 8;
/// The named characters of HTML that secrets may hold.
const ENTITIES: [(&[u8], char); 5] =
    [(b"amp;", '&'), (b"lt;", '<'), (b"gt;", '>'), (b"quot;", '"'), (b"apos;", '\'')];

/// Finds the secrets in use. Cloning shares them.
#[derive(Clone, Debug, Default)]
pub struct Redactor(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// By account: the token in use, and the one before it, which usually still works for a while.
    tokens: HashMap<Arc<str>, Vec<Secret>>,
    /// `None` until it is needed, and if there is nothing to search for.
    matcher: Option<Arc<Matcher>>,
}

impl Redactor {
    /// A redactor of `secrets`, however short.
    pub fn of<'a>(secrets: impl IntoIterator<Item = &'a Secret>) -> Self {
        let matcher = Matcher::new(secrets.into_iter()).map(Arc::new);
        Self(Arc::new(Mutex::new(State { tokens: HashMap::new(), matcher })))
    }

    /// Sets the token of `account`; the one before it is still searched for.
    pub fn add(&self, account: &Arc<str>, token: &Secret) {
        let mut state = self.0.lock();
        let tokens = state.tokens.entry(Arc::clone(account)).or_default();
        tokens.insert(0, token.clone());
        tokens.truncate(2);
        state.matcher = None;
    }

    /// `body` with [`REDACTED`] in place of each secret.
    pub fn reply(&self, body: Vec<u8>) -> Vec<u8> {
        match self.matcher() {
            Some(matcher) => matcher.redact(body),
            None => body,
        }
    }

    /// `text` with [`REDACTED`] in place of each secret.
    pub fn text(&self, text: impl Into<String>) -> String {
        String::from_utf8_lossy(&self.reply(text.into().into_bytes())).into_owned()
    }

    fn matcher(&self) -> Option<Arc<Matcher>> {
        let mut state = self.0.lock();
        if state.matcher.is_none() {
            let tokens = state.tokens.values().flatten();
            let tokens = tokens.filter(|token| token.expose().len() >= MIN_TOKEN_BYTES);
            state.matcher = Matcher::new(tokens).map(Arc::new);
        }
        state.matcher.clone()
    }
}

/// Finds the beginnings of secrets in any of their forms, and how far each goes.
#[derive(Debug)]
struct Matcher {
    beginnings: AhoCorasick,
    /// All forms of all secrets, sorted.
    forms: Vec<Vec<u8>>,
}

impl Matcher {
    /// `None` if there is nothing to search for.
    fn new<'a>(secrets: impl Iterator<Item = &'a Secret>) -> Option<Self> {
        let (mut forms, mut beginnings) = (Vec::new(), Vec::new());
        for secret in secrets.map(|secret| secret.expose().as_bytes()) {
            forms.extend(self::forms(secret));
            // Backslashes may have gone from it.
            let unescaped = unescaped(secret.get(..MIN_PART).unwrap_or(secret)).into_owned();
            beginnings.extend(Some(unescaped).filter(|text| text.len() >= MIN_PART / 2));
        }
        forms.sort_unstable();
        forms.dedup();
        beginnings.extend(forms.iter().map(|form| form.get(..MIN_PART).unwrap_or(form).to_vec()));
        if beginnings.is_empty() {
            return None;
        }
        let beginnings =
            AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(beginnings).ok()?;
        Some(Self { beginnings, forms })
    }

    fn redact(&self, body: Vec<u8>) -> Vec<u8> {
        match unescaped(&body) {
            Cow::Borrowed(_) => self.redact_units(body, None),
            // A part of the secret may look like an escape.
            Cow::Owned(text) => self.redact_units(self.redact_units(body, Some(&text)), None),
        }
    }

    /// `body` without secrets, read as it is, or as `unescaped`.
    fn redact_units(&self, body: Vec<u8>, unescaped: Option<&[u8]>) -> Vec<u8> {
        let text = unescaped.unwrap_or(&body);
        let read: Read = if unescaped.is_some() { unescape } else { literal };
        let find = |from: usize| self.beginnings.find(Input::new(text).range(from..));
        let Some(mut found) = find(0) else { return body };
        let (mut out, mut rest, mut from) = (Vec::with_capacity(body.len()), &*body, 0);
        loop {
            let (before, secret) = split(rest, found.start() - from, read);
            out.extend_from_slice(before);
            out.extend_from_slice(REDACTED.as_bytes());
            let (length, is_whole) = self.length(text.get(found.start()..).unwrap_or_default());
            from = found.end().max(found.start() + length);
            if !is_whole {
                let rest = text.get(from..).unwrap_or_default();
                from += rest.iter().take_while(|byte| is_of_word(**byte)).count();
            }
            rest = split(secret, from - found.start(), read).1;
            match find(from) {
                Some(next) => found = next,
                None => break,
            }
        }
        out.extend_from_slice(rest);
        out
    }

    /// How many bytes at the start of `text` belong to a form, and whether that is all of it. The form with most in common
    /// is a neighbour in sorted order.
    fn length(&self, text: &[u8]) -> (usize, bool) {
        let at = self.forms.partition_point(|form| form.as_slice() < text);
        let neighbours = self.forms.get(at.saturating_sub(1)..).unwrap_or_default().iter().take(2);
        let common = |form: &Vec<u8>| {
            let length = form.iter().zip(text).take_while(|(one, other)| one == other).count();
            (length, length == form.len())
        };
        neighbours.map(common).max().unwrap_or_default()
    }
}

/// Whether a secret, or an escape in it, may continue with this byte.
fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/=_.~-\\%&;#".contains(&byte)
}

/// The texts to search for: the secret as it is and unescaped, its hexadecimal digits, and for each alignment the part
/// that every base64 text containing it has in common.
fn forms(secret: &[u8]) -> Vec<Vec<u8>> {
    // Forms write a space as a plus sign.
    let plus = secret.iter().map(|byte| if *byte == b' ' { b'+' } else { *byte }).collect();
    let mut forms = vec![plus];
    // URLs hold a password escaped.
    for secret in [secret, &*unescaped(secret)] {
        forms.push(secret.to_vec());
        let digits: [fn(&u8) -> String; 2] = [|byte| format!("{byte:02x}"), |byte| format!("{byte:02X}")];
        forms.extend(digits.map(|digits| secret.iter().map(digits).collect::<String>().into_bytes()));
        for before in 0..3 {
            let text = [&[0; 2][..before.min(2)], secret].concat();
            // Characters at either end depend on the bytes beside the secret.
            let first = if before == 0 { 0 } else { before + 1 };
            let last = usize::from(text.len() % 3 > 0);
            for encoded in [STANDARD_NO_PAD.encode(&text), URL_SAFE_NO_PAD.encode(&text)] {
                forms.extend(encoded.get(first..encoded.len() - last).map(|form| form.as_bytes().to_vec()));
            }
        }
    }
    forms.retain(|form| !form.is_empty());
    forms
}

/// Reads the first unit of a text: appends its meaning and returns its length.
type Read = fn(&[u8], &mut Vec<u8>) -> usize;

/// Reads a byte as it is.
fn literal(text: &[u8], meaning: &mut Vec<u8>) -> usize {
    meaning.extend(text.first());
    1
}

/// Reads a byte, or an escape of URLs, JSON or HTML.
fn unescape(text: &[u8], meaning: &mut Vec<u8>) -> usize {
    let number = |digits: &[u8], radix| u32::from_str_radix(std::str::from_utf8(digits).ok()?, radix).ok();
    let numbered = |digits: &[u8], radix| {
        let end = digits.iter().take(8).position(|byte| *byte == b';')?;
        Some((char::from_u32(number(digits.get(..end)?, radix)?)?, end + 1))
    };
    let escaped = match text {
        [b'%', high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
            // Not a character, but a byte of one.
            meaning.extend(number(&[*high, *low], 16).and_then(|byte| u8::try_from(byte).ok()));
            return 3;
        }
        [b'\\', b'u', a, b, c, d, ..] => {
            number(&[*a, *b, *c, *d], 16).and_then(char::from_u32).map(|char| (char, 6))
        }
        [b'&', b'#', b'x' | b'X', digits @ ..] => numbered(digits, 16).map(|(char, end)| (char, end + 3)),
        [b'&', b'#', digits @ ..] => numbered(digits, 10).map(|(char, end)| (char, end + 2)),
        [b'&', rest @ ..] => {
            let named = ENTITIES.iter().find(|(name, _)| rest.starts_with(name));
            named.map(|(name, char)| (*char, name.len() + 1))
        }
        _ => None,
    };
    let Some((char, length)) = escaped else {
        // The byte after a backslash speaks for itself, whether or not the backslash belongs to the text.
        return if text.starts_with(b"\\") { 1 } else { literal(text, meaning) };
    };
    meaning.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
    length
}

/// The meaning of `text` once its escapes are read.
fn unescaped(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.iter().any(|byte| b"%\\&".contains(byte)) {
        return Cow::Borrowed(text);
    }
    let (mut meaning, mut rest) = (Vec::with_capacity(text.len()), text);
    while !rest.is_empty() {
        let length = unescape(rest, &mut meaning);
        rest = rest.get(length..).unwrap_or_default();
    }
    Cow::Owned(meaning)
}

/// `text` in two: the units that mean the first `length` bytes, and the others.
fn split(text: &[u8], length: usize, read: Read) -> (&[u8], &[u8]) {
    let (mut meaning, mut meant, mut at) = (Vec::new(), 0, 0);
    while meant < length && at < text.len() {
        meaning.clear();
        at += read(text.get(at..).unwrap_or_default(), &mut meaning);
        meant += meaning.len();
    }
    text.split_at(at.min(text.len()))
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
    fn other_text_stays_as_it_is() {
        let redactor = redactor();
        for text in ["", "%", "100%", "{\"a\":\"\\u00e4\\n\\\"\"}", "s3rvice"] {
            assert_eq!(redactor.text(text), text);
        }
        redactor.add(&"default".into(), &Secret::new("name"));
        assert_eq!(redactor.text(r#"{"name":"a"}"#), r#"{"name":"a"}"#, "a word of the reply is no secret");
        redactor.add(&"short".into(), &Secret::new("elevenbytes"));
        redactor.add(&"long".into(), &Secret::new("twelve-bytes"));
        assert_eq!(redactor.text("elevenbytes twelve-bytes"), "elevenbytes [redacted]");
        assert_eq!(redactor.text("twelve- twelve-b"), "twelve- [redacted]", "eight bytes are a beginning");
        assert_eq!(Redactor::of([&Secret::new("name")]).text("no name"), "no [redacted]");
        assert_eq!(Redactor::of([&Secret::new("")]).text("nothing to hide"), "nothing to hide");
    }

    #[test]
    fn tokens_with_the_same_beginning_are_each_found_to_their_end() {
        let secrets = ["eyJhbGciOiJ.one.signature", "eyJhbGciOiJ.two.signature"].map(Secret::new);
        let redactor = Redactor::of(&secrets);
        let text = secrets.each_ref().map(Secret::expose).join(" ");
        assert_eq!(redactor.text(text), "[redacted] [redacted]");
        assert_eq!(redactor.text("eyJhbGciOiJ.si\\u0078 and on"), "[redacted] and on");
    }

    #[test]
    fn each_form_is_found_alone_and_a_word_that_begins_like_a_secret_to_its_end() {
        const SECRET: &str = "1ok'en-of-a-kind";
        let redactor = Redactor::of([&Secret::new(SECRET)]);
        let digits: String = SECRET.bytes().map(|byte| format!("{byte:02X}")).collect();
        for text in [&*digits, "1ok&apos;en-of-a-kind", "1ok&#0000039;en-of-a-kind", "1ok&#x27;en-of-a-kind"]
        {
            assert_eq!(redactor.text(text), "[redacted]", "{text}");
        }
        for byte in "+/=_.~-\\%&;#".chars() {
            let text = format!("1ok'en-o{byte}x y");
            assert_eq!(redactor.text(&text), "[redacted] y", "{text}");
        }
        assert_eq!(redactor.text("%41ok'en-of-a-kind"), "%4[redacted]", "no escape, but its first character");
        let escaped = Redactor::of([&Secret::new("p%40ssword-of-proxy")]);
        assert_eq!(escaped.text("70407373776f72642d6f662d70726f7879"), "[redacted]", "as it is meant");
        let spaced = Redactor::of([&Secret::new("one word and another")]);
        assert_eq!(spaced.text("one+word+and+another, y"), "[redacted], y");
    }

    #[test]
    fn a_short_secret_is_found_within_a_longer_text_in_base64() {
        let redactor = Redactor::of([&Secret::new("secret")]);
        let redacted = |text: &str| redactor.text(STANDARD_NO_PAD.encode(text));
        assert_eq!(redacted("secret"), "[redacted]");
        assert_eq!(redacted("secretly"), "[redacted]bHk");
        // Its last character in base64 holds bits of the letter that follows.
        for text in ["1secret", "1secretly", "12secret", "12secretly"] {
            assert!(redacted(text).contains("[redacted]"), "{text}");
        }
    }

    /// The ways to write a text that the documentation promises to find, each by another encoder than the search's: for a
    /// character, and base64 and hexadecimal digits for all of them.
    const FORMS: [fn(char) -> String; 9] = [
        |char| char.to_string(),
        // The spelling of forms and of paths of URLs.
        |char| url::form_urlencoded::byte_serialize(char.to_string().as_bytes()).collect(),
        |char| match char {
            '!'..='.' | ':'..='@' | '\\' => format!("%{:02x}", u32::from(char)),
            _ => char.to_string(),
        },
        // JSON as most programs, Go, and a few others escape it, and with everything escaped that may be.
        |char| if "\"\\".contains(char) { format!("\\{char}") } else { char.to_string() },
        |char| match char {
            '<' | '>' | '&' => format!("\\u{:04x}", u32::from(char)),
            '"' | '\\' | '/' => format!("\\{char}"),
            _ => char.to_string(),
        },
        |char| format!("\\u{:04X}", u32::from(char)),
        // The spelling of HTML by Go, Python and others.
        |char| match char {
            '"' => "&#34;".to_owned(),
            '\'' => "&#39;".to_owned(),
            _ => html(char),
        },
        |char| match char {
            '\'' => "&#x27;".to_owned(),
            _ => html(char),
        },
        |char| format!("{:02x}", u32::from(char)),
    ];

    fn html(char: char) -> String {
        let named = [('&', "&amp;"), ('<', "&lt;"), ('>', "&gt;"), ('"', "&quot;"), ('\'', "&apos;")];
        named
            .iter()
            .find(|(known, _)| *known == char)
            .map_or(char.to_string(), |(_, name)| (*name).to_owned())
    }

    /// The text that `before` and the secret are written as, and the parts of it that hold characters of the secret alone.
    fn written(secret: &str, before: &str, form: usize) -> (String, Vec<String>) {
        let Some(write) = FORMS.get(form) else {
            let engine = if form.is_multiple_of(2) { STANDARD_NO_PAD } else { URL_SAFE_NO_PAD };
            let text = format!("{before}{secret}");
            // The first characters also hold what is before the secret, and the last what is after it.
            let (first, end) = ((before.len() * 4).div_ceil(3), text.len() * 4 / 3);
            let encoded = engine.encode(text + "!");
            let own = encoded[first..end].chars().map(String::from).collect();
            return (encoded, own);
        };
        let own: Vec<String> = secret.chars().map(write).collect();
        (before.chars().map(write).chain(own.clone()).collect(), own)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn no_eight_characters_in_a_row_come_out_wherever_it_is_cut(
            secret in prop_oneof!["[A-Za-z0-9+/=_.:<>&\"'%-]{12,40}", "[A-Za-z0-9+/=_.:<>&\"'\\\\;#-]{12,40}"],
            before in "[a-z :]{0,5}",
            form in 0..FORMS.len() + 2, cut in 0..240_usize,
        ) {
            let redactor = Redactor::of([&Secret::new(&secret)]);
            let (whole, own) = written(&secret, &before, form);
            let text: String = whole.chars().take(cut).collect();
            let redacted = redactor.text(text);
            for part in own.windows(8) {
                let part = part.concat();
                prop_assert!(!redacted.contains(&part), "{part} in {redacted}");
            }
        }
    }
}
