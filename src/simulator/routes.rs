//! From a request to its call: path, method, token, project and parameters are checked by what the call's
//! [`Spec`] says; no path stands here.

use std::sync::Arc;

use http::{HeaderName, HeaderValue, header};
use jiff::{Timestamp, civil};
use percent_encoding::percent_decode_str;
use serde::Serialize;

use crate::interface::spec::ParamKind;
use crate::interface::{CALLS, Spec, TimeRange};

use super::state::App;
use super::world::World;
use super::{calls, metrics, repository};

/// A request as it came.
#[derive(Debug)]
pub(super) struct Incoming<'a> {
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    pub(super) query: &'a str,
    pub(super) authorization: Option<&'a [u8]>,
    pub(super) body: &'a [u8],
}

/// What goes back.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    pub(super) body: Vec<u8>,
}

impl Answer {
    fn of_type(content_type: &'static str, body: Vec<u8>) -> Self {
        let content_type = (header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        Self { status: 200, headers: vec![content_type], body }
    }

    /// A reply of JSON.
    pub(super) fn json(reply: &impl Serialize) -> Result<Self, ErrorReply> {
        match serde_json::to_vec(reply) {
            Ok(body) => Ok(Self::of_type("application/json", body)),
            Err(_) => Err(ErrorReply::new(500, "the reply cannot be written")),
        }
    }

    /// A reply of plain text.
    pub(super) fn text(text: String) -> Self {
        Self::of_type("text/plain; charset=utf-8", text.into_bytes())
    }

    /// A reply without a body.
    pub(super) fn empty() -> Self {
        Self { status: 204, headers: Vec::new(), body: Vec::new() }
    }
}

/// An error as section 7 has it.
#[derive(Debug)]
pub(super) struct ErrorReply {
    status: u16,
    message: String,
    header: Option<(HeaderName, HeaderValue)>,
}

impl ErrorReply {
    pub(super) fn new(status: u16, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), header: None }
    }

    fn with(mut self, name: HeaderName, value: &str) -> Self {
        self.header = HeaderValue::from_str(value).ok().map(|value| (name, value));
        self
    }

    pub(super) fn answer(self) -> Answer {
        let body = serde_json::json!({ "message": self.message }).to_string().into_bytes();
        let mut answer = Answer { status: self.status, ..Answer::of_type("application/json", body) };
        answer.headers.extend(self.header);
        answer
    }
}

/// Which call a path and method are, with the identifiers in the path.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) spec: &'static Spec,
    ids: Vec<(&'static str, String)>,
}

impl Route {
    /// The call of this path and method: 404 where no call has such a path, 405 where none of those has the method.
    pub(super) fn find(method: &str, path: &str) -> Result<Self, ErrorReply> {
        let mut allowed: Vec<&str> = Vec::new();
        for spec in CALLS {
            let Some(ids) = identifiers(spec.path, path) else { continue };
            if spec.method.as_str() == method {
                return Ok(Self { spec, ids });
            }
            allowed.push(spec.method.as_str());
        }
        if allowed.is_empty() {
            return Err(ErrorReply::new(404, "there is nothing at this path"));
        }
        let message = format!("{method} is not allowed here");
        Err(ErrorReply::new(405, message).with(header::ALLOW, &allowed.join(", ")))
    }

    /// The identifier `name` of the path; empty where the path has none.
    pub(super) fn id(&self, name: &str) -> &str {
        self.ids.iter().find_map(|(id, value)| (*id == name).then_some(value.as_str())).unwrap_or_default()
    }
}

/// The identifiers in `path`, if it is of the form `template`.
fn identifiers(template: &'static str, path: &str) -> Option<Vec<(&'static str, String)>> {
    let (mut wanted, mut given) = (template.split('/'), path.split('/'));
    let mut ids = Vec::new();
    loop {
        match (wanted.next(), given.next()) {
            (None, None) => return Some(ids),
            (Some(wanted), Some(given)) => {
                match wanted.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
                    Some(name) if !given.is_empty() => {
                        ids.push((name, percent_decode_str(given).decode_utf8().ok()?.into_owned()));
                    }
                    None if wanted == given => {}
                    _ => return None,
                }
            }
            _ => return None,
        }
    }
}

/// A request that may be answered: its call is known, its token is good for its project, its parameters keep to
/// the interface.
#[derive(Debug)]
pub(super) struct Asked<'a> {
    pub(super) world: &'a World,
    pub(super) route: &'a Route,
    pub(super) now: Timestamp,
    /// The project of the service account, which is also that of the path, where it has one.
    pub(super) project: Arc<str>,
    pub(super) body: &'a [u8],
    query: Vec<(String, String)>,
}

