//! `config.example.toml`: every key with its default and one line of help.

use std::fmt::Write as _;

use super::key::{Key, Preset};
use super::keys;

const HEAD: &str = "\
# The configuration of pds-exporter. Every key is here, with its default or, commented out, with an example.
# The environment overrides keys outside [[projects]]: PDS_EXPORTER__API__BASE_URL, PDS_EXPORTER__POLL__WINDOWS=\"5m,1h\".
# Durations are strings such as \"90s\" or \"1h 30m\".

";

/// Keys without a default that the example sets, so that it is a valid configuration.
const SHOWN: &[&str] = &["api.token_file", "projects[].apps"];

/// The text of the file.
#[must_use]
pub fn text() -> String {
    let mut out = HEAD.to_owned();
    let mut section = "";
    for key in keys::all() {
        let (its_section, name) = key.split();
        if its_section != section {
            section = its_section;
            out.push_str(&heading(section));
        }
        // Writing to a String cannot fail.
        let _ = writeln!(out, "# {}", key.why);
        let _ = writeln!(out, "{}{name} = {}\n", comment(key), key.preset.example());
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

fn heading(section: &str) -> String {
    match section.strip_suffix("[]") {
        None if section.is_empty() => String::new(),
        None => format!("[{section}]\n"),
        Some("projects") => "[[projects]]\n".to_owned(),
        // A list inside a list entry: apps as tables instead of ids.
        Some(_) => "# An app as a table: { id = \"...\", interval = \"15s\" }. Its keys:\n\n".to_owned(),
    }
}

fn comment(key: &Key) -> &'static str {
    let set = match key.preset {
        Preset::Default(_) => true,
        Preset::Required(_) => !key.path.contains("apps[]"),
        Preset::Unset(_) => SHOWN.contains(&&*key.path),
    };
    if set { "" } else { "# " }
}
