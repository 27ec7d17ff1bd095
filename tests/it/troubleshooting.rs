//! `docs/troubleshooting.md`: tests show each row of its table, and these tests exist. Those about log and page are here.

use std::collections::BTreeSet;

use pds_exporter::interface::response_time;
use pds_exporter::simulator::{Fault, Kind, World};

use crate::docs::claims::assert_exist;
use crate::logging::service;
use crate::process::{Exporter, until, value};

/// The page.
const PAGE: &str = "docs/troubleshooting.md";

/// Each row of the table, by its first cell, and the tests that show it.
const SHOWN_BY: &[(&str, &[&str])] = &[
    (
        "The service fails: 5xx, HTML, plain text",
        &[
            "faults::every_fault_of_app_is_contained",
            "client::load::an_outage_never_multiplies_the_load",
            "troubleshooting::log_and_page_quote_the_reply_at_the_error",
        ],
    ),
    (
        "The service is slow or does not answer",
        &[
            "faults::every_fault_of_response_time_is_contained",
            "client::hostile::a_dripping_reply_takes_no_longer_than_a_request_may",
        ],
    ),
    (
        "No connection, or one that breaks off",
        &[
            "client::transport::a_name_without_address_is_a_class_of_its_own",
            "client::transport::a_certificate_for_another_name_is_not_trusted",
            "faults::every_fault_of_domains_is_contained",
            "command_line::with_the_service_down_the_daemon_runs_says_so_and_ends_at_sigterm_with_0",
        ],
    ),
    (
        "The service asks to slow down: 429, `Retry-After`",
        &[
            "client::load::retry_after_pauses_the_service_account_that_got_it_and_no_other",
            "faults::every_fault_of_projects_is_contained",
            "logging::a_stopped_service_account_is_logged_once_and_not_by_its_targets",
        ],
    ),
    (
        "The service keeps refusing the pace: 429 again within a minute",
        &[
            "client::load::repeated_429s_slow_the_account_down_and_it_recovers",
            "client::storm::after_a_wall_of_429s_the_former_pace_is_back_within_a_minute",
            "client::storm::a_token_bucket_is_used_up_without_a_second_storm",
        ],
    ),
    (
        "The service refuses the token: 401",
        &[
            "client::tokens::a_refused_token_is_not_sent_again_until_it_changes",
            "logging::a_stopped_service_account_is_logged_once_and_not_by_its_targets",
        ],
    ),
    (
        "The token may not read one thing: 403",
        &[
            "client::tokens::a_forbidden_app_does_not_stop_the_others",
            "client::tokens::a_forbidden_app_is_polled_again_after_the_settings_interval",
        ],
    ),
    (
        "The token file is empty or missing",
        &[
            "client::tokens::an_empty_or_missing_file_keeps_the_last_good_token",
            "client::tokens::without_a_token_nothing_is_sent_until_the_file_appears",
            "logging::a_missing_token_file_is_logged_once_and_its_appearance_too",
            "client::secrecy::a_change_is_logged_once_and_not_with_each_request",
        ],
    ),
    (
        "An app is gone: 404",
        &[
            "faults::every_fault_of_run_execution_time_is_contained",
            "poller::an_app_that_is_gone_is_asked_less_often_until_it_is_back",
        ],
    ),
    (
        "A reply cannot be read: cut off, not JSON, wrong shape, duplicate keys",
        &[
            "faults::every_fault_of_volume_alerts_is_contained",
            "client::hostile::a_reply_that_can_not_be_read_is_counted_as_that_and_not_as_a_success",
            "troubleshooting::log_and_page_quote_the_reply_at_the_error",
        ],
    ),
    (
        "A single value makes no sense: `1e400`, `\"12abc\"`, -1, 250 %, a name longer than 1,024 bytes",
        &[
            "faults::every_fault_of_app_is_contained",
            "faults::every_fault_of_response_time_is_contained",
            "troubleshooting::a_field_whose_values_are_nonsense_is_in_the_log_once",
        ],
    ),
    (
        "A reply is endless, huge or a compression bomb",
        &[
            "real_memory::hostile_replies_take_no_more_memory_and_processor_than_stated",
            "client::hostile::replies_in_flight_wait_for_one_another_and_all_arrive",
            "client::hostile::a_reply_that_is_held_keeps_the_room_it_takes",
        ],
    ),
    (
        "The two clocks differ",
        &[
            "client::transport::the_services_clock_is_compared_with_ours",
            "faults::clocks::by_a_clock_that_is_behind_from_the_start_everything_is_counted",
            "faults::clocks::if_the_service_clock_is_ahead_ours_decides",
        ],
    ),
    (
        "One of the clocks is set back",
        &[
            "faults::clocks::a_service_set_back_stops_the_counters_until_its_clock_has_caught_up",
            "faults::clocks::ours_set_back_stops_the_counters_too",
            "accounting::a_clock_far_ahead_loses_nothing_even_over_a_restart",
        ],
    ),
    (
        "An outage is longer than `accounting.max_catch_up`",
        &[
            "accounting::a_gap_longer_than_max_catch_up_is_given_up_and_counted_as_that",
            "troubleshooting::an_outage_that_is_too_long_is_one_warning_and_then_a_counter",
        ],
    ),
    ("The configuration is bad at a reload", &["reload::a_bad_file_changes_nothing_and_says_so"]),
    (
        "The configuration is bad at the start",
        &[
            "command_line::what_a_new_user_does_wrong_gets_a_sentence_and_an_exit_code",
            "config::every_bad_file_gets_its_exact_errors_and_no_secret",
        ],
    ),
    (
        "The state file is damaged",
        &[
            "accounting::state::tests::a_damaged_file_is_refused_or_gives_what_was_written",
            "accounting::state::tests::a_file_left_by_a_kill_and_damaged_never_goes_back_to_an_older_commit",
        ],
    ),
    (
        "The state file is removed, replaced, or its disk is full",
        &[
            "accounting::state::tests::a_file_removed_or_shortened_while_in_use_is_written_whole_again",
            "accounting::state::tests::a_file_that_replaces_the_state_file_is_neither_written_nor_used",
            "accounting::state::tests::a_file_that_could_not_be_synced_is_written_whole",
            "real_state::disk::a_full_disk_stops_the_counters_and_nothing_is_lost_when_there_is_room_again",
        ],
    ),
    (
        "The Prometheus that counters are read back from does not answer: no connection, a timeout, an error, no credentials",
        &[
            "restore::bad_answers::an_unreachable_prometheus_hides_the_counters_and_errors_show_no_secret",
            "restore::engines::mimir_answers_for_the_right_tenant_only",
            "restore::bad_answers::an_answer_that_is_an_error_hides_the_counters_until_there_is_one",
            "restore::a_daemon_retries_a_restore_and_polls_restored_targets_at_once",
        ],
    ),
    (
        "That Prometheus answers only in part: warnings, `isPartial`, a reply cut off, something else than its API",
        &[
            "restore::bad_answers::an_answer_that_lacks_something_hides_the_counters_until_it_is_whole",
            "restore::bad_answers::an_answer_of_something_else_hides_the_counters",
            "restore::bad_answers::an_answer_that_is_too_large_is_requested_in_parts",
            "restore::engines::thanos_with_a_store_that_is_down_hides_the_counters_whether_it_fails_or_warns",
        ],
    ),
    (
        "That Prometheus knows nothing of an app",
        &[
            "restore::nothing_known_opens_a_counter_only_once_this_very_process_was_scraped_with_it",
            "restore::bad_answers::a_wrong_tenant_that_answers_empty_hides_the_counters_and_opens_none",
        ],
    ),
    (
        "What that Prometheus knows of an app does not belong together: a cursor in the future, `+Inf` unlike the total, buckets that decrease, fractions, a missing `+Inf` bucket",
        &[
            "restore::bad_series::inconsistent_series_are_refused_with_their_target",
            "restore::bad_series::if_the_latest_target_is_refused_the_one_before_is_used",
        ],
    ),
    (
        "What that Prometheus knows is of another version, or there twice",
        &[
            "restore::bad_series::series_of_an_older_version_and_of_a_newer_one_are_taken_as_far_as_they_go",
            "restore::bad_series::two_jobs_that_scrape_one_exporter_are_one_ledger",
            "restore::engines::thanos_returns_each_replica_and_the_furthest_one_is_used",
        ],
    ),
    (
        "That Prometheus has very much to tell: 10,000 apps with 25 series each, or a question is beyond a limit of its own (422)",
        &[
            "restore::many::ten_thousand_apps_take_a_hundred_queries",
            "restore::bad_answers::an_answer_that_is_too_large_is_requested_in_parts",
        ],
    ),
    (
        "The exporter is killed",
        &[
            "real_kill::no_kill_takes_a_count_back_or_loses_one",
            "restore::model::nothing_goes_back_and_all_hold_what_there_was",
        ],
    ),
    ("The exporter has a bug", &["logging::a_panic_is_logged_with_its_place_and_never_with_a_token"]),
];

