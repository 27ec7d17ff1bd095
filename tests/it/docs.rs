//! The documentation is true: tables are generated, and flags, keys, series, files and commands that it names exist.
//! `UPDATE_GOLDEN=1` rewrites the tables.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::CommandFactory as _;
use pds_exporter::app::flags::Flags;
use pds_exporter::config::keys::{self, KEYS, Key, Preset};
use pds_exporter::config::{self, Config};
use pds_exporter::tool::Cli;
use pds_exporter::web::{Limits, webconfig};
use pds_exporter::{app, catalogue};

use crate::deploy::unknown_series;
use crate::golden::assert_current;

/// All pages, by path.
fn pages() -> Vec<(String, String)> {
    let names = [
        "README.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "CHANGELOG.md",
        "deploy/README.md",
        "benches/README.md",
    ];
    let mut paths: Vec<PathBuf> = names.map(PathBuf::from).into();
    paths.extend(std::fs::read_dir("docs").unwrap().map(|entry| entry.unwrap().path()));
    paths.sort();
    let read = |path: PathBuf| (path.display().to_string(), std::fs::read_to_string(&path).unwrap());
    paths.into_iter().map(read).collect()
}

/// The code blocks of a language, without the indentation of the list they stand in.
pub(crate) fn blocks(page: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}");
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(indent) = line.strip_suffix(&fence).filter(|indent| indent.trim().is_empty()) else {
            continue;
        };
        let inside = lines.by_ref().take_while(|line| line.trim() != "```");
        blocks.push(inside.map(|line| line.strip_prefix(indent).unwrap_or(line).to_owned() + "\n").collect());
    }
    blocks
}

/// The texts in backticks, outside of code blocks.
fn quoted(page: &str) -> Vec<&str> {
    let outside = page.split("```").step_by(2);
    outside.flat_map(|text| text.split('`').skip(1).step_by(2)).collect()
}

/// The configuration that the README shows.
fn example() -> Config {
    let readme = std::fs::read_to_string("README.md").unwrap();
    let [example] = &blocks(&readme, "toml")[..] else { panic!("one TOML example") };
    config::load_text(Path::new("pds-exporter.toml"), example, &app::taken_labels()).unwrap().config
}

