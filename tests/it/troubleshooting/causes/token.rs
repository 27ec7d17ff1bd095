//! Set-ups in which a token is at fault.

use jiff::SignedDuration;
use pds_simulator::RetryAfter;

use super::*;

/// The token in the configuration.
fn token(text: &str) -> String {
    text.split("token = \"").nth(1).unwrap().split('"').next().unwrap().to_owned()
}

/// The configuration with a file that holds what `write` makes of its token.
fn token_in_file(text: &str, write: impl Fn(&str) -> String) -> String {
    let (file, token) = (tempfile::tempdir().unwrap().keep().join("token"), token(text));
    std::fs::write(&file, write(&token)).unwrap();
    text.replace(&format!("token = \"{token}\""), &format!("token_file = {file:?}"))
}

pub(super) fn of_a_token() -> Vec<SetUp> {
    let pause = Some(RetryAfter::Seconds(3600));
    vec![
        SetUp::failing("429", &cause::THROTTLED, Kind::Status { status: 429, retry_after: pause }),
        SetUp {
            edit: |text| text.replace(&token(&text), "mistyped"),
            ..SetUp::of("another token", &cause::TOKEN_REFUSED)
        },
        SetUp {
            edit: |text| text.replace(&format!("token = \"{}\"", token(&text)), "token_file = \"missing\""),
            ..SetUp::of("no token file", &cause::TOKEN_UNREADABLE)
        },
        SetUp {
            edit: |text| text.replace("token = \"", "token = \"TOKEN="),
            words: "is an assignment",
            ..SetUp::of("an assignment for a token", &cause::TOKEN_UNREADABLE)
        },
        SetUp {
            edit: |text| token_in_file(&text, |token| format!("Authorization: Bearer {token}\n")),
            words: "holds spaces",
            ..SetUp::of("a header for a token", &cause::TOKEN_UNREADABLE)
        },
        SetUp {
            edit: |text| token_in_file(&text, |token| format!("Bearer {token}\n")),
            words: "begins with `Bearer`",
            ..SetUp::of("a token with its scheme", &cause::TOKEN_UNREADABLE)
        },
        SetUp {
            edit: |text| token_in_file(&text, |token| format!("{{\"apiKey\":\"{token}\"}}\n")),
            words: "is JSON",
            ..SetUp::of("a reply for a token", &cause::TOKEN_UNREADABLE)
        },
        SetUp {
            edit: |text| text.replace("id = \"", "id = \"p-other"),
            words: "set for p-other",
            ..SetUp::of("a token of another project", &cause::TOKEN_ELSEWHERE)
        },
        SetUp {
            expiry: Some(Timestamp::now() + SignedDuration::from_hours(72)),
            ..SetUp::of("a token that expires in three days", &cause::TOKEN_EXPIRES_SOON)
        },
        SetUp {
            expiry: Some(Timestamp::now() - SignedDuration::from_hours(72)),
            step: Some("Create a new token"),
            ..SetUp::of("a token that has expired", &cause::TOKEN_REFUSED)
        },
    ]
}
