//! Removes secrets from what others have written: replies, and error texts of libraries.
//!
//! If a service echoes a token, it must not become a label or appear on a page or in an error. A secret is found as it
//! is, in hexadecimal digits, and in base64, also within a longer text that is encoded, such as `user:password`; each of
//! them also with characters escaped as in URLs, JSON or HTML. A word that begins like a secret is redacted to its end, so
//! a secret that is cut off is found as well. Redact before you shorten.

use std::borrow::Cow;
use std::collections::HashMap;
use std::error::Error;
use std::ops::Range;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, Input, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use parking_lot::Mutex;

use super::error_chain::with_sources;
use super::printable::long_excerpt;
use super::secret::{REDACTED, Secret};

/// A shorter token is not searched for in replies: it might be an ordinary word or number.
const MIN_TOKEN_BYTES: usize = 12;
/// The shortest beginning of a secret that counts as one.
const MIN_PART: usize = 8;
/// The named characters of HTML that secrets may hold.
const ENTITIES: [(&[u8], char); 5] =
    [(b"amp", '&'), (b"lt", '<'), (b"gt", '>'), (b"quot", '"'), (b"apos", '\'')];

/// Finds the secrets in use. Cloning shares them.
#[derive(Clone, Debug, Default)]
pub struct Redactor(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// By owner: the token in use, and the one before it, which usually still works for a while.
    tokens: HashMap<u64, Vec<Secret>>,
    /// Secrets without an owner, which are searched for however short they are.
    fixed: Vec<Secret>,
    /// `None` until it is needed, and if there is nothing to search for.
    matcher: Option<Arc<Matcher>>,
}

