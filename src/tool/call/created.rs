//! What was created, compared with what was asked for: the names of query parameters are not documented, and a service
//! ignores those that it does not know.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde_json::Value;

use crate::interface::param::{Param, ParamKind};
use crate::interface::{Arguments, Call};
use crate::tool::error::ToolError;

/// Checks that `reply` is what the arguments asked for. A field that the reply does not have is not compared.
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
        Some(id) => format!("it exists and has the id {id}: delete that one"),
        None => "it exists, and the reply does not say its id: look for it, and delete it".to_owned(),
    };
    let message = format!(
        "the service did not create what was asked for: {}; {id}. [api.query_names] may have other names for the \
         parameters than the service",
        differences.join(", ")
    );
    Err(ToolError::Failed { message, code: 1 })
}

/// What of `created` is not the value asked for.
fn difference(param: &Param, asked: &str, created: &Value) -> Option<String> {
    let got = created.get(param.name)?.as_str()?;
    let same = match param.kind {
        ParamKind::FutureDate => is_about(got, asked),
        _ => got.trim() == asked.trim(),
    };
    (!same).then(|| format!("{} is '{got}' instead of '{asked}'", param.name))
}

/// Whether the time `got` is the day `asked`. Its beginning, its end, and any time zone are taken for the day.
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
