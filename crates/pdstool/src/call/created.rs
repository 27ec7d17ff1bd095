//! Prints the secret of a created key alone, or writes it to a file with mode 0600, and checks the key against the
//! arguments: the names of query parameters are not documented, and a service ignores unknown names.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use jiff::civil::Date;
use serde_json::Value;

use crate::console::Console;
use crate::error::{Result, ToolError};
use crate::options::{OutputFormat, open_private};
use crate::output;
use pds_core::printable::plain;
use pds_core::secret::REDACTED;
use pds_interface::param::{Param, ParamKind};
use pds_interface::reply::json;
use pds_interface::{Arguments, Call};

use super::raw::Raw;
use super::show::fields::flat;
use super::{print_json, print_reply, show};

/// A new file for a secret. It is created before the call, because a secret that cannot be stored is lost, and removed
/// if nothing is written.
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
    pub fn create(path: &Path) -> Result<Self> {
        let file = open_private(path, false).map_err(ToolError::file("cannot create", path))?;
        Ok(Self { path: path.to_owned(), file, written: false })
    }

    fn write(&mut self, secret: &[u8]) -> Result<()> {
        let written = self.file.write_all(&[secret, b"\n"].concat()).and_then(|()| self.file.sync_all());
        self.written = true;
        written.map_err(ToolError::file("cannot write", &self.path))
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

/// Delivers the secret of `reply` to `file`, or alone on standard output, or as JSON in the whole reply. Other fields
/// go to standard error, so that standard output can be piped. A reply that is not `usual` is delivered whole: it may hold
/// the secret.
///
/// # Errors
/// If it cannot be written; a secret that cannot be written to its file is printed.
pub fn deliver(
    console: &mut Console,
    reply: &[u8],
    file: Option<SecretFile>,
    format: OutputFormat,
    call: &'static Call,
    field: &str,
    usual: bool,
) -> Result<()> {
    let mut known = Raw::of(reply);
    let hidden = known.fields_mut().filter(|_| usual).and_then(|fields| fields.get_mut(field));
    let Some(Raw::Text(secret)) =
        hidden.map(|secret| std::mem::replace(secret, Raw::Text(REDACTED.to_owned())))
    else {
        let Some(mut file) = file else { return print_json(console, reply) };
        if !reply.trim_ascii().is_empty() {
            if let Err(error) = file.write(reply) {
                print_json(console, reply)?;
                return Err(error);
            }
            let path = file.path.display();
            console
                .say(&format!("Wrote the whole reply to {path}, readable only by you: it may hold the key."));
        }
        return Ok(());
    };
    // On a terminal without control characters.
    let printed = if console.out_is_terminal { plain(&secret) } else { Cow::Borrowed(&*secret) };
    let Some(mut file) = file else {
        let is_for_people = format.is_for_people();
        let written = if is_for_people {
            console.print(&printed).map_err(ToolError::from)
        } else {
            print_reply(console, format, reply)
        };
        let written = written.and_then(|()| Ok(console.out.flush()?)).and_then(|()| {
            let lost = console.is_unread.get().then(|| ToolError::failed("the output has no reader"));
            lost.map_or(Ok(()), Err)
        });
        if is_for_people || written.is_err() {
            let others = known.fields().map(|fields| flat(fields, false)).unwrap_or_default();
            for (name, value) in others.iter().filter(|(name, value)| name != field && !value.is_empty()) {
                console.say(&plain(&format!("{name}: {value}")));
            }
        }
        written
            .map_err(|error| ToolError::failed(format!("the key exists, but is lost: {}", error.reason())))?;
        if is_for_people {
            console.say("This is the only time the key is shown: save it now.");
        }
        return Ok(());
    };
    if let Err(error) = file.write(secret.as_bytes()) {
        console.print(&printed)?;
        return Err(error);
    }
    let redacted = serde_json::to_vec(&known).map_err(io::Error::from)?;
    if !format.is_for_people() {
        return print_reply(console, format, &redacted);
    }
    output::print_as(console, format, &show::view(call, &redacted)?)?;
    console.say(&format!("Wrote the key to {}, readable only by you.", file.path.display()));
    Ok(())
}

/// Compares the created key with the request. Fields missing in the reply are not compared.
///
/// # Errors
/// If a parameter was ignored. The key exists nonetheless; the error names its id.
pub fn check_created(call: &Call, arguments: &Arguments<'_>, reply: &[u8]) -> Result<()> {
    let created = json(reply);
    let differences: Vec<String> = call
        .query
        .iter()
        .filter_map(|param| difference(param, arguments.get(param.name)?, &created))
        .collect();
    if differences.is_empty() {
        return Ok(());
    }
    let id = match created.get("id").and_then(Value::as_str).filter(|id| !id.is_empty()) {
        Some(id) => format!("it exists, and its id is {id}: delete it"),
        None => "it exists, but the reply has no id: find it and delete it".to_owned(),
    };
    Err(ToolError::failed(format!(
        "the service did not create what was requested: {}; {id}; the parameter names in \
         [api.query_names] may be wrong",
        differences.join(", ")
    )))
}

/// The difference between `created` and the requested value, if any.
fn difference(param: &Param, asked: &str, created: &Value) -> Option<String> {
    let got = created.get(param.name)?.as_str()?;
    let same = match param.kind {
        ParamKind::FutureDate => is_about(got, asked),
        _ => got.trim() == asked.trim(),
    };
    (!same).then(|| format!("{} is '{got}' instead of '{asked}'", param.name))
}

/// Whether the time `got` is on the day `asked`, in any time zone; the day's end counts too.
fn is_about(got: &str, asked: &str) -> bool {
    let day = |time: &str| time.get(.."2026-01-31".len())?.parse::<Date>().ok();
    let apart = day(got).zip(day(asked)).and_then(|(got, asked)| got.since(asked).ok());
    apart.is_some_and(|apart| apart.get_days().abs() <= 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_requested_day_may_end_in_any_time_zone() {
        for got in
            ["2030-01-31", "2030-01-31T00:00:00Z", "2030-01-31T23:59:59.999Z", "2030-02-01T00:00:00+02:00"]
        {
            assert!(is_about(got, "2030-01-31"), "{got}");
        }
        for got in ["never", "", "2031-01-31T00:00:00Z", "2030-02-28", "2026-01-31T00:00:00Z"] {
            assert!(!is_about(got, "2030-01-31"), "{got}");
        }
    }
}
