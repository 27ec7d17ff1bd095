//! The labels of a series at rest.

/// Label values that are escaped in a label text, each with its position there.
pub(super) type Escaped = [(u32, Box<str>)];

/// The labels of a series beyond the target's own.
#[derive(Clone, Copy, Debug)]
pub struct Labels<'a> {
    text: &'a str,
    /// Where `text` begins in the text that `escaped` is about.
    offset: usize,
    escaped: &'a Escaped,
}

impl<'a> Labels<'a> {
    pub(super) fn new(text: &'a str, offset: usize, escaped: &'a Escaped) -> Self {
        Self { text, offset, escaped }
    }

    /// The value of the label `name`.
    #[must_use]
    pub fn get(self, name: &str) -> Option<&'a str> {
        self.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// All labels by name and value, in the order they are written.
    pub fn iter(self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let (name, rest) = self.text.get(at..)?.split_once("=\"")?;
            let start = at + name.len() + "=\"".len();
            let length = closing_quote(rest)?;
            at = start + length + "\",".len();
            Some((name, self.put_at(start).or_else(|| rest.get(..length))?))
        })
    }

    /// The value that was escaped at `start`.
    fn put_at(self, start: usize) -> Option<&'a str> {
        let start = u32::try_from(self.offset + start).ok()?;
        let found = self.escaped.binary_search_by_key(&start, |(at, _)| *at).ok()?;
        self.escaped.get(found).map(|(_, value)| &**value)
    }
}

/// The position of the quote that ends a value: the first one that is not escaped.
fn closing_quote(text: &str) -> Option<usize> {
    let mut escape = false;
    text.bytes().position(|byte| {
        let ends = byte == b'"' && !escape;
        escape = byte == b'\\' && !escape;
        ends
    })
}
