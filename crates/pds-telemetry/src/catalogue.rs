//! Every family of the metrics page.

use pds_exposition::{Family, Group};
use pds_interface::Resource;

use super::metrics::FAMILIES;
use super::process::process_families;

/// Whether the last poll of a target succeeded.
pub const UP: Family = Family::gauge(
    "pds_up",
    &["resource"],
    "1 if the last poll of the resource succeeded, 0 if it failed; absent before the first poll",
);
/// When a target was last polled with success.
pub const LAST_SUCCESS: Family = Family::gauge(
    "pds_last_success_timestamp_seconds",
    &["resource"],
    "Unix time of the last successful poll of the resource",
);
/// Since when an app is gone.
pub const GONE: Family = Family::gauge(
    "pds_app_gone_timestamp_seconds",
    &["reason"],
    "Unix time of the first 404 since the app last answered this process (not_found; exposed after poll.stale_after), or since which the configuration lacks the app (removed); exposed for a day",
);

/// The objective configured for an app.
pub const OBJECTIVE: Family = Family::gauge(
    "pds_app_objective_ratio",
    &["threshold"],
    "Configured objective: share of requests within the threshold, which is written like the label le",
);

/// Every family that can be on the page, in its order and by section.
pub fn catalogue() -> Vec<Group> {
    let of_service = Resource::all()
        .map(|resource| Group { title: resource.call().purpose, families: resource.polled().families() });
    let rest = [
        Group { title: "exact counters", families: pds_ledger::FAMILIES.to_vec() },
        Group { title: "objectives", families: vec![OBJECTIVE] },
        Group { title: "targets", families: vec![UP, LAST_SUCCESS, GONE] },
        Group { title: "the exporter itself", families: FAMILIES.to_vec() },
        Group { title: "its process", families: process_families().copied().collect() },
    ];
    of_service.chain(rest).collect()
}
