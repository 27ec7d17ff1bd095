//! `pdstool call`: every call of the interface as a subcommand.
//!
//! The row of a call in [`CALLS`](pds_interface::CALLS) is its subcommand: identifiers in the path and fields of the
//! body become arguments, query parameters become options. The rules of the interface are checked before anything is
//! sent; a call that cannot be undone or costs money prompts first.
//!
//! - [`arguments`]: calls as clap commands, and their parsed arguments.
//! - [`created`]: a created secret, and whether it is as requested.
//! - [`raw`]: replies with their numbers as written.
//! - [`show`]: replies for people.

pub mod arguments;
pub mod created;
pub mod raw;
pub mod show;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;
use pds_client::request_url;
use pds_config::Config;
use pds_core::printable::{long_excerpt, plain_lines};
use pds_core::secret::REDACTED;
use pds_core::units;
use pds_interface::polled::Terms;
use pds_interface::{ReplyBody as _, Request};

use super::console::Console;
use super::error::{Result, ToolError};
use super::options::OutputFormat;
use super::output;
use super::service::{self, Environment, Service, ServiceArgs};

pub use arguments::Called;
use raw::Raw;
use show::fields::{Field, flat, names, value};

/// `pdstool call`, with the options of every call.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Call options")]
pub struct CallArgs {
    /// Project [default: the only configured project].
    #[arg(long, value_name = "ID", env = "PDSTOOL_PROJECT", hide_env_values = true, global = true)]
    project: Option<String>,

    /// Output format [default: table on a terminal, json elsewhere].
    #[arg(short, long, value_name = "FORMAT", global = true)]
    output: Option<OutputFormat>,

    /// Do not prompt before a call that cannot be undone or costs money.
    #[arg(long, global = true)]
    yes: bool,

    /// Print the request instead of sending it.
    #[arg(long, global = true)]
    dry_run: bool,

    /// Write a created secret to this new file (mode 0600) instead of printing it.
    #[arg(long, value_name = "FILE", global = true)]
    secret_file: Option<PathBuf>,

    #[command(flatten)]
    service: ServiceArgs,

    #[command(subcommand)]
    called: Called,
}

/// Makes the call.
///
/// # Errors
/// If arguments break a rule, a question is answered with no, or the service refuses.
pub async fn run(console: &mut Console, environment: &Environment, mut args: CallArgs) -> Result<()> {
    let call = args.called.call;
    let config = args.service.load(environment)?;
    if call.path.names().any(|name| name == "project_id") {
        let app = args.called.given.get("app_id").map(String::as_str);
        let project = service::project(&config, args.project.as_deref(), app)?;
        args.called.given.insert("project_id", project);
    }
    let arguments = args.called.arguments(Timestamp::now());
    let request = call.request(&arguments, &config.api.query_names)?;
    if args.dry_run {
        return dry_run(console, &config, &args, &request);
    }
    if args.secret_file.is_some() && call.command.secret.is_none() {
        return Err(ToolError::Usage("--secret-file is only for calls that create a secret".to_owned()));
    }
    if config.api.token.is_none() && config.projects.is_empty() {
        let message = "no token is configured: use --token-file with --base-url, or set api.token_file";
        return Err(ToolError::Failed { message: message.to_owned(), code: 4 });
    }
    if let Some(consequence) = call.command.consequence {
        let filled = consequence.fill(|name, text| text.push_str(arguments.get(name).unwrap_or_default()));
        console.confirm(&filled, args.yes)?;
    }
    let file = args.secret_file.as_deref().map(created::SecretFile::create).transpose()?;
    let service = Service::new(config)?;
    // A call without a project uses the token of the project given, if any.
    let project = args.called.given.get("project_id").or(args.project.as_ref());
    let account = match (project, &*service.accounts()) {
        (Some(project), _) => service.client.account(project),
        (None, [only]) => only.clone(),
        (None, several) => {
            return Err(ToolError::Usage(format!(
                "{} tokens are configured: use --project; pdstool check token prints the projects of each",
                units::count(several.len())
            )));
        }
    };
    let usual = if console.out_is_terminal { OutputFormat::Table } else { OutputFormat::Json };
    let format = args.output.unwrap_or(usual);
    let reply = service.call(&account, &request).await?;
    let unusable = |source| {
        let said = match call.command.consequence {
            Some(_) => "the reply does not confirm the call",
            None => "the reply cannot be used",
        };
        let is_printed = call.command.consequence.is_some() || format == OutputFormat::Json;
        let hint = if is_printed { "" } else { "; --output json prints it as received" };
        ToolError::Reply { said: format!("{said}{hint}"), source }
    };
    let id = |name| arguments.get(name).unwrap_or_default();
    let terms = Terms::about(id("project_id"), id("app_id"));
    let verdict = call.judge(&reply, &terms);
    if let Some(field) = call.command.secret {
        created::deliver(console, &reply, file, format, call, field, verdict.is_ok())?;
        verdict.map_err(unusable)?;
        return created::check_created(call, &arguments, &reply);
    }
    // An invalid reply is printed unchanged as JSON. In other formats it is not among the results, but must be seen if
    // nobody should make the call again.
    let view = verdict.and_then(|()| show::view(call, &reply));
    let lists_no_field = || {
        let reply = Raw::of(&reply);
        reply.entries().is_some_and(|list| list.iter().all(|entry| entry.is_empty()))
    };
    match (&view, format) {
        (Err(_), OutputFormat::Csv | OutputFormat::Table | OutputFormat::Wide) => {
            if call.command.consequence.is_some() && !reply.is_empty() {
                console.say(&format!("Reply: {}", long_excerpt(&String::from_utf8_lossy(&reply))));
            }
        }
        (Ok(view), OutputFormat::Table | OutputFormat::Wide) => output::print_as(console, format, view)?,
        (Ok(view), OutputFormat::Csv) if lists_no_field() => output::print_as(console, format, view)?,
        _ => print_reply(console, format, &reply)?,
    }
    view.map_err(unusable)?;
    show::failure(call, &reply).map_or(Ok(()), |message| Err(ToolError::failed(message)))
}