impl Redactor {
    /// A redactor of `secrets`, however short.
    pub fn of<'a>(secrets: impl IntoIterator<Item = &'a Secret>) -> Self {
        let fixed = secrets.into_iter().cloned().collect();
        Self(Arc::new(Mutex::new(State { fixed, ..State::default() })))
    }

    /// Sets the token of `owner`; the one before it is still searched for.
    pub fn add(&self, owner: u64, token: &Secret) {
        let mut state = self.0.lock();
        let tokens = state.tokens.entry(owner).or_default();
        if tokens.first() == Some(token) {
            return;
        }
        tokens.insert(0, token.clone());
        tokens.truncate(2);
        state.matcher = None;
    }

    /// Forgets the tokens of `owner`.
    pub fn remove(&self, owner: u64) {
        let mut state = self.0.lock();
        state.tokens.remove(&owner);
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

    /// The text of a library's `error` and its causes, redacted and shortened: it may hold words of the peer, such as those
    /// that end a connection of HTTP/2.
    pub fn error(&self, error: &(dyn Error + 'static)) -> String {
        long_excerpt(&self.text(with_sources(error)))
    }

    fn matcher(&self) -> Option<Arc<Matcher>> {
        let mut state = self.0.lock();
        if state.matcher.is_none() {
            let tokens = state.tokens.values().flatten();
            let tokens = tokens.filter(|token| token.expose().len() >= MIN_TOKEN_BYTES);
            state.matcher = Matcher::new(tokens.chain(&state.fixed)).map(Arc::new);
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
        let mut forms: Vec<_> = secrets.flat_map(|secret| forms(secret.expose().as_bytes())).collect();
        forms.sort_unstable();
        forms.dedup();
        if forms.is_empty() {
            return None;
        }
        let beginnings = forms.iter().map(|form| form.get(..MIN_PART).unwrap_or(form));
        let beginnings =
            AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(beginnings).ok()?;
        Some(Self { beginnings, forms })
    }

    fn redact(&self, body: Vec<u8>) -> Vec<u8> {
        let is_escaped = body.iter().any(|byte| b"%\\&".contains(byte));
        let readings = if is_escaped { &READINGS[..] } else { &[&[] as &[Escape]] };
        let mut found: Vec<_> = readings.iter().flat_map(|escapes| self.find(&body, escapes)).collect();
        if found.is_empty() {
            return body;
        }
        found.sort_unstable_by_key(|secret| secret.start);
        let (mut out, mut at) = (Vec::with_capacity(body.len()), 0);
        for secret in found {
            // A secret that is found by two readings is one.
            if secret.start >= at {
                out.extend_from_slice(body.get(at..secret.start).unwrap_or_default());
                out.extend_from_slice(REDACTED.as_bytes());
            }
            at = at.max(secret.end);
        }
        out.extend_from_slice(body.get(at..).unwrap_or_default());
        out
    }

    /// The parts of `body` that hold a secret once `escapes` are read.
    fn find(&self, body: &[u8], escapes: &[Escape]) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        let text = unescaped(body, escapes);
        // The same place in `text` and in `body`.
        let (mut from, mut at) = (0, 0);
        while let Some(beginning) = self.beginnings.find(Input::new(&*text).range(from..)) {
            let start = at + length(body.get(at..).unwrap_or_default(), beginning.start() - from, escapes);
            let (part, is_whole) = self.length(text.get(beginning.start()..).unwrap_or_default());
            from = beginning.end().max(beginning.start() + part);
            if !is_whole {
                let rest = text.get(from..).unwrap_or_default();
                from += rest.iter().take_while(|byte| is_of_word(**byte)).count();
            }
            at = start + length(body.get(start..).unwrap_or_default(), from - beginning.start(), escapes);
            found.push(start..at);
        }
        found
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

/// The texts to search for: the secret as it is and as a URL means it, its hexadecimal digits, and for each alignment the
/// part that every base64 text containing it has in common.
fn forms(secret: &[u8]) -> Vec<Vec<u8>> {
    // Forms write a space as a plus sign.
    let plus = secret.iter().map(|byte| if *byte == b' ' { b'+' } else { *byte }).collect();
    let mut forms = vec![plus];
    // URLs hold a password escaped.
    for secret in [secret, &*unescaped(secret, &[of_url])] {
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

/// Reads the escape that a text begins with, if it does: appends its meaning and returns its length.
type Escape = fn(&[u8], &mut Vec<u8>) -> Option<usize>;

/// The ways to read a text. Each kind of escape is also read alone, and none, as a secret may hold what looks like the
/// others.
const READINGS: [&[Escape]; 5] = [&[of_url, of_json, of_html], &[of_url], &[of_json], &[of_html], &[]];

/// A byte: `%2B`.
fn of_url(text: &[u8], meaning: &mut Vec<u8>) -> Option<usize> {
    let digits = text.strip_prefix(b"%")?.get(..2)?;
    meaning.push(u8::try_from(number(digits, 16)?).ok()?);
    Some(3)
}

/// A character: `\u002b`, or any after a backslash.
fn of_json(text: &[u8], meaning: &mut Vec<u8>) -> Option<usize> {
    let escaped = text.strip_prefix(b"\\")?;
    let numbered = escaped.strip_prefix(b"u").and_then(|digits| number(digits.get(..4)?, 16));
    if let Some(char) = numbered.and_then(char::from_u32) {
        meaning.extend(char.encode_utf8(&mut [0; 4]).bytes());
        return Some(6);
    }
    meaning.push(*escaped.first()?);
    Some(2)
}

/// A character: `&amp;`, `&#43;` or `&#x2B;`.
fn of_html(text: &[u8], meaning: &mut Vec<u8>) -> Option<usize> {
    let escaped = text.strip_prefix(b"&")?;
    let end = escaped.iter().take(11).position(|byte| *byte == b';')?;
    let char = match escaped.get(..end)? {
        [b'#', b'x' | b'X', digits @ ..] => char::from_u32(number(digits, 16)?)?,
        [b'#', digits @ ..] => char::from_u32(number(digits, 10)?)?,
        name => ENTITIES.iter().find(|(known, _)| *known == name)?.1,
    };
    meaning.extend(char.encode_utf8(&mut [0; 4]).bytes());
    Some(end + 2)
}

/// The number that `digits` stand for, which have no sign.
fn number(digits: &[u8], radix: u32) -> Option<u32> {
    let digits = std::str::from_utf8(digits).ok()?;
    u32::from_str_radix(digits, radix).ok().filter(|_| !digits.starts_with('+'))
}

/// Reads an escape, or a byte as it is: appends its meaning and returns its length.
fn read(text: &[u8], escapes: &[Escape], meaning: &mut Vec<u8>) -> usize {
    escapes.iter().find_map(|escape| escape(text, meaning)).unwrap_or_else(|| {
        meaning.extend(text.first());
        1
    })
}

/// The meaning of `text` once its escapes are read.
fn unescaped<'a>(text: &'a [u8], escapes: &[Escape]) -> Cow<'a, [u8]> {
    if escapes.is_empty() {
        return Cow::Borrowed(text);
    }
    let (mut meaning, mut rest) = (Vec::with_capacity(text.len()), text);
    while !rest.is_empty() {
        let length = read(rest, escapes, &mut meaning);
        rest = rest.get(length..).unwrap_or_default();
    }
    Cow::Owned(meaning)
}

/// How many bytes at the start of `text` mean the first `meant` bytes of its meaning.
fn length(text: &[u8], meant: usize, escapes: &[Escape]) -> usize {
    let (mut meaning, mut at) = (Vec::new(), 0);
    while meaning.len() < meant && at < text.len() {
        at += read(text.get(at..).unwrap_or_default(), escapes, &mut meaning);
    }
    at.min(text.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TOKEN: &str = "s3rvice+acc0unt/t0ken\"=";

    fn redactor() -> Redactor {
        let redactor = Redactor::default();
        redactor.add(1, &Secret::new(TOKEN));
        redactor
    }

    #[test]
    fn tokens_of_every_account_are_found_and_so_is_the_one_before() {
        let redactor = redactor();
        redactor.add(2, &Secret::new("another-t0ken"));
        redactor.add(2, &Secret::new("its-succe55or"));
        let text = format!("{TOKEN} another-t0ken its-succe55or");
        assert_eq!(redactor.text(&text), "[redacted] [redacted] [redacted]");
        redactor.add(2, &Secret::new("third-t0ken-of-it"));
        assert_eq!(redactor.text("another-t0ken its-succe55or"), "another-t0ken [redacted]");
        redactor.remove(2);
        assert_eq!(redactor.text(&text), "[redacted] another-t0ken its-succe55or");
    }

    #[test]
    fn other_text_stays_as_it_is() {
        let redactor = redactor();
        for text in ["", "%", "100%", "{\"a\":\"\\u00e4\\n\\\"\"}", "s3rvice"] {
            assert_eq!(redactor.text(text), text);
        }
        redactor.add(1, &Secret::new("name"));
        assert_eq!(redactor.text(r#"{"name":"a"}"#), r#"{"name":"a"}"#, "a word of the reply is no secret");
        redactor.add(2, &Secret::new("elevenbytes"));
        redactor.add(3, &Secret::new("twelve-bytes"));
        assert_eq!(redactor.text("elevenbytes twelve-bytes"), "elevenbytes [redacted]");
        assert_eq!(redactor.text("twelve- twelve-b"), "twelve- [redacted]", "eight bytes are a beginning");
        let fixed = Redactor::of([&Secret::new("name")]);
        fixed.add(1, &Secret::new("twelve-bytes"));
        fixed.remove(1);
        assert_eq!(fixed.text("no name of twelve-bytes"), "no [redacted] of twelve-bytes");
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
        let looks_escaped = Redactor::of([&Secret::new(r"a&#48;b\\%41-of-a-kind")]);
        for text in [r"a&amp;#48;b\\%41-of-", r"a\u0026#48;b\\\\%41-of-", "a%26%2348%3Bb%5C%5C%2541-of-"] {
            assert_eq!(looks_escaped.text(text), "[redacted]", "{text}");
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
            secret in prop_oneof!["[A-Za-z0-9+/=_.:<>&\"'%-]{12,40}", "[A-Za-z0-9+/=_.:<>&\"'\\\\;#-]{12,40}",
                              "[u0-9x%&#;\\\\]{12,40}"],
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
