//! Call 13, section 4.13: the checkout URL for a payment method.

use super::call::{Call, Command, Method};
use super::reply::ReplyFormat;
use super::template::Template;

/// The URL, plain text.
pub type Reply = String;

/// The call.
pub static CALL: Call = Call {
    number: 13,
    id: "payment_url",
    method: Method::Get,
    path: Template("/v2/projects/{project_id}/payment-url"),
    purpose: "checkout URL for a payment method",
    query: &[],
    body: &[],
    reply: ReplyFormat::of::<Reply>(),
    polled: None,
    command: Command::safe(&["payment-url"], ""),
};
