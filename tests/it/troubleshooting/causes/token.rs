//! Set-ups in which a token is at fault.

use super::*;

/// The token in the configuration.
fn token(text: &str) -> String {
    text.split("token = \"").nth(1).unwrap().split('"').next().unwrap().to_owned()
}

/// The configuration with a file that holds what `write` makes of its token.
fn in_file(text: &str, write: impl Fn(&str) -> String) -> String {
    let (file, token) = (tempfile::tempdir().unwrap().keep().join("token"), token(text));
    std::fs::write(&file, write(&token)).unwrap();
    text.replace(&format!("token = \"{token}\""), &format!("token_file = {file:?}"))
}

pub(super) fn of_a_token() -> Vec<SetUp> {
    let pause = || Some("3600".to_owned());
    let expiring = |name, cause, expiry| SetUp { expiry: Some(expiry), ..SetUp::of(name, cause) };
    let unreadable = |name, edit| SetUp::edited(name, &cause::TOKEN_UNREADABLE, edit);
    vec![
        SetUp::failing("429", &cause::THROTTLED, Kind::Status { status: 429, retry_after: pause() }),
        SetUp::failing(
            "503 with a pause",
            &cause::SERVICE_ERROR,
            Kind::Status { status: 503, retry_after: pause() },
        ),
        SetUp::edited("another token", &cause::TOKEN_REFUSED, |text| text.replace(&token(&text), "mistyped")),
        unreadable("no token file", |text| {
            text.replace(&format!("token = \"{}\"", token(&text)), "token_file = \"missing\"")
        }),
        unreadable("an assignment for a token", |text| in_file(&text, |token| format!("TOKEN={token}\n")))
            .saying("is an assignment"),
        unreadable("a header for a token", |text| {
            in_file(&text, |token| format!("Authorization: Bearer {token}"))
        })
        .saying("holds spaces"),
        unreadable("a token with its scheme", |text| in_file(&text, |token| format!("Bearer {token}\n")))
            .saying("begins with `Bearer`"),
        unreadable("a reply for a token", |text| {
            in_file(&text, |token| format!("{{\"apiKey\":\"{token}\"}}\n"))
        })
        .saying("is JSON"),
        unreadable("a token in quotes", |text| in_file(&text, |token| format!("\"{token}\"\n")))
            .saying("stands in quotes"),
        unreadable("an invisible character in a token", |text| {
            in_file(&text, |token| format!("{token}\u{200b}\n"))
        })
        .saying("is not ASCII"),
        unreadable("an empty token file", |text| in_file(&text, |_| String::new())).saying("is empty"),
        unreadable("two tokens", |text| in_file(&text, |token| format!("{token}\n{token}\n")))
            .saying("has more than one line"),
        SetUp::edited("a token of another project", &cause::TOKEN_ELSEWHERE, |text| {
            text.replace("id = \"", "id = \"p-other")
        })
        .saying("set for p-other"),
        expiring("a token that expires in three days", &cause::TOKEN_EXPIRES_SOON, 2592),
        expiring("a token that has expired", &cause::TOKEN_EXPIRED, -2592),
        SetUp {
            behind: 30,
            ..expiring("a token that is accepted past its expiry", &cause::TOKEN_EXPIRES_SOON, -10)
        },
    ]
}
