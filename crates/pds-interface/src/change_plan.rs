//! Section 4.2: upgrade or downgrade the plan.

use super::payment_url::address;
use super::prelude::*;
use super::reply::json;

/// The reply.
pub type Reply = PlanChanged;

/// The call.
pub static CALL: Call = Call::new::<Reply>(
    "change_plan",
    Method::PATCH,
    "/v2/projects/{project_id}/subscription",
    "upgrade or downgrade the plan",
    Command::confirmed(
        &["plan", "change"],
        "standard",
        "changes the plan of project {project_id} to {planCode}, which may cost money",
    ),
)
.with_body(&[PLAN])
.needing("redirectUrl");

/// The plans of section 8, the cheapest first.
pub const PLANS: [&str; 3] = ["hobby", "standard", "enterprise"];

/// The body field with the plan's code.
pub const PLAN: Param = Param {
    name: "planCode",
    configured: None,
    kind: ParamKind::Word { words: &PLANS, default: None },
    purpose: "plan to change to",
};

impl ReplyBody for PlanChanged {
    fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let reply = object(body)?;
        match json(body).get("redirectUrl") {
            Some(url) if !url.is_null() && url != "" => {
                address(url.as_str().unwrap_or_default().to_owned()).map(|_| reply)
            }
            _ => Ok(reply),
        }
    }
}

/// The result of a plan change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PlanChanged {
    /// URL to complete payment when payment is required; empty when no action is needed.
    pub redirect_url: Text,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_without_a_url_needs_nothing_done() {
        for body in ["{}", r#"{"redirectUrl":null}"#, r#"{"redirectUrl":""}"#] {
            assert_eq!(PlanChanged::decode(body.as_bytes()).unwrap().redirect_url.0, "");
        }
    }
}