/// What shows the two commands below the table.
const AT_RANDOM: &[&str] = &[
    "fuzz::what_is_exposed_of_the_corpus_a_strict_parser_reads_back",
    "fuzz::replies_of_the_corpus_are_read_without_nonsense",
    "real_soak::faults_at_random_leave_memory_flat_and_counters_exact",
];

/// The rows of the page's table, as cells.
fn rows(text: &str) -> Vec<Vec<&str>> {
    let (_, table) = text.split_once("<!-- faults: begin -->\n").expect("the table has a beginning");
    let (table, _) = table.split_once("<!-- faults: end -->").expect("the table has an end");
    let rows = table.lines().filter(|line| line.starts_with("| ")).skip(2);
    rows.map(|row| row.trim_matches('|').split(" | ").map(str::trim).collect()).collect()
}

#[test]
fn every_row_is_shown_by_tests() {
    let text = std::fs::read_to_string(PAGE).unwrap();
    let rows = rows(&text);
    for row in &rows {
        assert!(row.len() == 3 && row.iter().all(|cell| !cell.is_empty()), "three cells: {row:?}");
    }
    let faults: BTreeSet<&str> = rows.iter().map(|row| row[0]).collect();
    let shown: BTreeSet<&str> = SHOWN_BY.iter().map(|(fault, _)| *fault).collect();
    assert_eq!(faults, shown, "rows of {PAGE} and of SHOWN_BY");
    assert_eq!(rows.len(), faults.len(), "duplicate rows in {PAGE}");
}