#[test]
fn generated_tables_are_current() {
    for (file, name, generated) in [
        ("docs/metrics.md", "metrics", catalogue::markdown::render(&app::catalogue())),
        ("docs/flags.md", "flags", flags()),
        ("docs/flags.md", "commands", commands()),
        ("docs/configuration.md", "keys", configuration_keys()),
        ("docs/operations.md", "requests", requests()),
        ("docs/operations.md", "limits", limits()),
        ("docs/performance.md", "figures", figures()),
        ("deploy/README.md", "resources", resources()),
    ] {
        assert_current(file, name, &generated);
    }
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

/// Every key by section, with its default.
fn configuration_keys() -> String {
    let (mut tables, mut section) = (String::new(), "");
    for key in KEYS {
        let (its_section, name) = key.split();
        if its_section != section {
            section = its_section;
            let heading =
                section.replace("[]", "").replace("projects.apps", "projects.apps: an app as a table");
            let gap = if tables.is_empty() { "" } else { "\n" };
            writeln!(tables, "{gap}## {heading}\n\n| key | default | meaning |\n| --- | --- | --- |")
                .unwrap();
        }
        let default = match key.preset {
            Preset::Default(value) => format!("`{value}`"),
            Preset::Required(value) => format!("required, such as `{value}`"),
            Preset::Unset(value) => format!("none; for example `{value}`"),
        };
        writeln!(tables, "| `{name}` | {default} | {} |", key.why.replace('|', "\\|")).unwrap();
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
    let page = std::fs::read_to_string("docs/operations.md").unwrap();
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains(&said), "docs/operations.md does not say: {said}");
}

#[test]
fn examples_of_configurations_are_valid() {
    let mut checked = 0;
    for (path, page) in pages() {
        for example in blocks(&page, "yaml") {
            if example.contains("tls_server_config") || example.contains("basic_auth_users") {
                webconfig::parse(&example).unwrap_or_else(|error| panic!("{path}: {error:?}\n{example}"));
                checked += 1;
            }
        }
        for example in blocks(&page, "toml") {
            // A part of a file is completed.
            let example = match example.contains("base_url") {
                true => example,
                false => format!("api.base_url = \"https://api.example.com\"\napi.token = \"t\"\n{example}"),
            };
            let example = match example.contains("[[projects]]") {
                true => example,
                false => format!("{example}\n[[projects]]\nid = \"p-1\"\n"),
            };
            config::load_text(Path::new("pds-exporter.toml"), &example, &app::taken_labels())
                .unwrap_or_else(|error| panic!("{path}: {error}\n{example}"));
            checked += 1;
        }
    }
    assert!(checked >= 2, "{checked}");
}

#[test]
fn every_flag_that_is_named_exists() {
    let mut known = BTreeSet::from(["help".to_owned(), "version".to_owned()]);
    collect(&Flags::command(), &mut known);
    collect(&Cli::command(), &mut known);
    for (path, page) in pages() {
        if !(path == "README.md" || path.starts_with("docs/")) {
            continue;
        }
        for line in page.lines() {
            // Other programs have flags of their own.
            if ["cargo ", "docker ", "curl ", "promtool "].iter().any(|other| line.contains(other)) {
                continue;
            }
            for rest in line.split("--").skip(1) {
                let is_name = |c: &char| c.is_ascii_lowercase() || matches!(c, '-' | '.');
                let name: String = rest.chars().take_while(is_name).collect();
                let name = name.trim_end_matches(['-', '.']);
                assert!(name.is_empty() || known.contains(name), "{path}: there is no flag --{name}");
            }
        }
    }
}

fn collect(command: &clap::Command, known: &mut BTreeSet<String>) {
    known.extend(command.get_arguments().filter_map(|flag| flag.get_long()).map(str::to_owned));
    command.get_subcommands().for_each(|command| collect(command, known));
}

#[test]
fn every_key_variable_series_and_file_that_is_named_exists() {
    let sections: BTreeSet<&str> = KEYS
        .iter()
        .filter_map(|key| key.path.split('.').next())
        .map(|name| name.trim_end_matches("[]"))
        .collect();
    let variables: BTreeSet<String> = KEYS.iter().filter_map(Key::environment_name).collect();
    let mut wrong = Vec::new();
    for (path, page) in pages() {
        // A changelog also names what there was.
        if path == "CHANGELOG.md" {
            continue;
        }
        wrong.extend(unknown_series(&page).into_iter().map(|name| format!("{path}: no series {name}")));
        for text in quoted(&page) {
            let name = text.split([' ', '=']).next().unwrap_or_default();
            let section = name.split_once('.').map(|(section, _)| section);
            let is_key = section.is_some_and(|section| sections.contains(section));
            let known = || Key::find(name).is_some() || keys::is_section(name) || keys::is_list(name);
            if is_key && !known() {
                wrong.push(format!("{path}: no key {name}"));
            }
            if name.starts_with("PDS_EXPORTER__") && !variables.contains(name) {
                wrong.push(format!("{path}: no variable {name}"));
            }
            let folders = ["src/", "tests/", "deploy/", "benches/", "fuzz/", "docs/"];
            let is_path = folders.iter().any(|folder| text.starts_with(folder));
            if is_path && !name.contains(['*', '{']) && !Path::new(name).exists() {
                wrong.push(format!("{path}: no file {name}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn commands_in_the_pages_are_ones_that_the_programs_take() {
    let mut tried = 0;
    for (path, page) in pages() {
        for line in blocks(&page, "sh").join("").replace("\\\n", " ").lines() {
            let words: Vec<&str> = line.split(" #").next().unwrap_or_default().split_whitespace().collect();
            let command = match words.first() {
                Some(&"pds-exporter") => Flags::command(),
                Some(&"pdstool") => Cli::command(),
                _ => continue,
            };
            tried += 1;
            if let Err(error) = command.try_get_matches_from(&words) {
                assert!(!error.use_stderr(), "{path}: {line}: {error}");
            }
        }
    }
    assert!(tried >= 2, "{tried}");
}

/// The anchor that a heading gets.
fn anchor(heading: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    heading.to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-")
}

/// The anchors of a page's headings.
fn anchors(page: &str) -> Vec<String> {
    let outside: String = page.split("```").step_by(2).collect();
    let heading =
        |line: &str| Some(anchor(line.strip_prefix('#')?.trim_start_matches('#').strip_prefix(' ')?));
    outside.lines().filter_map(heading).collect()
}

#[test]
fn relative_links_lead_somewhere() {
    let mut wrong = Vec::new();
    for (path, page) in pages() {
        let folder = Path::new(&path).parent().unwrap_or(Path::new(""));
        for rest in page.split("](").skip(1) {
            let target = rest.split(')').next().unwrap_or_default();
            if target.contains("://") {
                continue;
            }
            let (file, place) = target.split_once('#').unwrap_or((target, ""));
            let file = if file.is_empty() { PathBuf::from(&path) } else { folder.join(file) };
            if !file.exists() {
                wrong.push(format!("{path}: {target}"));
            } else if !place.is_empty() {
                let there = std::fs::read_to_string(&file).unwrap();
                if !anchors(&there).iter().any(|anchor| anchor == place) {
                    wrong.push(format!("{path}: {target}: there is no such heading"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_readme_links_every_page() {
    let readme = std::fs::read_to_string("README.md").unwrap();
    let lonely: Vec<String> =
        pages().into_iter().map(|(path, _)| path).filter(|path| path.starts_with("docs/")).collect();
    let lonely: Vec<_> = lonely.iter().filter(|path| !readme.contains(&format!("]({path}"))).collect();
    assert!(lonely.is_empty(), "the README does not link {lonely:?}");
}
