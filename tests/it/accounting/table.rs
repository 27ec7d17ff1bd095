//! Services that a ledger has to survive, as a table of the docs: each row is run by tests.

use crate::golden::assert_current;

/// The behaviour of a service, its sign, the loss, and the test that shows it.
const ROWS: &[[&str; 4]] = &[
    [
        "reports requests once finished",
        "`pds_app_late_requests_total` grows",
        "",
        "accounting/services requests_that_arrive_once_they_are_finished_are_counted_in_their_buckets",
    ],
    [
        "returns 0 instead of errors",
        "counters of busy apps stand still for ten minutes; late data follows",
        "",
        "accounting/services hours_of_zeros_instead_of_errors_lose_nothing, accounting/services \
         zeros_of_all_busy_apps_are_requested_again_for_ten_minutes",
    ],
    [
        "forgets a recreated app",
        "`pds_app_disputed_hours_total` grows",
        "its earlier late data",
        "accounting/services a_recreated_app_keeps_its_counts_and_gets_its_late_data",
    ],
    [
        "gets a token of another account",
        "the same",
        "earlier late data",
        "accounting/services a_token_of_another_account_keeps_the_counts_and_gets_the_late_data_of_that_account",
    ],
    [
        "keeps less than `accounting.recheck_after`",
        "the same",
        "later late data",
        "accounting/services a_history_shorter_than_the_rechecks_is_disputed_and_late_data_is_added",
    ],
    [
        "renames a threshold",
        "its series vanishes within three polls",
        "",
        "accounting/services a_renamed_threshold_leaves_the_page_within_three_polls",
    ],
    [
        "refuses a range for an hour",
        "`pds_app_accounting_behind_seconds`, then `pds_app_pending_seconds`",
        "",
        "accounting/services a_stretch_that_is_refused_for_an_hour_is_counted_later",
    ],
    [
        "rounds ranges outwards, but states the requested one",
        "counters stay at 0; a reason names the key",
        "",
        "polls/audit rounded_ranges_that_claim_to_be_exact_are_not_counted",
    ],
    [
        "rounds both ends up",
        "a reason; late data",
        "",
        "accounting/services ranges_whose_ends_are_both_rounded_up_are_different",
    ],
    [
        "sends whole percentages",
        "coarse buckets; a note on the page of an app with a finer objective",
        "half a percent at most",
        "accounting/services shares_in_whole_percent_are_counted_within_their_resolution, polls/shown \
         shares_too_coarse_for_an_objective_are_on_the_apps_page_and_in_the_json_but_no_reason",
    ],
    [
        "sends another range's distribution",
        "a reason after three audits",
        "buckets",
        "accounting/services a_distribution_of_the_last_day_is_different_after_three_audits",
    ],
    [
        "reports requests after the last recheck",
        "`pds_audit_completeness_ratio`; a reason",
        "those requests",
        "polls/counted_again an_hour_a_day_shows_how_much_came_too_late_to_be_counted",
    ],
];

#[test]
fn each_row_of_the_table_of_services_is_run_by_a_test() {
    let mut table = "| the service | you see | lost |\n| --- | --- | --- |\n".to_owned();
    for [does, seen, lost, tests] in ROWS {
        for test in tests.split(", ") {
            let (file, name) = test.split_once(' ').unwrap();
            let source = std::fs::read_to_string(format!("tests/it/{file}.rs")).unwrap();
            assert!(source.contains(&format!("]\nasync fn {name}() {{")), "{test}");
        }
        let lost = if lost.is_empty() { "nothing" } else { lost };
        table += &format!("| {does} | {seen} | {lost} |\n");
    }
    assert_current("docs/counters.md", "services", &table);
}
