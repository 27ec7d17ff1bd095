//! What the pages hold that is generated: tables of metrics, keys, flags, commands, limits, requests and figures.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use clap::CommandFactory as _;
use pds_config::Config;
use pds_config::flags::Flags;
use pds_config::key::Preset;
use pds_config::keys;
use pds_core::memory::{Holder, MemoryBudget};
use pds_diagnosis::cause;
use pds_simulator::faults;
use pdstool::Cli;
use pdstool::error::EXIT_CODES;

use super::blocks;
use crate::golden::assert_current;

/// The configuration that the README shows.
fn example() -> Config {
    let readme = std::fs::read_to_string("README.md").unwrap();
    let [example] = &blocks(&readme, "toml")[..] else { panic!("one TOML example") };
    pds_config::load_text(Path::new("pds-exporter.toml"), example).unwrap().config
}

#[test]
fn generated_tables_are_current() {
    for (file, name, generated) in [
        (
            "docs/metrics.md",
            "metrics",
            pds_exposition::family::markdown(&pds_telemetry::catalogue::catalogue()),
        ),
        ("docs/flags.md", "flags", flags()),
        ("docs/flags.md", "commands", commands()),
        ("docs/flags.md", "exit-codes", format!("```text\n{EXIT_CODES}\n```\n")),
        ("docs/keys.md", "keys", configuration_keys()),
        ("docs/configure.md", "requests", requests()),
        ("docs/operate.md", "limits", limits()),
        ("docs/troubleshooting.md", "reasons", reasons()),
        ("docs/scale.md", "resources", resources()),
        ("README.md", "light", light()),
        ("docs/performance.md", "headline", headline()),
    ] {
        assert_current(file, name, &generated);
    }
}

/// What, measured, limit, note, and version with commit of each row of the benches.
fn measured() -> Vec<[String; 5]> {
    let results = std::fs::read_to_string("benches/results.md").unwrap();
    let rows = results.lines().skip(2).map(|line| {
        let cells: Vec<String> =
            line.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect();
        cells.try_into().unwrap_or_else(|cells| panic!("five cells: {cells:?}"))
    });
    rows.collect()
}

/// What an exporter of so many apps takes: apps, CPU in percent of one core, memory in MB, state file in MB, and kB
/// written a second.
pub(crate) fn taken_by(apps: u32) -> [String; 5] {
    let rows = measured();
    let row = |what: &str| {
        let what = format!("{apps} apps{what}");
        rows.iter().find(|row| row[0] == what).unwrap_or_else(|| panic!("no {what}"))
    };
    let written = row(": state written, kB/s");
    let file = written[3].trim_start_matches("state file ").trim_end_matches(" MB");
    let (cpu, memory) = (&row(" each minute: % of a core")[1], &row(": RSS in MB")[1]);
    // Of the minutes measured the middle one; the others stand behind it.
    let cpu = cpu.split(' ').next().unwrap_or_default();
    [apps.to_string(), cpu.to_owned(), memory.clone(), file.to_owned(), written[1].clone()]
}

/// What an exporter takes by the number of its apps.
fn resources() -> String {
    let mut table = "| apps | CPU, % of one core | memory (RSS), MB | state file, MB | written, kB/s |\n\
                     | --- | --- | --- | --- | --- |\n"
        .to_owned();
    for apps in [10, 100, 1_000, 10_000, 100_000] {
        writeln!(table, "| {} |", taken_by(apps).join(" | ")).unwrap();
    }
    table
}

/// The middle figure of a row.
fn figure(what: &str) -> String {
    let rows = measured();
    let row = rows.iter().find(|row| row[0] == what).unwrap_or_else(|| panic!("no {what}"));
    row[1].split(' ').next().unwrap().to_owned()
}

/// What the README says of size.
fn light() -> String {
    format!(
        "- **Light.** One process polls a hundred thousand apps with {} MB of memory, and ten with {} MB\n  \
         ([figures](docs/performance.md)).\n",
        figure("100000 apps: RSS in MB"),
        figure("RSS in MB, 10 apps")
    )
}

/// The first sentence about performance.
fn headline() -> String {
    format!(
        "A static binary of {} MB, {} MB of memory for ten apps, and one process for a hundred thousand.\n",
        figure("stripped binary, MB"),
        figure("RSS in MB, 10 apps")
    )
}

#[test]
fn figures_in_the_pages_are_of_this_version() {
    let is_shown = |what: &str| {
        ["RSS in MB, 10 apps", "stripped binary, MB"].contains(&what)
            || what.contains(" apps each minute: ")
            || what.ends_with(" apps: RSS in MB")
            || what.ends_with(" apps: state written, kB/s")
    };
    let rows = measured();
    let shown: Vec<_> = rows.iter().filter(|row| is_shown(&row[0])).collect();
    assert!(shown.len() > 15, "{}", shown.len());
    for [what, .., version] in shown {
        let measured = version.split(' ').next();
        assert_eq!(measured, Some(env!("CARGO_PKG_VERSION")), "{what}: measure it with `benches/run`");
    }
}

