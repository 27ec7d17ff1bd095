//! Figures in the pages: each is measured, generated, or a setting.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::pages;

/// Name, measurement, limit, note, and version with commit of each row of the benches.
fn measured() -> Vec<[String; 5]> {
    let results = std::fs::read_to_string("benches/results.md").unwrap();
    let rows = results.lines().skip(2).map(|line| {
        let cells: Vec<String> =
            line.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect();
        cells.try_into().unwrap_or_else(|cells| panic!("five cells: {cells:?}"))
    });
    rows.collect()
}

/// The cost of an exporter of this many apps: apps, CPU in percent of one core, memory in MB, state file in MB, and kB
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
    // The middle one of the measured minutes; the others stand behind it.
    let cpu = cpu.split(' ').next().unwrap_or_default();
    [apps.to_string(), cpu.to_owned(), memory.clone(), file.to_owned(), written[1].clone()]
}

/// The cost of an exporter by the number of its apps.
pub(super) fn resources() -> String {
    let mut table = "| apps | CPU, % of one core | memory (RSS), MB | state file, MB | written, kB/s |\n\
                     | --- | --- | --- | --- | --- |\n"
        .to_owned();
    for apps in [10, 100, 1_000, 10_000, 100_000] {
        writeln!(table, "| {} |", taken_by(apps).join(" | ")).unwrap();
    }
    table
}

/// The cost of the shipped rules in Prometheus, as `benches/prometheus` measured it.
pub(super) fn in_prometheus() -> String {
    let results = std::fs::read_to_string("benches/prometheus.md").unwrap();
    let item = |line: &str| {
        let cells: Vec<&str> = line.trim_matches(['|', ' ']).split('|').map(str::trim).collect();
        let [every, with, rules, cpu, memory, _] = cells[..] else { panic!("six cells: {line}") };
        let with = if with.is_empty() { String::new() } else { format!(", with {with}") };
        let rules = if rules == "yes" { "" } else { ", without rules" };
        format!("- scraped every {every}{with}{rules}: {cpu} % of one core, {memory} GB\n")
    };
    results.lines().skip(2).map(item).collect()
}

/// The middle figure of a row.
fn figure(what: &str) -> String {
    let rows = measured();
    let row = rows.iter().find(|row| row[0] == what).unwrap_or_else(|| panic!("no {what}"));
    row[1].split(' ').next().unwrap().to_owned()
}

/// The cost of this exporter and of its peers, in the order in which `benches/run peer` measures them.
pub(super) fn peers() -> String {
    let head = "| exporter | CPU for 1,000 requests, ms | memory, MB | scrape of 100,000 series, p99, ms |\n\
                | --- | ---: | ---: | ---: |\n";
    let rows = measured();
    let peers = rows.iter().filter_map(|row| row[0].strip_suffix(": poll"));
    peers.fold(head.to_owned(), |table, peer| {
        let cells = ["poll", "RSS in MB", "scrape, p99"].map(|what| figure(&format!("{peer}: {what}")));
        format!("{table}| {peer} | {} |\n", cells.join(" | "))
    })
}

/// The README's figures of size and speed.
pub(super) fn light() -> String {
    let scrape = |peer: &str| figure(&format!("{peer}: scrape, p99")).parse::<f64>().unwrap();
    let peers = ["Rust (axum, reqwest, prometheus-client)", "Go (net/http, client_golang of Debian 12)"];
    let [rust, go] = peers.map(|peer| 100.0 * scrape("pds-exporter") / scrape(peer));
    format!(
        "- **Light.** One process polls a hundred thousand apps with {} MB of memory, and ten apps with {} MB\n  \
         ([figures](docs/scale.md#what-it-takes)). The slowest scrapes (p99) take {rust:.0} % of the time of a\n  \
         simple [exporter in Rust](docs/performance.md), and {go:.0} % of one in Go.\n",
        figure("100000 apps: RSS in MB"),
        figure("10 apps: RSS in MB")
    )
}

