//! Call 16, section 4.16: delete an app.

use super::call::{Call, Command, Method};
use super::reply::ReplyFormat;
use super::template::Template;

/// The confirmation, plain text.
pub type Reply = String;

/// The call.
pub static CALL: Call = Call {
    number: 16,
    id: "delete_app",
    method: Method::Delete,
    path: Template("/v2/projects/{project_id}/apps/{app_id}"),
    purpose: "delete an app",
    query: &[],
    body: &[],
    reply: ReplyFormat::of::<Reply>(),
    polled: None,
    command: Command::confirmed(
        &["app", "delete"],
        "p-abc12345-ranker --yes",
        "deletes the app {app_id} for good",
    ),
};