#[test]
fn every_test_named_here_exists() {
    for (fault, tests) in SHOWN_BY.iter().chain([&("at random", AT_RANDOM)]) {
        assert_exist(fault, tests);
    }
}

/// `kind` for the response times of the first app.
fn of_first_app(world: &World, kind: Kind) -> Fault {
    Fault::from(kind).on(response_time::RESOURCE).of_app(&world.projects()[0].1[0])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn log_and_page_quote_the_reply_at_the_error() {
    let (world, _folder, config) = service(2).await;
    let exporter = Exporter::start(&["--config.file", &config]);
    exporter.wait_for("/-/ready").await;
    let (project, apps) = world.projects().remove(0);
    let page = format!("/apps/{project}/{}", apps[0]);
    let raw = Kind::RawError { status: 503, text: "upstream fell over".to_owned() };
    let wrong_shape = Kind::RawError { status: 200, text: "{\"status\": 7}".to_owned() };
    for (kind, class, told) in [
        (Kind::Status { status: 500, retry_after: None }, "500", "answered 500: a fault was asked for"),
        (Kind::MalformedJson, "decode", "at line 1 column"),
        (raw, "503", "answered 503: upstream fell over"),
        (wrong_shape, "decode", "status is "),
        (Kind::Html { status: 502 }, "502", "answered 502: <html><head><title>502</title>"),
    ] {
        let before = exporter.log().lines().count();
        world.faults().set([of_first_app(&world, kind)]);
        let line = format!("class={class} ");
        until(&format!("the log says {told}"), async || {
            exporter.log().lines().skip(before).any(|logged| logged.contains(&line) && logged.contains(told))
        })
        .await;
        // A page that readers share may be as old as a second.
        until(&format!("the page says {told}"), async || {
            exporter.get(&page).await.replace("&lt;", "<").replace("&gt;", ">").contains(told)
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_field_whose_values_are_nonsense_is_in_the_log_once() {
    let (world, _folder, config) = service(2).await;
    let exporter = Exporter::start(&["--config.file", &config]);
    exporter.wait_for("/-/ready").await;
    world
        .faults()
        .set([of_first_app(&world, Kind::Value { field: "1s".to_owned(), json: "1e400".to_owned() })]);
    let mut field = String::new();
    until("it is counted again and again", async || {
        let page = exporter.get("/metrics").await;
        let Some(line) = page.lines().find(|line| line.starts_with("pds_api_unexpected_values_total{"))
        else {
            return false;
        };
        field = line.split("field=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
        line.rsplit(' ').next().unwrap().parse::<f64>().unwrap() >= 4.0
    })
    .await;
    let log = exporter.log();
    let lines: Vec<&str> =
        log.lines().filter(|line| line.contains("a value is not what the interface says")).collect();
    let [line] = &*lines else { panic!("{log}") };
    assert!(line.contains(&format!("field={field} ")) && line.contains("resource=response_time"), "{line}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_outage_that_is_too_long_is_one_warning_and_then_a_counter() {
    let (world, _folder, config) = service(2).await;
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.replace("[accounting]\n", "[accounting]\nmax_catch_up = \"2s\"\n")).unwrap();
    let exporter = Exporter::start(&["--config.file", &config]);
    exporter.wait_for("/-/ready").await;
    world.faults().set([of_first_app(&world, Kind::Status { status: 500, retry_after: None })]);
    let (project, apps) = world.projects().remove(0);
    let unaccounted = format!(
        "pds_app_unaccounted_seconds_total{{project=\"{project}\",app=\"{}\",resource=\"response_time\"}}",
        apps[0]
    );
    until("seconds are given up again and again", async || {
        value(&exporter.get("/metrics").await, &unaccounted).is_some_and(|seconds| seconds >= 4.0)
    })
    .await;
    let log = exporter.log();
    let warnings = log.lines().filter(|line| line.contains("is given up")).count();
    assert_eq!(warnings, 1, "{log}");
}
