//! Section 4.14: unassign a custom domain from its app, which the path does not name.

use super::prelude::*;

/// An empty reply.
pub type Reply = ();

/// The call.
pub static CALL: Call = Call::new::<Reply>(
    "unassign_domain",
    Method::DELETE,
    "/v2/projects/{project_id}/domains/{domain_id}/assign",
    "unassign a domain from an app",
    Command::confirmed(
        &["domains", "unassign"],
        "d-1 --yes",
        "unassigns the domain {domain_id} from its app, which it then no longer reaches",
    ),
);
