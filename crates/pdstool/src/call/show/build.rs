//! A build.

use serde_json::Value;

use crate::call::View;
use crate::page::{self, Align, Block, Table};
use pds_interface::zip_contents::ZipContentsReply;

use super::fields::{Fields, cell};

/// A text longer than this is a file's content and not a fact about it.
const FACT: usize = 60;

/// The files of a build's archive. Their structure is unknown, so nested objects are taken for folders.
pub(super) fn zip_contents(reply: &ZipContentsReply, mut fields: Fields) -> View {
    fields.take("zipFiles");
    let mut rows = Vec::new();
    collect("", &reply.zip_files, &mut rows);
    let columns = page::columns([("FILE", Align::Left), ("CONTENT", Align::Left)]);
    let heading = Block::Heading(format!("Build {}", fields.text("id")));
    fields.after(vec![heading, Block::Table(Table { columns, rows, empty: "no files" })]).into()
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
