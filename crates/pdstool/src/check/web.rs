//! `pdstool check web-config`: the meaning of a web configuration file, or its first problem.

use std::path::Path;

use crate::console::Console;
use crate::error::ToolError;
use crate::output::OutputFormat;
use crate::page::{self, Block};
use pds_core::units;
use pds_web::webconfig::{self, ClientAuth, Rate};

/// Checks the file at `path` as the daemon would, with the certificates and keys it names.
///
/// # Errors
/// Its first problem.
pub fn run(console: &mut Console, path: &Path, format: OutputFormat) -> Result<(), ToolError> {
    let summary = webconfig::check(path)?;
    let yes = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
    let users =
        if summary.users == 0 { "none (no password required)".to_owned() } else { summary.users.to_string() };
    if format.is_for_people() {
        console.print(&format!("{} is valid", path.display()))?;
    }
    let facts = vec![
        ("TLS", yes(summary.tls)),
        ("HTTP/2", yes(summary.http2)),
        ("client certificates", certificates(summary.client_auth).to_owned()),
        ("users", users),
        ("rate limit", summary.rate.map_or_else(|| "none".to_owned(), |rate| limit(&rate))),
    ];
    let mut blocks = vec![Block::Facts(facts)];
    blocks.extend(summary.notes.iter().map(|note| Block::Text(format!("note: {note}"))));
    Ok(page::print_as(console, format, &blocks)?)
}

fn certificates(policy: ClientAuth) -> &'static str {
    match policy {
        ClientAuth::NoClientCert => "not requested",
        ClientAuth::RequestClientCert => "requested, optional, not verified",
        ClientAuth::RequireAnyClientCert => "required, not verified",
        ClientAuth::VerifyClientCertIfGiven => "requested, optional, verified against the CA",
        ClientAuth::RequireAndVerifyClientCert => "required, verified against the CA",
    }
}

/// A limit on requests in words.
fn limit(rate: &Rate) -> String {
    let seconds = rate.interval.as_secs_f64();
    let lasting = if seconds > 0.0 { units::number(1.0 / seconds) } else { "unlimited".to_owned() };
    format!("{lasting} requests/s, bursts of {}", rate.burst)
}