/// Prints the request as it would be sent, without the token.
fn dry_run(console: &mut Console, config: &Config, args: &CallArgs, request: &Request) -> Result<()> {
    let (method, url) = (request.method.as_str(), request_url(&config.api.base_url, request));
    if args.output == Some(OutputFormat::Json) {
        let request = serde_json::json!({ "method": method, "url": url, "body": request.body });
        return Ok(console.print(&request.to_string())?);
    }
    console.print(&format!("{method} {url}\nAuthorization: Bearer {REDACTED}"))?;
    if let Some(body) = &request.body {
        console.print(&format!("Content-Type: application/json\n\n{body}"))?;
    }
    Ok(())
}

/// Writes a reply for programs.
fn print_reply(console: &mut Console, format: OutputFormat, reply: &[u8]) -> Result<()> {
    match format {
        OutputFormat::Csv => Ok(print_csv(console, reply)?),
        _ => print_json(console, reply),
    }
}

/// Writes a reply as received; JSON is indented on a terminal.
fn print_json(console: &mut Console, reply: &[u8]) -> Result<()> {
    if console.out_is_terminal {
        let text = match Raw::of(reply) {
            Raw::Null => String::from_utf8_lossy(reply).into_owned(),
            value => serde_json::to_string_pretty(&value).map_err(io::Error::from)?,
        };
        console.print(&plain_lines(&text))?;
    } else {
        console.out.write_all(reply)?;
        if !reply.is_empty() && !reply.ends_with(b"\n") {
            console.out.write_all(b"\n")?;
        }
    }
    Ok(console.out.flush()?)
}

/// Prints a reply as comma-separated values, as the service sends them: a row for each entry of its list, with the fields
/// around the list; or for each of its fields if it has none.
fn print_csv(console: &mut Console, reply: &[u8]) -> io::Result<()> {
    let mut fields = Raw::of(reply);
    if fields == Raw::Null {
        let lossy = |_| String::from_utf8_lossy(reply).trim().to_owned();
        fields = Raw::Text(String::decode(reply).unwrap_or_else(lossy));
    }
    let entries = take_entries(&mut fields);
    let mut around = match fields {
        Raw::Fields(fields) => flat(&fields, true),
        Raw::Null => Vec::new(),
        other => vec![(String::new(), other.cell())],
    };
    let Some(entries) = entries else {
        let rows: Vec<_> = around.into_iter().map(|(name, value)| vec![name, value]).collect();
        return output::print_csv_rows(console, &["field", "value"], &rows);
    };
    let entries: Vec<_> = entries.iter().map(|entry| flat(entry, true)).collect();
    let own = names(&entries);
    for (name, _) in around.iter_mut().filter(|(name, _)| own.contains(&&**name)) {
        name.insert_str(0, "reply.");
    }
    let columns: Vec<&str> = own.iter().copied().chain(around.iter().map(|(name, _)| &**name)).collect();
    let row = |entry: &Vec<Field>| {
        let cells = own.iter().map(|name| value(entry, name));
        cells.chain(around.iter().map(|(_, value)| value.clone())).collect()
    };
    output::print_csv_rows(console, &columns, &entries.iter().map(row).collect::<Vec<_>>())
}

/// Takes out the entries of the reply's list: the reply itself, or its first field that holds a list of objects. An empty
/// field may be a list of anything.
fn take_entries(reply: &mut Raw) -> Option<Vec<BTreeMap<String, Raw>>> {
    let list = if reply.entries().is_some() {
        std::mem::take(reply)
    } else {
        let has_data = reply.fields().is_some_and(|fields| fields.contains_key("data"));
        let inner = if has_data { reply.fields_mut()?.get_mut("data")? } else { reply };
        let fields = inner.fields_mut()?;
        let is_list = |value: &Raw| value.entries().is_some_and(|list| !list.is_empty());
        let name = fields.iter().find(|(_, value)| is_list(value))?.0.clone();
        fields.remove(&name)?
    };
    list.entries().map(|entries| entries.into_iter().cloned().collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_without_entries_does_not_hide_the_others() {
        for (reply, count) in [
            (json!({ "id": "a", "volumes": [] }), None),
            (json!({ "thresholds": [] }), None),
            (json!({ "data": { "time_series": [], "total_runs": 0 } }), None),
            (json!({ "aliases": [], "domains": [{ "id": "d" }] }), Some(1)),
            (json!([]), Some(0)),
        ] {
            let entries = take_entries(&mut Raw::of(reply.to_string().as_bytes()));
            assert_eq!(entries.map(|entries| entries.len()), count, "{reply}");
        }
    }
}
