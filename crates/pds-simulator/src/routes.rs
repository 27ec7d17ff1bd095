//! Finds the call of a request and checks path, method, token, project, parameters and body against the call's row.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Request, header};
use jiff::Timestamp;
use serde_json::{Map, Value};

use pds_interface::call::Call;
use pds_interface::param::{ParamKind, check_range};
use pds_interface::range::parse_rfc3339;
use pds_interface::{Handler, TimeRange, handlers};

use super::answer::{Answer, Answered};
use super::journal::Entry;
use super::state::{App, Domain, Project};
use super::world::World;

/// Identifiers of a path, query parameters or fields of a body, by their default names.
type Values = Vec<(&'static str, String)>;

fn find<'a>(values: &'a [(&'static str, String)], name: &str) -> Option<&'a str> {
    values.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
}

/// The call of a path and method, with the identifiers in the path.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) call: &'static Call,
    handler: Handler<CallRequest>,
    ids: Values,
}

impl Route {
    /// The call of this path and method; 404 if no call has the path, 405 if none of them has the method.
    pub(super) fn find(method: &str, path: &str) -> Answered<Self> {
        let mut allowed: Vec<&str> = Vec::new();
        for (call, handler) in handlers::<CallRequest>() {
            let Some(ids) = call.path.values(path) else { continue };
            if call.method.as_str() == method {
                return Ok(Self { call, handler, ids });
            }
            allowed.push(call.method.as_str());
        }
        if allowed.is_empty() {
            return Err(Answer::refusal(404, "there is nothing at this path"));
        }
        let message = format!("{method} is not allowed here");
        Err(Answer::refusal(405, message).with(header::ALLOW, &allowed.join(", ")))
    }

    /// The identifier `name` of the path; empty if the path has none.
    pub(super) fn id(&self, name: &str) -> &str {
        find(&self.ids, name).unwrap_or_default()
    }
}

/// A request with a valid token for its project and with valid parameters.
#[derive(Debug)]
pub(super) struct CallRequest {
    pub(super) world: World,
    pub(super) now: Timestamp,
    /// The project of the service account, and of the path if that names one.
    pub(super) project: Arc<str>,
    /// Identifiers, query parameters and fields of the body.
    values: Values,
}

impl CallRequest {
    /// The identifier `name` of the path.
    pub(super) fn id(&self, name: &str) -> &str {
        self.value(name).unwrap_or_default()
    }

    /// The query parameter or body field `name`.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        find(&self.values, name)
    }

    /// The app in the path.
    pub(super) fn app(&self) -> Answered<App> {
        let app = self.world.state(|state| state.projects.get(&self.project)?.app(self.id("app_id")));
        app.ok_or_else(|| Answer::no_such("app"))
    }

    /// Reads or changes the project.
    pub(super) fn with_project<T>(&self, read: impl FnOnce(&mut Project) -> Answered<T>) -> Answered<T> {
        self.world.state(|state| match state.projects.get_mut(&self.project) {
            Some(project) => read(project),
            None => Err(Answer::no_such("project")),
        })
    }

    /// Reads or changes the domain in the path.
    pub(super) fn with_domain<T>(&self, read: impl FnOnce(&mut Domain) -> Answered<T>) -> Answered<T> {
        self.with_project(|project| match project.domains.get_mut(self.id("domain_id")) {
            Some(domain) => read(domain),
            None => Err(Answer::no_such("domain")),
        })
    }
}

/// Answers one request to the call that `route` found.
pub(super) fn answer(world: &World, route: Route, request: &Request<Bytes>) -> Answered<Answer> {
    let now = world.clock().now();
    let project = authorize(world, &route, request, now)?;
    let mut values = parameters(world, route.call, request, now)?;
    values.extend(body(route.call, request, now)?);
    values.extend(route.ids);
    let reply = (route.handler)(&CallRequest { world: world.clone(), now, project, values })??;
    Ok(Answer::of(route.call.format, reply))
}

/// The project of the token: 401 without a valid token, 403 for another project, 404 for a missing one.
fn authorize(world: &World, route: &Route, request: &Request<Bytes>, now: Timestamp) -> Answered<Arc<str>> {
    let authorization = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let wanted = route.id("project_id");
    world.state(|state| {
        let account = state
            .account(authorization, now)
            .map_err(|message| Answer::refusal(401, message).with(header::WWW_AUTHENTICATE, "Bearer"))?;
        if wanted.is_empty() || *account.project == *wanted {
            return Ok(Arc::clone(&account.project));
        }
        match state.projects.contains_key(wanted) {
            true => Err(Answer::refusal(403, "the service account does not belong to this project")),
            false => Err(Answer::no_such("project")),
        }
    })
}

/// The query parameters of a request.
fn query(request: &Request<Bytes>) -> url::form_urlencoded::Parse<'_> {
    url::form_urlencoded::parse(request.uri().query().unwrap_or_default().as_bytes())
}

