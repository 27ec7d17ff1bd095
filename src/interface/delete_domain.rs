//! Call 15, section 4.15: delete a custom domain, which must be unassigned from all apps first.

use super::call::{Call, Command, Method};
use super::reply::ReplyFormat;
use super::template::Template;

/// An empty reply.
pub type Reply = ();

/// The call.
pub static CALL: Call = Call {
    number: 15,
    id: "delete_domain",
    method: Method::Delete,
    path: Template("/v2/projects/{project_id}/domains/{domain_id}"),
    purpose: "delete a custom domain",
    query: &[],
    body: &[],
    reply: ReplyFormat::of::<Reply>(),
    polled: None,
    command: Command::confirmed(
        &["domains", "delete"],
        "d-1 --yes",
        "deletes the domain {domain_id} for good",
    ),
};
