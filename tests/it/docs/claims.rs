//! What the pages promise, each promise with the tests that show it.

/// Page, words of it, and the tests that show them.
const CLAIMS: &[(&str, &str, &[&str])] = &[
    (
        "README.md",
        "They survive crashes, outages and restarts",
        &[
            "real_kill::no_kill_takes_a_count_back_or_loses_one",
            "accounting::what_is_counted_is_what_there_was",
            "accounting::a_clock_far_ahead_loses_nothing_even_over_a_restart",
        ],
    ),
    (
        "README.md",
        "The daemon only sends GET.",
        &["client::load::what_changes_something_is_never_sent_twice_and_never_by_a_poll"],
    ),
    (
        "README.md",
        "The demo needs no configuration, no token and no network.",
        &["command_line::the_demo_serves_everything_without_any_set_up"],
    ),
    (
        "docs/operate.md",
        "| up to 50 | 15 s | | up to 500 | minute | | up to 2,500 | 5 minutes | | more | 15 minutes |",
        &[
            "store::six_hours::tests::slots_reach_six_hours_back_and_not_beyond",
            "store::six_hours::tests::the_last_hours_of_each_of_many_apps_are_small",
        ],
    ),
    (
        "docs/counters.md",
        "Time is cut at whole steps of UTC",
        &[
            "ledger::ledger::tests::ranges_follow_one_another_and_end_on_whole_steps",
            "ledger::ledger::tests::a_reply_is_added_once_and_only_where_it_belongs",
        ],
    ),
    (
        "docs/counters.md",
        "A failed request moves nothing",
        &["accounting::what_is_counted_is_what_there_was"],
    ),
    (
        "docs/counters.md",
        "Every second is accounted for, pending or unaccounted, and never two of these.",
        &[
            "ledger::ledger::tests::time_given_up_is_counted_once",
            "accounting::a_gap_longer_than_max_catch_up_is_given_up_and_counted_as_that",
        ],
    ),
    (
        "docs/counters.md",
        "a clock set back, or a `Date` that jumps by more than an hour",
        &[
            "faults::clocks::ours_set_back_stops_the_counters_too",
            "faults::clocks::a_service_set_back_stops_the_counters_until_its_clock_has_caught_up",
            "accounting::a_clock_far_ahead_loses_nothing_even_over_a_restart",
        ],
    ),
    (
        "docs/counters.md",
        "Counting begins at the service's time.",
        &["faults::clocks::counting_begins_with_the_first_reply_and_not_before"],
    ),
    (
        "docs/counters.md",
        "Buckets are counters too:",
        &[
            "ledger::ledger::tests::fractions_of_shares_are_carried_from_range_to_range",
            "ledger::ledger::tests::thresholds_beyond_the_limit_are_left_out_and_those_known_go_on",
            "ledger::ledger::tests::buckets_are_cumulative_and_every_one_a_counter",
            "ledger::ledger::tests::thresholds_that_come_and_go_keep_the_buckets_cumulative",
            "real_prometheus::quantiles_across_apps_agree_with_the_truth_within_one_bucket",
        ],
    ),
    (
        "docs/counters.md",
        "A counter that is behind is not shown.",
        &[
            "real_outage::counters_leave_the_page_in_an_outage_and_come_back_with_all_that_happened",
            "real_outage::prometheus_reads_no_zero_and_no_peak_that_there_was_not",
            "polls::shown::counters_that_are_behind_are_not_shown_and_the_status_says_how_far",
        ],
    ),
    (
        "docs/counters.md",
        "for up to five minutes before the gap and two after it",
        &["real_outage::prometheus_reads_no_zero_and_no_peak_that_there_was_not"],
    ),
    (
        "docs/counters.md",
        "Absence is no correction.",
        &[
            "ledger::recheck::tests::an_answer_that_has_far_fewer_is_disputed_and_repeated_and_changes_nothing",
            "accounting::services::half_an_hour_of_zeros_instead_of_errors_loses_nothing",
            "accounting::services::zeros_of_all_busy_apps_are_asked_about_again_for_ten_minutes",
            "accounting::services::an_app_made_anew_keeps_its_counts_and_gets_its_late_data",
            "accounting::services::a_history_shorter_than_the_rechecks_is_disputed_and_late_data_is_added",
        ],
    ),
    (
        "docs/counters.md",
        "What was given up is asked about once more at each age",
        &["accounting::services::a_stretch_that_is_refused_for_an_hour_is_counted_later"],
    ),
    (
        "docs/counters.md",
        "leaves the page after three polls if another one appeared",
        &["accounting::services::a_renamed_threshold_leaves_the_page_within_three_polls"],
    ),
    (
        "docs/counters.md",
        "Every hour is counted again",
        &[
            "accounting::services::requests_that_arrive_once_they_are_finished_are_counted_in_their_buckets",
            "accounting::late::late_data_is_complete_once_every_hour_was_rechecked",
            "ledger::recheck::tests::late_data_is_added_in_equal_parts_over_the_following_hour",
            "polls::counted_again::a_service_that_includes_the_end_of_ranges_is_named_once_with_what_to_set",
        ],
    ),
    (
        "docs/counters.md",
        "begin once our clock has been steady for a minute",
        &[
            "polls::starts::without_a_date_counting_begins_after_a_minute_of_a_steady_clock_and_is_exact",
            "ledger::watermark::tests::without_a_date_counting_begins_once_our_clock_was_steady_for_a_minute",
        ],
    ),
    (
        "docs/counters.md",
        "miss the newest data until the hour is counted again",
        &[
            "polls::starts::without_a_date_a_clock_ahead_of_the_services_misses_the_newest_until_it_is_counted_again",
        ],
    ),
    (
        "docs/counters.md",
        "It starts, moves, leaves and resets with that counter",
        &["real_outage::rates_of_accounted_time_are_right_as_soon_as_counters_return"],
    ),
    (
        "README.md",
        "Data that reaches the service later than `poll.settle` is added an hour or two later",
        &[
            "accounting::late::late_data_is_reported_separately",
            "ledger::recheck::tests::late_data_is_added_in_equal_parts_over_the_following_hour",
        ],
    ),
    (
        "docs/counters.md",
        "a restart without either (the default)",
        &["real_state::without_a_state_file_counters_restart_with_the_process"],
    ),
    (
        "docs/counters.md",
        "an app is removed and added again",
        &["real_state::a_re_added_app_continues_counting_and_fills_the_gap"],
    ),
    (
        "docs/counters.md",
        "an app moves to another shard",
        &["real_state::without_restore_an_app_begins_at_zero_on_another_shard_and_others_continue"],
    ),
    (
        "docs/counters.md",
        "a restart with `state.prometheus_url`",
        &[
            "restore::counters_begin_at_the_cursor_and_stand_at_0_until_they_were_read_for_a_minute",
            "real_restore::no_count_is_lost_with_prometheus_2",
            "real_restore::no_count_is_lost_with_prometheus_3",
            "real_restore::no_count_is_lost_with_victoria_metrics",
        ],
    ),
    (
        "docs/counters.md",
        "with `state.prometheus_url`, where the other shard stopped",
        &["restore::an_app_is_counted_once_while_it_moves_between_shards_also_if_their_lives_overlap"],
    ),
    (
        "docs/counters.md",
        "later ones are ignored and logged",
        &[
            "restore::cursors::of_the_cursors_up_to_now_the_greatest_counts_and_one_that_has_not_settled_is_waited_for",
        ],
    ),
    (
        "docs/counters.md",
        "after two minutes without one, its cursors count anyway",
        &["restore::cursors::without_a_sample_of_this_process_cursors_count_after_two_minutes"],
    ),
    (
        "docs/counters.md",
        "until the page was read and for a minute at least, two at most",
        &[
            "restore::counters_begin_at_the_cursor_and_stand_at_0_until_they_were_read_for_a_minute",
            "restore::counters_that_no_one_reads_stand_at_0_for_two_minutes",
        ],
    ),
    (
        "docs/counters.md",
        "The counter begins when it was configured.",
        &[
            "restore::cursors::counters_without_a_cursor_begin_where_they_were_configured_and_that_is_reported_until_one_is_found",
            "restore::cursors::target_labels_that_rename_ours_are_reported_for_as_long_as_they_do",
            "restore::bad_answers::a_wrong_tenant_that_answers_empty_lets_counters_begin_after_two_minutes_and_is_reported",
        ],
    ),
    (
        "docs/configure.md",
        "Of an unknown key, the nearest known one is named.",
        &["config::every_bad_file_gets_its_exact_errors_and_no_secret"],
    ),
    (
        "docs/configure.md",
        "Precedence, lowest first: defaults, file, environment.",
        &["config::values::values_mean_what_the_file_and_the_environment_say"],
    ),
    (
        "docs/metrics.md",
        "`/metrics` serves the text format 0.0.4 and OpenMetrics 1.0",
        &[
            "web::http::the_page_has_the_negotiated_format_and_coding",
            "real_prometheus::every_strict_parser_reads_the_demos_page",
        ],
    ),
    (
        "docs/operate.md",
        "a request with `If-None-Match` for an unchanged page gets 304",
        &["real_ui::documented_paths_exist_and_answer_304_when_unchanged"],
    ),
    (
        "docs/run.md",
        "without a restart and without a failed scrape",
        &[
            "web::tls::all_certificates_change_during_fifty_scrapes_a_second_without_a_failure",
            "web::auth::users_change_without_a_restart_and_a_bad_file_changes_nothing",
        ],
    ),
    (
        "docs/run.md",
        "A running daemon never gives up TLS, passwords or a demand on client certificates",
        &[
            "web::webconfig::live::tests::a_file_that_became_empty_opens_nothing",
            "web::tls::a_running_server_does_not_ask_less_of_clients",
        ],
    ),
    (
        "docs/run.md",
        "TLS 1.0 and 1.1, CBC cipher suites, the curve P-521",
        &[
            "web::tls::old_versions_are_refused_and_configured_ones_kept",
            "web::webconfig::files_that_would_mislead_are_refused_by_us_alone",
        ],
    ),
    (
        "docs/run.md",
        "`--web.probes-without-auth` exempts `/-/healthy` and `/-/ready`.",
        &[
            "web::auth::every_path_asks_for_the_password",
            "web::auth::the_flag_exempts_probes_from_the_password",
        ],
    ),
    (
        "docs/run.md",
        "`--web.listen-address` is repeatable",
        &[
            "web::listen::all_addresses_are_served_and_given_back",
            "web::listen::sockets_of_systemd_are_served",
        ],
    ),
    (
        "docs/operate.md",
        "What is over a limit gets 503, waits, or is dropped",
        &["web::limits::requests_above_the_limit_get_503"],
    ),
    (
        "docs/operate.md",
        "Targets that stay keep their values, schedule and counters.",
        &[
            "reload::what_stays_keeps_its_data_schedule_and_counters_and_what_goes_vanishes",
            "reload::a_bad_file_changes_nothing_and_says_so",
        ],
    ),
    (
        "docs/operate.md",
        "Token files need no reload",
        &["client::tokens::a_token_swapped_in_by_symlink_is_used_without_losing_a_poll"],
    ),
    (
        "docs/operate.md",
        "`log.level` takes effect at a reload.",
        &["logging::the_level_follows_the_configuration"],
    ),
    (
        "docs/operate.md",
        "get 403 without `--web.enable-lifecycle`",
        &["web::http::reload_and_quit_need_the_flag_and_a_post"],
    ),
    (
        "deploy/README.md",
        "both programs in less than 40 MB",
        &["real_deploy::image::the_image_is_small_and_runs_with_nothing_but_itself"],
    ),
    (
        "docs/configure.md",
        "the log says so at the start",
        &["command_line::a_configuration_that_exceeds_its_own_limits_is_reported"],
    ),
    (
        "SECURITY.md",
        "never appear in logs, pages, metrics or error texts",
        &[
            "client::secrecy::the_token_is_in_no_log_line_no_error_and_no_debug_output",
            "client::secrecy::what_a_reply_echoes_of_the_token_is_gone_before_it_is_read",
            "client::secrecy::an_echo_is_redacted_however_it_is_escaped_and_whose_token_it_is",
            "config::the_view_of_what_is_in_force_shows_each_origin_and_no_secret",
        ],
    ),
];

#[test]
fn every_claim_is_in_its_page_and_has_a_passing_test() {
    for (path, words, tests) in
        CLAIMS.iter().chain(super::tool_claims::CLAIMS).chain(super::state_claims::CLAIMS)
    {
        let page = std::fs::read_to_string(path).unwrap();
        let page = page.replace("**", "").split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(page.contains(words), "{path} does not say: {words}");
        super::assert_exist(words, tests);
    }
}
