//! The fuzzers' corpus, replayed through the fuzzers' checks.

use std::path::Path;

#[path = "../../fuzz/checks/mod.rs"]
mod checks;

fn replay(target: &str, check: impl Fn(&[u8])) {
    let files = checks::replay(&Path::new("fuzz/corpus").join(target), check);
    assert!(files > 0, "the corpus of {target} is empty");
}

/// They are compiled by a nightly toolchain, so not with the tests.
#[test]
fn the_fuzzers_depend_on_each_crate_of_the_house_that_they_use() {
    let manifest = std::fs::read_to_string("fuzz/Cargo.toml").unwrap();
    for folder in ["fuzz/checks", "fuzz/fuzz_targets"] {
        for file in std::fs::read_dir(folder).unwrap() {
            let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
            for (before, _) in text.match_indices("pds_").map(|(at, _)| text[at..].split_once("::").unwrap())
            {
                let dependency = format!("\n{} = {{ path = ", before.replace('_', "-"));
                assert!(manifest.contains(&dependency), "fuzz/Cargo.toml lacks{dependency}");
            }
        }
    }
}

/// A test for each fuzzer that replays its corpus.
macro_rules! replays {
    ($($test:ident: $target:ident),* $(,)?) => {$(
        #[test]
        fn $test() {
            replay(stringify!($target), checks::$target);
        }
    )*};
}

replays! {
    replies_of_the_corpus_are_read_without_nonsense: replies,
    cursors_of_the_corpus_are_those_that_the_reply_holds: cursors,
    labels_of_the_corpus_are_times_or_nothing: labels,
    configurations_of_the_corpus_are_followed_or_refused_with_a_reason: configuration,
    a_strict_parser_reads_back_the_exposition_of_the_corpus: exposition,
    headers_of_the_corpus_are_read_alike_in_any_case_and_among_unknown_types: negotiation,
    web_configurations_of_the_corpus_are_followed_or_refused_with_a_reason: web_configuration,
    queries_of_the_corpus_read_the_same_when_written_again: query,
    credentials_of_the_corpus_read_the_same_when_written_again: authorization,
    no_sequence_of_replies_of_the_corpus_takes_a_count_back: ledger,
    no_token_of_the_corpus_remains_however_it_is_escaped: redaction,
    no_text_of_the_corpus_steers_a_terminal: terminal,
    state_files_of_the_corpus_are_read_as_written_or_refused: state_file,
    frames_and_records_of_the_corpus_count_the_same_however_they_arrive: frames,
    waits_of_the_corpus_are_those_that_the_headers_say: retry_after,
    journals_of_the_corpus_are_read_again_after_more_was_added: journal,
}

#[test]
fn hostile_distributions_are_exposed_as_a_strict_parser_reads_them() {
    for distribution in include_str!("fuzz/distributions.txt").lines() {
        for total in ["7", "0", "9007199254740992", "null"] {
            let reply = format!(
                r#"{{"data":{{"distribution":{distribution},"total_requests":{total}}},"status":"success"}}"#
            );
            checks::exposition(reply.as_bytes());
            checks::ledger([reply.as_str(); 3].join("\n").as_bytes());
        }
    }
}
