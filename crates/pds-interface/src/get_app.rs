//! Section 4.3: get one app. [`family`] holds the metrics read from its settings.

pub mod family;

use pds_core::printable::{excerpt, long_excerpt};

use super::number::NumberText;
use super::prelude::*;
use super::reply::error_words;
use super::wire::Message;

/// The reply.
pub type Reply = App;

/// The call.
pub static CALL: Call = Call::new::<Reply>(
    "get_app",
    Method::GET,
    "/v2/projects/{project_id}/apps/{app_id}",
    "get one app",
    Command::safe(&["app", "get"], "p-abc12345-ranker"),
)
.polled_as(Polled::of::<Reply>("app", Scope::App, Cadence::Settings, EXAMPLE));

const EXAMPLE: &str = r#"{"id":"p-abc12345-ranker","name":"ranker","projectId":"p-abc12345","status":"Ready","errorMessage":"",
"createdAt":"2026-01-04T10:00:00Z","updatedAt":"2026-02-27T16:20:00Z","runtime":"cortex",
"baseImage":"debian:bookworm-slim","pythonVersion":"3.12","serviceVersion":"1.5.2","port":8192,
"disableAuth":false,"computeTier":"protected","hardware":"AMPERE_A10","hardwareProvider":"aws",
"region":"us-east-1","cpu":"4","memory":"16","gpuCount":"1","costPerSecondCents":"0.0306",
"minReplicaCount":"1","maxReplicaCount":"8","replicaConcurrency":"4",
"scalingMetric":"concurrency_utilization","scalingTarget":"70","scalingBuffer":"1",
"cooldownPeriodSeconds":"300","evaluationIntervalSeconds":"15","responseGracePeriodSeconds":"900",
"rollOutDurationSeconds":"60","deploymentInitializationTimeout":"600","loadBalancingAlgorithm":"round-robin",
"lastBuildStatus":"success","latestBuildId":"b-31","latestCreatedBuildId":"b-31","latestReadyBuildId":"b-31"}"#;

/// The call as a resource.
pub const RESOURCE: Resource = Resource::of(Place::get_app);

impl ReplyBody for App {
    fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let app: Self = object(body)?;
        let Self { id, status, error_message, .. } = &app;
        let error =
            || Self { status: status.clone(), error_message: error_message.clone(), ..Self::default() };
        // An app in an error has an id, too.
        let has_words = || !error_message.as_str().is_empty() || error_words(body).is_some();
        let is_error = id.is_empty() && (status.is_empty() || has_words()) && app == error();
        if is_error { Err(DecodeError::Nothing.explained(body)) } else { Ok(app) }
    }
}

impl MetricSource for App {
    const ROWS: &'static [Row<Self>] = family::ROWS;

    fn read(body: &[u8], terms: &Terms, _: &mut Unexpected) -> Result<Self, DecodeError> {
        let app = Self::decode(body)?;
        for (field, id, asked) in
            [("id", &app.id, &terms.app), ("projectId", &app.project_id, &terms.project)]
        {
            if let Some(other) = id.stated().filter(|id| !asked.is_empty() && *id != &**asked) {
                return Err(DecodeError::OtherApp(field, excerpt(other)));
            }
        }
        Ok(app)
    }

    fn add_to(self, reading: &mut Reading) {
        let message = long_excerpt(self.error_message.as_str());
        reading.message = Some(message).filter(|message| !message.is_empty());
    }
}

