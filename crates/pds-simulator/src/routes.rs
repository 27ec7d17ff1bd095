//! Finds the call of a request and checks path, method, token, project, parameters and body against the call's row.

use std::sync::Arc;

use http::header;
use jiff::Timestamp;
use serde_json::{Map, Value};

use pds_interface::call::Call;
use pds_interface::param::{ParamKind, check_range};
use pds_interface::range::parse_rfc3339;
use pds_interface::{Handler, TimeRange, handlers};

use super::answer::{Answer, ErrorReply};
use super::asked::Asked;
use super::faults::AskedMetrics;
use super::world::World;

/// A request as received.
#[derive(Debug)]
pub(super) struct Incoming<'a> {
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    pub(super) query: &'a str,
    pub(super) authorization: Option<&'a [u8]>,
    pub(super) content_type: Option<&'a [u8]>,
    pub(super) body: &'a [u8],
}

/// The call of a path and method, with the identifiers in the path.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) call: &'static Call,
    handler: Handler<Asked>,
    ids: Vec<(&'static str, String)>,
}

impl Route {
    /// The call of this path and method; 404 if no call has the path, 405 if none of them has the method.
    pub(super) fn find(method: &str, path: &str) -> Result<Self, ErrorReply> {
        let mut allowed: Vec<&str> = Vec::new();
        for (call, handler) in handlers::<Asked>() {
            let Some(ids) = call.path.values(path) else { continue };
            if call.method.as_str() == method {
                return Ok(Self { call, handler, ids });
            }
            allowed.push(call.method.as_str());
        }
        if allowed.is_empty() {
            return Err(ErrorReply::new(404, "there is nothing at this path"));
        }
        let message = format!("{method} is not allowed here");
        Err(ErrorReply::new(405, message).with(header::ALLOW, &allowed.join(", ")))
    }

    /// The identifier `name` of the path; empty if the path has none.
    pub(super) fn id(&self, name: &str) -> &str {
        self.ids.iter().find_map(|(id, value)| (*id == name).then_some(value.as_str())).unwrap_or_default()
    }
}

/// Answers one request to the call that `route` found.
pub(super) fn answer(world: &World, route: &Route, incoming: &Incoming<'_>) -> Result<Answer, ErrorReply> {
    let now = world.clock().now();
    let project = authorize(world, route, incoming.authorization, now)?;
    let mut values = parameters(world, route.call, incoming.query, now)?;
    values.extend(body(route.call, incoming, now)?);
    let asked = Asked { world: world.clone(), now, project, ids: route.ids.clone(), values };
    Ok(Answer::of(route.call.reply.format, (route.handler)(&asked)??))
}

/// The project of the token: 401 without a valid token, 403 for another project, 404 for a missing one.
fn authorize(
    world: &World,
    route: &Route,
    authorization: Option<&[u8]>,
    now: Timestamp,
) -> Result<Arc<str>, ErrorReply> {
    let wanted = route.id("project_id");
    world.state(|state| {
        let account = state
            .tokens
            .account(authorization, now)
            .map_err(|message| ErrorReply::new(401, message).with(header::WWW_AUTHENTICATE, "Bearer"))?;
        if wanted.is_empty() || *account.project == *wanted {
            return Ok(Arc::clone(&account.project));
        }
        match state.projects.contains_key(wanted) {
            true => Err(ErrorReply::new(403, "the service account does not belong to this project")),
            false => Err(ErrorReply::new(404, "there is no such project")),
        }
    })
}

/// The query parameters by their default names, checked against the interface. Unknown names are ignored.
fn parameters(
    world: &World,
    call: &Call,
    query: &str,
    now: Timestamp,
) -> Result<Vec<(String, String)>, ErrorReply> {
    let known = |name: &str| call.query.iter().find(|param| world.settings().name_of(param.name) == name);
    let given: Vec<(String, String)> = url::form_urlencoded::parse(query.as_bytes())
        .filter_map(|(name, value)| Some((known(&name)?.name.to_owned(), value.into_owned())))
        .collect();
    let value = |name: &str| given.iter().find_map(|(key, value)| (key == name).then_some(value.as_str()));
    for param in call.query {
        let Some(value) = value(param.name) else { continue };
        if given.iter().filter(|(key, _)| key == param.name).count() > 1 {
            return Err(ErrorReply::new(400, format!("{} must be given once", param.name)));
        }
        param.check(value, now)?;
    }
    check_range(call.query, |name| value(name).and_then(|text| Some((parse_rfc3339(text)?, text))))?;
    Ok(given)
}

/// The fields of the body, checked in the same way. Calls without a body ignore it.
fn body(call: &Call, incoming: &Incoming<'_>, now: Timestamp) -> Result<Vec<(String, String)>, ErrorReply> {
    if call.body.is_empty() {
        return Ok(Vec::new());
    }
    let essence = |value: &'_ [u8]| {
        let end = value.iter().position(|byte| *byte == b';').unwrap_or(value.len());
        value[..end].trim_ascii().eq_ignore_ascii_case(b"application/json")
    };
    if !incoming.content_type.is_some_and(essence) {
        return Err(ErrorReply::new(415, "the body must be application/json"));
    }
    let fields: Map<String, Value> = serde_json::from_slice(incoming.body)
        .map_err(|_| ErrorReply::new(400, "the body must be a JSON object"))?;
    let mut values = Vec::with_capacity(call.body.len());
    for field in call.body {
        let value = fields.get(field.name).and_then(Value::as_str);
        let value = value.ok_or_else(|| ErrorReply::new(400, format!("{} must be a string", field.name)))?;
        field.check(value, now)?;
        values.push((field.name.to_owned(), value.to_owned()));
    }
    Ok(values)
}

/// An RFC 3339 timestamp as a Unix second, rounded down.
pub(super) fn second(name: &str, text: &str) -> Result<i64, ErrorReply> {
    instant(name, text).map(|time| time.as_second() - i64::from(time.subsec_nanosecond() < 0))
}

/// The same, with its fraction.
pub(super) fn instant(name: &str, text: &str) -> Result<Timestamp, ErrorReply> {
    parse_rfc3339(text).ok_or_else(|| ErrorReply::new(400, format!("{name} must be an RFC 3339 timestamp")))
}

/// The range and container of a metrics request, for the journal.
pub(super) fn asked_range(world: &World, call: &Call, query: &str) -> AskedMetrics {
    let ranged = call.query.iter().any(|param| param.kind == ParamKind::RangeStart);
    if !ranged || query.is_empty() {
        return (None, None);
    }
    let value = |wanted: &str| {
        let wanted = world.settings().name_of(wanted);
        let mut pairs = url::form_urlencoded::parse(query.as_bytes());
        pairs.find_map(|(key, value)| (key == wanted).then(|| value.into_owned()))
    };
    let bound = |name: &str| second(name, &value(name)?).ok();
    let range = bound("start").zip(bound("end")).map(|(start, end)| TimeRange { start, end });
    (range, value("container_id"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pds_interface::CALLS;

    #[test]
    fn every_call_is_found_by_its_own_path_and_method() {
        for call in CALLS {
            let path = call.path.0.replace(['{', '}'], "");
            let route = Route::find(call.method.as_str(), &path).unwrap();
            assert!(std::ptr::eq(route.call, *call));
            assert_eq!(Route::find("TRACE", &path).unwrap_err().status, 405);
        }
        assert_eq!(Route::find("GET", "/v3/projects").unwrap_err().status, 404);
    }
}
