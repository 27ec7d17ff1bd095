//! The fuzzers' corpus, replayed through the fuzzers' checks.

use std::path::Path;

#[path = "../../fuzz/checks.rs"]
mod checks;

fn replay(target: &str, check: impl Fn(&[u8])) {
    let files = checks::replay(&Path::new("fuzz/corpus").join(target), check);
    assert!(files > 0, "the corpus of {target} is empty");
}

#[test]
fn replies_of_the_corpus_are_read_without_nonsense() {
    replay("replies", checks::replies);
}

#[test]
fn labels_of_the_corpus_are_times_or_nothing() {
    replay("labels", checks::labels);
}

#[test]
fn configurations_of_the_corpus_are_followed_or_refused_with_a_reason() {
    replay("configuration", checks::configuration);
}

#[test]
fn what_is_exposed_of_the_corpus_a_strict_parser_reads_back() {
    replay("exposition", checks::exposition);
}

#[test]
fn headers_of_the_corpus_ask_for_the_same_in_capitals_and_beside_what_is_none_of_ours() {
    replay("negotiation", checks::negotiation);
}

#[test]
fn web_configurations_of_the_corpus_are_followed_or_refused_with_a_reason() {
    replay("web_configuration", checks::web_configuration);
}

#[test]
fn queries_of_the_corpus_read_the_same_when_written_again() {
    replay("query", checks::query);
}

#[test]
fn credentials_of_the_corpus_read_the_same_when_written_again() {
    replay("authorization", checks::authorization);
}

#[test]
fn no_sequence_of_replies_of_the_corpus_takes_a_count_back() {
    replay("ledger", checks::ledger);
}

#[test]
fn no_token_of_the_corpus_is_left_however_it_is_escaped() {
    replay("redaction", checks::redaction);
}

#[test]
fn no_text_of_the_corpus_steers_a_terminal() {
    replay("terminal", checks::terminal);
}

#[test]
fn state_files_of_the_corpus_are_read_as_written_or_refused() {
    replay("state_file", checks::state_file);
}
