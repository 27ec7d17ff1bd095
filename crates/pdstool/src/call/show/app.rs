//! An app.

use crate::call::raw::Raw;
use crate::output::Block;
use pds_core::units;

/// An app: facts, hardware, scaling, builds.
pub(super) fn view(mut fields: Raw) -> Vec<Block> {
    let heading = |text: &str| Block::Heading(text.to_owned());
    let name = fields.text("name");
    let cost = fields.take("costPerSecondCents");
    let dollars = cost.number().map(|cents| {
        let dollars = cents / 100.0;
        format!("{}/s ({}/h) while a replica runs", units::dollars(dollars), units::dollars(dollars * 3600.0))
    });
    let mut replicas = vec![fields.text("minReplicaCount"), fields.text("maxReplicaCount")];
    replicas.retain(|bound| !bound.is_empty());
    let blocks = vec![
        heading(if name.is_empty() { "App" } else { &name }),
        Block::Facts(vec![
            ("id", fields.text("id")),
            ("project", fields.text("projectId")),
            ("status", fields.text("status")),
            ("error", fields.text("errorMessage")),
            ("created", fields.text("createdAt")),
            ("updated", fields.text("updatedAt")),
            ("runtime", fields.text("runtime")),
            ("base image", fields.text("baseImage")),
            ("python", fields.text("pythonVersion")),
            ("service version", fields.text("serviceVersion")),
            ("entrypoint", fields.text("entrypoint")),
            ("port", fields.text("port")),
            ("auth disabled", fields.text("disableAuth")),
            ("endpoint", fields.text("internalEndpoint")),
            ("healthcheck", fields.text("healthcheckEndpoint")),
            ("readycheck", fields.text("readycheckEndpoint")),
        ]),
        heading("Compute"),
        Block::Facts(vec![
            ("tier", fields.text("computeTier")),
            ("hardware", fields.text("hardware")),
            ("provider", fields.text("hardwareProvider")),
            ("region", fields.text("region")),
            ("cpu", fields.with_unit("cpu", " cores")),
            ("memory", fields.with_unit("memory", " GB")),
            ("gpus", fields.text("gpuCount")),
            ("cost", dollars.unwrap_or_else(|| cost.cell())),
        ]),
        heading("Scaling"),
        Block::Facts(vec![
            ("replicas", replicas.join(" to ")),
            ("concurrency", fields.with_unit("replicaConcurrency", " requests a replica")),
            ("metric", fields.text("scalingMetric")),
            ("target", fields.text("scalingTarget")),
            ("buffer", fields.with_unit("scalingBuffer", " replicas")),
            ("cooldown", fields.duration("cooldownPeriodSeconds")),
            ("evaluated every", fields.duration("evaluationIntervalSeconds")),
            ("response grace", fields.duration("responseGracePeriodSeconds")),
            ("roll-out", fields.duration("rollOutDurationSeconds")),
            ("initialization", fields.duration("deploymentInitializationTimeout")),
            ("load balancing", fields.text("loadBalancingAlgorithm")),
        ]),
        heading("Builds"),
        Block::Facts(vec![
            ("last build", fields.text("lastBuildStatus")),
            ("latest", fields.text("latestBuildId")),
            ("latest created", fields.text("latestCreatedBuildId")),
            ("latest ready", fields.text("latestReadyBuildId")),
        ]),
    ];
    fields.after(blocks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_in_another_form_is_shown_as_it_is() {
        let body =
            br#"{"costPerSecondCents":"n/a","cooldownPeriodSeconds":" 90 ","rollOutDurationSeconds":"5m"}"#;
        let printed = format!("{:?}", view(Raw::of(body)));
        for fact in [r#"("cost", "n/a")"#, r#"("cooldown", "1 min 30 s")"#, r#"("roll-out", "5m")"#] {
            assert!(printed.contains(fact), "{fact}: {printed}");
        }
    }

    #[test]
    fn an_unknown_field_is_shown_at_the_end() {
        let body = br#"{"id":"a","cpu":"2","novel":{"depth":3},"gone":null}"#;
        let mut fields = Raw::of(body);
        fields.take("cpu");
        let printed = format!("{:?}", fields.after(Vec::new()));
        assert!(
            printed.contains(r#"["id", "a"]"#) && printed.contains(r#"["novel.depth", "3"]"#),
            "{printed}"
        );
        assert!(!printed.contains("gone") && !printed.contains("cpu"), "{printed}");
        let printed = format!("{:?}", view(Raw::of(body)).last());
        assert_eq!(printed.matches("novel.depth").count(), 1, "{printed}");
        assert!(!printed.contains("\"id\""), "{printed}");
    }
}