#[test]
fn limits_that_are_missed_have_their_reasons() {
    let page = std::fs::read_to_string("benches/README.md").unwrap();
    let (_, section) = page.split_once("## Limits that are missed\n").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let named =
        section.lines().filter_map(|line| Some(line.strip_prefix("- `")?.split_once("`: ")?.0.to_owned()));
    let missed = measured().into_iter().filter(|row| row[2].ends_with("MISSED"));
    let (named, missed): (BTreeSet<_>, BTreeSet<_>) =
        (named.collect(), missed.map(|[what, ..]| what).collect());
    assert_eq!(named, missed);
}

/// The flags of `pds-exporter`, as its help has them.
fn flags() -> String {
    let mut table = "| flag | default | meaning |\n| --- | --- | --- |\n".to_owned();
    for flag in Flags::command().get_arguments() {
        let Some(long) = flag.get_long().filter(|long| !matches!(*long, "help" | "version")) else {
            continue;
        };
        let value = match flag.get_value_names() {
            Some([value]) if flag.get_action().takes_values() => format!("={value}"),
            _ => String::new(),
        };
        let help = flag.get_help().unwrap().to_string().replace('|', "\\|");
        // A default that depends on other flags stands in the help.
        let (help, computed) = help.split_once(" [default: ").unwrap_or((&help, ""));
        let default: Vec<_> = flag.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
        let default = match default.join(" ") {
            text if text.is_empty() || !flag.get_action().takes_values() => computed.replace(']', ""),
            text => format!("`{text}`"),
        };
        writeln!(table, "| `--{long}{value}` | {default} | {help} |").unwrap();
    }
    table
}

/// The requests of the example with the defaults: what each part adds, by leaving it out.
fn requests() -> String {
    let whole = example();
    let mut windows = whole.clone();
    windows.accounting.enabled = false;
    let app = |config: &Config| config.requests_per_minute().apps[0].2;
    let load = whole.requests_per_minute();
    let counters = app(&whole) - app(&windows);
    let settings = settings_alone(&whole);
    let apps: f64 = load.apps.iter().map(|(_, _, requests)| requests).sum();
    let every = format!("every {} minutes", whole.poll.settings_interval.as_secs() / 60);
    let rows = [
        ("response time and run execution time, the window gauges".to_owned(), app(&windows) - settings),
        ("the same, for the counters".to_owned(), counters),
        (format!("the app's settings, {every}"), settings),
        ("**an app**".to_owned(), app(&whole)),
        (format!("each project: volume alerts and domains, {every}"), load.projects[0].1 - apps),
        (format!("each service account: its list of projects, {every}"), load.total - load.projects[0].1),
    ];
    let mut table = "| what | requests a minute |\n| --- | --- |\n".to_owned();
    for (what, requests) in rows {
        let bold = if what.starts_with("**") { "**" } else { "" };
        writeln!(table, "| {what} | {bold}{requests:.1}{bold} |").unwrap();
    }
    table
}

/// What asking for an app's settings costs a minute: what twice as often adds.
fn settings_alone(config: &Config) -> f64 {
    let mut often = config.clone();
    often.poll.settings_interval /= 2;
    often.requests_per_minute().apps[0].2 - config.requests_per_minute().apps[0].2
}

