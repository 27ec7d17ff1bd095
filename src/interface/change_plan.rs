//! Call 2, section 4.2: upgrade or downgrade the plan.

use std::collections::BTreeMap;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::number::lenient_text;
use super::spec::{Call, DecodeError, Method, ReplyKind, Request, RuleError, Spec};

/// The call's description.
pub static SPEC: Spec = Spec {
    number: 2,
    id: "change_plan",
    method: Method::Patch,
    path: "/v2/projects/{project_id}/subscription",
    purpose: "upgrade or downgrade the plan",
    query: &[],
    body: Some(|generator| generator.subschema_for::<PlanChange>()),
    reply: ReplyKind::Json(|generator| generator.subschema_for::<PlanChanged>()),
};

/// The call with its arguments.
#[derive(Clone, Copy, Debug)]
pub struct ChangePlan<'a> {
    /// The project's id.
    pub project_id: &'a str,
    /// The plan's code: one of those of [`Plan`].
    pub plan: &'a str,
}

impl Call for ChangePlan<'_> {
    type Reply = PlanChanged;

    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn request(&self) -> Result<Request, RuleError> {
        let mut request = Request::new(&SPEC, &[("project_id", self.project_id)])?;
        let plan_code: Plan = self.plan.parse()?;
        request.body = Some(serde_json::json!(PlanChange { plan_code }));
        Ok(request)
    }

    fn reply(body: &[u8]) -> Result<PlanChanged, DecodeError> {
        Ok(serde_json::from_slice(body)?)
    }
}

/// The plans of section 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the interface gives their names and nothing else")]
pub enum Plan {
    Hobby,
    Standard,
    Enterprise,
}

impl FromStr for Plan {
    type Err = RuleError;

    fn from_str(code: &str) -> Result<Self, RuleError> {
        match code {
            "hobby" => Ok(Self::Hobby),
            "standard" => Ok(Self::Standard),
            "enterprise" => Ok(Self::Enterprise),
            _ => Err(RuleError::UnknownPlan { plan: code.to_owned() }),
        }
    }
}

/// The body that is sent (section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanChange {
    /// The plan to change to.
    pub plan_code: Plan,
}

/// The reply (section 4.2).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PlanChanged {
    /// Where to complete the payment; empty when there is nothing to do.
    #[serde(deserialize_with = "lenient_text")]
    pub redirect_url: String,
    /// Fields that the interface does not show.
    #[serde(flatten)]
    pub extra: BTreeMap<String, Value>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plan_goes_in_the_body() {
        for plan in ["hobby", "standard", "enterprise"] {
            let request = ChangePlan { project_id: "p-1", plan }.request().unwrap();
            assert_eq!(request.target(), "/v2/projects/p-1/subscription");
            assert_eq!(request.body.unwrap().to_string(), format!(r#"{{"planCode":"{plan}"}}"#));
        }
    }

    #[test]
    fn another_plan_is_not_sent() {
        for plan in ["", "Hobby", "free"] {
            let refused = ChangePlan { project_id: "p-1", plan }.request();
            assert_eq!(refused, Err(RuleError::UnknownPlan { plan: plan.to_owned() }));
        }
    }

    #[test]
    fn a_reply_without_a_url_needs_nothing_done() {
        for body in ["{}", r#"{"redirectUrl":null}"#, r#"{"redirectUrl":""}"#] {
            assert_eq!(ChangePlan::reply(body.as_bytes()).unwrap().redirect_url, "");
        }
    }
}
