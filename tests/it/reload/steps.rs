//! Each step of a reload fails in turn.

use super::*;
use crate::process::http;

/// A token that expired on 14 July 2017.
const EXPIRED: &str = "eyJhbGciOiJub25lIn0.eyJleHAiOjE1MDAwMDAwMDB9.c2lnbmF0dXJl";

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_reload_that_fails_at_any_step_changes_no_series() {
    let running = Running::start().await;
    let in_force = async || -> HashMap<String, f64> {
        let prefixes = ["pds_token_", "pds_api_pace", "pds_exporter_targets", "pds_exporter_shard"];
        let page = running.exporter.get("/metrics").await;
        let kept = series(&page).filter(|(name, _)| prefixes.iter().any(|prefix| name.starts_with(prefix)));
        kept.map(|(name, value)| (name.to_owned(), value)).collect()
    };
    let before = in_force().await;
    let line = |line: &str| match line.starts_with("token") {
        true => format!("token = \"{EXPIRED}\"\n"),
        false => format!("{line}\n"),
    };
    let with_another_token: String = running.text.lines().map(line).collect();
    assert!(with_another_token.contains(EXPIRED));
    for (step, text) in [
        ("reading the file", format!("{with_another_token}\n[poll")),
        ("checking it", with_another_token.replace("[poll]", "[poll]\nnovel = 1")),
        ("the client", with_another_token.replace("[api]", "[api]\nca_file = \"/nowhere.pem\"")),
        ("the state file", format!("{with_another_token}\n[state]\npath = \"elsewhere\"\n")),
        (
            "Prometheus",
            format!(
                "{with_another_token}\n[state]\nprometheus_url = \"https://127.0.0.1:1\"\nprometheus_ca_file = \"/nowhere.pem\"\n\
                 [[projects]]\nid = \"p-new\"\ntoken_file = \"/nowhere-token\"\n"
            ),
        ),
    ] {
        std::fs::write(&running.file, text).unwrap();
        let (status, told) = running.reload().await;
        assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR, "{step}: {told}");
        assert_eq!(running.metric(SUCCESSFUL).await, Some(0.0), "{step}");
        assert_eq!(in_force().await, before, "{step}");
    }
    // Nothing is said of tokens that are not used.
    assert!(!running.exporter.log().contains("/nowhere-token"), "{}", running.exporter.log());
    running.assert_still_polling().await;
}

impl Running {
    /// On the page that is kept for a second.
    pub(super) async fn compressed_metric(&self, series: &str) -> Option<f64> {
        let request = http().get(format!("{}/metrics", self.exporter.url)).header("accept-encoding", "gzip");
        let body = request.send().await.unwrap().bytes().await.unwrap();
        value(&std::io::read_to_string(flate2::read::GzDecoder::new(&*body)).unwrap(), series)
    }
}
