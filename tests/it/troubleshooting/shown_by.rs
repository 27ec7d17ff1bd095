//! The tests that show each row of the page.

/// Each row of the table, by its first cell, and the tests that show it.
pub(super) const SHOWN_BY: &[(&str, &[&str])] = &[
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
        "The service ignores the range it is asked for: its query parameters have other names",
        &[
            "first_contact::a_service_with_other_names_is_told_once_and_its_counters_are_right_with_the_lines_of_check_service",
            "first_contact::a_service_that_ignores_every_range_is_told_and_nothing_is_suggested",
        ],
    ),
    (
        "The service always refuses a stretch of time, and answers for later time",
        &[
            "polls::holes::of_time_around_a_second_that_is_refused_one_step_is_given_up",
            "polls::holes::time_older_than_the_service_keeps_is_given_up_to_the_oldest_step_it_answers",
        ],
    ),
    (
        "The service ignores the bounds of ranges, or counts other ones than asked for",
        &[
            "polls::audit::of_a_service_that_ignores_what_is_asked_and_does_not_say_nothing_is_counted",
            "polls::audit::an_end_that_is_counted_twice_is_found_by_the_audit_and_mended_by_its_remedy",
        ],
    ),
    (
        "The service's clock jumps by more than an hour",
        &[
            "ledger::watermark::tests::a_date_more_than_an_hour_away_is_believed_once_it_ran_on_for_a_minute",
            "faults::clocks::a_date_of_1970_fails_the_polls_and_moves_no_counter",
        ],
    ),
    (
        "A reply is about another range than was asked for",
        &["ledger::ledger::tests::a_reply_is_added_once_and_only_where_it_belongs"],
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
        "No custom domain of a project has a validation status",
        &["polls::shown::domains_without_a_validation_status_are_named_once_with_the_key_that_finds_it"],
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
            "ledger::state::tests::a_damaged_file_is_refused_or_gives_what_was_written",
            "real_kill::a_file_left_by_a_kill_and_damaged_is_refused_or_has_every_count",
        ],
    ),
    (
        "The state file is removed, replaced, or its disk is full",
        &[
            "ledger::state::tests::a_file_removed_or_shortened_while_in_use_is_written_whole_again",
            "ledger::state::tests::a_file_that_replaces_the_state_file_is_neither_written_nor_used",
            "real_state::disk::an_error_of_fdatasync_loses_nothing_and_the_file_is_written_whole",
            "real_state::disk::a_full_disk_stops_the_counters_and_nothing_is_lost_when_there_is_room_again",
        ],
    ),
    (
        "The Prometheus that cursors are read from does not answer: no connection, a timeout, an error, no credentials",
        &[
            "restore::bad_answers::an_unreachable_prometheus_hides_the_counters_and_errors_show_no_secret",
            "restore::engines::mimir_answers_for_the_right_tenant_only",
            "restore::bad_answers::an_answer_that_is_an_error_hides_the_counters_until_there_is_one",
            "restore::a_daemon_retries_and_polls_a_counter_at_once_when_its_cursor_is_known",
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
        "That Prometheus has not scraped this process",
        &["restore::cursors::without_a_sample_of_this_process_cursors_count_after_two_minutes"],
    ),
    (
        "That Prometheus knows nothing of any app",
        &[
            "restore::cursors::counters_without_a_cursor_begin_where_they_were_configured_and_that_is_reported_until_one_is_found",
            "restore::cursors::target_labels_that_rename_ours_are_reported_for_as_long_as_they_do",
            "restore::bad_answers::a_wrong_tenant_that_answers_empty_lets_counters_begin_after_two_minutes_and_is_reported",
        ],
    ),
    (
        "That Prometheus holds a cursor in the future, or values that no exporter writes",
        &[
            "restore::cursors::of_the_cursors_up_to_now_the_greatest_counts_and_one_that_has_not_settled_is_waited_for",
            "ledger::restore::source::tests::the_greatest_cursor_up_to_now_counts",
        ],
    ),
    (
        "Several exporters count the same app, or two jobs scrape one",
        &[
            "restore::an_app_is_counted_once_while_it_moves_between_shards_also_if_their_lives_overlap",
            "restore::engines::thanos_returns_each_replica_and_the_furthest_cursor_is_used",
        ],
    ),
    (
        "A query is beyond a limit of that Prometheus (422)",
        &[
            "restore::many::a_hundred_thousand_apps_take_500_queries_and_at_most_40_mb",
            "restore::bad_answers::an_answer_that_is_too_large_is_requested_in_parts",
        ],
    ),
    (
        "The exporter is killed",
        &[
            "real_kill::no_kill_takes_a_count_back_or_loses_one",
            "real_restore::no_count_is_lost_with_prometheus_3",
        ],
    ),
    ("The exporter has a bug", &["logging::a_panic_is_logged_with_its_place_and_never_with_a_token"]),
];
