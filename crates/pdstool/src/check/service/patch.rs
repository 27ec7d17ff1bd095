//! Suggested lines, written into a configuration. Everything else in it stays as it is, comments included.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::Path;

use pds_core::plain_file;
use toml_edit::{DocumentMut, InlineTable, Item, Table, TomlError, Value};

use crate::error::{Result, ToolError};
use crate::output::write_private;
use crate::report::Line;
use crate::service::{self, Environment};

/// `text` with these `lines`.
///
/// # Errors
/// If `text` is no TOML.
pub fn text(text: &str, lines: &[Line]) -> Result<String, TomlError> {
    let mut document: DocumentMut = text.parse()?;
    for (section, key, value) in lines {
        let path: Vec<&str> = section.split('.').collect();
        set(document.as_item_mut(), &path, key, value.parse()?);
    }
    Ok(document.to_string())
}

/// Sets `key` of the section at `path` within `item`, a table.
fn set(item: &mut Item, path: &[&str], key: &str, mut value: Value) {
    let inline = item.is_inline_table();
    let Some(table) = item.as_table_like_mut() else { return };
    if let Some((section, path)) = path.split_first() {
        let new = || match inline {
            true => Item::Value(InlineTable::new().into()),
            false => Item::Table(Table::new()),
        };
        return set(table.entry(section).or_insert_with(new), path, key, value);
    }
    if let Some(before) = table.get(key).and_then(Item::as_value) {
        *value.decor_mut() = before.decor().clone();
    }
    table.insert(key, Item::Value(value));
}

/// Writes `lines` into the configuration at `path`, whole or not at all.
///
/// # Errors
/// If the file cannot be read or written, or would not be valid.
pub fn file(path: &Path, lines: &[Line], environment: &Environment) -> Result<()> {
    let failed = |doing| ToolError::file(doing, path);
    // A link stays one.
    let real = path.canonicalize().map_err(failed("cannot find"))?;
    let before = plain_file::read_text(&real, plain_file::MAX_BYTES).map_err(failed("cannot read"))?;
    let former = fs::metadata(&real).map_err(failed("cannot read"))?;
    let after = text(&before, lines)
        .map_err(|error| ToolError::Failed { message: format!("{}: {error}", path.display()), code: 78 })?;
    // Beside it, so that relative paths hold and the file is replaced at once.
    let new = real.with_extension("toml.new");
    let written = write_private(&new, &after, true).and_then(|()| {
        // Whoever checks may be another user than the daemon's.
        let _ = chown(&new, Some(former.uid()), Some(former.gid()));
        fs::set_permissions(&new, former.permissions()).map_err(failed("cannot write"))
    });
    let valid = written.and_then(|()| service::load(&new, environment));
    match valid {
        Ok(_) => fs::rename(&new, &real).map_err(failed("cannot replace")),
        Err(error) => {
            drop(fs::remove_file(&new));
            Err(error)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_changed_or_added_and_everything_else_stays() {
        let before = "# ours\n[api] # the service\nbase_url = \"https://a\" # see the wiki\n\n[api.query_names]\n\
                      start = \"begin\" # a guess\n\n[[projects]]\nid = \"p-1\" # search\n";
        let lines = [
            ("api.query_names", "start", "\"from\"".to_owned()),
            ("api.query_names", "end", "\"to\"".to_owned()),
            ("accounting", "step", "\"5m\"".to_owned()),
        ];
        let after = text(before, &lines).unwrap();
        assert_eq!(
            after,
            "# ours\n[api] # the service\nbase_url = \"https://a\" # see the wiki\n\n[api.query_names]\n\
             start = \"from\" # a guess\nend = \"to\"\n\n[[projects]]\nid = \"p-1\" # search\n\n\
             [accounting]\nstep = \"5m\"\n"
        );
        let inline = "api = { base_url = \"https://a\" } # short\nprojects = [{ id = \"p-1\" }]\n";
        let after = text(inline, &lines[..1]).unwrap();
        assert!(after.contains("base_url = \"https://a\"") && after.contains("# short"), "{after}");
        assert!(
            after.parse::<DocumentMut>().unwrap()["api"]["query_names"]["start"].as_str() == Some("from")
        );
        assert!(text("[", &lines).is_err());
    }

    #[test]
    fn the_file_keeps_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pds-exporter.toml");
        let before = "[api]\nbase_url = \"https://a\"\ntoken = \"t\"\n[[projects]]\nid = \"p-1\"\n";
        fs::write(&path, before).unwrap();
        // Only root can give files away.
        if chown(&path, Some(4711), Some(4712)).is_err() {
            return;
        }
        file(&path, &[("accounting", "step", "\"5m\"".to_owned())], &Vec::new()).unwrap();
        let after = fs::metadata(&path).unwrap();
        assert_eq!((after.uid(), after.gid()), (4711, 4712));
        assert!(fs::read_to_string(&path).unwrap().ends_with("[accounting]\nstep = \"5m\"\n"));
    }
}
