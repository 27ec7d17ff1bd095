//! Replies of calls by hand that are secret, or are not what they should be.

use std::os::unix::fs::PermissionsExt as _;

use super::calls::{CALLS, one_of_everything};
use super::{Service, call, ended, stderr, stdout};
use crate::client::server::{ok, status};
use crate::process::assert_has;

#[test]
fn a_created_secret_is_alone_on_standard_output_or_in_a_private_file() {
    let service = Service::start(one_of_everything);
    let create = ["api-key", "create", "--yes", "--output", "table"];
    let output = call(&service.url(), &create).output().unwrap();
    assert_eq!(stdout(&output), "sk-0123456789\n");
    assert!(!stderr(&output).contains("sk-0123456789"), "{}", stderr(&output));
    for format in ["table", "json"] {
        let (_, nobody) = std::io::pipe().unwrap();
        let mut unread = call(&service.url(), &["api-key", "create", "--yes", "--output", format]);
        let said = ended(&unread.stdout(nobody).output().unwrap());
        assert_has(
            &said,
            &["exit code 1\n", "id: k-1", "the key exists, but is lost: the output has no reader"],
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ci.key");
    let path = file.to_str().unwrap();
    let output = call(&service.url(), &create).args(["--secret-file", path]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "sk-0123456789\n");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!stdout(&output).contains("sk-0123456789") && stdout(&output).contains("k-1"));

    let unusual =
        [r#"{"apiKey":"sk-012"#, r#"{"api_key":"sk-012"}"#, r#""sk-012""#, r#"{"apiKey":{"key":"sk-012"}}"#];
    for (at, reply) in unusual.into_iter().enumerate() {
        let (unusual, file) = (Service::start(move |_| ok(reply)), folder.path().join(at.to_string()));
        let output = call(&unusual.url(), &create).arg("--secret-file").arg(&file).output().unwrap();
        let said = ended(&output);
        assert_has(&said, &["exit code 1\n", "Wrote the whole reply"]);
        assert!(!said.contains("sk-"), "{said}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), format!("{reply}\n"));
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let empty = Service::start(|_| ok("{\"apiKey\":\"\",\"id\":\"k-1\"}"));
    let said = ended(&call(&empty.url(), &create).output().unwrap());
    assert!(!said.contains("save it now") && said.contains("k-1"), "{said}");

    let sent = service.requests().len();
    let again = call(&service.url(), &create).args(["--secret-file", path]).output().unwrap();
    assert_eq!((again.status.code(), service.requests().len()), (Some(1), sent), "nothing is overwritten");
    let failing = Service::start(|_| status(500, ""));
    let other = folder.path().join("other.key");
    call(&failing.url(), &create).args(["--secret-file", other.to_str().unwrap()]).output().unwrap();
    assert!(!other.exists(), "no empty file is left behind");
}

#[test]
fn a_key_that_differs_from_the_arguments_is_an_error_that_names_it() {
    let service = Service::start(one_of_everything);
    let create = |args: &[&str]| {
        let mut command = call(&service.url(), &["api-key", "create", "--yes"]);
        command.args(args).output().unwrap()
    };
    let ignored = create(&["--name", "deploy", "--expires-at", "2998-01-31", "--output", "table"]);
    let key = "sk-0123456789\n";
    assert_eq!((ignored.status.code(), &*stdout(&ignored)), (Some(1), key), "the key is not lost");
    let said = stderr(&ignored);
    let differs = "expiresAt is '2999-12-31T00:00:00Z' instead of '2998-01-31'";
    let exists = "it exists, and its id is k-1: delete it";
    assert_has(&said, &["name is 'ci' instead of 'deploy'", differs, exists]);
    assert!(!said.contains("sk-0123456789"), "{said}");
    assert_eq!(create(&["--name", "ci", "--expires-at", "2999-12-31"]).status.code(), Some(0));
    assert_eq!(create(&[]).status.code(), Some(0), "what was not asked for is not compared");
}

#[test]
fn a_reply_without_content_or_with_an_error_fails_in_every_output_format() {
    const PAGE: &str = "<html><title>Sign in</title>";
    const DOWN: &str = r#"{"status":"error","errorMessage":"the database\nis down"}"#;
    const FAILED: &str = "{\"status\":\"error\",\"data\":{}}";
    // An app may say so of itself.
    const REPLIES: [&str; 9] = [
        "{}",
        "",
        PAGE,
        "{\"thresholds\":[80",
        "null",
        "{\"message\":\"later\"}",
        "{\"success\":false,\"error\":\"not allowed\"}",
        DOWN,
        FAILED,
    ];
    for arguments in CALLS {
        let words: Vec<&str> = arguments.split(' ').collect();
        let is_deletion = arguments.contains("delete") || arguments.contains("unassign");
        let is_good = |reply: &str| {
            (reply == FAILED && arguments.starts_with("app get"))
                || (reply.contains("success") && arguments.contains("validate"))
                || (reply.is_empty() && is_deletion)
        };
        for reply in REPLIES.iter().filter(|reply| !is_good(reply)) {
            let service = Service::start(move |_| ok(*reply));
            for format in ["table", "json", "csv"] {
                let output = call(&service.url(), &words).args(["--output", format]).output().unwrap();
                let code = output.status.code();
                assert_eq!(code, Some(1), "{arguments} {format} {reply}: {}", ended(&output));
                let said = stderr(&output);
                assert!(said.contains("reply") && !said.contains("succeeded"), "{said}");
                assert_eq!(said.contains("web page (Sign in)"), reply == &PAGE, "{said}");
                let is_of_key = arguments.starts_with("api-key");
                // The words of a reply that may hold a secret are in the printed reply alone.
                let is_quoted = said.contains(": the database is down");
                assert_eq!(is_quoted, reply == &DOWN && !is_of_key, "{arguments} {format}: {said}");
                // Nobody should make such a call again to see its reply.
                let is_change = is_deletion || is_of_key || arguments.contains("plan");
                assert_eq!(said.contains("--output json"), format != "json" && !is_change, "{said}");
                let is_whole = said.contains("Reply: ") && said.contains(*reply);
                let is_hidden = format == "json" || is_of_key || reply.is_empty() || !is_change;
                assert_eq!(is_whole, !is_hidden, "{arguments} {format} {reply}: {said}");
                let is_shown = format == "table" && !is_of_key && !stdout(&output).is_empty();
                assert!(!is_shown, "{arguments} {reply}: {}", ended(&output));
            }
        }
    }
}

#[test]
fn a_reply_that_lacks_its_fact_fails_and_an_empty_one_has_a_header() {
    let metrics = |name: &str| format!("metrics {name} p-1-ranker");
    for (arguments, reply, code, csv) in [
        (&*metrics("response-time"), r#"{"data":{},"status":"success"}"#, 1, ""),
        (&*metrics("run-execution-time"), r#"{"data":{},"status":"success"}"#, 1, ""),
        (&*metrics("response-time"), r#"{"data":{"total_requests":-1},"status":"success"}"#, 1, ""),
        (&*metrics("response-time"), r#"{"data":null,"status":"success"}"#, 1, ""),
        (&*metrics("run-execution-time"), r#"{"status":"success"}"#, 1, ""),
        ("plan change hobby --yes", r#"{"redirectUrl":"javascript:alert(1)"}"#, 1, ""),
        ("plan change hobby --yes", r#"{"redirectUrl":"<html>"}"#, 1, ""),
        ("plan change hobby --yes", r#"{"redirectUrl":["https://x"]}"#, 1, ""),
        ("plan change hobby --yes", r#"{"redirectUrl":""}"#, 0, "field,value\nredirectUrl,\n"),
        ("domains list", r#"{"domains":{}}"#, 1, ""),
        ("projects list", "[]", 0, "id,name,role\n"),
        ("projects list", "[{}]", 0, "id,name,role\n,,\n"),
    ] {
        let service = Service::start(move |_| ok(reply));
        for format in ["table", "json", "csv"] {
            let words = arguments.split(' ');
            let output = call(&service.url(), &[]).args(words).args(["-o", format]).output().unwrap();
            assert_eq!(output.status.code(), Some(code), "{arguments} {reply}: {}", ended(&output));
            assert!(format != "csv" || stdout(&output) == csv, "{arguments} {reply}: {}", ended(&output));
        }
    }
}

#[test]
fn values_are_printed_as_the_service_writes_them() {
    const REPLY: &str = r#"{"status":"success","data":{"total_requests":9007199254740993,"a":99.23594907172567,
        "b":18446744073709551616,"c":1e2,"d":null,"e":{},"f":"one\n\ttwo","g":[1e2, null],"h":true,"i":"\u001b[2J"}}"#;
    let service = Service::start(|_| ok(REPLY));
    let printed = |format: &str| {
        let words = ["metrics", "response-time", "p-1-ranker", "-o", format];
        stdout(&call(&service.url(), &words).output().unwrap())
    };
    let csv = "field,value
data.a,99.23594907172567
data.b,18446744073709551616
data.c,1e2
data.d,
data.e,{}
data.f,\"one\n\ttwo\"
data.g,\"[1e2,null]\"
data.h,true
data.i,\u{fffd}[2J
data.total_requests,9007199254740993
status,success
";
    assert_eq!(printed("csv"), csv);
    let table = printed("table");
    for part in ["9,007,199,254,740,993", "99.23594907172567", " 1e2"] {
        assert!(table.contains(part), "{part}: {table}");
    }
}