#[test]
fn figures_in_the_pages_are_of_this_version() {
    let is_shown = |what: &str| {
        let ends = [": poll", ": scrape, p99", ": RSS in MB", " apps: state written, kB/s"];
        what.contains(" apps each minute: ") || ends.iter().any(|end| what.ends_with(end))
    };
    let rows = measured();
    let in_pages: Vec<_> = rows.iter().filter(|row| is_shown(&row[0])).collect();
    assert!(in_pages.len() > 15, "{}", in_pages.len());
    for [what, .., version] in in_pages {
        let measured = version.split(' ').next();
        assert_eq!(measured, Some(env!("CARGO_PKG_VERSION")), "{what}: measure it with `benches/run`");
    }
    let prometheus = std::fs::read_to_string("benches/prometheus.md").unwrap();
    for row in prometheus.lines().skip(2) {
        let version = row.trim_end_matches([' ', '|']).rsplit(" | ").next().unwrap();
        assert!(
            version.starts_with(concat!(env!("CARGO_PKG_VERSION"), " ")),
            "{row}: measure it with `benches/prometheus`"
        );
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
    // Names are in backticks here, and hold none.
    let (named, missed): (BTreeSet<_>, BTreeSet<_>) =
        (named.collect(), missed.map(|[what, ..]| what.replace('`', "")).collect());
    assert_eq!(named, missed);
}

/// Units of what is measured. Durations of settings are in backticks.
const UNITS: &[&str] = &["ms", "s", "kB", "MB", "GB", "KiB", "MiB", "GiB", "%", "series"];

/// Numbers and units that are spelled out. Minutes and longer are settings.
const SPELLED: &str = "milliseconds=ms second=s seconds=s kilobytes=kB megabytes=MB gigabytes=GB percent=% one=1 two=2 \
                       three=3 four=4 five=5 six=6 seven=7 eight=8 nine=9 ten=10 fifteen=15 twenty=20 thirty=30 \
                       forty=40 fifty=50 hundred=100 thousand=1,000 million=1,000,000";

/// Every number with such a unit, in figures or spelled out.
fn figures(text: &str) -> BTreeSet<String> {
    let is_number = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_digit())
            && word.chars().all(|c| c.is_ascii_digit() || c == ',' || c == '.')
    };
    let words: Vec<&str> = text
        .split(|c: char| c.is_whitespace() || "()[]|*:;".contains(c))
        .map(|word| word.trim_end_matches(['.', ',']))
        .filter(|word| !word.is_empty())
        .map(|word| {
            let mut spelled = SPELLED.split(' ').filter_map(|pair| pair.split_once('='));
            spelled.find(|(spelled, _)| *spelled == word).map_or(word, |(_, short)| short)
        })
        .collect();
    let apart = words.windows(2).map(|pair| (pair[0], pair[1]));
    let joined = words.iter().map(|word| {
        word.split_at(word.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(word.len()))
    });
    let figures = apart.chain(joined).filter(|(number, unit)| is_number(number) && UNITS.contains(unit));
    figures.map(|(number, unit)| format!("{number} {unit}")).collect()
}

/// The prose written by hand, without code, and the generated parts.
fn parts(page: &str) -> (String, String) {
    let (mut by_hand, mut generated, mut inside) = (String::new(), String::new(), false);
    for line in page.lines() {
        inside = (inside || line.ends_with(": begin -->")) && !line.ends_with(": end -->");
        let part = if inside { &mut generated } else { &mut by_hand };
        *part += &format!("{}\n", if inside { line.replace('`', " ") } else { line.to_owned() });
    }
    let prose = by_hand.split("```").step_by(2).collect::<String>();
    (prose.split('`').step_by(2).collect::<Vec<_>>().join(" _ "), generated)
}

#[test]
fn figures_with_units_are_generated_or_settings() {
    // Without the log of measurements and the chart's own page.
    let others = ["benches/README.md", "deploy/helm/pds-exporter/README.md"];
    let pages: Vec<_> = pages().into_iter().filter(|(path, _)| !others.contains(&&**path)).collect();
    let known: BTreeSet<_> = pages.iter().flat_map(|(_, page)| figures(&parts(page).1)).collect();
    assert!(known.contains("80 MiB") && known.len() > 20, "{known:?}");
    let mut typed = Vec::new();
    for (path, page) in &pages {
        let unknown = figures(&parts(page).0).into_iter().filter(|figure| !known.contains(figure));
        typed.extend(unknown.map(|figure| format!("{path}: {figure}")));
    }
    assert!(typed.is_empty(), "typed by hand: {typed:#?}");
}

#[test]
fn figures_are_found() {
    let found =
        figures("It takes 80 MB (1.5 s), 5% of **1,000 series**, twenty percent, and version 2.42 or `3`.");
    assert_eq!(found.into_iter().collect::<Vec<_>>(), ["1,000 series", "1.5 s", "20 %", "5 %", "80 MB"]);
    let (by_hand, generated) =
        parts("a 1 s\n<!-- x: begin -->\n2 `s`\n<!-- x: end -->\n`3 s`\n```\n4 s\n```\n");
    assert_eq!((figures(&by_hand).len(), figures(&generated).len()), (1, 1));
}
