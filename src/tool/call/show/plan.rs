//! The subscription and its payment.

use crate::interface::change_plan::ChangePlan;
use crate::interface::payment_url::PaymentUrl;
use crate::interface::spec::{Call as _, DecodeError};
use crate::tool::call::View;
use crate::tool::page::Block;

use super::further;

/// What is left to do after a change of plan.
///
/// # Errors
/// Where the reply is none about a change of plan.
pub fn changed(body: &[u8]) -> Result<View, DecodeError> {
    let changed = ChangePlan::reply(body)?;
    let text = match &*changed.redirect_url {
        "" => "The plan is changed; there is nothing to pay.".to_owned(),
        url => format!("To complete the payment, open\n{url}"),
    };
    let mut blocks = vec![Block::Text(text)];
    blocks.extend(further(&changed.extra));
    Ok(blocks.into())
}

/// The checkout URL, and nothing else, so that it can be handed on.
///
/// # Errors
/// Where the reply is no text.
pub fn payment_url(body: &[u8]) -> Result<View, DecodeError> {
    Ok(vec![Block::Text(PaymentUrl::reply(body)?)].into())
}
