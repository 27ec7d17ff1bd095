//! Section 4.13: the checkout URL for a payment method.

use super::call::{Call, Command, Method};

/// The URL, plain text.
pub type Reply = String;

/// The call.
pub static CALL: Call = Call::new::<Reply>(
    "payment_url",
    Method::Get,
    "/v2/projects/{project_id}/payment-url",
    "checkout URL for a payment method",
    Command::safe(&["payment-url"], ""),
);
