//! Compares what was created with what was requested: the names of query parameters are not documented, and a service
//! ignores names that it does not know.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde_json::Value;

use crate::error::ToolError;
use pds_interface::param::{Param, ParamKind};
use pds_interface::{Arguments, Call};

/// Checks that `reply` has what the arguments requested. Fields missing in the reply are not compared.
///
/// # Errors
/// If a parameter was ignored. What was created exists nevertheless; the error names its id.
pub fn is_as_asked(call: &Call, arguments: &Arguments<'_>, reply: &[u8]) -> Result<(), ToolError> {
    let created: Value = serde_json::from_slice(reply).unwrap_or_default();
    let differences: Vec<String> = call
        .query
        .iter()
        .filter_map(|param| difference(param, arguments.get(param.name)?, &created))
        .collect();
    if differences.is_empty() {
        return Ok(());
    }
    let id = match created.get("id").and_then(Value::as_str).filter(|id| !id.is_empty()) {
        Some(id) => format!("it exists, and its id is {id}: delete it"),
        None => "it exists, but the reply has no id: find it and delete it".to_owned(),
    };
    let message = format!(
        "the service did not create what was asked for: {}; {id}; the parameter names in \
         [api.query_names] may be wrong",
        differences.join(", ")
    );
    Err(ToolError::Failed { message, code: 1 })
}

/// The difference between `created` and the requested value, if any.
fn difference(param: &Param, asked: &str, created: &Value) -> Option<String> {
    let got = created.get(param.name)?.as_str()?;
    let same = match param.kind {
        ParamKind::FutureDate => is_about(got, asked),
        _ => got.trim() == asked.trim(),
    };
    (!same).then(|| format!("{} is '{got}' instead of '{asked}'", param.name))
}

/// Whether the time `got` is on the day `asked`, in any time zone; the day's end counts too.
fn is_about(got: &str, asked: &str) -> bool {
    let Ok(asked) = asked.parse::<Date>() else { return false };
    let day = match got.parse::<Timestamp>() {
        Ok(time) => Ok(time.to_zoned(TimeZone::UTC).date()),
        Err(_) => got.parse::<Date>(),
    };
    day.is_ok_and(|day| day.since(asked).is_ok_and(|span| span.get_days().abs() <= 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_day_asked_for_may_end_in_any_time_zone() {
        for got in
            ["2030-01-31", "2030-01-31T00:00:00Z", "2030-01-31T23:59:59.999Z", "2030-02-01T00:00:00+02:00"]
        {
            assert!(is_about(got, "2030-01-31"), "{got}");
        }
        for got in ["never", "", "2031-01-31T00:00:00Z", "2030-02-28", "2026-01-31T00:00:00Z"] {
            assert!(!is_about(got, "2030-01-31"), "{got}");
        }
    }
}
