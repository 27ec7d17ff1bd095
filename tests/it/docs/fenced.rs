//! Every fenced block of the pages is run by a test, or cannot run here for a reason that is given.

use super::{assert_exist, blocks, pages};

/// Languages of blocks, each with the tests that read them.
const LANGUAGES: &[(&str, &[&str])] = &[
    // Samples and drawings.
    ("", &["readme::the_sample_is_what_the_demo_serves"]),
    ("json", &["docs::tables::every_kind_of_fault_is_documented_with_an_example_that_is_accepted"]),
    ("promql", &["real_deploy::dashboards::every_panel_and_every_documented_query_shows_something"]),
    ("sh", &["docs::fenced::every_command_is_run_by_a_test_or_cannot_be_run_here"]),
    ("text", &["docs::tables::generated_tables_are_current"]),
    ("toml", &["docs::examples_of_configurations_are_valid"]),
    (
        "yaml",
        &[
            "docs::examples_of_configurations_are_valid",
            "real_readme::the_steps_of_the_readme_lead_from_nothing_to_right_counters_in_prometheus",
        ],
    ),
];

/// Why a command is not run.
const LONG: &str = "compiles with the profile of releases, for minutes";

/// Follows deploy/README.md with stand-ins for what would change the machine or needs a cluster.
const FOLLOWED: Shown = By(&["deploy::steps::the_page_is_followed_from_its_top_to_its_bottom"]);

/// How a command is shown.
enum Shown {
    By(&'static [&'static str]),
    Not(&'static str),
}
use Shown::{By, Not};

/// Commands by how they begin.
const COMMANDS: &[(&str, Shown)] = &[
    ("cargo run --release -- --demo", By(&["command_line::the_demo_serves_everything_without_any_set_up"])),
    ("tests/run", Not("is what runs this")),
    ("cargo install ", Not(LONG)),
    ("cargo build ", FOLLOWED),
    (
        "pdstool init ",
        By(&["real_readme::the_steps_of_the_readme_lead_from_nothing_to_right_counters_in_prometheus"]),
    ),
    (
        "pdstool doctor",
        By(&["real_readme::the_steps_of_the_readme_lead_from_nothing_to_right_counters_in_prometheus"]),
    ),
    (
        "pds-exporter --state.path=",
        By(&["real_readme::the_steps_of_the_readme_lead_from_nothing_to_right_counters_in_prometheus"]),
    ),
    (
        "mkdir parts ",
        By(&["deploy::helm::sources::a_hundred_thousand_apps_fit_into_config_maps_and_over_ten_shards"]),
    ),
    ("awk ", FOLLOWED),
    ("{ print >> ", FOLLOWED),
    ("for file in parts/", FOLLOWED),
    ("done", FOLLOWED),
    ("htpasswd ", By(&["real_readme::a_hash_of_htpasswd_makes_a_web_configuration"])),
    ("pdstool check web-config ", By(&["real_readme::a_hash_of_htpasswd_makes_a_web_configuration"])),
    ("docker ", FOLLOWED),
    ("kubectl ", FOLLOWED),
    ("helm ", FOLLOWED),
    ("$EDITOR ", FOLLOWED),
    ("install ", FOLLOWED),
    ("systemctl ", FOLLOWED),
    ("prometheus --agent ", By(&["real_deploy::agent::an_agent_sends_everything_on_but_what_is_dropped"])),
    (
        "cd deploy/grafana && npm ",
        By(&["deploy::dashboards::the_dashboards_are_what_their_typed_sources_make"]),
    ),
];

#[test]
fn every_fenced_block_is_of_a_language_that_a_test_reads() {
    for (path, page) in pages() {
        for (count, line) in page.lines().filter_map(|line| line.trim_start().strip_prefix("```")).enumerate()
        {
            // Every other fence ends a block.
            let known = LANGUAGES.iter().any(|(language, _)| *language == line);
            assert!(count % 2 == 1 || known, "{path}: no test reads blocks of {line}");
        }
    }
    for (language, tests) in LANGUAGES {
        assert_exist(language, tests);
    }
}

#[test]
fn every_command_is_run_by_a_test_or_cannot_be_run_here() {
    let mut used = vec![false; COMMANDS.len()];
    for (path, page) in pages() {
        for block in blocks(&page, "sh") {
            let lines = block.replace("\\\n", " ");
            for line in
                lines.lines().map(str::trim_start).filter(|line| !line.is_empty() && !line.starts_with('#'))
            {
                let known = COMMANDS.iter().position(|(beginning, _)| line.starts_with(beginning));
                let place = known.unwrap_or_else(|| panic!("{path}: no test runs {line}"));
                used[place] = true;
            }
        }
    }
    for ((beginning, shown), used) in COMMANDS.iter().zip(used) {
        assert!(used, "no page has {beginning}");
        match shown {
            By(tests) => assert_exist(beginning, tests),
            Not(reason) => assert!(!reason.is_empty()),
        }
    }
}
