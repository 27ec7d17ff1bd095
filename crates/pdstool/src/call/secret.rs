//! The reply that holds a secret: printed once, alone, or written to a file with mode 0600.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::console::Console;
use crate::error::ToolError;
use crate::output::OutputFormat;
use crate::page;
use pds_core::printable::plain;
use pds_core::secret::REDACTED;

use pds_interface::Call;

use super::{print_json, show};

/// A new file for a secret. It is created before the call, since a secret that cannot be stored is lost, and removed if
/// nothing is written.
#[derive(Debug)]
pub struct SecretFile {
    path: PathBuf,
    file: File,
    written: bool,
}

impl SecretFile {
    /// Makes the file, with mode 0600.
    ///
    /// # Errors
    /// If it cannot be created, or exists.
    pub fn create(path: &Path) -> Result<Self, ToolError> {
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        let file =
            file.map_err(|source| ToolError::File { doing: "cannot create", path: path.to_owned(), source })?;
        Ok(Self { path: path.to_owned(), file, written: false })
    }

    fn write(&mut self, secret: &str) -> Result<(), ToolError> {
        let written = writeln!(self.file, "{secret}").and_then(|()| self.file.sync_all());
        self.written = true;
        written.map_err(|source| ToolError::File { doing: "cannot write", path: self.path.clone(), source })
    }
}

impl Drop for SecretFile {
    fn drop(&mut self) {
        if !self.written {
            // An empty file left behind does no harm.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Delivers the secret of `reply`: to `file`, or alone on standard output; as JSON with the whole reply. Other fields
/// go to standard error, so that standard output can be piped.
///
/// # Errors
/// If it cannot be written; a secret that does not fit into its file is printed.
pub fn deliver(
    console: &mut Console,
    reply: &[u8],
    file: Option<SecretFile>,
    format: OutputFormat,
    call: &'static Call,
    field: &str,
) -> Result<(), ToolError> {
    let mut known: Value = serde_json::from_slice(reply).unwrap_or_default();
    let Some(secret) = known.get(field).and_then(Value::as_str).map(str::to_owned) else {
        // Not what the interface states, but it must not be lost.
        return print_json(console, reply);
    };
    let Some(mut file) = file else {
        if !format.is_for_people() {
            return print_json(console, reply);
        }
        print_alone(console, &secret)?;
        console.out.flush()?;
        say(console, &redacted(&mut known, field), call, field);
        return Ok(());
    };
    if let Err(error) = file.write(&secret) {
        print_alone(console, &secret)?;
        return Err(error);
    }
    let redacted = redacted(&mut known, field);
    if !format.is_for_people() {
        return print_json(console, &redacted);
    }
    page::print(console, &show::view(call, &redacted)?.blocks)?;
    console.say(&format!("Wrote the key to {}, readable only by you.", file.path.display()));
    Ok(())
}

/// Prints the secret; on a terminal without control characters.
fn print_alone(console: &mut Console, secret: &str) -> std::io::Result<()> {
    if console.out_is_terminal { console.print(&plain(secret)) } else { console.print(secret) }
}

/// The reply without its secret.
fn redacted(reply: &mut Value, field: &str) -> Vec<u8> {
    if let Some(value) = reply.get_mut(field) {
        *value = Value::String(REDACTED.to_owned());
    }
    reply.to_string().into_bytes()
}

/// Prints the other fields of the reply to standard error.
fn say(console: &mut Console, redacted: &[u8], call: &'static Call, field: &str) {
    let Ok(view) = show::view(call, redacted) else { return };
    for block in view.blocks {
        let page::Block::Table(table) = block else { continue };
        for row in table.rows.iter().filter(|row| {
            row.first().is_some_and(|name| name != field) && row.iter().all(|cell| !cell.is_empty())
        }) {
            console.say(&plain(&row.join(": ")));
        }
    }
    console.say("This is the only time the key is shown: save it now.");
}
