//! Requests: a call with its arguments, checked and ready to send.

use std::borrow::Cow;

use jiff::Timestamp;
use serde_json::{Map, Value};

use pds_core::template::percent_encode;

use super::call::{Call, Method};
use super::param::{ParamKind, QueryNames, Resolution, RuleError, check_range};
use super::range::{RangeEnd, TimeRange, instant, rfc3339};

/// Arguments of one request, by the default names of identifiers, query parameters and body fields. Those that a call
/// does not have are ignored.
#[derive(Clone, Debug, Default)]
pub struct Arguments<'a> {
    arguments: Vec<(&'static str, Cow<'a, str>)>,
    now: Timestamp,
}

impl<'a> Arguments<'a> {
    /// The arguments of a call about an app of a project. Empty ids are left out.
    pub fn about(project: &'a str, app: &'a str) -> Self {
        let ids = [("project_id", project), ("app_id", app)].into_iter().filter(|(_, id)| !id.is_empty());
        // Room for those of a metrics call.
        let none = Self { arguments: Vec::with_capacity(6), ..Self::default() };
        ids.fold(none, |arguments, (name, id)| arguments.with(name, id))
    }

    /// Sets the time that an expiration date must follow; without it any date counts as future.
    #[must_use]
    pub fn at(mut self, now: Timestamp) -> Self {
        self.now = now;
        self
    }

    /// Adds the value of `name`.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<Cow<'a, str>>) -> Self {
        self.arguments.push((name, value.into()));
        self
    }

    /// Adds the bounds of a range for a service that treats the last instant of ranges like this.
    #[must_use]
    pub fn in_range_to(self, range: TimeRange, end: RangeEnd) -> Self {
        let end = instant(range.end) - end.margin();
        self.with("start", rfc3339(range.start)).with("end", end.to_string())
    }

    /// Restricts a metrics call to a container, if there is one.
    #[must_use]
    pub fn in_container(self, container: Option<&'a str>) -> Self {
        container.into_iter().fold(self, |arguments, id| arguments.with("container_id", id))
    }

    /// Adds the data resolution of a metrics call.
    #[must_use]
    pub fn at_resolution(self, resolution: Resolution) -> Self {
        self.with("resolution", resolution.as_str())
    }

    /// The value of `name`, if it was given.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.arguments.iter().find(|(known, _)| *known == name).map(|(_, value)| &**value)
    }
}

/// A request ready to send, but for base URL and token.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The path with percent-encoded identifiers, from `/v2` or `/v4` on.
    pub path: String,
    /// The encoded query; `None` if there is none.
    pub query: Option<String>,
    /// A JSON body.
    pub body: Option<Value>,
    /// The subject of a 403: the path, and for metrics the container and the order of magnitude of the range. The
    /// service may refuse one container, or ranges as long as that, and answer the others.
    pub refused_as: String,
}

