//! `pdstool check web-config`: the meaning of a web configuration file, or its first problem.

use std::path::Path;

use crate::tool::console::Console;
use crate::tool::error::ToolError;
use crate::tool::page::{self, Block};
use crate::web::webconfig;

/// Checks the file at `path` as the daemon would, with the certificates and keys it names.
///
/// # Errors
/// Its first problem.
pub fn run(console: &mut Console, path: &Path) -> Result<(), ToolError> {
    let summary = webconfig::check(path)?;
    let yes = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
    let users = if summary.users == 0 {
        "none: no password is asked for".to_owned()
    } else {
        summary.users.to_string()
    };
    console.print(&format!("{} is valid", path.display()))?;
    let facts = vec![
        ("TLS", yes(summary.tls)),
        ("HTTP/2", yes(summary.http2)),
        ("client certificates", format!("{:?}", summary.client_auth)),
        ("users", users),
        ("rate limit", summary.rate.map(|rate| format!("{rate:?}")).unwrap_or_default()),
    ];
    let mut blocks = vec![Block::Facts(facts)];
    blocks.extend(summary.notes.iter().map(|note| Block::Text(format!("note: {note}"))));
    Ok(page::print(console, &blocks)?)
}