/// An app.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct App {
    /// Unique identifier.
    pub id: Text,
    /// App name.
    pub name: Text,
    /// Owning project.
    pub project_id: Text,
    /// Current status of the app.
    pub status: Text,
    /// Message of the most recent failure, if any.
    pub error_message: Message,
    /// Creation timestamp.
    pub created_at: Text,
    /// Last update timestamp.
    pub updated_at: Text,
    /// Runtime: cortex or custom.
    #[schemars(extend("examples" = ["cortex", "custom"]))]
    pub runtime: Text,
    /// Command that starts a custom-runtime app.
    // Only written: nothing here reads it, and a list may be of any length.
    #[serde(skip_deserializing)]
    #[schemars(!skip_deserializing)]
    pub entrypoint: Vec<String>,
    /// Base container image the app is built from.
    pub base_image: Text,
    /// Interpreter version used.
    pub python_version: Text,
    /// Version of the client used to deploy the app.
    pub service_version: Text,
    /// Port the app listens on.
    #[schemars(extend("type" = "integer"))]
    pub port: Number,
    /// Whether authentication on the app endpoint is disabled.
    pub disable_auth: Flag,
    /// Base URL for invoking the app.
    pub internal_endpoint: Text,
    /// HTTP endpoint used to check health.
    pub healthcheck_endpoint: Text,
    /// HTTP endpoint used to check readiness for traffic.
    pub readycheck_endpoint: Text,
    /// Compute tier: interruptible or protected.
    #[schemars(extend("enum" = ["interruptible", "protected"]))]
    pub compute_tier: Text,
    /// Compute type the app runs on.
    pub hardware: Text,
    /// Cloud provider.
    pub hardware_provider: Text,
    /// Deployment region.
    pub region: Text,
    /// CPU cores allocated.
    pub cpu: NumberText,
    /// Memory in GB.
    pub memory: NumberText,
    /// GPUs allocated.
    pub gpu_count: NumberText,
    /// Estimated cost per second in US cents while a replica runs.
    pub cost_per_second_cents: NumberText,
    /// Minimum replicas.
    pub min_replica_count: NumberText,
    /// Maximum replicas.
    pub max_replica_count: NumberText,
    /// Maximum concurrent requests per replica.
    pub replica_concurrency: NumberText,
    /// Metric used for autoscaling.
    pub scaling_metric: Text,
    /// Target value of the scaling metric.
    pub scaling_target: NumberText,
    /// Extra replicas kept beyond current demand.
    pub scaling_buffer: NumberText,
    /// Seconds before an idle replica scales down.
    pub cooldown_period_seconds: NumberText,
    /// Seconds between autoscaling evaluations.
    pub evaluation_interval_seconds: NumberText,
    /// Seconds of grace for in-flight requests when a replica stops.
    pub response_grace_period_seconds: NumberText,
    /// Seconds over which a new version is rolled out.
    pub roll_out_duration_seconds: NumberText,
    /// Maximum seconds to wait for a deployment to initialize.
    pub deployment_initialization_timeout: NumberText,
    /// Algorithm used by the app.
    pub load_balancing_algorithm: Text,
    /// Status of the most recent build.
    pub last_build_status: Text,
    /// Most recent build.
    pub latest_build_id: Text,
    /// Most recently created build.
    pub latest_created_build_id: Text,
    /// Most recent build that reached the ready state.
    pub latest_ready_build_id: Text,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{exposed, unreadable};

    /// The lines of the page, each without the labels that all of them have.
    fn lines(body: &str) -> (Vec<String>, Vec<&'static str>) {
        let (page, unexpected) = exposed(&CALL, body);
        let target = r#"project="p-1",app="p-1-ranker""#;
        let bare = page.replace(&format!("{{{target}}}"), "").replace(&format!("{target},"), "");
        (bare.lines().map(str::to_owned).collect(), unexpected)
    }

    #[test]
    fn a_whole_app_is_read() {
        let body = r#"{"id":"p-1-ranker","name":"Ranker \"x\" \\ \n🦀","projectId":"p-1","status":"Ready ","errorMessage":"","createdAt":"2025-01-01T00:00:00Z","updatedAt":"2025-01-01T01:00:00.5+01:00","runtime":"cortex","entrypoint":["a"],"baseImage":"debian","pythonVersion":"3.12","serviceVersion":"2.1.0","port":8000,"disableAuth":true,"internalEndpoint":"","healthcheckEndpoint":"","readycheckEndpoint":"","computeTier":"protected","hardware":"A10","hardwareProvider":"aws","region":"eu","cpu":"2.5","memory":"8","gpuCount":"1","costPerSecondCents":"0.05","minReplicaCount":"0","maxReplicaCount":"5","replicaConcurrency":"10","scalingMetric":"cpu_utilization","scalingTarget":"80","scalingBuffer":"1","cooldownPeriodSeconds":"60","evaluationIntervalSeconds":"30","responseGracePeriodSeconds":"900","rollOutDurationSeconds":"0","deploymentInitializationTimeout":"600","loadBalancingAlgorithm":"round-robin","lastBuildStatus":"SUCCESS","latestBuildId":"b-2","latestCreatedBuildId":"b-2","latestReadyBuildId":"b-1","novel":[{"a":null}]}"#;
        let expected = r#"pds_app_info{name="Ranker \"x\" \\ \n🦀",runtime="cortex",region="eu",hardware="A10",hardware_provider="aws",compute_tier="protected",base_image="debian",python_version="3.12",service_version="2.1.0",scaling_metric="cpu_utilization",load_balancing_algorithm="round-robin",team="search",tier="gold"} 1
pds_app_status{status="ready"} 1
pds_app_last_build_status{status="success"} 1
pds_app_build_info{latest_build_id="b-2",latest_created_build_id="b-2",latest_ready_build_id="b-1"} 1
pds_app_error 0
pds_app_created_timestamp_seconds 1735689600
pds_app_updated_timestamp_seconds 1735689600.5
pds_app_cpu_cores 2.5
pds_app_memory_bytes 8000000000
pds_app_gpus 1
pds_app_port 8000
pds_app_auth_disabled 1
pds_app_replica_cost_dollars_per_second 0.0005
pds_app_min_replicas 0
pds_app_max_replicas 5
pds_app_replica_concurrency 10
pds_app_scaling_target 80
pds_app_scaling_buffer_replicas 1
pds_app_cooldown_seconds 60
pds_app_evaluation_interval_seconds 30
pds_app_response_grace_period_seconds 900
pds_app_roll_out_duration_seconds 0
pds_app_deployment_initialization_timeout_seconds 600"#;
        assert_eq!(lines(body), (expected.lines().map(str::to_owned).collect(), vec![]));
    }

    #[test]
    fn the_error_message_is_for_people_and_never_a_metric() {
        let read = |message: &str| {
            let body =
                format!(r#"{{"id":"p-1-ranker","errorMessage":{}}}"#, serde_json::Value::from(message));
            let page = exposed(&CALL, &body).0;
            assert!(!page.contains("OOM"), "{page}");
            RESOURCE.polled().read(body.as_bytes(), &[]).unwrap().message
        };
        assert_eq!(read("OOM:\n\u{1b}[1mkilled"), Some("OOM: [1mkilled".to_owned()));
        assert_eq!(read(&"OOM ".repeat(9999)).unwrap().chars().count(), 1000);
        assert_eq!((read(""), read(" \n")), (None, None));
    }

    #[test]
    fn an_error_message_that_is_no_text_is_unexpected() {
        for (message, error) in
            [("null", Some(0)), ("\"\"", Some(0)), ("\"OOM\"", Some(1)), ("{}", None), ("[1]", None)]
        {
            let (lines, unexpected) = lines(&format!(r#"{{"id":"p-1-ranker","errorMessage":{message}}}"#));
            let line = lines.into_iter().find(|line| line.starts_with("pds_app_error "));
            assert_eq!(line, error.map(|error| format!("pds_app_error {error}")), "{message}");
            assert_eq!(unexpected, vec!["errorMessage"; usize::from(error.is_none())], "{message}");
        }
    }

    #[test]
    fn a_time_before_1970_is_missing() {
        let (text, unexpected) = lines(
            r#"{"id":"p-1-ranker","createdAt":"0001-01-01T00:00:00Z","updatedAt":"0026-01-01T00:00:00Z"}"#,
        );
        assert!(!text.iter().any(|line| line.contains("timestamp")), "{text:?}");
        assert_eq!(unexpected, ["updatedAt"]);
    }

    #[test]
    fn a_name_that_is_not_utf_8_costs_no_other_setting() {
        let (page, unexpected) =
            exposed(&CALL, b"\xef\xbb\xbf{\"name\":\"caf\xe9\",\"status\":\"ready\",\"cpu\":\"2\"}");
        assert!(page.contains("pds_app_cpu_cores") && page.contains("status=\"ready\""), "{page}");
        assert!(!page.contains("caf"), "{page}");
        assert_eq!(unexpected, ["name"]);
        let (page, _) = exposed(&CALL, r#"{"id":"p-1-ranker","name":"caf\ud800"}"#);
        assert!(page.contains(r#"name="caf\\ud800""#), "{page}");
    }

    #[test]
    fn a_timestamp_of_zero_is_missing() {
        for zero in ["1970-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "0001-01-01T00:00:00+00:00"] {
            let (lines, unexpected) = lines(&format!(r#"{{"id":"p-1-ranker","createdAt":"{zero}"}}"#));
            assert!(!lines.iter().any(|line| line.contains("created_timestamp")), "{lines:?}");
            assert_eq!(unexpected, [""; 0], "{zero}");
        }
    }

    #[test]
    fn settings_of_another_app_are_refused() {
        let terms = Terms::about("p-1", "p-1-ranker");
        let read = |body: &str| App::read(body.as_bytes(), &terms, &mut Unexpected::default());
        for (body, field) in [
            (r#"{"id":"p-1-embed","projectId":"p-1"}"#, "id is 'p-1-embed'"),
            (r#"{"id":"p-1-ranker","projectId":"p-2"}"#, "projectId is 'p-2'"),
            (r#"{"id":7,"name":"x"}"#, "id is '7'"),
        ] {
            let error = read(body).unwrap_err().to_string();
            assert_eq!(error, format!("the reply is about another app: its {field}"));
        }
        for body in [r#"{"id":" p-1-ranker","projectId":"p-1"}"#, r#"{"id":"","projectId":null,"name":"x"}"#]
        {
            assert!(read(body).is_ok(), "{body}");
        }
    }

    #[test]
    fn numbers_without_a_value_are_missing() {
        let body = r#"{"id":"p-1-ranker","status":"","cpu":"","memory":null,"gpuCount":"NaN","disableAuth":null,"createdAt":null}"#;
        let (lines, unexpected) = lines(body);
        let names: Vec<_> = lines.iter().map(|line| line.split(['{', ' ']).next().unwrap()).collect();
        assert_eq!(names, ["pds_app_info", "pds_app_error"]);
        assert_eq!(unexpected, Vec::<&str>::new());
    }

    #[test]
    fn a_text_that_is_too_long_for_a_label_is_counted_and_not_shown() {
        let body = |length| format!(r#"{{"name":"{}","latestBuildId":"b-2"}}"#, "x".repeat(length));
        let (page, unexpected) = lines(&body(1024));
        assert!(page[0].starts_with("pds_app_info{name=\"xxx"), "{page:?}");
        assert_eq!(unexpected, Vec::<&str>::new());
        let (page, unexpected) = lines(&body(1025));
        assert!(page[0].starts_with("pds_app_info{name=\"\","), "{page:?}");
        assert_eq!(unexpected, ["name"]);
        // A series that the label distinguishes is omitted.
        let (page, unexpected) = lines(&format!(r#"{{"name":"n","status":"{}"}}"#, "x".repeat(1025)));
        assert!(!page.iter().any(|line| line.starts_with("pds_app_status")), "{page:?}");
        assert_eq!(unexpected, ["status"]);
    }

    #[test]
    fn a_number_in_the_place_of_a_text_keeps_its_digits() {
        let (lines, unexpected) = lines(r#"{"id":"p-1-ranker","pythonVersion":3.10}"#);
        assert!(lines[0].contains(r#"python_version="3.10""#), "{lines:?}");
        assert_eq!(unexpected, Vec::<&str>::new());
    }

    #[test]
    fn a_bad_value_is_one_missing_series() {
        let body = r#"{"status":5,"errorMessage":"OOM","createdAt":"yesterday","cpu":"12abc","memory":1e300,"gpuCount":1e400,"port":70000,"scalingTarget":-1,"disableAuth":"no","minReplicaCount":[1],"maxReplicaCount":3}"#;
        let (lines, unexpected) = lines(body);
        assert_eq!(
            unexpected,
            [
                "createdAt",
                "cpu",
                "memory",
                "gpuCount",
                "port",
                "disableAuth",
                "minReplicaCount",
                "scalingTarget"
            ]
        );
        let expected = ["pds_app_status{status=\"5\"} 1", "pds_app_error 1", "pds_app_max_replicas 3"];
        assert!(expected.iter().all(|line| lines.iter().any(|other| other == line)), "{lines:?}");
        assert_eq!(lines.len(), 4, "{lines:?}");
    }

    #[test]
    fn anything_but_an_app_is_unreadable() {
        for body in ["", "[]", "{}", r#"{"message":"later"}"#, "null", "\"app\"", "<html>", r#"{"id":"a""#] {
            unreadable(&CALL, body);
        }
        for error in
            [r#"{"status":"error","message":"timed out"}"#, r#"{"status":503,"error":"Unavailable"}"#]
        {
            unreadable(&CALL, error);
        }
        assert_eq!(lines(r#"{"status":"ready"}"#).0[1], "pds_app_status{status=\"ready\"} 1");
    }
}
