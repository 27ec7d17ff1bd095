//! Merges defaults, TOML file and environment with the `config` crate.
//!
//! The result is a tree of values with their origins. Unknown keys are reported and removed here; the sections read the
//! rest.

use std::io;
use std::path::Path;

use config::{Environment, FileFormat, Format as _, Map, Source, Value, ValueKind};

use pds_core::plain_file;

use super::error::{LoadError, Problem};
use super::key::{ENVIRONMENT_PREFIX, ENVIRONMENT_SEPARATOR, Key, Kind, as_written, join};
use super::keys::{self, nearest};

/// The size of a configuration file: a hundred thousand apps with labels take a quarter of it.
pub(super) const MAX_FILE_BYTES: u64 = plain_file::MAX_BYTES;

/// The raw configuration.
#[derive(Debug)]
pub(super) struct Raw {
    /// The tree of declared keys.
    pub(super) values: Map<String, Value>,
    /// The keys that are not declared.
    pub(super) problems: Vec<Problem>,
}

/// Merges `file` over the defaults, and `environment` over both.
pub(super) fn layers(
    mut file: Map<String, Value>,
    environment: impl IntoIterator<Item = (String, String)>,
) -> Result<Raw, LoadError> {
    let mut problems = Vec::new();
    keep_declared(&mut file, "", "", &mut problems);
    let environment = read_environment(environment, &mut problems)?;
    let layers = config::Config::builder()
        .add_source(config::File::from_str(&keys::defaults(), FileFormat::Toml))
        .add_source(Layer(file))
        .add_source(Layer(environment))
        .build()?;
    Ok(Raw { values: layers.collect()?, problems })
}

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
    let origin = path.display().to_string();
    FileFormat::Toml.parse(Some(&origin), text).map_err(|error| syntax_error(path, text, &*error))
}

/// One layer of values, with declared keys only: the `config` crate takes a top-level key for a path, and would
/// allocate the whole list for `"a[9999999999]"`.
#[derive(Clone, Debug)]
struct Layer(Map<String, Value>);

impl Source for Layer {
    fn clone_into_box(&self) -> Box<dyn Source + Send + Sync> {
        Box::new(self.clone())
    }

    fn collect(&self) -> Result<Map<String, Value>, config::ConfigError> {
        Ok(self.0.clone())
    }
}

/// The declared keys in `environment`, by path, converted to their kind. Unknown names with the prefix are problems.
fn read_environment(
    environment: impl IntoIterator<Item = (String, String)>,
    problems: &mut Vec<Problem>,
) -> Result<Map<String, Value>, LoadError> {
    let prefix = format!("{ENVIRONMENT_PREFIX}{ENVIRONMENT_SEPARATOR}");
    let known: Vec<String> = keys::all().iter().filter_map(Key::environment_name).collect();
    let mut declared = Map::new();
    for (name, value) in environment {
        if known.contains(&name) {
            declared.insert(name, value);
        } else if name.to_uppercase().starts_with(&prefix) {
            // All names share the prefix.
            let rest = name.get(prefix.len()..).unwrap_or("");
            let near = nearest(rest, known.iter().filter_map(|known| known.strip_prefix(&prefix)));
            let message = match near {
                Some(near) => format!("unknown variable; did you mean `{prefix}{near}`?"),
                None => {
                    "unknown variable; only keys outside of lists can be set by the environment".to_owned()
                }
            };
            problems.push(Problem { key: name, message });
        }
    }
    let mut values = Environment::with_prefix(ENVIRONMENT_PREFIX)
        .separator(ENVIRONMENT_SEPARATOR)
        .source(Some(declared))
        .collect()?;
    for (path, value) in &mut values {
        if let Some(key) = keys::find(path) {
            take_kind(value, &key.kind);
        }
    }
    Ok(values)
}

