//! A call without a project: made with the token of every project, the lists merged into one.

use std::io;

use bytes::Bytes;

use crate::error::{Result, ToolError};
use crate::report::grouped;
use crate::service::Service;
use pds_client::Account;
use pds_core::error_chain::with_sources;
use pds_core::units;
use pds_interface::{Call, Request};

use super::raw::Raw;

/// Makes the call with the token of `project`. Without a project, makes it with every token that a configured project
/// uses, and merges the lists, each entry once. The second value describes the tokens that were refused, if others were
/// not.
///
/// # Errors
/// If no token gets a reply.
pub async fn request(
    service: &Service,
    call: &Call,
    request: &Request,
    project: Option<&str>,
) -> Result<(Bytes, Option<ToolError>)> {
    let accounts =
        project.map_or_else(|| service.accounts(), |project| vec![service.client.account(project)]);
    if let [account] = &*accounts {
        return Ok((service.call(account, request).await?, None));
    }
    let mut entries: Vec<Raw> = Vec::new();
    let mut refusals = Vec::new();
    for account in &accounts {
        match list(service, account, call, request).await {
            Ok(list) => {
                for entry in list {
                    if !entries.contains(&entry) {
                        entries.push(entry);
                    }
                }
            }
            Err(error) => refusals.push((account.name(), error)),
        }
    }
    let refused = (!refusals.is_empty()).then(|| refused(&refusals, accounts.len()));
    match refused {
        Some(refused) if refusals.len() == accounts.len() => Err(refused),
        refused => Ok((serde_json::to_vec(&entries).map_err(io::Error::from)?.into(), refused)),
    }
}

/// The list that the service returns for a token.
async fn list(service: &Service, account: &Account, call: &Call, request: &Request) -> Result<Vec<Raw>> {
    let reply = service.call(account, request).await?;
    call.judge(&reply)?;
    match Raw::of(&reply) {
        Raw::List(list) => Ok(list),
        _ => Err(ToolError::failed("the reply is not a list")),
    }
}

/// The tokens without a list, and why; equal reasons once.
fn refused(refusals: &[(&str, ToolError)], tokens: usize) -> ToolError {
    let reasons = grouped(refusals.iter().map(|(name, error)| (with_sources(error), *name)));
    let reasons: Vec<String> =
        reasons.iter().map(|(reason, names)| format!("{}: {reason}", names.join(", "))).collect();
    let [failed, tokens] = [refusals.len(), tokens].map(units::count);
    let message = format!("{failed} of {tokens} tokens failed: {}", reasons.join("; "));
    let code = refusals.iter().map(|(_, error)| error.code()).max().unwrap_or(1);
    ToolError::Failed { message, code }
}