impl Asked<'_> {
    /// The query parameter `name`.
    pub(super) fn query(&self, name: &str) -> Option<&str> {
        self.query.iter().find_map(|(key, value)| (key == name).then_some(value.as_str()))
    }

    /// The query parameter `name` as a Unix second, rounded down.
    pub(super) fn second(&self, name: &str) -> Result<Option<i64>, ErrorReply> {
        self.query(name).map(|text| second(name, text)).transpose()
    }

    /// The app in the path.
    pub(super) fn app(&self) -> Result<App, ErrorReply> {
        let app = self.world.state(|state| state.projects.get(&self.project)?.app(self.route.id("app_id")));
        app.ok_or_else(|| ErrorReply::new(404, "there is no such app"))
    }
}

/// An RFC 3339 timestamp as a Unix second, rounded down.
pub(super) fn second(name: &str, text: &str) -> Result<i64, ErrorReply> {
    match text.parse::<Timestamp>() {
        Ok(time) => Ok(time.as_second() - i64::from(time.subsec_nanosecond() < 0)),
        Err(_) => Err(ErrorReply::new(400, format!("{name} must be an RFC 3339 timestamp"))),
    }
}

/// Answers one request to the call that `route` found.
pub(super) fn answer(world: &World, route: &Route, incoming: &Incoming<'_>) -> Result<Answer, ErrorReply> {
    let now = world.clock().now();
    let project = authorize(world, route, incoming.authorization, now)?;
    let query = parameters(route.spec, incoming.query)?;
    let asked = Asked { world, route, now, project, body: incoming.body, query };
    match route.spec.number {
        1 => calls::create_api_key(&asked),
        2 => calls::change_plan(&asked),
        3 => calls::get_app(&asked),
        4 => metrics::response_time(&asked),
        5 => metrics::run_execution_time(&asked),
        6 => repository::file_tree(&asked),
        7 => calls::list_projects(&asked),
        8 => repository::zip_contents(&asked),
        9 => calls::validate_domain(&asked),
        10 => calls::volume_alerts(&asked),
        11 => calls::list_domains(&asked),
        12 => repository::branches(&asked),
        13 => calls::payment_url(&asked),
        14 => calls::unassign_domain(&asked),
        15 => calls::delete_domain(&asked),
        16 => calls::delete_app(&asked),
        _ => Err(ErrorReply::new(501, "the simulator lacks this call")),
    }
}

/// The project that the token is for: 401 without a good token, 403 for another's project, 404 for none.
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

/// The query parameters, checked against what the interface says of each.
fn parameters(spec: &Spec, query: &str) -> Result<Vec<(String, String)>, ErrorReply> {
    let given: Vec<(String, String)> = url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    for param in spec.query {
        let name = param.name;
        let mut values = given.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str());
        let Some(value) = values.next() else { continue };
        if values.next().is_some() {
            return Err(ErrorReply::new(400, format!("{name} must be given once")));
        }
        match param.kind {
            ParamKind::Text { max_chars: Some(max) } if value.chars().count() > max => {
                return Err(ErrorReply::new(400, format!("{name} must have at most {max} characters")));
            }
            ParamKind::Text { .. } => {}
            ParamKind::DateTime => drop(second(name, value)?),
            ParamKind::Date => drop(date(name, value)?),
            ParamKind::Word(words) if words.contains(&value) => {}
            ParamKind::Word(words) => {
                return Err(ErrorReply::new(400, format!("{name} must be one of {}", words.join(", "))));
            }
        }
    }
    Ok(given)
}

/// A calendar date as YYYY-MM-DD and in no other form.
pub(super) fn date(name: &str, text: &str) -> Result<civil::Date, ErrorReply> {
    let date = text.parse::<civil::Date>().ok().filter(|date| date.to_string() == text);
    date.ok_or_else(|| ErrorReply::new(400, format!("{name} must be a date as YYYY-MM-DD")))
}

/// The range and container that a request to one of the metrics calls asks for, for the journal.
pub(super) fn asked_range(spec: &Spec, query: &str) -> (Option<TimeRange>, Option<String>) {
    if spec.query.is_empty() || query.is_empty() {
        return (None, None);
    }
    let value = |wanted: &str| {
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

    #[test]
    fn identifiers_are_decoded_and_never_empty() {
        let ids = identifiers("/v2/{a}/x/{b}", "/v2/p%2F1/x/%F0%9F%A6%80").unwrap();
        assert_eq!(ids, [("a", "p/1".to_owned()), ("b", "🦀".to_owned())]);
        for other in ["/v2//x/b", "/v2/a/x", "/v2/a/x/b/", "/v2/a/y/b", "/v2/a/x/%FF"] {
            assert_eq!(identifiers("/v2/{a}/x/{b}", other), None, "{other}");
        }
    }

    #[test]
    fn every_call_is_found_by_its_own_path_and_method() {
        for spec in CALLS {
            let path = spec.path.replace(['{', '}'], "");
            let route = Route::find(spec.method.as_str(), &path).unwrap();
            assert!(std::ptr::eq(route.spec, *spec));
            assert_eq!(Route::find("TRACE", &path).unwrap_err().status, 405);
        }
        assert_eq!(Route::find("GET", "/v3/projects").unwrap_err().status, 404);
    }
}