/// Converts a variable, which is always text, to `kind`. A value that does not convert is left for the row's reader
/// to refuse.
fn take_kind(value: &mut Value, kind: &Kind) {
    let ValueKind::String(text) = &value.kind else { return };
    let typed = match kind {
        Kind::Flag => text.parse().map(ValueKind::Boolean).ok(),
        Kind::Count { .. } => text.parse().map(ValueKind::I64).ok(),
        Kind::List(_) | Kind::Apps => {
            let origin = value.origin().map(str::to_owned);
            // An empty variable is the empty list.
            let items = text.split(',').filter(|_| !text.trim().is_empty());
            let items = items.map(|item| Value::new(origin.as_ref(), item.trim()));
            Some(ValueKind::Array(items.collect()))
        }
        Kind::Headers => headers(text, value.origin()).map(ValueKind::Table),
        _ => None,
    };
    if let Some(typed) = typed {
        value.kind = typed;
    }
}

/// The comma-separated pairs `name=value` in `text`; `None` if there is anything else.
fn headers(text: &str, origin: Option<&str>) -> Option<Map<String, Value>> {
    let pairs = text.split(',').map(str::trim).filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| pair.split_once('='));
    let origin = origin.map(str::to_owned);
    let value = |value: &str| Value::new(origin.as_ref(), value.trim());
    pairs.map(|pair| pair.map(|(name, text)| (name.trim().to_owned(), value(text)))).collect()
}

/// Removes undeclared keys from `table`, which is the section `declared` and shown to the user as `shown`, and records
/// each as a problem. Descends into sections and lists of tables.
fn keep_declared(table: &mut Map<String, Value>, declared: &str, shown: &str, problems: &mut Vec<Problem>) {
    table.retain(|name, value| {
        let path = join(declared, name);
        let key = join(shown, &as_written(name));
        let problem = if name.contains(['.', '[']) {
            Some(keys::instead_of(declared, name))
        } else if keys::is_section(&path) {
            match &mut value.kind {
                ValueKind::Table(section) => {
                    keep_declared(section, &path, &key, problems);
                    None
                }
                _ => Some(format!("must be a table; write [{path}] and its keys below it")),
            }
        } else if keys::is_list(&path) {
            return keep_entries(value, &path, &key, problems);
        } else if keys::find(&path).is_none() {
            Some(keys::instead_of(declared, name))
        } else {
            None
        };
        let keep = problem.is_none();
        problems.extend(problem.map(|message| Problem { key, message }));
        keep
    });
}

/// Does the same for the entries of a list. Entries that are not tables are left for the rows.
pub(super) fn keep_entries(value: &mut Value, path: &str, shown: &str, problems: &mut Vec<Problem>) -> bool {
    if let ValueKind::Array(entries) = &mut value.kind {
        for (index, entry) in entries.iter_mut().enumerate() {
            if let ValueKind::Table(entry) = &mut entry.kind {
                keep_declared(entry, &format!("{path}[]"), &format!("{shown}[{index}]"), problems);
            }
        }
    }
    true
}

/// The error with its position, without the surrounding text, which may hold a token.
fn syntax_error(path: &Path, text: &str, error: &(dyn std::error::Error + 'static)) -> LoadError {
    let (offset, message) = match error.downcast_ref::<toml::de::Error>() {
        Some(error) => (error.span().map_or(0, |span| span.start), error.message().to_owned()),
        // The `config` crate reads numbers itself, and does not report where they are.
        None => (number_beyond_64_bits(text), "a number that does not fit in 64 bits".to_owned()),
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

/// The offset of the first number that does not fit in 64 bits.
fn number_beyond_64_bits(text: &str) -> usize {
    use toml::de::{DeTable, DeValue};

    fn find(value: &toml::Spanned<DeValue<'_>>) -> Option<usize> {
        let beyond = match value.get_ref() {
            DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix()).is_err(),
            DeValue::Float(number) => {
                number.as_str().parse::<f64>().is_ok_and(f64::is_infinite) && !number.as_str().contains("inf")
            }
            DeValue::Array(items) => return items.iter().filter_map(find).min(),
            DeValue::Table(table) => return table.values().filter_map(find).min(),
            _ => false,
        };
        beyond.then(|| value.span().start)
    }

    let Ok(table) = DeTable::parse(text) else { return 0 };
    table.get_ref().values().filter_map(find).min().unwrap_or(0)
}
