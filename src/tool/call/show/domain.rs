//! Custom domains.

use crate::interface::list_domains::{Domain, ListDomains};
use crate::interface::spec::{Call as _, DecodeError};
use crate::interface::validate_domain::ValidateDomain;
use crate::tool::call::View;
use crate::tool::page::{Align, Block, Table};

use super::{cell, flat, further};

/// The domains with all their fields: the interface names none of them.
///
/// # Errors
/// Where the reply is no list of domains.
pub fn list(body: &[u8]) -> Result<View, DecodeError> {
    let reply = ListDomains::reply(body)?;
    let domains = reply.domains.unwrap_or_default();
    let mut blocks = Vec::new();
    if domains.is_empty() {
        blocks.push(Block::Text("no custom domains".to_owned()));
    }
    for domain in &domains {
        blocks.push(Block::Heading(title(domain)));
        let columns = vec![("FIELD", Align::Left), ("VALUE", Align::Left)];
        let rows = flat(&domain.fields).into_iter().map(|(name, value)| vec![name, value]).collect();
        blocks.push(Block::Table(Table { columns, rows, empty: "no fields" }));
    }
    blocks.extend(further(&reply.extra));
    Ok(blocks.into())
}

/// By what people know a domain.
fn title(domain: &Domain) -> String {
    let known = ["domain", "name", "hostname", "id"].iter().find_map(|name| domain.fields.get(*name));
    known.map_or_else(|| "Domain".to_owned(), cell)
}

/// What became of a validation; one that did not succeed is a failure.
///
/// # Errors
/// Where the reply is none about a validation.
pub fn validated(body: &[u8]) -> Result<View, DecodeError> {
    let validation = ValidateDomain::reply(body)?;
    let mut blocks = vec![Block::Text(validation.message)];
    blocks.extend(further(&validation.extra));
    let failure = match validation.success {
        Some(false) => Some("the domain is not validated".to_owned()),
        Some(true) | None => None,
    };
    Ok(View { blocks, failure })
}

/// A domain is off its app.
///
/// # Errors
/// None.
pub fn unassigned(_: &[u8]) -> Result<View, DecodeError> {
    Ok(vec![Block::Text("The domain is unassigned.".to_owned())].into())
}

/// A domain is gone.
///
/// # Errors
/// None.
pub fn deleted(_: &[u8]) -> Result<View, DecodeError> {
    Ok(vec![Block::Text("The domain was deleted.".to_owned())].into())
}
