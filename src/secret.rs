//! Text that must never be shown: it redacts itself, and redacts itself out of other people's texts.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use memchr::memmem::Finder;
use serde::{Deserialize, Deserializer};

/// What stands where a secret would have stood.
pub const REDACTED: &str = "[redacted]";

/// A shorter secret is not looked for in replies: it might be a word of theirs, or a number.
const MIN: usize = 12;

/// A token, password or key. `Debug` and `Display` show [`REDACTED`]; only [`Secret::expose`] gives the text.
#[derive(Clone)]
pub struct Secret(Arc<Inner>);

struct Inner {
    text: Box<str>,
    /// Finds the text, and the text as JSON may have it, where that differs: with `\/` for each slash.
    forms: Vec<Finder<'static>>,
}

impl Secret {
    /// Wraps `text` as it is.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let mut forms = vec![text.to_owned(), text.replace('/', "\\/")];
        forms.dedup();
        forms.retain(|form| form.len() >= MIN);
        let forms = forms.iter().map(|form| Finder::new(form).into_owned()).collect();
        Self(Arc::new(Inner { text: text.into(), forms }))
    }

    /// The text itself, for the one place that sends it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0.text
    }

    /// `text` with every occurrence of the secret replaced by [`REDACTED`]. For error texts of libraries, which may
    /// echo what was sent.
    #[must_use]
    pub fn redact(&self, text: &str) -> String {
        if self.0.text.is_empty() { text.to_owned() } else { text.replace(&*self.0.text, REDACTED) }
    }

    /// The same for the body of a reply, before anyone reads it; given back as it is where nothing of it is secret.
    /// Secrets of less than 12 bytes are left, for they might be part of what the reply says.
    #[must_use]
    pub fn redact_reply(&self, mut body: Vec<u8>) -> Vec<u8> {
        for form in &self.0.forms {
            let (mut without, mut from) = (Vec::new(), 0);
            for at in form.find_iter(&body) {
                without.extend_from_slice(body.get(from..at).unwrap_or_default());
                without.extend_from_slice(REDACTED.as_bytes());
                from = at + form.needle().len();
            }
            if from > 0 {
                without.extend_from_slice(body.get(from..).unwrap_or_default());
                body = without;
            }
        }
        body
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.0.text == other.0.text
    }
}

impl Eq for Secret {}

impl Hash for Secret {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.text.hash(state);
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self::new(&text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_never_prints_itself() {
        let secret = Secret::new("hunter2-token");
        assert_eq!(
            format!("{secret} {secret:?} {:?}", Some(&secret)),
            "[redacted] [redacted] Some([redacted])"
        );
        assert_eq!(secret.redact("bad token hunter2-token!"), "bad token [redacted]!");
        assert_eq!(Secret::new("").redact("nothing to hide"), "nothing to hide");
    }

    #[test]
    fn a_reply_is_rid_of_it_however_json_writes_it() {
        let redacted = |secret: &str, body: &str| {
            String::from_utf8(Secret::new(secret).redact_reply(body.into())).unwrap()
        };
        assert_eq!(
            redacted("hunter2/token", r#"{"name":"hunter2/token","again":"xhunter2\/tokenhunter2/token"}"#),
            r#"{"name":"[redacted]","again":"x[redacted][redacted]"}"#
        );
        assert_eq!(redacted("", "nothing to hide"), "nothing to hide");
        assert_eq!(
            redacted("name", r#"{"name":"a"}"#),
            r#"{"name":"a"}"#,
            "a word of the reply is no secret"
        );
    }
}