impl Call {
    /// The request with these arguments, its query parameters named by `names`.
    ///
    /// # Errors
    /// The first rule of sections 4 and 8 that does not hold.
    pub fn request(&self, arguments: &Arguments<'_>, names: &QueryNames) -> Result<Request, RuleError> {
        let mut malformed = None;
        let path = self.path.fill(|name, path| {
            let id = arguments.get(name).unwrap_or_default();
            // No URL can carry these as a segment.
            if matches!(id, "" | "." | "..") {
                malformed.get_or_insert((name, id));
            }
            percent_encode(id, path);
        });
        if let Some((name, id)) = malformed {
            let wanted = "a non-empty identifier other than '.' and '..'".to_owned();
            return Err(RuleError::Malformed { name, wanted, value: id.to_owned() });
        }
        let mut query = String::with_capacity(128);
        for param in self.query {
            let Some(value) = arguments.get(param.name) else { continue };
            param.check(value, arguments.now)?;
            if !matches!(param.kind, ParamKind::Word { default: Some(default), .. } if default == value) {
                query.push_str(if query.is_empty() { "" } else { "&" });
                percent_encode(param.sent_as(names), &mut query);
                query.push('=');
                percent_encode(value, &mut query);
            }
        }
        let query = (!query.is_empty()).then_some(query);
        let seconds = check_range(self.query, |name| arguments.get(name))?;
        let mut body = Map::new();
        for field in self.body {
            let value = arguments.get(field.name).ok_or(RuleError::Missing { name: field.name })?;
            field.check(value, arguments.now)?;
            body.insert(field.name.to_owned(), Value::from(value));
        }
        let body = (!body.is_empty()).then_some(Value::Object(body));
        let refused_as = match seconds {
            None => path.clone(),
            // Lengths with the same power of two below them are equal.
            Some(seconds) => {
                let magnitude = seconds.checked_ilog2().unwrap_or_default();
                format!("{path} {magnitude} {}", arguments.get("container_id").unwrap_or_default())
            }
        };
        Ok(Request { method: self.method.clone(), path, query, body, refused_as })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::query_names;
    use crate::{change_plan, create_api_key, file_tree, get_app, response_time, zip_contents};

    const END: i64 = 1_767_225_600;

    /// Path and query of `call`.
    fn target(call: &Call, arguments: &Arguments<'_>) -> Result<String, RuleError> {
        named(call, arguments, &query_names())
    }

    fn named(call: &Call, arguments: &Arguments<'_>, names: &QueryNames) -> Result<String, RuleError> {
        let Request { path, query, .. } = call.request(arguments, names)?;
        Ok(query.map_or(path.clone(), |query| [&*path, &*query].join("?")))
    }

    fn key() -> Arguments<'static> {
        Arguments::about("p-1", "").at("2026-01-31T12:00:00Z".parse().unwrap())
    }

    #[test]
    fn identifiers_and_query_values_are_percent_encoded() {
        let build = Arguments::about("p/1", "ä b?#%").with("build_id", "b 1");
        assert_eq!(
            target(&zip_contents::CALL, &build).unwrap(),
            "/v2/projects/p%2F1/apps/%C3%A4%20b%3F%23%25/builds/b%201/zip-contents"
        );
        let tree = Arguments::about("p-1", "").with("owner", "acme").with("repo", "a/b");
        let path = "/v4/projects/p-1/integrations/codehost/repos/acme/a%2Fb/tree";
        assert_eq!(target(&file_tree::CALL, &tree).unwrap(), path);
        let tree = tree.with("ref", "feat/x").with("path", "src");
        assert_eq!(target(&file_tree::CALL, &tree).unwrap(), format!("{path}?ref=feat%2Fx&path=src"));
    }

    #[test]
    fn identifiers_no_path_can_carry_are_refused() {
        for bad in ["", ".", ".."] {
            let refused = target(&get_app::CALL, &Arguments::about("p", bad));
            let wanted = "app_id must be a non-empty identifier other than '.' and '..', not ";
            assert_eq!(refused.unwrap_err().to_string(), format!("{wanted}'{bad}'"));
        }
    }

    #[test]
    fn only_parameters_that_differ_from_the_default_are_sent_by_their_configured_names() {
        let names = QueryNames { container: "pod".into(), ..query_names() };
        let path = "/v2/projects/p-1/apps/p-1-a/metrics/response-time";
        let sent = |arguments: &Arguments<'_>| named(&response_time::CALL, arguments, &names);
        let plain = Arguments::about("p-1", "p-1-a").at_resolution(Resolution::Standard);
        assert_eq!(sent(&plain), Ok(path.to_owned()));
        let time = "2026-01-01T00%3A00%3A00Z";
        let full = Arguments::about("p-1", "p-1-a")
            .in_range_to(TimeRange { start: END, end: END }, RangeEnd::Exclusive)
            .in_container(Some("c 1"))
            .at_resolution(Resolution::High);
        assert_eq!(sent(&full), Ok(format!("{path}?start={time}&end={time}&pod=c%201&resolution=high")));
        let minute = TimeRange { start: END, end: END + 60 };
        let inclusive = Arguments::about("p-1", "p-1-a").in_range_to(minute, RangeEnd::Inclusive);
        assert_eq!(sent(&inclusive), Ok(format!("{path}?start={time}&end=2026-01-01T00%3A00%3A59.999Z")));
        let backwards = TimeRange { start: END, end: END - 1 };
        let backwards = Arguments::about("p-1", "p-1-a").in_range_to(backwards, RangeEnd::Exclusive);
        assert!(matches!(sent(&backwards), Err(RuleError::EndBeforeStart { .. })));
    }

