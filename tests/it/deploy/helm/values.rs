//! The chart's values: each is documented, and one that means nothing is refused.

use super::HELMS;
use crate::deploy::{command, deploy, text};
use crate::golden::assert_golden;

/// The table of `values.yaml`: each key with its default and the comment above it.
fn values_table() -> String {
    let mut table = "| value | default | meaning |\n| --- | --- | --- |\n".to_owned();
    let (mut path, mut comment, mut skip) = (Vec::new(), String::new(), usize::MAX);
    let text = text("helm/pds-exporter/values.yaml");
    let lines: Vec<&str> = text.lines().collect();
    for (number, line) in lines.iter().enumerate() {
        let depth = line.chars().take_while(|c| *c == ' ').count() / 2;
        let line = line.trim();
        if line.is_empty() {
            comment.clear();
            continue;
        }
        if depth > skip {
            continue;
        }
        if let Some(text) = line.strip_prefix('#') {
            comment += text;
            continue;
        }
        let (key, value) = line.split_once(':').unwrap_or_else(|| panic!("line {number}: {line}"));
        path.truncate(depth);
        path.push(key);
        let (value, comment) = (value.trim(), std::mem::take(&mut comment));
        skip = usize::MAX;
        if comment.is_empty() {
            assert!(value.is_empty(), "{} has no comment", path.join("."));
            continue;
        }
        let shown = match value {
            "" | "|" => {
                skip = depth;
                "see `values.yaml`".to_owned()
            }
            value => format!("`{value}`"),
        };
        table += &format!("| `{}` | {shown} |{comment} |\n", path.join("."));
    }
    table
}

#[test]
fn the_readme_lists_every_value() {
    let path = deploy("helm/pds-exporter/README.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (begin, end) = ("<!-- values: begin -->\n", "<!-- values: end -->");
    let (head, rest) = page.split_once(begin).unwrap();
    let (_, tail) = rest.split_once(end).unwrap();
    assert_golden(&path, &format!("{head}{begin}{}{end}{tail}", values_table()));
}

#[test]
fn values_that_mean_nothing_are_refused() {
    for (value, named) in [
        ("mode=daemonset", "mode"),
        ("shards=0", "shards"),
        ("replicas=2", "replicas"),
        ("maxRequestsPerSecondPerShard=16", "maxRequestsPerSecondPerShard"),
        ("state.size=1X", "size"),
        ("state.prometheus.url=prometheus:9090", "url"),
        ("state.prometheus.url=http://p:9090,state.prometheus.tokenKey=token", "existingSecret"),
        ("configReloadInterval=30", "configReloadInterval"),
        ("podMonitor.interval=15", "interval"),
        ("web.routePrefix=pds", "routePrefix"),
        ("podLabels.app\\.kubernetes\\.io/name=other", "podLabels"),
        ("networkPolicy.fromNamespace=", "networkPolicy"),
        ("config=", "existingConfig"),
        ("configFiles.a\\.toml=x", "include"),
        ("configFiles.pds-exporter\\.toml=x", "configFiles"),
        ("configFiles.projects=x", "configFiles"),
        ("ingress.enabled=true", "hosts"),
        ("httpRoute.enabled=true", "parentRefs"),
        ("commonLabels.app\\.kubernetes\\.io/name=other", "commonLabels"),
        ("livenessProbe.exec=true", "livenessProbe"),
        ("state.accessModes={ReadOnlyMany}", "accessModes"),
        ("service.type=ExternalName", "type"),
        ("prometheusRule.enabled=true,prometheusRule.disabled={PdsNothing}", "PdsNothing"),
        ("prometheusRule.objectives.sloRatio=99", "sloRatio"),
        ("prometheusRule.links.grafana=/grafana", "grafana"),
        ("prometheusRule.ownerLabels={team) (x}", "ownerLabels"),
    ] {
        for helm in HELMS {
            let mut render = command(helm, ["template", "x", "--kube-version=1.32.0", "--set", value]);
            let failed = render.arg(deploy("helm/pds-exporter")).output().unwrap();
            let said = String::from_utf8_lossy(&failed.stderr);
            assert!(!failed.status.success() && said.contains(named), "{helm}: {value}: {said}");
        }
    }
}
