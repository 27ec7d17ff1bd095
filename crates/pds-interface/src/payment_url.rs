//! Section 4.13: the checkout URL for a payment method.

use super::prelude::*;
use super::reply::Format;

/// The reply.
pub type Reply = Checkout;

/// The URL, plain text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Checkout(pub String);

impl ReplyBody for Checkout {
    const FORMAT: Format = Format::Text;

    fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        String::decode(body).and_then(address).map(Self)
    }

    fn encode(&self) -> Result<Vec<u8>, serde_json::Error> {
        self.0.encode()
    }
}

/// The address, if a browser can open it.
///
/// # Errors
/// If it is none.
pub(super) fn address(url: String) -> Result<String, DecodeError> {
    let is_url = ["https://", "http://"].iter().any(|scheme| url.starts_with(scheme));
    if is_url { Ok(url) } else { Err(DecodeError::Address) }
}

/// The call.
pub static CALL: Call = Call::new::<Reply>(
    "payment_url",
    Method::GET,
    "/v2/projects/{project_id}/payment-url",
    "checkout URL for a payment method",
    Command::safe(&["payment-url"], ""),
);
