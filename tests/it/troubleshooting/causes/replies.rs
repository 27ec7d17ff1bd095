//! Set-ups in which the service's answer is at fault.

use pds_interface::{get_app, list_domains, list_projects, response_time};

use super::*;

pub(super) fn of_replies() -> Vec<SetUp> {
    let field = |field: &str, json: &str| Kind::Value { field: field.to_owned(), json: json.to_owned() };
    let case = SetUp::failing;
    let reported = |name: &'static str, resource: Resource| {
        let text = r#"{"status":"error","errorMessage":"the database is down"}"#.to_owned();
        let reply = Kind::RawError { status: 200, text };
        case(name, &cause::SERVICE_ERROR, reply).on(resource).saying("the database is down")
    };
    vec![
        SetUp {
            quirks: Quirks { ignores_range: true, ..Quirks::default() },
            ..SetUp::of("ranges are ignored", &cause::RANGE_IGNORED)
        },
        case("replies without a total", &cause::RANGE_DIFFERS, field("total_requests", "null"))
            .on(response_time::RESOURCE)
            .saying("the reply has no total"),
        case("metrics without data", &cause::REPLY_UNREADABLE, field("data", "null"))
            .on(response_time::RESOURCE)
            .saying("invalid type: null, expected an object"),
        reported("an error instead of projects", list_projects::RESOURCE),
        reported("an error instead of domains", list_domains::RESOURCE),
        reported("an error instead of an app", get_app::RESOURCE),
        reported("an error instead of metrics", response_time::RESOURCE),
        case("403 for one call", &cause::FORBIDDEN, Fault::status(403).kind).on(get_app::RESOURCE),
        SetUp::edited("another app", &cause::NOT_FOUND, |text| {
            text.replace("apps = [\"", "apps = [\"mistyped-")
        }),
        SetUp::edited("an app without its project", &cause::NOT_FOUND, |text| {
            let (before, app) = text.split_once("apps = [\"").unwrap();
            format!("{before}apps = [\"{}", app.splitn(3, '-').nth(2).unwrap())
        })
        .saying(" is short for p-"),
        SetUp {
            edit: |text| text.replace("\"]", "-2\"]"),
            ..case("a mistyped project", &cause::NOT_FOUND, field("id", "\"p-vbq86i4n\""))
        }
        .on(list_projects::RESOURCE)
        .saying("the token knows no project p-vbq86i4m; the nearest is p-vbq86i4n"),
        case("404 for one call", &cause::CALL_MISSING, Fault::status(404).kind).on(response_time::RESOURCE),
        case("402 for one call", &cause::PAYMENT_REQUIRED, Fault::status(402).kind).on(get_app::RESOURCE),
        SetUp {
            api: "max_response_bytes = \"64KiB\"\n",
            ..case("large replies", &cause::REPLY_TOO_LARGE, Kind::HugeBody { bytes: 1 << 20 })
        },
        case("400 for one call", &cause::REQUEST_REFUSED, Fault::status(400).kind)
            .on(response_time::RESOURCE),
        case("another clock", &cause::CLOCKS_DIFFER, Kind::ClockSkew { seconds: 300 }),
        case("negative replicas", &cause::UNEXPECTED_VALUES, field("minReplicaCount", "-1"))
            .on(get_app::RESOURCE),
        case(
            "an app that reports an error",
            &cause::APP_ERROR,
            field("errorMessage", "\"CUDA out of memory\""),
        )
        .on(get_app::RESOURCE)
        .saying("CUDA out of memory"),
        case("an app in an error", &cause::APP_STATUS, field("status", "\"error\"")).on(get_app::RESOURCE),
        case("a failed build", &cause::BUILD_FAILED, field("lastBuildStatus", "\"build_error\""))
            .on(get_app::RESOURCE),
    ]
}
