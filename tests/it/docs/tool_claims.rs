//! What the pages promise of `pdstool` and of processes, each promise with the tests that show it.

/// Page, words of it, and the tests that show them.
pub(super) const CLAIMS: &[(&str, &str, &[&str])] = &[
    (
        "docs/run.md",
        "exits with 0 after SIGTERM or SIGINT, once the scrapes in progress are finished",
        &[
            "web::limits::shutdown_finishes_requests_in_progress_and_takes_no_new_ones",
            "command_line::with_the_service_down_the_daemon_runs_says_so_and_ends_at_sigterm_with_0",
        ],
    ),
    (
        "docs/operate.md",
        "It asks before it deletes, unassigns, creates a key or changes the plan",
        &["tool::ask::every_call_that_destroys_or_costs_money_asks"],
    ),
    (
        "docs/operate.md",
        "completions that offer the ids of the configuration",
        &["tool::completion::shells_complete_the_ids_of_the_configuration"],
    ),
    (
        "docs/operate.md",
        "Packages install man pages, and completions",
        &["releases::package::the_debian_package_installs_into_a_clean_root_and_its_units_are_valid"],
    ),
    (
        "docs/operate.md",
        "Every command that prints data takes `-o`",
        &[
            "tool::formats::every_command_has_output_formats_or_a_format_of_its_own",
            "tool::formats::checks_of_files_have_every_format_at_any_width",
            "tool::calls::every_call_sends_its_request_and_shows_the_reply",
            "tool::status::apps_with_problems_come_first_in_every_form",
        ],
    ),
    (
        "docs/operate.md",
        "A client generated from it works against `pdstool simulate`",
        &["openapi::a_client_made_by_openapi_python_client_makes_every_call_of_the_simulator"],
    ),
    (
        "docs/configure.md",
        "`pdstool simulate` can be each of these services",
        &[
            "tool::service::the_flags_of_the_simulator_make_each_service_and_the_page_names_the_lines_to_write",
            "tool::exchange::the_http_version_and_compression_are_found_over_tls",
        ],
    ),
];
