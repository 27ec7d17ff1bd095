//! Call 16, section 4.16: delete an app.

use super::spec::{Call, DecodeError, Method, ReplyKind, Request, RuleError, Spec};

/// The call's description.
pub static SPEC: Spec = Spec {
    number: 16,
    id: "delete_app",
    method: Method::Delete,
    path: "/v2/projects/{project_id}/apps/{app_id}",
    purpose: "delete an app",
    query: &[],
    body: None,
    reply: ReplyKind::Text,
};

/// The call with its arguments.
#[derive(Clone, Copy, Debug)]
pub struct DeleteApp<'a> {
    /// The project's id.
    pub project_id: &'a str,
    /// The app's id.
    pub app_id: &'a str,
}

impl Call for DeleteApp<'_> {
    type Reply = String;

    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn request(&self) -> Result<Request, RuleError> {
        Request::new(&SPEC, &[("project_id", self.project_id), ("app_id", self.app_id)])
    }

    /// The confirmation: plain text, not JSON.
    fn reply(body: &[u8]) -> Result<String, DecodeError> {
        Ok(std::str::from_utf8(body)?.trim().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_confirmation_comes_as_plain_text() {
        let request = DeleteApp { project_id: "p-1", app_id: "p-1-a" }.request().unwrap();
        assert_eq!(
            (request.method, request.target()),
            (Method::Delete, "/v2/projects/p-1/apps/p-1-a".to_owned())
        );
        assert_eq!(DeleteApp::reply(b"app deleted\n").unwrap(), "app deleted");
        assert!(DeleteApp { project_id: "p-1", app_id: ".." }.request().is_err());
    }
}
