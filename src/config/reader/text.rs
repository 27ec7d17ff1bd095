//! Readers of text: ids, tokens, paths and URLs.

use std::path::PathBuf;
use std::sync::Arc;

use config::Value;

use super::Reader;
use crate::config::key::Kind;
use crate::config::raw::Position;
use crate::config::value;
use pds_core::secret::Secret;

/// A string that is not empty.
#[derive(Debug)]
pub(in crate::config) struct Text;

impl Reader for Text {
    type Value = String;

    fn kind(&self) -> Kind {
        Kind::Text
    }

    fn read(&self, raw: &Value, position: &Position<'_>) -> Option<String> {
        match position.check(value::text(raw))? {
            "" => position.refuse("must not be empty"),
            text => Some(text.to_owned()),
        }
    }
}

/// An id as in the service's paths.
#[derive(Debug)]
pub(in crate::config) struct Id;

impl Reader for Id {
    type Value = Arc<str>;

    fn kind(&self) -> Kind {
        Kind::Text
    }

    fn read(&self, raw: &Value, position: &Position<'_>) -> Option<Arc<str>> {
        position.check(value::id(raw)).map(Arc::from)
    }
}

/// A bearer token.
#[derive(Debug)]
pub(in crate::config) struct Token;

impl Reader for Token {
    type Value = Secret;

    fn kind(&self) -> Kind {
        Kind::Secret
    }

    fn read(&self, raw: &Value, position: &Position<'_>) -> Option<Secret> {
        position.check(value::token(raw)).map(Secret::new)
    }
}

/// The path of a file, relative to the folder of the configuration file.
#[derive(Debug)]
pub(in crate::config) struct File;

impl Reader for File {
    type Value = PathBuf;

    fn kind(&self) -> Kind {
        Kind::Path
    }

    fn read(&self, raw: &Value, position: &Position<'_>) -> Option<PathBuf> {
        match position.check(value::text(raw))? {
            "" => position.refuse("must not be empty; set the path of a file, or remove the key"),
            path => Some(position.shared.folder.join(path)),
        }
    }
}

/// An http or https URL.
#[derive(Debug)]
pub(in crate::config) struct Url {
    /// The keys for user and password; `None` if the URL may contain them.
    pub(in crate::config) credentials_in: Option<&'static str>,
}

impl Reader for Url {
    type Value = url::Url;

    fn kind(&self) -> Kind {
        Kind::Url
    }

    fn read(&self, raw: &Value, position: &Position<'_>) -> Option<url::Url> {
        let url = position.check(value::url(raw))?;
        match self.credentials_in {
            Some(keys) if !url.username().is_empty() || url.password().is_some() => {
                position.refuse(format!("must not contain credentials; use {keys}"))
            }
            _ => Some(url),
        }
    }
}
