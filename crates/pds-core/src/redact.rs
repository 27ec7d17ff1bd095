//! Removes secrets from what others have written: replies, and error texts of libraries.
//!
//! If a service echoes a token, it must not become a label or appear on a page or in an error. A secret is found as it
//! is, percent-encoded, and in base64, also within a longer text that is encoded, such as `user:password`. A word that
//! begins like a secret is redacted to its end, so a secret that is cut off, or escaped further on, is found as well.
//! Redact before you shorten.

use std::collections::HashMap;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, Input, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use parking_lot::Mutex;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::secret::{REDACTED, Secret};

/// A shorter token is not searched for in replies: it might be an ordinary word or number.
const MIN_TOKEN_BYTES: usize = 12;
/// The shortest beginning of a secret that counts as one.
const MIN_PART: usize = 8;
/// What a URL may hold as it is (RFC 3986, unreserved).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

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
        let mut forms: Vec<Vec<u8>> = secrets.flat_map(|secret| forms(secret.expose())).collect();
        forms.sort_unstable();
        forms.dedup();
        let mut beginnings: Vec<&[u8]> =
            forms.iter().map(|form| form.get(..MIN_PART).unwrap_or(form)).collect();
        beginnings.dedup();
        if beginnings.is_empty() {
            return None;
        }
        let beginnings =
            AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(beginnings).ok()?;
        Some(Self { beginnings, forms })
    }

    fn redact(&self, body: Vec<u8>) -> Vec<u8> {
        let find = |from: usize| self.beginnings.find(Input::new(&body).range(from..));
        let Some(mut found) = find(0) else { return body };
        let (mut out, mut from) = (Vec::with_capacity(body.len()), 0);
        loop {
            out.extend_from_slice(body.get(from..found.start()).unwrap_or_default());
            out.extend_from_slice(REDACTED.as_bytes());
            let (length, is_whole) = self.length(body.get(found.start()..).unwrap_or_default());
            from = found.end().max(found.start() + length);
            if !is_whole {
                let rest = body.get(from..).unwrap_or_default();
                from += rest.iter().take_while(|byte| is_of_word(**byte)).count();
            }
            match find(from) {
                Some(next) => found = next,
                None => break,
            }
        }
        out.extend_from_slice(body.get(from..).unwrap_or_default());
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

/// Whether a secret, or an escape in it, may go on with this byte.
fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/=_.~-\\%&;#".contains(&byte)
}

/// The texts to search for: the secret, percent-encoded, and for each alignment the part that every base64 text
/// containing it has in common.
fn forms(secret: &str) -> Vec<Vec<u8>> {
    let mut forms = vec![secret.as_bytes().to_vec()];
    for set in [RESERVED, NON_ALPHANUMERIC] {
        let percent = utf8_percent_encode(secret, set).to_string();
        forms.push(percent_lowercase(&percent).into_bytes());
        forms.push(percent.into_bytes());
    }
    for before in 0..3 {
        let text = [&[0; 2][..before.min(2)], secret.as_bytes()].concat();
        // Characters at either end depend on the bytes beside the secret.
        let first = if before == 0 { 0 } else { before + 1 };
        let last = usize::from(text.len() % 3 > 0);
        for encoded in [STANDARD_NO_PAD.encode(&text), URL_SAFE_NO_PAD.encode(&text)] {
            forms.extend(encoded.get(first..encoded.len() - last).map(|form| form.as_bytes().to_vec()));
        }
    }
    forms.retain(|form| !form.is_empty());
    forms
}

/// The same escapes with lower-case digits.
fn percent_lowercase(encoded: &str) -> String {
    let mut parts = encoded.split('%');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2).unwrap_or((part, ""));
        out.extend(["%", &digits.to_lowercase(), rest]);
    }
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

    /// The forms that the documentation promises to find, each made by another encoder than the search's.
    fn written(secret: &str, before: &str, form: u8) -> String {
        let text = format!("{before}{secret}");
        match form {
            0 => text,
            1 => url::form_urlencoded::byte_serialize(text.as_bytes()).collect(),
            2 => STANDARD_NO_PAD.encode(text + "!"),
            _ => URL_SAFE_NO_PAD.encode(text + "!"),
        }
    }

    proptest! {
        #[test]
        fn no_eight_characters_in_a_row_come_out_wherever_it_is_cut(
            secret in "[A-Za-z0-9+/=_.:-]{12,40}", before in "[a-z :]{0,5}", form in 0..4_u8, cut in 0..60_usize,
        ) {
            let redactor = Redactor::of([&Secret::new(&secret)]);
            let whole = written(&secret, &before, form);
            let text: String = whole.chars().take(cut).collect();
            let redacted = redactor.text(text);
            // The first characters of an encoded text also hold what is before the secret, and the last what is after it.
            let own = written(&secret, &before, form);
            let skip = if form < 2 { written("", &before, form).len() } else { (before.len() * 4).div_ceil(3) };
            let end = if form < 2 { own.len() } else { ((before.len() + secret.len()) * 4) / 3 };
            let own = own.get(skip..end).unwrap_or_default().as_bytes();
            for part in own.windows(8) {
                let part = std::str::from_utf8(part).unwrap();
                prop_assert!(!redacted.contains(part), "{part} in {redacted}");
            }
        }
    }
}
