//! A build.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::interface::spec::{Call as _, DecodeError};
use crate::interface::zip_contents::ZipContents;
use crate::tool::call::View;
use crate::tool::page::{Align, Block, Table};

use super::{cell, further};

/// A text longer than this is a file's content and not a fact about it.
const FACT: usize = 60;

/// The files of a build's archive; their structure is not known, so objects inside are taken for folders.
///
/// # Errors
/// Where the reply is none about an archive.
pub fn zip_contents(body: &[u8]) -> Result<View, DecodeError> {
    let reply = ZipContents::reply(body)?;
    let files: BTreeMap<String, Value> = reply.zip_files.into_iter().collect();
    let mut rows = Vec::new();
    collect("", &files.into_iter().collect(), &mut rows);
    let columns = vec![("FILE", Align::Left), ("", Align::Left)];
    let mut blocks = vec![
        Block::Heading(format!("Build {}", reply.id)),
        Block::Table(Table { columns, rows, empty: "no files" }),
    ];
    blocks.extend(further(&reply.extra));
    Ok(blocks.into())
}

fn collect(folder: &str, files: &serde_json::Map<String, Value>, rows: &mut Vec<Vec<String>>) {
    for (name, value) in files {
        let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
        match value {
            Value::Object(inside) if !inside.is_empty() => collect(&path, inside, rows),
            Value::String(text) if text.chars().count() > FACT || text.contains('\n') => {
                rows.push(vec![path, format!("{} bytes of text", text.len())]);
            }
            value => rows.push(vec![path, cell(value)]),
        }
    }
}