/// The first query parameter called `name`.
pub(super) fn query_value(request: &Request<Bytes>, name: &str) -> Option<String> {
    query(request).find_map(|(key, value)| (key == name).then(|| value.into_owned()))
}

/// The query parameters, checked against the interface. Unknown names are ignored.
fn parameters(world: &World, call: &Call, request: &Request<Bytes>, now: Timestamp) -> Answered<Values> {
    let mut values = Values::new();
    for param in call.query {
        let name = world.settings().name_of(param.name);
        let mut given = query(request).filter(|(known, _)| known == name);
        let Some((_, value)) = given.next() else { continue };
        if given.next().is_some() {
            return Err(Answer::refusal(400, format!("{} must be given once", param.name)));
        }
        param.check(&value, now)?;
        values.push((param.name, value.into_owned()));
    }
    check_range(call.query, |name| find(&values, name))?;
    Ok(values)
}

/// The fields of the body, checked in the same way. Calls without a body ignore it.
fn body(call: &Call, request: &Request<Bytes>, now: Timestamp) -> Answered<Values> {
    if call.body.is_empty() {
        return Ok(Values::new());
    }
    let is_json = |value: &HeaderValue| {
        let essence = value.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default();
        essence.trim_ascii().eq_ignore_ascii_case(b"application/json")
    };
    if !request.headers().get(header::CONTENT_TYPE).is_some_and(is_json) {
        return Err(Answer::refusal(415, "the body must be application/json"));
    }
    let fields: Map<String, Value> = serde_json::from_slice(request.body())
        .map_err(|_| Answer::refusal(400, "the body must be a JSON object"))?;
    let mut values = Values::new();
    for field in call.body {
        let value = fields.get(field.name).and_then(Value::as_str);
        let value = value.ok_or_else(|| Answer::refusal(400, format!("{} must be a string", field.name)))?;
        field.check(value, now)?;
        values.push((field.name, value.to_owned()));
    }
    Ok(values)
}

/// An RFC 3339 timestamp as a Unix second, rounded down.
pub(super) fn second(name: &str, text: &str) -> Answered<i64> {
    instant(name, text).map(|time| time.as_second() - i64::from(time.subsec_nanosecond() < 0))
}

/// The same, with its fraction.
pub(super) fn instant(name: &str, text: &str) -> Answered<Timestamp> {
    parse_rfc3339(text).ok_or_else(|| Answer::refusal(400, format!("{name} must be an RFC 3339 timestamp")))
}

/// Journal entry of a request before its reply.
pub(super) fn entry(world: &World, route: &Route, request: &Request<Bytes>) -> Entry {
    let id = |name| Some(route.id(name)).filter(|id| !id.is_empty()).map(Arc::from);
    let ranged = route.call.query.iter().any(|param| param.kind == ParamKind::RangeStart);
    let value = |name: &str| query_value(request, world.settings().name_of(name)).filter(|_| ranged);
    let bound = |name: &str| second(name, &value(name)?).ok();
    Entry {
        at: world.clock().now(),
        call: route.call.id,
        project: id("project_id"),
        app: id("app_id"),
        range: bound("start").zip(bound("end")).map(|(start, end)| TimeRange { start, end }),
        container: value("container_id"),
        status: None,
    }
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
