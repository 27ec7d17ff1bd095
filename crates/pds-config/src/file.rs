//! Reads the TOML file and the environment.

use std::io;
use std::path::Path;

use config::{FileFormat, Format as _, Map, Value, ValueKind};

use pds_core::plain_file;

use super::error::{LoadError, Problem};
use super::key::{self, ENVIRONMENT_PREFIX, ENVIRONMENT_SEPARATOR, Key, Kind, nearest};

/// The size of a configuration file: a hundred thousand apps with labels take a quarter of it.
pub(super) const MAX_FILE_BYTES: u64 = plain_file::MAX_BYTES;

/// Reads the file at `path`.
pub(super) fn read(path: &Path) -> Result<Map<String, Value>, LoadError> {
    let text = plain_file::read_text(path, MAX_FILE_BYTES).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => LoadError::Missing { path: path.to_owned() },
        _ => LoadError::Unreadable { path: path.to_owned(), source },
    })?;
    parse(path, &text)
}

/// Parses the text of the file at `path`.
pub(super) fn parse(path: &Path, text: &str) -> Result<Map<String, Value>, LoadError> {
    FileFormat::Toml.parse(None, text).map_err(|error| syntax_error(path, text, &*error))
}

/// The values of the declared keys in `environment`, by key. Unknown names with the prefix are problems, and values that
/// were not valid UTF-8.
pub(super) fn read_environment(
    environment: impl IntoIterator<Item = (String, String)>,
    problems: &mut Vec<Problem>,
) -> Map<String, Value> {
    let prefix = format!("{ENVIRONMENT_PREFIX}{ENVIRONMENT_SEPARATOR}");
    let known = key::all().iter().filter_map(|key| Some((key.environment_name()?, key)));
    let known: Vec<(String, &Key)> = known.collect();
    let mut values = Map::new();
    for (name, text) in environment {
        if let Some((_, key)) = known.iter().find(|(known, _)| *known == name) {
            if text.contains(char::REPLACEMENT_CHARACTER) {
                problems.push(Problem { key: name, message: "not valid UTF-8".to_owned() });
                continue;
            }
            values.insert(key.path.clone(), variable(&text, &key.kind));
        } else if name.to_uppercase().starts_with(&prefix) {
            // All names share the prefix.
            let rest = name.get(prefix.len()..).unwrap_or("");
            let near = nearest(rest, known.iter().filter_map(|(known, _)| known.strip_prefix(&prefix)));
            let message = match near {
                Some(near) => format!("unknown variable; did you mean `{prefix}{near}`?"),
                None => "unknown variable; the environment can set only keys outside of lists".to_owned(),
            };
            problems.push(Problem { key: name, message });
        }
    }
    values
}

/// The value of a variable, which is always text, as `kind`. Text that does not convert is left for the row's reader to
/// refuse.
fn variable(text: &str, kind: &Kind) -> Value {
    let typed = match kind {
        Kind::Flag => text.parse().map(ValueKind::Boolean).ok(),
        Kind::Count(_) => text.parse().map(ValueKind::I64).ok(),
        Kind::List(_) => {
            // An empty variable is the empty list.
            let items = text.split(',').filter(|_| !text.trim().is_empty());
            Some(ValueKind::Array(items.map(|item| item.trim().into()).collect()))
        }
        Kind::Headers => headers(text).map(ValueKind::Table),
        _ => None,
    };
    typed.unwrap_or_else(|| text.into()).into()
}

/// The comma-separated pairs `name=value` in `text`; `None` if there is anything else.
fn headers(text: &str) -> Option<Map<String, Value>> {
    let pairs = text.split(',').map(str::trim).filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| pair.split_once('='));
    pairs.map(|pair| pair.map(|(name, value)| (name.trim().to_owned(), value.trim().into()))).collect()
}

/// The error with its position, without the surrounding text, which may hold a token.
fn syntax_error(path: &Path, text: &str, error: &(dyn std::error::Error + 'static)) -> LoadError {
    let (offset, message) = match error.downcast_ref::<toml::de::Error>() {
        Some(error) => (error.span().map_or(0, |span| span.start), error.message().to_owned()),
        // The `config` crate reads numbers itself, and does not report where they are.
        None => {
            let span = toml::from_str::<toml::Table>(text).err().and_then(|error| error.span());
            // The text of this error may quote the number, which may be a token.
            (span.map_or(0, |span| span.start), "a number that does not fit in 64 bits".to_owned())
        }
    };
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    LoadError::Syntax {
        path: path.to_owned(),
        line: before.matches('\n').count() + 1,
        column: before.get(line_start..).unwrap_or("").chars().count() + 1,
        message,
    }
}