/// What is limited for clients, and to how much, with the defaults.
fn limits() -> String {
    use pds_web::limits::*;
    let limits = pds_web::Limits::default();
    let seconds = |time: Duration| format!("{} s", time.as_secs());
    let row = |what: &str, value: String| (what.to_owned(), value);
    let rows = [
        row("a TLS handshake", seconds(limits.handshake_timeout)),
        row("a request's header to arrive", seconds(limits.header_timeout)),
        row("size of a request's header", format!("{} KiB", limits.max_header_bytes / 1024)),
        row("requests in progress", "`--web.max-requests`".to_owned()),
        row("requests in progress of one connection", MAX_REQUESTS.to_string()),
        row("requests that wait for a slot", format!("{MAX_WAITING}, each for {}", seconds(MAX_WAIT))),
        row("requests in progress when the exporter stops", seconds(limits.drain_timeout)),
        row("a client that reads nothing of an answer", seconds(limits.unread_timeout)),
        (
            format!("a client to read {} KiB of an answer", MAX_PIECE_BYTES / 1024),
            seconds(limits.write_timeout),
        ),
        (
            "unread answers of all clients".to_owned(),
            format!(
                "{} MiB or less, as memory allows; none counts with more than 1/{ANSWER_DIVISOR} of it",
                MemoryBudget::default().share(Holder::Answers).bytes() / 1024 / 1024
            ),
        ),
        row("connections at once", limits.max_connections.to_string()),
        row("a connection without a request", seconds(limits.idle_timeout)),
        row("age of a connection", seconds(limits.max_connection_age)),
        row("streams of an HTTP/2 connection", MAX_STREAMS.to_string()),
        row("HTTP/2 frames or TLS records of a connection at once", BURST.to_string()),
        row("HTTP/2 frames or TLS records of a connection per second", PER_SECOND.to_string()),
        row("further frames for each KiB sent to the client", (1024.0 / SENT_PER_FRAME).to_string()),
        row("further records for each KiB of requests", (1024.0 / RECEIVED_PER_RECORD).to_string()),
    ];
    let mut table = "| limit | value |\n| --- | --- |\n".to_owned();
    for (what, value) in rows {
        writeln!(table, "| {what} | {value} |").unwrap();
    }
    table
}

/// Every reason of a verdict, with its remedy.
fn reasons() -> String {
    let mut table =
        "| code | verdict | what is wrong | classes | what to do |\n| --- | --- | --- | --- | --- |\n"
            .to_owned();
    for cause in cause::ALL {
        let verdict = serde_json::to_value(cause.verdict).unwrap();
        let classes: Vec<String> = cause.classes.iter().map(|class| format!("`{class}`")).collect();
        let row = [&*cause.says_of(&[]), &classes.join(" "), &cause.remedy_at(None)].join(" | ");
        writeln!(table, "| `{}` | {} | {row} |", cause.code, verdict.as_str().unwrap()).unwrap();
    }
    table
}

/// Every key by section, with its default.
fn configuration_keys() -> String {
    let (mut tables, mut section) = (String::new(), None);
    for key in keys::all() {
        let (its_section, name) = key.split();
        if section != Some(its_section) {
            section = Some(its_section);
            let heading = match its_section {
                "" => "top level".to_owned(),
                "projects[].apps[]" => "projects.apps: an app as a table".to_owned(),
                other => other.replace("[]", ""),
            };
            let gap = if tables.is_empty() { "" } else { "\n" };
            writeln!(
                tables,
                "{gap}## {heading}\n\n| key | values | default | meaning |\n| --- | --- | --- | --- |"
            )
            .unwrap();
        }
        let default = match key.preset {
            Preset::Default(value) => format!("`{value}`"),
            Preset::Required(value) => format!("required, such as `{value}`"),
            Preset::Unset(value) => format!("none; for example `{value}`"),
        };
        writeln!(tables, "| `{name}` | {} | {default} | {} |", key.kind, key.why.replace('|', "\\|"))
            .unwrap();
    }
    tables
}

/// Every command of `pdstool` that does something.
fn commands() -> String {
    let mut table = "| command | what it does |\n| --- | --- |\n".to_owned();
    let cli = Cli::command();
    for command in cli.get_subcommands() {
        write_command(&mut table, "pdstool", command);
    }
    table
}

fn write_command(table: &mut String, parent: &str, command: &clap::Command) {
    let name = format!("{parent} {}", command.get_name());
    if command.has_subcommands() {
        return command.get_subcommands().for_each(|below| write_command(table, &name, below));
    }
    let about = command.get_about().unwrap_or_else(|| panic!("{name} has no description"));
    writeln!(table, "| `{name}` | {} |", about.to_string().replace('|', "\\|")).unwrap();
}

#[test]
fn the_documented_cost_of_windows_and_containers_is_right() {
    let base = example();
    let app = |config: &Config| config.requests_per_minute().apps[0].2;
    let with = |change: &dyn Fn(&mut Config)| {
        let mut config = base.clone();
        change(&mut config);
        app(&config)
    };
    let shared = with(&|config| config.poll.windows = vec![Duration::from_secs(60)]);
    let window = with(&|config| config.poll.windows.push(Duration::from_secs(3600))) - app(&base);
    let container = with(&|config| config.projects[0].apps[0].containers.push("c-1".into())) - app(&base);
    let said = format!(
        "(`windows = [\"1m\"]`) shares its request with the counters: {shared:.1} an app. Each further window adds \
         {window:.0}, each container of an app {container:.0} for each window."
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
    let refusal = faults::parse(b"{\"kind\": \"?\"}").unwrap_err().to_string();
    let (_, known) = refusal.split_once("expected one of ").unwrap();
    let known: BTreeSet<_> = known.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    assert_eq!(documented, known);
}
