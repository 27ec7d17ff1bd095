//! Label matchers of a query: `job="pds-exporter",cluster=~"eu-.*"`.

use super::key::Kind;
use super::reader::{Reader, as_text};
use pds_exposition::family::is_label_name;

/// Label matchers, separated by commas, without braces; may be empty. Only the syntax is checked, and not that of
/// regular expressions.
pub(super) fn selector() -> Reader<String> {
    Reader::new(Kind::Text, |raw| matchers(as_text(raw)?))
}

const EXAMPLE: &str = "write for example 'job=\"pds-exporter\"'";

/// Checks that `text` can stand between the braces of a query without closing them. Returns it without a trailing
/// comma.
fn matchers(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.starts_with('{') {
        return Err(format!("must not contain braces; {EXAMPLE}"));
    }
    let mut rest = text;
    while !rest.is_empty() {
        rest = matcher(rest)?.trim_start();
        rest = match rest.strip_prefix(',') {
            Some(rest) => rest.trim_start(),
            None if rest.is_empty() => rest,
            None => return Err(format!("must have a comma between matchers; {EXAMPLE}")),
        };
    }
    Ok(text.trim_end_matches([',', ' ']).to_owned())
}

/// The rest of `text` after its first matcher.
fn matcher(text: &str) -> Result<&str, String> {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    if !is_label_name(name) {
        return Err(format!("must begin with a label name; {EXAMPLE}"));
    }
    if name == "__name__" {
        return Err("must not match __name__; the exporter sets it".to_owned());
    }
    let rest = rest.trim_start();
    let operator = ["=~", "!~", "!=", "="].into_iter().find_map(|operator| rest.strip_prefix(operator));
    let value = operator.ok_or_else(|| format!("must have =, !=, =~ or !~ after {name}; {EXAMPLE}"))?;
    string(value.trim_start()).map_err(|problem| format!("the value of {name} {problem}; {EXAMPLE}"))
}

/// The rest of `text` after the string it begins with.
fn string(text: &str) -> Result<&str, String> {
    let Some(quote) = text.chars().next().filter(|quote| matches!(quote, '"' | '\'' | '`')) else {
        return Err("must be in quotes".to_owned());
    };
    let mut rest = text.chars();
    rest.next();
    while let Some(c) = rest.next() {
        match c {
            _ if c == quote => return Ok(rest.as_str()),
            _ if quote == '`' => {}
            '\n' => return Err("must not contain a line break".to_owned()),
            '\\' => match rest.next() {
                Some('\\' | 'n' | 't') => {}
                Some(escaped) if escaped == quote => {}
                _ => return Err("contains an unknown escape; write a backslash as \\\\".to_owned()),
            },
            _ => {}
        }
    }
    Err("must end with the quote it begins with".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matchers_cannot_close_the_braces() {
        for good in
            ["", "job=\"pds-exporter\"", "job = 'a' , cluster=~\"eu-\\\\d+|us\"", "a!=`\\d}`,b!~\"}{\\\"\""]
        {
            assert_eq!(matchers(good).as_deref(), Ok(good));
        }
        assert_eq!(matchers(" job=\"a\", ").as_deref(), Ok("job=\"a\""));
        for bad in [
            "{job=\"a\"}",
            "job",
            "job=",
            "job=a",
            "job==\"a\"",
            "job=\"a",
            "job=\"a'",
            "job=\"a\"} or vector(1)",
            "job=\"a\" team=\"b\"",
            ",job=\"a\"",
            "job=\"a\",,",
            "0job=\"a\"",
            "jöb=\"a\"",
            "job=\"\\d\"",
            "job=\"\n\"",
            "job=\"a\\",
            "__name__=\"up\"",
            "\"job\"=\"a\"",
        ] {
            assert!(matchers(bad).is_err(), "{bad}");
        }
    }
}
