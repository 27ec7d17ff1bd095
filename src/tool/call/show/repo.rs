//! Repositories of the code-hosting service.

use serde_json::{Map, Value};

use crate::interface::branches::BranchesReply;
use crate::interface::file_tree::FileTreeReply;
use crate::tool::call::View;
use crate::tool::page::{Align, Block, Table};
use crate::units;

use super::fields::{Fields, cell};

/// The branches of a repository.
pub(super) fn branches(reply: &BranchesReply, mut fields: Fields) -> View {
    let columns = vec![
        ("BRANCH", Align::Left),
        ("DEFAULT", Align::Left),
        ("PROTECTED", Align::Left),
        ("SHA", Align::Left),
    ];
    let mark = |value: &Value| match value {
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => String::new(),
        other => cell(other),
    };
    let rows = reply.branches.iter().map(|branch| {
        vec![branch.name.clone(), mark(&branch.default), mark(&branch.protected), branch.sha.clone()]
    });
    let rows = rows.collect();
    fields.take("branches");
    fields.after(vec![Block::Table(Table { columns, rows, empty: "no branches" })]).into()
}

/// The file tree of a repository. The fields of its entries are not known: they are shown by their path or name,
/// what is below them indented.
pub(super) fn tree(reply: &FileTreeReply, mut fields: Fields) -> View {
    let mut lines = Vec::new();
    entries(&reply.tree, 0, &mut lines);
    let count = reply.total_count.value().map(|count| format!("{} entries", units::count(count)));
    let cut = reply.truncated.unwrap_or(false).then(|| "the service cut the tree short".to_owned());
    let summary: Vec<String> = count.into_iter().chain(cut).collect();
    for shown in ["tree", "totalCount", "truncated"] {
        fields.take(shown);
    }
    fields.after(vec![Block::Text(lines.join("\n")), Block::Text(summary.join("; "))]).into()
}

fn entries(tree: &[Value], depth: usize, lines: &mut Vec<String>) {
    let indent = "  ".repeat(depth);
    for entry in tree {
        let fields = entry.as_object();
        let text = |names: &[&str]| names.iter().find_map(|name| fields?.get(*name)?.as_str());
        match text(&["path", "name"]) {
            Some(name) => {
                let kind =
                    text(&["type", "kind"]).filter(|kind| matches!(*kind, "tree" | "dir" | "directory"));
                lines.push(format!("{indent}{name}{}", if kind.is_some() { "/" } else { "" }));
            }
            None => lines.push(format!("{indent}{}", cell(entry))),
        }
        if let Some(below) = fields.and_then(below) {
            entries(below, depth + 1, lines);
        }
    }
}

/// The entries inside an entry.
fn below(fields: &Map<String, Value>) -> Option<&Vec<Value>> {
    ["children", "tree", "entries"].iter().find_map(|name| fields.get(*name)?.as_array())
}
