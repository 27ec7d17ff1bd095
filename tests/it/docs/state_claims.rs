//! What the pages promise of the state file, each promise with the tests that show it.

/// Page, words of it, and the tests that show them.
pub(super) const CLAIMS: &[(&str, &str, &[&str])] = &[
    (
        "docs/counters.md",
        "A range is on disk before it is on the page",
        &[
            "real_kill::no_kill_takes_a_count_back_or_loses_one",
            "real_state::disk::a_full_disk_stops_the_counters_and_nothing_is_lost_when_there_is_room_again",
        ],
    ),
    (
        "docs/configure.md",
        "a second one that opens it exits with an error",
        &["real_state::a_second_daemon_on_the_same_file_ends_with_a_clear_error"],
    ),
    (
        "docs/run.md",
        "An exporter refuses a file of another format and leaves it as it is",
        &["ledger::state::tests::a_file_of_another_kind_is_refused_and_left_alone"],
    ),
    (
        "docs/configure.md",
        "A single file that is mounted into a container is refused",
        &["real_state::disk::a_file_that_is_mounted_by_itself_is_refused_with_a_remedy"],
    ),
    (
        "docs/configure.md",
        "The counters of 100,000 apps take at most 80 MB",
        &[
            "ledger::state::tests::the_ledgers_of_100_000_apps_take_at_most_80_megabytes",
            "ledger::log::tests::at_most_seventeen_bytes_are_written_for_ten_that_change",
        ],
    ),
    (
        "docs/configure.md",
        "After a crash, an incomplete last commit is dropped",
        &["ledger::log::tests::a_power_loss_at_any_point_leaves_the_last_commit_or_the_one_under_way"],
    ),
];
