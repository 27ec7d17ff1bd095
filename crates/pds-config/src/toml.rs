//! The configuration in force as a file.

use std::fmt::Write as _;

use super::explain::{Explained, Origin};
use pds_core::secret::REDACTED;

/// All settings that differ from the defaults, as a configuration file. Keys with a redacted value are comments.
/// Projects of included files appear like the others.
pub fn toml(rows: &[Explained]) -> String {
    let included = rows.iter().any(|row| row.key.contains(": projects["));
    let keys = rows.iter().filter(|row| row.origin != Origin::Default && !row.key.starts_with("--"));
    let keys = keys.filter(|row| !(included && row.key == "include"));
    let mut text = String::new();
    let mut open = String::new();
    for row in keys {
        let key = row.key.split_once(": ").map_or(row.key.as_str(), |(_, key)| key);
        let (table, name) = match key.rsplit_once('.') {
            // An app given as an id.
            _ if key.ends_with(']') => (key, "id"),
            Some(parts) => parts,
            None => ("", key),
        };
        // The same index in another file is another project.
        let position = format!("{}{table}", row.key.strip_suffix(key).unwrap_or_default());
        if position != open {
            header(&mut text, table);
            open = position;
        }
        let hidden = if row.value.contains(REDACTED) { "# " } else { "" };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{hidden}{name} = {}", row.value);
    }
    text
}

/// The header of `table`: an entry of a list ends in its index.
fn header(text: &mut String, table: &str) {
    let path: String = table.split(['[', ']']).step_by(2).collect();
    let gap = if text.is_empty() { "" } else { "\n" };
    let _ = match (table, table.ends_with(']')) {
        ("", _) => Ok(()),
        (_, true) => writeln!(text, "{gap}[[{path}]]"),
        (_, false) => writeln!(text, "{gap}[{path}]"),
    };
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::load_text;

    use super::*;

    #[test]
    fn the_file_means_the_same() {
        let text = "include = []\n[api]\nbase_url = \"https://api.example.com\"\ntoken_file = \"/run/token\"\n\
            [api.query_names]\nstart = \"from\"\n[poll]\nwindows = [\"5m\", \"1h\"]\n\
            [[projects]]\nid = \"p-1\"\nlabels = { team = \"a \\\"b\\\"\" }\n\
            apps = [\"p-1-a\", { id = \"p-1-b\", interval = \"15s\", containers = [\"c\"] }]\n\
            [[projects]]\nid = \"p-2\"\napps = [\"p-2-a\", \"p-2-b\"]\n";
        let loaded = load_text(Path::new("x.toml"), text).unwrap();
        let file = toml(&loaded.explained);
        let again = load_text(Path::new("x.toml"), &file).unwrap_or_else(|error| panic!("{error}\n{file}"));
        assert_eq!(again.config, loaded.config, "{file}");
        assert!(!file.contains("max_retries"), "what is as by default is left out");
    }

    #[test]
    fn every_character_survives() {
        let team = "a\u{301}\u{0}\u{7f}\u{85}\u{200e}\u{202e}🦀'\n\t\r\\\\u0041";
        let escaped: String = team.chars().map(|c| format!("\\U{:08x}", u32::from(c))).collect();
        let text = format!(
            "[api]\nbase_url = \"https://api.example.com\"\ntoken_file = \"t\"\n\
             [[projects]]\nid = \"p-1\"\nlabels = {{ team = \"{escaped}\" }}\n"
        );
        let loaded = load_text(Path::new("x.toml"), &text).unwrap();
        assert_eq!(loaded.config.projects[0].labels, [("team".to_owned(), team.to_owned())]);
        let file = toml(&loaded.explained);
        let again = load_text(Path::new("x.toml"), &file).unwrap_or_else(|error| panic!("{error}\n{file}"));
        assert_eq!(again.config, loaded.config, "{file}");
        assert!(!file.contains('\u{202e}'), "{file}");
    }

    #[test]
    fn a_secret_is_a_comment() {
        let text =
            "[api]\nbase_url = \"https://api.example.com\"\ntoken = \"hunter2\"\n[[projects]]\nid = \"p\"\n";
        let file = toml(&load_text(Path::new("x.toml"), text).unwrap().explained);
        assert!(file.contains("# token = ") && !file.contains("hunter2"), "{file}");
    }
}
