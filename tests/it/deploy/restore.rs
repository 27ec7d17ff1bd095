//! On Kubernetes: counters that come back from Prometheus, and a configuration that changes without a restart.

use std::path::Path;
use std::time::Duration;

use pds_ledger::restore::{Login, Prometheus};
use serde_json::{Value, json};

use super::helm::{example, template};
use super::kubernetes::{container, flags, kustomize, object};
use super::{list, string, text, yaml};

/// The Prometheus to read cursors from, according to the environment of a workload's container. Values from a Secret
/// are `secret`.
fn prometheus(workload: &Value, secret: &str) -> Prometheus {
    let environment = list(&container(workload)["env"]).iter().map(|variable| {
        let value = variable["value"].as_str().unwrap_or(secret);
        (string(variable, "/name").to_owned(), value.to_owned())
    });
    let shipped = text("kubernetes/base/pds-exporter.toml");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pds-exporter.toml");
    std::fs::write(&file, shipped).unwrap();
    pds_config::load(&file, environment).unwrap().config.state.prometheus.unwrap()
}

/// The ports that the NetworkPolicy lets the exporter reach.
fn reachable(objects: &[Value]) -> Vec<u64> {
    let policy = object(objects, "NetworkPolicy");
    list(&policy["spec"]["egress"][0]["ports"]).iter().map(|port| port["port"].as_u64().unwrap()).collect()
}

#[test]
fn shards_without_disks_read_their_counters_back() {
    let objects = example("restore");
    let set = object(&objects, "StatefulSet");
    let prometheus = prometheus(&set, "X-Scope-OrgID=team");
    assert_eq!(prometheus.url.as_str(), "https://mimir.example.com:8443/prometheus");
    assert_eq!(prometheus.selector, "job=\"pds-exporter\",cluster=\"example\"");
    assert_eq!(prometheus.lookback, Duration::from_secs(12 * 3600));
    assert_eq!(prometheus.headers[0].0, "x-scope-orgid");
    let mounted = |name: &str| Path::new("/run/secrets/prometheus").join(name);
    assert_eq!(prometheus.ca_file, Some(mounted("ca.crt")));
    let password_file = mounted("password");
    assert_eq!(prometheus.login, Some(Login::Basic { username: "pds".to_owned(), password_file }));

    let mounts = list(&container(&set)["volumeMounts"]);
    assert!(mounts.iter().any(|mount| mount["mountPath"] == "/run/secrets/prometheus"), "{mounts:?}");
    let volumes = list(&set["spec"]["template"]["spec"]["volumes"]);
    let secret = volumes.iter().find(|volume| volume["name"] == "prometheus").unwrap();
    assert_eq!(secret["secret"]["secretName"], "mimir");
    assert!(set["spec"].get("volumeClaimTemplates").is_none(), "no disk");
    assert_eq!(reachable(&objects), [53, 53, 5353, 5353, 443, 8443]);
}

#[test]
fn the_port_of_prometheus_is_reachable_once() {
    for (url, port) in [
        ("http://prometheus", Some(80)),
        ("https://prometheus/prefix", None),
        ("http://prometheus-operated.monitoring.svc:9090/", Some(9090)),
    ] {
        let objects = template(&[&format!("state.prometheus.url={url}")]);
        let expected: Vec<u64> = [53, 53, 5353, 5353, 443].into_iter().chain(port).collect();
        assert_eq!(reachable(&objects), expected, "{url}");
        // A plain Deployment suffices, and never two at once.
        let deployment = object(&objects, "Deployment");
        assert_eq!(deployment["spec"]["strategy"]["type"], "Recreate");
        assert!(!deployment.to_string().contains("persistentVolumeClaim"));
    }
    assert_eq!(reachable(&template(&[])), [53, 53, 5353, 5353, 443]);
}

/// CoreDNS listens on 53, and behind the DNS Service of OpenShift on 5353; a policy applies to the port of the pod.
#[test]
fn dns_is_reachable_on_both_ports_over_udp_and_tcp() {
    for objects in [template(&[]), example("openshift"), yaml(&kustomize("base"))] {
        let ports = object(&objects, "NetworkPolicy")["spec"]["egress"][0]["ports"].clone();
        for (protocol, port) in [("UDP", 53), ("TCP", 53), ("UDP", 5353), ("TCP", 5353)] {
            let dns = json!({ "protocol": protocol, "port": port });
            assert!(list(&ports).contains(&dns), "{protocol} {port}: {ports}");
        }
    }
}

#[test]
fn the_operator_overlay_reads_back_from_the_prometheus_that_it_is_scraped_by() {
    let objects = yaml(&kustomize("overlays/operator"));
    let prometheus = prometheus(&object(&objects, "Deployment"), "");
    assert_eq!(prometheus.url.as_str(), "http://prometheus-operated.monitoring.svc:9090/");
    assert_eq!(reachable(&objects), [53, 53, 5353, 5353, 443, 9090]);
}

#[test]
fn a_changed_configuration_leaves_the_pods_alone() {
    let workload = |values: &[&str]| object(&template(values), "Deployment");
    let changed = "config=[[projects]]";
    assert_eq!(workload(&[]), workload(&[changed]));
    let interval = Duration::from_secs(30);
    assert_eq!(flags(container(&workload(&[]))).config_auto_reload_interval, interval);
    // Unless it is not looked for: then it replaces them.
    let never = "configReloadInterval=0s";
    assert_ne!(workload(&[never]), workload(&[never, changed]));

    let base = yaml(&kustomize("base"));
    assert_eq!(flags(container(&object(&base, "Deployment"))).config_auto_reload_interval, interval);
    assert_eq!(
        object(&base, "ConfigMap")["metadata"]["name"],
        "pds-exporter-config",
        "no hash of its content"
    );
}
