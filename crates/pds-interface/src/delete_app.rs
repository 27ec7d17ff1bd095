//! Section 4.16: delete an app.

use super::prelude::*;

/// The confirmation, plain text.
pub type Reply = String;

/// The call.
pub static CALL: Call = Call::new::<Reply>(
    "delete_app",
    Method::DELETE,
    "/v2/projects/{project_id}/apps/{app_id}",
    "delete an app",
    Command::confirmed(&["app", "delete"], "p-abc12345-ranker --yes", "deletes the app {app_id} for good"),
);
