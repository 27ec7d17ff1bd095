//! The control interface below `/simulator`: true counts, faults, journal. It needs no token.

use bytes::Bytes;
use http::Request;

use pds_interface::TimeRange;

use super::answer::{Answer, Answered};
use super::faults;
use super::routes::{query_value, second};
use super::world::World;

/// The path prefix of the control interface.
pub(super) const PREFIX: &str = "/simulator/";

/// Answers a request for `subject` below [`PREFIX`].
pub(super) fn answer(world: &World, subject: &str, request: &Request<Bytes>) -> Answered<Answer> {
    let method = request.method().as_str();
    match (method, subject) {
        ("GET", "truth") => truth(world, request),
        ("GET", "requests") => Answer::json(&world.requests()),
        ("PUT", "faults") => {
            let faults = faults::parse(request.body());
            world.faults().set(faults.map_err(|problem| Answer::refusal(400, problem))?);
            Ok(Answer::empty())
        }
        (_, "truth" | "requests" | "faults") => {
            Err(Answer::refusal(405, format!("{method} is not allowed here")))
        }
        _ => Err(Answer::refusal(404, "there is truth, requests and faults")),
    }
}

/// `?project=&app=&start=&end=`, the bounds as Unix seconds or RFC 3339.
fn truth(world: &World, request: &Request<Bytes>) -> Answered<Answer> {
    let value = |name: &str| {
        query_value(request, name).ok_or_else(|| Answer::refusal(400, format!("{name} is missing")))
    };
    let bound = |name: &str| {
        let text = value(name)?;
        text.parse::<i64>().or_else(|_| second(name, &text))
    };
    let range = TimeRange { start: bound("start")?, end: bound("end")? };
    match world.truth(&value("project")?, &value("app")?, range) {
        Some(truth) => Answer::json(&truth),
        None => Err(Answer::no_such("app")),
    }
}
