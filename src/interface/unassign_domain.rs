//! Call 14, section 4.14: unassign a custom domain from its app.

use super::spec::{Call, DecodeError, Method, ReplyKind, Request, RuleError, Spec};

/// The call's description.
pub static SPEC: Spec = Spec {
    number: 14,
    id: "unassign_domain",
    method: Method::Delete,
    path: "/v2/projects/{project_id}/domains/{domain_id}/assign",
    purpose: "unassign a domain from an app",
    query: &[],
    body: None,
    reply: ReplyKind::Empty,
};

/// The call with its arguments; the app is not named.
#[derive(Clone, Copy, Debug)]
pub struct UnassignDomain<'a> {
    /// The project's id.
    pub project_id: &'a str,
    /// The domain's id.
    pub domain_id: &'a str,
}

impl Call for UnassignDomain<'_> {
    type Reply = ();

    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn request(&self) -> Result<Request, RuleError> {
        Request::new(&SPEC, &[("project_id", self.project_id), ("domain_id", self.domain_id)])
    }

    /// Success says nothing.
    fn reply(_: &[u8]) -> Result<(), DecodeError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_assignment_is_what_is_deleted() {
        let request = UnassignDomain { project_id: "p-1", domain_id: "d-1" }.request().unwrap();
        assert_eq!(request.method, Method::Delete);
        assert_eq!(request.target(), "/v2/projects/p-1/domains/d-1/assign");
        assert!(UnassignDomain { project_id: "p-1", domain_id: "" }.request().is_err());
    }
}