    #[test]
    fn bounds_are_compared_as_given() {
        let bounds = |start, end| Arguments::about("p-1", "a").with("start", start).with("end", end);
        let (early, late) = ("2026-01-01T00:00:00.2Z", "2026-01-01T01:00:00.7+01:00");
        assert!(target(&response_time::CALL, &bounds(early, late)).is_ok());
        let refused = target(&response_time::CALL, &bounds(late, early));
        assert!(matches!(refused, Err(RuleError::EndBeforeStart { .. })), "{refused:?}");
    }

    #[test]
    fn a_bound_is_a_timestamp_with_and_without_the_other() {
        let app = || Arguments::about("p-1", "a");
        for name in ["start", "end"] {
            assert!(target(&response_time::CALL, &app().with(name, "2026-01-01T00:00:00Z")).is_ok());
            for other in ["start", "end"] {
                let bounds = app().with(name, "2026-01-01").with(other, "2026-01-01T00:00:00Z");
                let refused = target(&response_time::CALL, &bounds).unwrap_err().to_string();
                assert_eq!(refused, format!("{name} must be an RFC 3339 timestamp, not '2026-01-01'"));
            }
        }
    }

    #[test]
    fn limits_are_counted_in_characters() {
        assert!(target(&create_api_key::CALL, &key().with("name", "ü".repeat(50))).is_ok());
        for (name, max) in [("name", 50), ("description", 255)] {
            let refused = target(&create_api_key::CALL, &key().with(name, "ü".repeat(max + 1)));
            assert_eq!(refused, Err(RuleError::TooLong { name, max, len: max + 1 }));
        }
    }

    #[test]
    fn an_expiration_date_lies_in_the_future() {
        let sent = target(&create_api_key::CALL, &key().with("expiresAt", "2026-02-01"));
        assert_eq!(sent, Ok("/v2/projects/p-1/api-keys?expiresAt=2026-02-01".to_owned()));
        for past in ["2026-01-31", "2026-01-30"] {
            let refused = target(&create_api_key::CALL, &key().with("expiresAt", past));
            assert_eq!(refused, Err(RuleError::NotInFuture { date: past.to_owned() }));
        }
        for bad in ["tomorrow", "20270101", ""] {
            let refused = target(&create_api_key::CALL, &key().with("expiresAt", bad));
            assert!(matches!(refused, Err(RuleError::Malformed { .. })), "{refused:?}");
        }
    }

    #[test]
    fn the_plan_goes_in_the_body() {
        let request = |plan| {
            let arguments = Arguments::about("p-1", "").with("planCode", plan);
            change_plan::CALL.request(&arguments, &query_names())
        };
        for plan in ["hobby", "standard", "enterprise"] {
            let request = request(plan).unwrap();
            assert_eq!((&*request.path, request.query), ("/v2/projects/p-1/subscription", None));
            assert_eq!(request.body.unwrap().to_string(), format!(r#"{{"planCode":"{plan}"}}"#));
        }
        for plan in ["", "Hobby", "free"] {
            assert!(matches!(request(plan), Err(RuleError::Malformed { .. })), "{plan}");
        }
        let missing = change_plan::CALL.request(&Arguments::about("p-1", ""), &query_names());
        assert_eq!(missing, Err(RuleError::Missing { name: "planCode" }));
    }
}
