//! Repositories of the code-hosting service.

use serde_json::{Map, Value};

use crate::call::View;
use crate::page::{self, Align, Block, Table};
use pds_core::units;
use pds_interface::branches::BranchesReply;
use pds_interface::file_tree::FileTreeReply;

use super::fields::{Fields, cell};

/// The branches of a repository.
pub(super) fn branches(reply: &BranchesReply, mut fields: Fields) -> View {
    let columns = page::columns([
        ("BRANCH", Align::Left),
        ("DEFAULT", Align::Left),
        ("PROTECTED", Align::Left),
        ("SHA", Align::Left),
    ]);
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

/// The file tree of a repository, whether the reply nests its entries or lists their paths. The fields of its entries
/// are not known: an entry without a path or name is shown as it came.
pub(super) fn tree(reply: &FileTreeReply, mut fields: Fields) -> View {
    let mut root = Node::default();
    root.add_all(&reply.tree);
    let mut lines = Vec::new();
    root.draw("", &mut lines);
    let count = reply.total_count.value().map(|count| format!("{} entries", units::count(count)));
    let cut = reply.truncated.unwrap_or(false).then(|| "the service cut the tree short".to_owned());
    let summary: Vec<String> = count.into_iter().chain(cut).collect();
    for shown in ["tree", "totalCount", "truncated"] {
        fields.take(shown);
    }
    fields.after(vec![Block::Text(lines.join("\n")), Block::Text(summary.join("; "))]).into()
}

/// A folder or file of a tree.
#[derive(Debug, Default)]
struct Node {
    name: String,
    folder: bool,
    inside: Vec<Self>,
}

/// Deeper entries stand beside the last folder.
const MAX_DEPTH: usize = 64;

impl Node {
    /// Adds entries, each below the folders of its path.
    fn add_all(&mut self, entries: &[Value]) {
        for entry in entries {
            let fields = entry.as_object();
            let text = |names: &[&str]| names.iter().find_map(|name| fields?.get(*name)?.as_str());
            let Some(path) = text(&["path", "name"]) else {
                self.inside.push(Self { name: cell(entry), ..Self::default() });
                continue;
            };
            let kind = text(&["type", "kind"]);
            let node = path.trim_matches('/').split('/').take(MAX_DEPTH).fold(&mut *self, Self::child);
            node.folder |= kind.is_some_and(|kind| matches!(kind, "tree" | "dir" | "directory"));
            if let Some(below) = fields.and_then(below) {
                node.folder = true;
                node.add_all(below);
            }
        }
    }

    /// The child of this name, added if missing.
    fn child(&mut self, name: &str) -> &mut Self {
        let known = self.inside.iter().position(|child| child.name == name);
        let at = known.unwrap_or_else(|| {
            self.inside.push(Self { name: name.to_owned(), ..Self::default() });
            self.inside.len() - 1
        });
        &mut self.inside[at]
    }

    /// A line for each entry inside, with lines to its folder.
    fn draw(&self, indent: &str, lines: &mut Vec<String>) {
        for (at, child) in self.inside.iter().enumerate() {
            let last = at + 1 == self.inside.len();
            let slash = if child.folder || !child.inside.is_empty() { "/" } else { "" };
            lines.push(format!("{indent}{}{}{slash}", if last { "└── " } else { "├── " }, child.name));
            child.draw(&format!("{indent}{}", if last { "    " } else { "│   " }), lines);
        }
    }
}

/// The entries inside an entry.
fn below(fields: &Map<String, Value>) -> Option<&Vec<Value>> {
    ["children", "tree", "entries"].iter().find_map(|name| fields.get(*name)?.as_array())
}
