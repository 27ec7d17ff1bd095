//! The README is true: what it says in tables is generated, what it shows is loaded, what it names exists.
//! `UPDATE_GOLDEN=1` writes the tables anew.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use clap::CommandFactory as _;
use pds_exporter::app::flags::Flags;
use pds_exporter::config::{self, Config};
use pds_exporter::tool::Cli;
use pds_exporter::web::{Limits, webconfig};
use pds_exporter::{app, catalogue};

use crate::golden::is_updating;

const README: &str = "README.md";

fn readme() -> String {
    std::fs::read_to_string(README).unwrap()
}

/// The code blocks of a language, without the indentation of the list they stand in.
fn blocks(readme: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}");
    let mut blocks = Vec::new();
    let mut lines = readme.lines();
    while let Some(line) = lines.next() {
        let Some(indent) = line.strip_suffix(&fence).filter(|indent| indent.trim().is_empty()) else {
            continue;
        };
        let inside = lines.by_ref().take_while(|line| line.trim() != "```");
        blocks.push(inside.map(|line| line.strip_prefix(indent).unwrap_or(line).to_owned() + "\n").collect());
    }
    blocks
}

/// The configuration that step 2 shows, in TOML.
fn example() -> Config {
    let readme = readme();
    let [example] = &blocks(&readme, "toml")[..] else { panic!("one TOML example") };
    config::load_text(Path::new("pds-exporter.toml"), example, &app::taken_labels()).unwrap().config
}

/// What stands between the markers `name: begin` and `name: end`.
fn between<'a>(readme: &'a str, name: &str) -> (&'a str, &'a str, &'a str) {
    let (begin, end) = (format!("<!-- {name}: begin -->\n"), format!("<!-- {name}: end -->"));
    let (before, rest) = readme.split_once(&begin).unwrap_or_else(|| panic!("no {begin}"));
    let (inside, after) = rest.split_once(&end).unwrap_or_else(|| panic!("no {end}"));
    (before, inside, after)
}

#[test]
fn generated_tables_are_current() {
    for (file, name, generated) in [
        (README, "metrics", catalogue::markdown::render(&app::catalogue())),
        (README, "flags", flags()),
        (README, "requests", requests()),
        (README, "limits", limits()),
        (README, "figures", figures()),
        ("deploy/README.md", "resources", resources()),
    ] {
        assert_current(file, name, &generated);
    }
}

/// Fails where the part `name` of `file` is not what is generated, or writes it anew.
pub(crate) fn assert_current(file: &str, name: &str, generated: &str) {
    let kept = std::fs::read_to_string(file).unwrap();
    let (before, inside, after) = between(&kept, name);
    if inside == generated {
        return;
    }
    assert!(
        is_updating(),
        "the part {name} of {file} is out of date; UPDATE_GOLDEN=1 writes it anew:\n{generated}"
    );
    let kept = format!("{before}<!-- {name}: begin -->\n{generated}<!-- {name}: end -->{after}");
    std::fs::write(file, kept).unwrap();
}

/// What, measured, limit and note of each row of the last full run of the benches.
fn measured() -> Vec<[String; 4]> {
    let results = std::fs::read_to_string("benches/results.md").unwrap();
    let rows = results.lines().skip(2).map(|line| {
        let cells: Vec<String> =
            line.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect();
        cells.try_into().unwrap_or_else(|cells| panic!("four cells: {cells:?}"))
    });
    rows.collect()
}

/// The figures that have a limit.
fn figures() -> String {
    let mut table = "| what | measured | limit | of |\n| --- | --- | --- | --- |\n".to_owned();
    for row in measured().iter().filter(|row| !row[2].is_empty()) {
        writeln!(table, "| {} |", row.join(" | ")).unwrap();
    }
    table
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
    for apps in [10, 100, 1_000, 10_000] {
        writeln!(table, "| {} |", taken_by(apps).join(" | ")).unwrap();
    }
    table
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
        let default: Vec<_> = flag.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
        let default = match default.join(" ") {
            text if text.is_empty() || !flag.get_action().takes_values() => String::new(),
            text => format!("`{text}`"),
        };
        let help = flag.get_help().unwrap().to_string().replace('|', "\\|");
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

fn limits() -> String {
    let limits = Limits::default();
    let seconds = |time: Duration| format!("{} s", time.as_secs());
    let mut table = "| limit | value |\n| --- | --- |\n".to_owned();
    for (what, value) in [
        ("a TLS handshake", seconds(limits.handshake_timeout)),
        ("a request's header to arrive", seconds(limits.header_timeout)),
        ("a connection kept without a request", seconds(limits.idle_timeout)),
        ("a reader to take 256 KiB", seconds(limits.write_timeout)),
        ("what is under way at the end", seconds(limits.drain_timeout)),
        ("size of a request's header", format!("{} KiB", limits.max_header_bytes / 1024)),
        ("connections at once", limits.max_connections.to_string()),
    ] {
        writeln!(table, "| {what} | {value} |").unwrap();
    }
    table
}

#[test]
fn what_is_said_of_windows_and_containers_is_what_they_cost() {
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
    let readme = readme().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(readme.contains(&said), "{README} does not say: {said}");
}

#[test]
fn examples_of_the_web_configuration_are_good_ones() {
    let readme = readme();
    let examples: Vec<String> =
        blocks(&readme, "yaml").into_iter().filter(|text| text.contains("_config:\n")).collect();
    let examples: Vec<&String> = examples
        .iter()
        .filter(|text| text.contains("tls_server_config") || text.contains("basic_auth"))
        .collect();
    assert!(!examples.is_empty());
    for example in examples {
        webconfig::parse(example).unwrap();
    }
}

#[test]
fn every_flag_that_is_named_exists() {
    let mut known = BTreeSet::from(["help".to_owned(), "version".to_owned()]);
    collect(&Flags::command(), &mut known);
    collect(&Cli::command(), &mut known);
    // Cargo's own.
    known.insert("release".to_owned());
    for rest in readme().split("--").skip(1) {
        let name: String =
            rest.chars().take_while(|c| c.is_ascii_lowercase() || matches!(c, '-' | '.')).collect();
        let name = name.trim_end_matches(['-', '.']);
        assert!(name.is_empty() || known.contains(name), "there is no flag --{name}");
    }
}

fn collect(command: &clap::Command, known: &mut BTreeSet<String>) {
    known.extend(command.get_arguments().filter_map(|flag| flag.get_long()).map(str::to_owned));
    command.get_subcommands().for_each(|command| collect(command, known));
}

#[test]
fn relative_links_lead_somewhere() {
    let readme = readme();
    let headings: Vec<String> = readme
        .lines()
        .filter_map(|line| line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#')))
        .map(|heading| heading.to_lowercase().replace(' ', "-").replace([',', '?', '\''], ""))
        .collect();
    let mut links = 0;
    for rest in readme.split("](").skip(1) {
        let target = rest.split(')').next().unwrap();
        let (path, place) = target.split_once('#').unwrap_or((target, ""));
        if path.contains("://") {
            continue;
        }
        links += 1;
        assert!(path.is_empty() || Path::new(path).exists(), "{target}");
        assert!(
            place.is_empty() || headings.iter().any(|heading| heading == place),
            "{target}: {headings:?}"
        );
    }
    assert!(links > 3);
}
