//! The generated parts of the pages: metrics, keys, flags, commands, limits, requests and figures.

use std::collections::{BTreeSet, HashMap};
use std::fmt::{Display, Write as _};
use std::path::Path;
use std::time::Duration;

use clap::CommandFactory as _;
use humantime::format_duration;
use pds_config::Config;
use pds_config::flags::Flags;
use pds_config::key::{self, Kind, Preset, in_bytes};
use pds_core::memory::{Holder, MemoryBudget};
use pds_diagnosis::{Verdict, cause};
use pds_http::{MAX_INTERIM, MAX_INTERIM_BYTES};
use pds_interface::Resource;
use pds_interface::polled::Scope;
use pds_simulator::faults;
use pdstool::Cli;
use pdstool::error::EXIT_CODES;

use super::blocks;
use super::figures::{in_prometheus, light, peers, resources};
use crate::deploy::memory::{MIB, defaults, hostile};
use crate::golden::assert_current;
use crate::real_memory::PROCESSOR;

/// The configuration that the README shows.
fn example() -> Config {
    let readme = std::fs::read_to_string("README.md").unwrap();
    let [example] = &blocks(&readme, "toml")[..] else { panic!("one TOML example") };
    pds_config::load_text(Path::new("pds-exporter.toml"), example).unwrap().config
}

#[test]
fn generated_tables_are_current() {
    for (file, name, generated) in [
        ("docs/metrics.md", "metrics", metrics()),
        ("docs/flags.md", "flags", flags()),
        ("docs/flags.md", "commands", commands()),
        ("docs/flags.md", "exit-codes", format!("```text\n{EXIT_CODES}\n```\n")),
        ("docs/keys.md", "keys", configuration_keys()),
        ("docs/configure.md", "requests", requests()),
        ("docs/operate.md", "limits", limits()),
        ("docs/troubleshooting.md", "replies", replies()),
        ("docs/troubleshooting.md", "reasons", reasons()),
        ("docs/scale.md", "resources", resources()),
        ("docs/performance.md", "peers", peers()),
        ("docs/scale.md", "prometheus", in_prometheus()),
        ("README.md", "light", light()),
    ] {
        assert_current(file, name, &generated);
    }
}

/// All families but those of the process, which are the usual ones.
fn metrics() -> String {
    let groups = pds_telemetry::catalogue::catalogue();
    let ours: Vec<_> = groups.into_iter().filter(|group| group.title != "its process").collect();
    pds_exposition::family::markdown(&ours)
}

/// The flags of `pds-exporter`, as its help has them.
fn flags() -> String {
    let mut list = String::new();
    for flag in Flags::command().get_arguments() {
        let Some(long) = flag.get_long().filter(|long| !matches!(*long, "help" | "version")) else {
            continue;
        };
        let value = match flag.get_value_names() {
            Some([value]) if flag.get_action().takes_values() => format!("={value}"),
            _ => String::new(),
        };
        let help = flag.get_help().unwrap().to_string();
        // A default that depends on other flags stands in the help.
        let (help, computed) = help.split_once(" [default: ").unwrap_or((&help, ""));
        let default: Vec<_> = flag.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
        let default = match default.join(" ") {
            text if text.is_empty() || !flag.get_action().takes_values() => computed.replace(']', ""),
            text => format!("`{text}`"),
        };
        let default = if default.is_empty() { default } else { format!(" ({default})") };
        writeln!(list, "- `--{long}{value}`{default}: {}", help.trim_end_matches('.')).unwrap();
    }
    list
}

/// The requests of the example with the defaults: what each part adds, by leaving it out.
fn requests() -> String {
    let whole = example();
    let mut windows = whole.clone();
    windows.accounting.enabled = false;
    let app = |config: &Config| config.requests_per_minute().apps[0].rate;
    let demand = whole.requests_per_minute();
    let counters = app(&whole) - app(&windows);
    // The difference to twice as often.
    let mut often = whole.clone();
    often.poll.settings_interval /= 2;
    let settings = app(&often) - app(&whole);
    let apps: f64 = demand.apps.iter().map(|app| app.rate).sum();
    let every = format!("every {} minutes", whole.poll.settings_interval.as_secs() / 60);
    let of_project = Resource::all().filter(|resource| resource.polled().scope == Scope::Project);
    let of_project =
        of_project.map(|resource| resource.as_str().replace('_', " ")).collect::<Vec<_>>().join(" and ");
    let rows = [
        ("window gauges of response time and run execution time".to_owned(), app(&windows) - settings),
        ("counters of both".to_owned(), counters),
        (format!("the app's settings, {every}"), settings),
        ("**total per app**".to_owned(), app(&whole)),
        (format!("each project: {of_project}, {every}"), demand.projects[0].1 - apps),
        (format!("each service account: its list of projects, {every}"), demand.total - demand.projects[0].1),
    ];
    rows.into_iter().map(|(what, requests)| format!("- {what}: {requests:.1}\n")).collect()
}

