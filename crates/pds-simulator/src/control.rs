//! The control interface below `/simulator`: true counts, faults, journal. It needs no token.

use serde_json::json;

use pds_interface::TimeRange;

use super::answer::{Answer, ErrorReply};
use super::faults::{self, Fault};
use super::routes::{Incoming, second};
use super::world::World;

/// The path prefix of the control interface.
pub(super) const PREFIX: &str = "/simulator/";

/// Answers a request below [`PREFIX`].
pub(super) fn answer(world: &World, incoming: &Incoming<'_>) -> Result<Answer, ErrorReply> {
    let subject = incoming.path.strip_prefix(PREFIX).unwrap_or_default();
    match (incoming.method, subject) {
        ("GET", "truth") => truth(world, incoming.query),
        ("GET", "requests") => Answer::json(&world.requests()),
        ("GET", "faults") => Answer::json(&world.faults().list()),
        ("PUT", "faults") => {
            world.faults().set(faults(incoming.body)?);
            Ok(Answer::empty())
        }
        ("DELETE", "faults") => {
            world.faults().clear();
            Ok(Answer::empty())
        }
        ("GET", "projects") => Answer::json(&projects(world)),
        (_, "truth" | "requests" | "faults" | "projects") => {
            Err(ErrorReply::new(405, format!("{} is not allowed here", incoming.method)))
        }
        _ => Err(ErrorReply::new(404, "there is truth, requests, faults and projects")),
    }
}

fn faults(body: &[u8]) -> Result<Vec<Fault>, ErrorReply> {
    faults::parse(body).map_err(|problem| ErrorReply::new(400, problem.to_string()))
}

fn projects(world: &World) -> serde_json::Value {
    world.projects().into_iter().map(|(project, apps)| json!({ "id": project, "apps": apps })).collect()
}

/// `?project=&app=&start=&end=`, the bounds as Unix seconds or RFC 3339.
fn truth(world: &World, query: &str) -> Result<Answer, ErrorReply> {
    let value = |wanted: &str| {
        let mut pairs = url::form_urlencoded::parse(query.as_bytes());
        let found = pairs.find_map(|(key, value)| (key == wanted).then(|| value.into_owned()));
        found.ok_or_else(|| ErrorReply::new(400, format!("{wanted} is missing")))
    };
    let bound = |name: &str| {
        let text = value(name)?;
        text.parse::<i64>().or_else(|_| second(name, &text))
    };
    let range = TimeRange { start: bound("start")?, end: bound("end")? };
    match world.truth(&value("project")?, &value("app")?, range) {
        Some(truth) => Answer::json(&truth),
        None => Err(ErrorReply::new(404, "there is no such app")),
    }
}
