//! Section 4.15: delete a custom domain, which must be unassigned from all apps first.

use super::prelude::*;

/// An empty reply.
pub type Reply = ();

/// The call.
pub static CALL: Call = Call::new::<Reply>(
    "delete_domain",
    Method::DELETE,
    "/v2/projects/{project_id}/domains/{domain_id}",
    "delete a custom domain",
    Command::confirmed(&["domains", "delete"], "d-1 --yes", "deletes the domain {domain_id} for good"),
);
