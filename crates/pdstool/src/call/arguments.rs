//! Calls as clap commands, and their parsed arguments.

use std::collections::BTreeMap;

use clap::builder::PossibleValuesParser;
use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Command, FromArgMatches, Subcommand};
use jiff::Timestamp;
use jiff::civil::Date;

use crate::options::{checked_time, time};
use crate::output::capitalized;
use crate::report::grouped;
use pds_interface::param::{Param, ParamKind};
use pds_interface::range::{parse_rfc3339, rfc3339};
use pds_interface::{Arguments, CALLS, Call};

/// A call with its arguments on the command line.
#[derive(Clone, Debug)]
pub struct Called {
    /// The call.
    pub call: &'static Call,
    /// The values by the names of the call's identifiers, query parameters and body fields.
    pub given: BTreeMap<&'static str, String>,
}

impl Called {
    /// The arguments of the call. A time in RFC 3339 is sent as given, other times are resolved; a range without an end
    /// ends at `now`.
    pub fn arguments(&self, now: Timestamp) -> Arguments<'_> {
        let mut arguments = Arguments::default().at(now);
        for (name, text) in &self.given {
            let resolved = ["start", "end"].contains(name) && parse_rfc3339(text).is_none();
            arguments = match time(text, now) {
                Ok(time) if resolved => arguments.with(name, rfc3339(time)),
                _ => arguments.with(name, text.as_str()),
            };
        }
        if self.given.contains_key("start") && !self.given.contains_key("end") {
            arguments = arguments.with("end", rfc3339(now.as_second()));
        }
        arguments
    }
}

/// The identifiers in a call's path, except the project, which is an option.
fn identifiers(call: &Call) -> impl Iterator<Item = &'static str> {
    call.path.names().filter(|name| *name != "project_id")
}

/// A call as a command named after its last word.
fn command(call: &'static Call) -> Command {
    let words = call.command.words;
    let about = capitalized(call.purpose);
    let example = format!("Example:\n  pdstool call {} {}", words.join(" "), call.command.example);
    let method = format!("{about}.\n\nSends {} {}", call.method.as_str(), call.path.0);
    let mut command = Command::new(words.last().copied().unwrap_or_default())
        .about(about)
        .long_about(method)
        .after_help(example.trim_end().to_owned());
    for id in identifiers(call) {
        let name = id.trim_end_matches("_id");
        let help = match name == id {
            true => format!("{} of the repository", if id == "repo" { "Name" } else { "Owner" }),
            false => format!("Id of the {name}"),
        };
        command = command.arg(Arg::new(id).value_name(name.to_uppercase()).required(true).help(help));
    }
    for field in call.body {
        let value_name = kebab(field.name).to_uppercase();
        let help = capitalized(field.purpose);
        command =
            command.arg(valued(Arg::new(field.name), field).value_name(value_name).required(true).help(help));
    }
    call.query.iter().fold(command, |command, param| command.arg(option(param)))
}

/// A query parameter as an option.
fn option(param: &'static Param) -> Arg {
    let help = match param.kind {
        ParamKind::Text { max_chars: Some(max), default } => {
            let default = default.map(|text| format!("; \"{text}\" when omitted")).unwrap_or_default();
            format!("{}{default}; at most {max} characters", param.purpose)
        }
        ParamKind::RangeStart | ParamKind::RangeEnd => {
            format!("{}: a time, a day, or how long ago (24h)", param.purpose)
        }
        _ => param.purpose.to_owned(),
    };
    valued(Arg::new(param.name).long(kebab(param.name)), param).help(capitalized(&help))
}

/// `arg` with the values that the parameter takes.
fn valued(arg: Arg, param: &Param) -> Arg {
    match param.kind {
        ParamKind::Text { .. } => arg.value_name("TEXT"),
        ParamKind::RangeStart | ParamKind::RangeEnd => arg.value_name("TIME").value_parser(checked_time),
        ParamKind::FutureDate => arg
            .value_name("YYYY-MM-DD")
            .value_parser(|text: &str| text.parse::<Date>().map(|_| text.to_owned())),
        ParamKind::Word { words, .. } => {
            arg.value_name("WORD").value_parser(PossibleValuesParser::new(words))
        }
    }
}

/// `expiresAt` and `container_id` as options are written: `expires-at`, `container-id`.
fn kebab(name: &str) -> String {
    let mut kebab = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            kebab.push('-');
        }
        kebab.push(if c == '_' { '-' } else { c.to_ascii_lowercase() });
    }
    kebab
}

impl FromArgMatches for Called {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut words = Vec::new();
        let mut at = matches;
        while let Some((word, inner)) = at.subcommand() {
            words.push(word);
            at = inner;
        }
        let call = CALLS.iter().find(|call| call.command.words == words);
        let call = call.ok_or_else(|| clap::Error::new(ErrorKind::MissingSubcommand))?;
        let names = identifiers(call).chain(call.body.iter().chain(call.query).map(|param| param.name));
        let given = names.filter_map(|name| Some((name, at.get_one::<String>(name)?.clone())));
        Ok(Self { call, given: given.collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Subcommand for Called {
    fn augment_subcommands(parent: Command) -> Command {
        let calls = grouped(CALLS.iter().map(|call| (call.command.words.first(), *call)));
        let commands = calls.into_iter().map(|(word, calls)| match &*calls {
            [call] if call.command.words.len() == 1 => command(call),
            calls => group(word.copied().unwrap_or_default(), calls),
        });
        parent.subcommand_required(true).arg_required_else_help(true).subcommands(commands)
    }

    fn augment_subcommands_for_update(parent: Command) -> Command {
        Self::augment_subcommands(parent)
    }

    fn has_subcommand(name: &str) -> bool {
        CALLS.iter().any(|call| call.command.words.first() == Some(&name))
    }
}

/// The command that holds the calls about one resource.
fn group(word: &'static str, calls: &[&'static Call]) -> Command {
    let purposes = calls.iter().map(|call| call.purpose).collect::<Vec<_>>().join(", ");
    let group = Command::new(word).about(capitalized(&purposes)).subcommand_required(true);
    group.arg_required_else_help(true).subcommands(calls.iter().copied().map(command))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_become_options_as_people_write_them() {
        assert_eq!(kebab("expiresAt"), "expires-at");
        assert_eq!(kebab("container_id"), "container-id");
    }
}
