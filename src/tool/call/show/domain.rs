//! Custom domains.

use serde_json::Value;

use crate::interface::list_domains::Domains;
use crate::interface::validate_domain::Validation;
use crate::tool::call::View;
use crate::tool::page::Block;

use super::fields::{Fields, cell};

/// The domains with all their fields: the interface names none of them.
pub(super) fn list(reply: &Domains, mut fields: Fields) -> View {
    let domains = match fields.take("domains") {
        Value::Array(domains) => domains,
        _ => Vec::new(),
    };
    let mut blocks = Vec::new();
    match &reply.domains {
        None => blocks.push(Block::Text("The reply does not say which custom domains there are.".to_owned())),
        Some(domains) if domains.is_empty() => blocks.push(Block::Text("no custom domains".to_owned())),
        Some(_) => {}
    }
    for domain in domains {
        blocks.push(Block::Heading(title(&domain)));
        blocks.extend(Fields::from(domain).all());
    }
    fields.after(blocks).into()
}

/// The name that people know a domain by.
fn title(domain: &Value) -> String {
    let known = ["domain", "name", "hostname", "id"].iter().find_map(|name| domain.get(*name));
    known.map_or_else(|| "Domain".to_owned(), cell)
}

/// The result of a validation; one that did not succeed is a failure.
pub(super) fn validated(reply: &Validation, mut fields: Fields) -> View {
    fields.take("success");
    let blocks = vec![Block::Text(fields.text("message"))];
    let failure = match reply.success {
        Some(false) => Some("the domain is not validated".to_owned()),
        Some(true) | None => None,
    };
    View { blocks: fields.after(blocks), failure }
}