/// The limits of clients, with the defaults.
fn limits() -> String {
    use pds_web::limits::*;
    let limits = pds_web::Limits::default();
    let seconds = |time: Duration| format!("{} s", time.as_secs());
    let row = |what: &str, value: String| (what.to_owned(), value);
    let rows = [
        row("a TLS handshake", seconds(limits.handshake_timeout)),
        row("arrival of a request's header", seconds(limits.header_timeout)),
        row("size of a request's header", format!("{} KiB", limits.max_header_bytes / 1024)),
        row("requests in progress", "`--web.max-requests`".to_owned()),
        row("requests that wait for a slot", format!("{MAX_WAITING}, each for {}", seconds(MAX_WAIT))),
        row("requests in progress when the exporter stops", seconds(limits.drain_timeout)),
        row("pause of a client that reads a response", seconds(limits.unread_timeout)),
        (format!("reading {} KiB of a response", MAX_PIECE_BYTES / 1024), seconds(limits.write_timeout)),
        (
            "unread responses of all clients".to_owned(),
            format!(
                "{} MiB or less, as memory allows; each counts with at most 1/{ANSWER_DIVISOR} of it",
                MemoryBudget::default().share(Holder::Answers).bytes() / 1024 / 1024
            ),
        ),
        row("connections at once", limits.max_connections.to_string()),
        row("a connection without a request", seconds(limits.idle_timeout)),
        row("age of a connection", seconds(limits.max_connection_age)),
        row("streams of an HTTP/2 connection", MAX_STREAMS.to_string()),
        row("HTTP/2 frames or TLS records of a connection at once", BURST.to_string()),
        row("HTTP/2 frames or TLS records of a connection per second", PER_SECOND.to_string()),
        row("additional HTTP/2 frames allowed per KiB sent", (1024.0 / SENT_PER_FRAME).to_string()),
        row("additional TLS records allowed per KiB of requests", (1024.0 / RECEIVED_PER_RECORD).to_string()),
    ];
    rows.into_iter().map(|(what, value)| format!("- {what}: {value}\n")).collect()
}

/// The limits of replies of the service, and their greatest cost.
fn replies() -> String {
    let mut larger = defaults();
    let (at_once, most) = (2 * MemoryBudget::default().share(Holder::SmallReplies).bytes(), hostile(&larger));
    larger.api.max_response_bytes = 9 * MIB;
    let (at_once, each) = (at_once / MIB, (hostile(&larger) - most) as f64 / MIB as f64);
    format!(
        "- interim (1xx) replies to a request: {MAX_INTERIM}, and {} KiB\n\
         - a reply: `api.max_response_bytes`\n\
         - all replies in flight: {at_once} MiB, less if a cgroup limits memory, or one larger reply; others wait\n\
         - memory above idle: {} MiB, {each} MiB per MiB of `api.max_response_bytes` above 8, and 16 KiB per concurrent request above 512\n\
         - processor time: {PROCESSOR} s per MiB of replies\n",
        MAX_INTERIM_BYTES / 1024,
        most / MIB,
    )
}

/// Every reason of a verdict, with its remedy. A remedy, or a long second part of one, is written once.
fn reasons() -> String {
    const LONG: usize = 60;
    let (mut lists, mut remedies) = (String::new(), HashMap::new());
    for verdict in [Verdict::Problem, Verdict::Warning, Verdict::Waiting] {
        let name = serde_json::to_value(verdict).unwrap();
        let gap = if lists.is_empty() { "" } else { "\n" };
        writeln!(lists, "{gap}### Verdict `{}`\n", name.as_str().unwrap()).unwrap();
        for cause in cause::ALL.iter().filter(|cause| cause.verdict == verdict) {
            let classes: Vec<String> = cause.classes.iter().map(|class| format!("`{class}`")).collect();
            let classes =
                if classes.is_empty() { String::new() } else { format!(" ({})", classes.join(" ")) };
            let (wrong, remedy) = (cause.says_of(&[]), cause.remedy_at(None));
            let first = *remedies.entry(remedy.clone()).or_insert(cause.code);
            let remedy = match remedy.split_once("; ") {
                _ if first != cause.code => format!("See `{first}`."),
                Some((begin, then)) if then.len() > LONG => {
                    match *remedies.entry(then.to_owned()).or_insert(cause.code) {
                        first if first != cause.code => format!("{begin}; see `{first}`."),
                        _ => remedy,
                    }
                }
                _ => remedy,
            };
            writeln!(lists, "- **`{}`**{classes}: {wrong}. {remedy}", cause.code).unwrap();
        }
    }
    lists
}

