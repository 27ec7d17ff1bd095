//! The file tree of a repository.

use crate::call::raw::Raw;
use crate::page::Block;
use pds_core::units;

/// The file tree of a repository, whether the reply nests its entries or lists their paths. The fields of its entries
/// are unknown: an entry without a path or name is shown as received.
pub(super) fn view(mut fields: Raw) -> Vec<Block> {
    let mut root = Node::default();
    root.add_all(fields.take("tree").each(), "");
    let mut lines = Vec::new();
    root.draw("", &mut lines);
    let noun = |count: f64| if count == 1.0 { "entry" } else { "entries" };
    let count = fields.take("totalCount").number();
    let count = count.map(|count| format!("{} {}", units::count(count), noun(count)));
    let cut = (fields.text("truncated") == "true").then(|| "the service truncated the tree".to_owned());
    let summary = count.into_iter().chain(cut).collect::<Vec<_>>().join("; ");
    fields.after(vec![Block::Text(lines.join("\n")), Block::Text(summary)])
}

/// A folder or file of a tree.
#[derive(Debug, Default)]
struct Node {
    name: String,
    folder: bool,
    inside: Vec<Self>,
}

/// Deeper entries are listed beside the last folder.
const MAX_DEPTH: usize = 64;

impl Node {
    /// Adds entries, each below the folders of its path, which may begin with the path of their `parent`.
    fn add_all(&mut self, entries: &[Raw], parent: &str) {
        for entry in entries {
            let text = |names: &[&str]| names.iter().find_map(|name| entry.text_of(name));
            let Some(path) = text(&["path", "name"]) else {
                self.inside.push(Self { name: entry.cell(), ..Self::default() });
                continue;
            };
            let kind = text(&["type", "kind"]);
            let path = path.trim_matches('/');
            let below = path.strip_prefix(parent).and_then(|rest| rest.strip_prefix('/')).unwrap_or(path);
            let node = below.split('/').take(MAX_DEPTH).fold(&mut *self, Self::child);
            node.folder |= kind.is_some_and(|kind| matches!(kind, "tree" | "dir" | "directory"));
            let below = ["children", "tree", "entries"].map(|name| entry.inside(name));
            if let Some(below) = below.iter().find(|below| matches!(below, Raw::List(_))) {
                node.folder = true;
                node.add_all(below.each(), path);
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
