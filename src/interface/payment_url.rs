//! Call 13, section 4.13: the checkout URL for a payment method.

use super::spec::{Call, DecodeError, Method, ReplyKind, Request, RuleError, Spec};

/// The call's description.
pub static SPEC: Spec = Spec {
    number: 13,
    id: "payment_url",
    method: Method::Get,
    path: "/v2/projects/{project_id}/payment-url",
    purpose: "checkout URL for a payment method",
    query: &[],
    body: None,
    reply: ReplyKind::Text,
};

/// The call with its argument.
#[derive(Clone, Copy, Debug)]
pub struct PaymentUrl<'a> {
    /// The project's id.
    pub project_id: &'a str,
}

impl Call for PaymentUrl<'_> {
    type Reply = String;

    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn request(&self) -> Result<Request, RuleError> {
        Request::new(&SPEC, &[("project_id", self.project_id)])
    }

    /// The URL: plain text, not JSON.
    fn reply(body: &[u8]) -> Result<String, DecodeError> {
        Ok(std::str::from_utf8(body)?.trim().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_comes_as_plain_text() {
        let request = PaymentUrl { project_id: "p-1" }.request().unwrap();
        assert_eq!(request.target(), "/v2/projects/p-1/payment-url");
        let url = PaymentUrl::reply(b"https://pay.example.com/c/1?a=b\n").unwrap();
        assert_eq!(url, "https://pay.example.com/c/1?a=b");
        assert!(matches!(PaymentUrl::reply(b"\xff"), Err(DecodeError::Text(_))));
    }
}
