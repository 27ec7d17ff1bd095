//! Path templates with `{name}` placeholders, and the percent-encoder.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// Everything but RFC 3986's unreserved characters is encoded in a path segment or query value.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Appends `text` to `out` as a path segment, query name or query value.
pub fn percent_encode(text: &str, out: &mut String) {
    out.extend(utf8_percent_encode(text, RESERVED));
}

/// A text with `{name}` where values go, such as a call's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Template<'a>(pub &'a str);

impl<'a> Template<'a> {
    /// The names in it, in order.
    pub fn names(self) -> impl Iterator<Item = &'a str> {
        self.parts().filter_map(|(_, name)| name)
    }

    /// The template with `write` appending the value of each name.
    pub fn fill(self, mut write: impl FnMut(&'a str, &mut String)) -> String {
        let mut filled = String::with_capacity(self.0.len() + 32);
        for (text, name) in self.parts() {
            filled.push_str(text);
            if let Some(name) = name {
                write(name, &mut filled);
            }
        }
        filled
    }

    /// The decoded values in `path`, if it has this form. A value is not empty, is valid UTF-8 and ends at the next
    /// `/`.
    pub fn values(self, path: &str) -> Option<Vec<(&'a str, String)>> {
        let (mut rest, mut values) = (path, Vec::new());
        for (text, name) in self.parts() {
            rest = rest.strip_prefix(text)?;
            let Some(name) = name else { continue };
            let (value, after) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            if value.is_empty() {
                return None;
            }
            values.push((name, percent_decode_str(value).decode_utf8().ok()?.into_owned()));
            rest = after;
        }
        rest.is_empty().then_some(values)
    }

    /// Each text with the name after it, which only the last lacks.
    fn parts(self) -> impl Iterator<Item = (&'a str, Option<&'a str>)> {
        let mut rest = Some(self.0);
        std::iter::from_fn(move || {
            let text = rest.take()?;
            // An unclosed brace is literal.
            let named = text.split_once('{').and_then(|(text, rest)| Some((text, rest.split_once('}')?)));
            let Some((text, (name, after))) = named else { return Some((text, None)) };
            rest = Some(after);
            Some((text, Some(name)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_names_fills_and_matches_its_values() {
        let template = Template("/v2/{a}/x/{b}");
        assert_eq!(template.names().collect::<Vec<_>>(), ["a", "b"]);
        let filled = template.fill(|name, out| percent_encode(if name == "a" { "p/1" } else { "🦀" }, out));
        assert_eq!(filled, "/v2/p%2F1/x/%F0%9F%A6%80");
        let values = template.values(&filled).unwrap();
        assert_eq!(values, [("a", "p/1".to_owned()), ("b", "🦀".to_owned())]);
        for other in ["/v2//x/b", "/v2/a/x", "/v2/a/x/b/", "/v2/a/y/b", "/v2/a/x/%FF"] {
            assert_eq!(template.values(other), None, "{other}");
        }
    }

    #[test]
    fn an_unclosed_brace_is_literal() {
        let template = Template("é{a}{ {b");
        assert_eq!(template.names().collect::<Vec<_>>(), ["a"]);
        assert_eq!(template.fill(|_, out| out.push('1')), "é1{ {b");
    }
}
