//! Set-ups in which the exporter itself is at fault.

use super::*;

/// The exporter.
pub(super) fn of_the_exporter() -> Vec<SetUp> {
    vec![
        SetUp::edited("no apps", &cause::NO_APPS, |text| {
            format!("{}apps = []\n", text.split("apps = [").next().unwrap())
        }),
        SetUp::edited("an objective between two thresholds", &cause::OBJECTIVE_UNKNOWN, |text| {
            text.replace("apps = [", "objective = { threshold = \"7s\", share = 0.9 }\napps = [")
        }),
        SetUp::edited("a limit that is too low", &cause::OVERLOADED, |text| {
            text.replace("max_requests_per_second = 0", "max_requests_per_second = 1")
        })
        .saying("set api.max_requests_per_second = "),
        SetUp { scraped: true, ..SetUp::of("a Prometheus without cursors", &cause::NO_CURSORS) },
        SetUp {
            tables: "[state]\nprometheus_url = \"http://127.0.0.1:1\"\n",
            ..SetUp::of("no Prometheus to read back from", &cause::NOT_RESTORED)
        },
        SetUp {
            after: Some(|folder, exporter| {
                std::fs::write(folder.join("pds-exporter.toml"), "[api]\nbase_url = 7\n").unwrap();
                exporter.signal("HUP");
            }),
            step: Some("Correct "),
            ..SetUp::of("a reload that is refused", &cause::CONFIG_REFUSED)
                .saying("api.base_url: must be a string")
        },
        SetUp {
            after: Some(|folder, _| std::fs::write(folder.join("web-config.yml"), "tls: 7\n").unwrap()),
            ..SetUp::of("a web configuration that is refused", &cause::WEB_CONFIG_REFUSED)
        },
        SetUp {
            tables: "[state]\npath = \"state/ledgers\"\n",
            after: Some(|folder, _| std::fs::remove_dir_all(folder.join("state")).unwrap()),
            step: Some("Create it"),
            ..SetUp::of("a state file whose folder is gone", &cause::STATE_NOT_WRITTEN)
        },
    ]
}