/// Every key by section, with its default and values.
fn configuration_keys() -> String {
    let (mut lists, mut section) = (String::new(), None);
    for key in key::all() {
        let (its_section, name) = key.split();
        if section != Some(its_section) {
            section = Some(its_section);
            let heading = match its_section {
                "" => "top level".to_owned(),
                "projects[].apps[]" => "projects.apps: an app as a table".to_owned(),
                other => other.replace("[]", ""),
            };
            let gap = if lists.is_empty() { "" } else { "\n" };
            writeln!(lists, "{gap}## {heading}\n").unwrap();
        }
        let preset = match key.preset {
            Preset::Default(value) => format!(" = `{value}`"),
            Preset::Required(value) => format!(", required, e.g. `{value}`"),
            Preset::Unset(value) => format!(", e.g. `{value}`"),
        };
        let kind = match &key.kind {
            // Their default shows it.
            Kind::Text | Kind::Flag => String::new(),
            Kind::List(of) if matches!(**of, Kind::Word(_)) => String::new(),
            kind => format!(" ({})", values(kind)),
        };
        writeln!(lists, "- **`{name}`**{preset}{kind}: {}", key.help).unwrap();
    }
    lists
}

/// The values of `kind`.
fn values(kind: &Kind) -> String {
    let span = |[min, max]: [&dyn Display; 2]| format!("{min} to {max}");
    match kind {
        Kind::Text | Kind::Secret => "string".to_owned(),
        Kind::Url => "URL".to_owned(),
        Kind::Duration(range) => span([&format_duration(*range.start()), &format_duration(*range.end())]),
        Kind::Count(range) => span([range.start(), range.end()]),
        Kind::Size(range) => span([&in_bytes(*range.start()), &in_bytes(*range.end())]),
        Kind::Flag => "boolean".to_owned(),
        Kind::Word(words) => words.iter().map(|word| format!("`\"{word}\"`")).collect::<Vec<_>>().join(", "),
        Kind::List(of) => format!("list of: {}", values(of)),
        Kind::Headers => "table of strings".to_owned(),
        Kind::Other(text) => (*text).to_owned(),
    }
}

/// Every command of `pdstool` that does something.
fn commands() -> String {
    let mut list = String::new();
    let cli = Cli::command();
    for command in cli.get_subcommands() {
        write_command(&mut list, "pdstool", command);
    }
    list
}

fn write_command(list: &mut String, parent: &str, command: &clap::Command) {
    let name = format!("{parent} {}", command.get_name());
    if command.get_name() == "call" {
        let mut calls = Vec::new();
        collect_commands(&mut calls, &name, command);
        return writeln!(list, "- {}: each makes one call of the service", calls.join(", ")).unwrap();
    }
    if command.has_subcommands() {
        return command.get_subcommands().for_each(|below| write_command(list, &name, below));
    }
    let about = command.get_about().unwrap_or_else(|| panic!("{name} has no description"));
    writeln!(list, "- `{name}`: {about}").unwrap();
}

/// The commands below `command`, in backticks.
fn collect_commands(commands: &mut Vec<String>, name: &str, command: &clap::Command) {
    for below in command.get_subcommands() {
        let name = format!("{name} {}", below.get_name());
        match below.has_subcommands() {
            true => collect_commands(commands, &name, below),
            false => commands.push(format!("`{name}`")),
        }
    }
}

#[test]
fn the_documented_cost_of_windows_and_containers_is_right() {
    let base = example();
    let app = |config: &Config| config.requests_per_minute().apps[0].rate;
    let with = |change: &dyn Fn(&mut Config)| {
        let mut config = base.clone();
        change(&mut config);
        app(&config)
    };
    let shared = with(&|config| config.poll.windows = vec![Duration::from_secs(60)]);
    let window = with(&|config| config.poll.windows.push(Duration::from_secs(3600))) - app(&base);
    let container = with(&|config| config.projects[0].apps[0].containers.push("c-1".into())) - app(&base);
    let said = format!(
        "(`windows = [\"1m\"]`) shares its request with the counters: {shared:.1} per app. Each further window adds \
         {window:.0}; each container of an app adds {container:.0} per window."
    );
    let page = std::fs::read_to_string("docs/configure.md").unwrap();
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains(&said), "docs/configure.md does not say: {said}");
}

#[test]
fn every_kind_of_fault_is_documented_with_an_example_that_is_accepted() {
    let page = std::fs::read_to_string("docs/operate.md").unwrap();
    for list in blocks(&page, "json") {
        faults::parse(list.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{list}"));
    }
    let (_, table) = page.split_once("| kind | the reply |").unwrap();
    let rows = table.lines().skip(2).take_while(|row| row.starts_with('|'));
    let examples = rows.flat_map(|row| row.split('|').nth(1).unwrap().split('`').skip(1).step_by(2));
    let mut documented = BTreeSet::new();
    for example in examples {
        let fault = format!("{{\"kind\": {example}}}");
        faults::parse(fault.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{example}"));
        documented.insert(example.split('"').nth(1).unwrap().to_owned());
    }
    // The refusal of an unknown kind names all that are known.
    let refusal = faults::parse(b"{\"kind\": \"?\"}").unwrap_err();
    let (_, known) = refusal.split_once("expected one of ").unwrap();
    let known: BTreeSet<_> = known.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    assert_eq!(documented, known);
}
