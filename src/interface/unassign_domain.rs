//! Call 14, section 4.14: unassign a custom domain from its app, which the path does not name.

use super::call::{Call, Command, Method};
use super::reply::ReplyFormat;
use super::template::Template;

/// An empty reply.
pub type Reply = ();

/// The call.
pub static CALL: Call = Call {
    number: 14,
    id: "unassign_domain",
    method: Method::Delete,
    path: Template("/v2/projects/{project_id}/domains/{domain_id}/assign"),
    purpose: "unassign a domain from an app",
    query: &[],
    body: &[],
    reply: ReplyFormat::of::<Reply>(),
    polled: None,
    command: Command::confirmed(
        &["domains", "unassign"],
        "d-1 --yes",
        "unassigns the domain {domain_id} from its app, which is then not reached by it",
    ),
};
