//! A created API key, but for the secret itself.

use crate::interface::create_api_key::CreateApiKey;
use crate::interface::spec::{Call as _, DecodeError};
use crate::tool::call::View;
use crate::tool::page::Block;

use super::further;

/// What the reply says of the key. Its secret is shown elsewhere, alone.
///
/// # Errors
/// Where the reply is no key.
pub fn created(body: &[u8]) -> Result<View, DecodeError> {
    let key = CreateApiKey::reply(body)?;
    let mut blocks = vec![Block::Facts(vec![
        ("id", key.id),
        ("name", key.name),
        ("description", key.description),
        ("project", key.project_id),
        ("source", key.source),
        ("status", key.status),
        ("created", key.created_at),
        ("updated", key.updated_at),
        ("expires", key.expires_at),
    ])];
    blocks.extend(further(&key.extra));
    Ok(blocks.into())
}
