//! Rows as clap commands, and what was given on the command line.

use std::collections::BTreeMap;

use clap::builder::PossibleValuesParser;
use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Command, FromArgMatches, Subcommand};
use jiff::Timestamp;
use jiff::civil::Date;

use crate::config::Resolution;
use crate::interface::TimeRange;
use crate::interface::spec::{Param, ParamKind};
use crate::tool::time_arg::TimeArg;

use super::Row;
use super::rows::ROWS;

/// A call with what was given for it.
#[derive(Clone, Debug)]
pub struct Called {
    /// Which call.
    pub row: &'static Row,
    /// Its arguments.
    pub given: Given,
}

/// What was given on the command line, by the names of the call's identifiers, query parameters and body values.
#[derive(Clone, Debug, Default)]
pub struct Given {
    values: BTreeMap<&'static str, String>,
    /// What "ago" counts from.
    pub now: Timestamp,
}

impl Given {
    /// The value of a name; empty where none was given.
    #[must_use]
    pub fn text(&self, name: &str) -> &str {
        self.option(name).unwrap_or_default()
    }

    /// The value of a name, where one was given.
    #[must_use]
    pub fn option(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    /// The project.
    #[must_use]
    pub fn project(&self) -> &str {
        self.text("project_id")
    }

    /// The range between `start` and `end`; one without an end reaches until now.
    #[must_use]
    pub fn range(&self) -> Option<TimeRange> {
        let second = |name| Some(self.option(name)?.parse::<TimeArg>().ok()?.resolve(self.now));
        let start = second("start")?;
        Some(TimeRange { start, end: second("end").unwrap_or_else(|| self.now.as_second()) })
    }

    /// The data resolution.
    #[must_use]
    pub fn resolution(&self) -> Resolution {
        match self.option("resolution") {
            Some("medium") => Resolution::Medium,
            Some("high") => Resolution::High,
            _ => Resolution::Standard,
        }
    }

    /// Gives `name` a value.
    pub fn set(&mut self, name: &'static str, value: String) {
        self.values.insert(name, value);
    }
}

/// The identifiers in a row's path, but for the project, which is an option of its own.
fn identifiers(row: &Row) -> impl Iterator<Item = &'static str> {
    let segments = row.spec.path.split('/');
    let names = segments.filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'));
    names.filter(|name| *name != "project_id")
}

/// A row as a command named after its last word.
fn command(row: &'static Row) -> Command {
    let name = row.words.last().copied().unwrap_or_default();
    let mut about = row.spec.purpose.to_owned();
    if let Some(first) = about.get(..1) {
        about = first.to_uppercase() + about.get(1..).unwrap_or_default();
    }
    let example = format!("Example:\n  pdstool call {} {}", row.words.join(" "), row.example);
    let method = format!("{about}.\n\nSends {} {}", row.spec.method.as_str(), row.spec.path);
    let mut command =
        Command::new(name).about(about).long_about(method).after_help(example.trim_end().to_owned());
    for id in identifiers(row) {
        let shown = id.trim_end_matches("_id");
        let help = format!("The {shown}'s id, as in the service's paths");
        let help = if shown == id { format!("The repository's {}", spoken(id)) } else { help };
        command = command.arg(Arg::new(id).value_name(shown.to_uppercase()).required(true).help(help));
    }
    for (name, purpose) in row.body {
        command = command.arg(Arg::new(*name).value_name(name.to_uppercase()).required(true).help(*purpose));
    }
    row.spec.query.iter().fold(command, |command, param| command.arg(option(param)))
}

fn spoken(id: &str) -> &str {
    if id == "repo" { "name" } else { id }
}

/// A query parameter as an option.
fn option(param: &'static Param) -> Arg {
    let arg = Arg::new(param.name).long(kebab(param.name)).help(param.purpose);
    // A range without an end reaches until now; one without a start would reach back for ever.
    let arg = if param.name == "end" { arg.requires("start") } else { arg };
    match param.kind {
        ParamKind::Text { max_chars: None } => arg.value_name("TEXT"),
        ParamKind::Text { max_chars: Some(most) } => {
            arg.value_name("TEXT").help(format!("{}; at most {most} characters", param.purpose))
        }
        ParamKind::DateTime => {
            let arg = arg.value_name("TIME").value_parser(checked::<TimeArg>);
            arg.help(format!("{}: a time, a day, or how long ago (24h)", param.purpose))
        }
        ParamKind::Date => arg.value_name("YYYY-MM-DD").value_parser(checked::<Date>),
        ParamKind::Word(words) => arg.value_name("WORD").value_parser(PossibleValuesParser::new(words)),
    }
}

/// The text itself, once it is known to be a `T`.
fn checked<T: std::str::FromStr<Err: std::fmt::Display>>(text: &str) -> Result<String, String> {
    text.parse::<T>().map(|_| text.to_owned()).map_err(|error| error.to_string())
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

impl Called {
    /// The call that the words name, with its arguments.
    fn find(words: &[&str], matches: &ArgMatches) -> Option<Self> {
        let row = ROWS.iter().find(|row| row.words == words)?;
        let query = row.spec.query.iter().map(|param| param.name);
        let names = identifiers(row).chain(row.body.iter().map(|(name, _)| *name)).chain(query);
        let mut given = Given::default();
        for name in names {
            if let Some(value) = matches.get_one::<String>(name) {
                given.set(name, value.clone());
            }
        }
        Some(Self { row, given })
    }
}

impl FromArgMatches for Called {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut words = Vec::new();
        let mut at = matches;
        while let Some((word, inner)) = at.subcommand() {
            words.push(word);
            at = inner;
        }
        Self::find(&words, at).ok_or_else(|| clap::Error::new(ErrorKind::MissingSubcommand))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Subcommand for Called {
    fn augment_subcommands(parent: Command) -> Command {
        let mut groups: Vec<Command> = Vec::new();
        for row in ROWS {
            let [word, _] = row.words else {
                groups.push(command(row));
                continue;
            };
            let at = groups.iter().position(|group| group.get_name() == *word);
            let group = at.map_or_else(|| group(word), |at| groups.remove(at));
            groups.insert(at.unwrap_or(groups.len()), group.subcommand(command(row)));
        }
        parent.subcommand_required(true).arg_required_else_help(true).subcommands(groups)
    }

    fn augment_subcommands_for_update(parent: Command) -> Command {
        Self::augment_subcommands(parent)
    }

    fn has_subcommand(name: &str) -> bool {
        ROWS.iter().any(|row| row.words.first() == Some(&name))
    }
}

/// The command that holds the calls about one resource.
fn group(word: &'static str) -> Command {
    let verbs: Vec<&str> = ROWS
        .iter()
        .filter(|row| row.words.first() == Some(&word))
        .filter_map(|row| row.words.get(1).copied())
        .collect();
    let about = format!("Calls about {}: {}", word.replace('-', " "), verbs.join(", "));
    Command::new(word).about(about).subcommand_required(true).arg_required_else_help(true)
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
