//! Where a bearer token comes from: the keys `token_file` and `token` of a section.

use super::key::Key;
use super::raw::Table;
use super::reader::{File, Reader as _, Token};
use super::section::{Row, optional};
use pds_client::TokenSource;

/// The two keys, which exclude each other.
#[derive(Debug)]
pub(super) struct Tokens {
    /// Of `token_file`: an example and the help.
    pub(super) file: (&'static str, &'static str),
    /// Of `token`: the help.
    pub(super) inline: &'static str,
}

const FILE: &str = "token_file";
const INLINE: &str = "token";

impl Row for Tokens {
    type Value = Option<TokenSource>;

    fn declare(&self, path: &str, _: &str, keys: &mut Vec<Key>) {
        optional(File, self.file.0, self.file.1).declare(path, FILE, keys);
        optional(Token, "\"...\"", self.inline).declare(path, INLINE, keys);
    }

    fn read(&self, table: &Table<'_>, _: &str) -> Option<Self::Value> {
        let (file, inline) = (table.get(FILE), table.get(INLINE));
        let (file_at, inline_at) = (table.position(FILE), table.position(INLINE));
        if let (Some(_), Some(_)) = (file, inline) {
            let from =
                file_at.variable.map(|name| format!(" (token_file is set by {name})")).unwrap_or_default();
            return inline_at.refuse(format!("conflicts with token_file; set only one of the two{from}"));
        }
        match (file, inline) {
            (Some(raw), _) => File.read(raw, &file_at).map(TokenSource::File).map(Some),
            (_, Some(raw)) => Token.read(raw, &inline_at).map(TokenSource::Inline).map(Some),
            (None, None) => Some(None),
        }
    }
}
