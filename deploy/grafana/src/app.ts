// One app: how it answers, how it runs, how it scales, what it costs.
import { Marker, dashboard, newBuild, variable } from "./frame.js";
import { from, graph, heatmap, stat } from "./panels.js";

const A = 'project="$project", app="$app"';
const QUANTILES = [0.5, 0.9, 0.95, 0.99];
const bucketRate = `sum by (le) (rate(pds_app_request_duration_seconds_bucket{${A}}[$__rate_interval]))`;
const fact = (metric: string) => `max(${metric}{${A}})`;

export const app = dashboard(
  "pds-app",
  "PDS app",
  "One app of the Project Deployment Service: latency, runs, replicas, cost.",
  [
    variable("project", "Project", 'pds_up{app!=""}', false),
    variable("app", "App", 'pds_up{project="$project"}', false),
  ],
  [
    [
      "Now",
      [
        stat(
          { title: "Status", description: "As the service words it.", unit: "short", width: 4, name: true },
          { expr: `max by (status) (pds_app_status{${A}} == 1)`, legend: "{{status}}" },
        ),
        stat(
          {
            title: "Last build",
            description: "Status of the most recent build; an older one may be in service.",
            unit: "short",
            width: 4,
            name: true,
          },
          { expr: `max by (status) (pds_app_last_build_status{${A}} == 1)`, legend: "{{status}}" },
        ),
        stat(
          {
            title: "Hardware",
            description: "What a replica runs on, and where.",
            unit: "short",
            width: 4,
            name: true,
          },
          { expr: `max by (hardware, region) (pds_app_info{${A}})`, legend: "{{hardware}} {{region}}" },
        ),
        stat(
          { title: "Requests", description: "Per second, from the exact counter. Needs the recording rules.", unit: "reqps", width: 4 },
          { expr: `pds_app:requests:rate5m{${A}}` },
        ),
        stat(
          {
            title: "Cost at most",
            description: "Dollars per hour at its most replicas.",
            unit: "currencyUSD",
            width: 4,
            decimals: 2,
          },
          { expr: `max(pds_app_max_replicas{${A}} * pds_app_replica_cost_dollars_per_second{${A}}) * 3600` },
        ),
        stat(
          {
            title: "Data age",
            description: "How long ago the oldest of its resources was last learned.",
            unit: "s",
            width: 4,
            thresholds: from(900, "orange"),
          },
          { expr: `time() - min(pds_last_success_timestamp_seconds{${A}})` },
        ),
      ],
    ],
    [
      "Response time",
      [
        graph(
          {
            title: "Quantiles from the histogram",
            description:
              "From exact counters; may be aggregated over time and apps. As precise as the service's thresholds are close.",
            unit: "s",
            width: 12,
          },
          ...QUANTILES.map((q) => ({
            expr: `histogram_quantile(${q}, ${bucketRate})`,
            legend: `p${q * 100}`,
          })),
        ),
        graph(
          {
            title: "Percentiles of the trailing window",
            description: "As the service computes them; precise, but not to be averaged.",
            unit: "s",
            width: 12,
          },
          {
            expr: `max by (percentile, window) (pds_app_response_time_seconds{${A}, container_id=""})`,
            legend: "{{percentile}} over {{window}}",
          },
        ),
        heatmap(
          {
            title: "Requests by duration",
            description: "How many requests ended in each bucket; twice as many where two exporters count the app.",
            unit: "short",
            width: 12,
          },
          {
            expr: `sum by (le) (increase(pds_app_request_duration_seconds_bucket{${A}}[$__rate_interval]))`,
            legend: "{{le}}",
          },
        ),
        graph(
          {
            title: "Share done within",
            description: "Estimated share of the trailing window's requests done within each threshold.",
            unit: "percentunit",
            width: 12,
          },
          {
            expr: `max by (threshold) (pds_app_response_time_within_ratio{${A}, container_id=""})`,
            legend: "{{threshold}} s",
          },
        ),
      ],
    ],
    [
      "Traffic and runs",
      [
        graph(
          {
            title: "Requests and runs",
            description: "Per second, from exact counters, joined over exporters. Needs the recording rules.",
            unit: "ops",
            width: 12,
          },
          { expr: `rate(pds_app:requests_total:joined{${A}}[$__rate_interval])`, legend: "requests" },
          { expr: `rate(pds_app:runs_total:joined{${A}}[$__rate_interval])`, legend: "runs" },
        ),
        graph(
          {
            title: "Requests and runs per second of accounted time",
            description:
              "The same divided by the time that was counted instead of the time that passed: no dip while counters are behind, no peak when they return. Needs the recording rules.",
            unit: "ops",
            width: 12,
          },
          { expr: `pds_app:requests:rate5m_accounted{${A}}`, legend: "requests" },
          { expr: `pds_app:runs:rate5m_accounted{${A}}`, legend: "runs" },
        ),
        graph(
          {
            title: "Counted again",
            description:
              "Per hour: requests and runs that came after they were first counted (added by now), and those that were no longer there when their hour was counted again.",
            unit: "short",
            width: 12,
          },
          { expr: `sum(increase(pds_app_late_requests_total{${A}}[1h]))`, legend: "late requests" },
          { expr: `sum(increase(pds_app_late_runs_total{${A}}[1h]))`, legend: "late runs" },
          { expr: `sum(increase(pds_app_overcounted_requests_total{${A}}[1h]))`, legend: "requests too many" },
          { expr: `sum(increase(pds_app_overcounted_runs_total{${A}}[1h]))`, legend: "runs too many" },
        ),
        graph(
          {
            title: "Counted up to",
            description:
              "How long ago the counters end, and the last hour that was counted again. An hour is counted again once it is accounting.recheck_after old.",
            unit: "s",
            width: 12,
          },
          {
            expr: `time() - max by (resource) (pds_app_accounted_until_timestamp_seconds{${A}})`,
            legend: "{{resource}}, counted",
          },
          {
            expr: `time() - max by (resource) (pds_app_rechecked_until_timestamp_seconds{${A}})`,
            legend: "{{resource}}, counted again",
          },
        ),
        graph(
          {
            title: "Run execution time",
            description: "The newest datapoint of the service.",
            unit: "s",
            width: 12,
          },
          {
            expr: `max by (percentile) (pds_app_run_execution_time_seconds{${A}, container_id=""})`,
            legend: "{{percentile}}",
          },
        ),
        graph(
          {
            title: "In the trailing window",
            description: "Requests and runs of each configured window.",
            unit: "short",
            width: 12,
          },
          {
            expr: `max by (window) (pds_app_window_requests{${A}, container_id=""})`,
            legend: "requests, {{window}}",
          },
          {
            expr: `max by (window) (pds_app_window_runs{${A}, container_id=""})`,
            legend: "runs, {{window}}",
          },
        ),
      ],
    ],
    [
      "SLO",
      [
        graph(
          {
            title: "Slow requests",
            description: "Share of requests slower than the objective's threshold. Needs the recording rules.",
            unit: "percentunit",
            width: 12,
          },
          ...["5m", "1h", "6h", "3d"].map((window) => ({
            expr: `pds_app:slo_errors:ratio_rate${window}{${A}}`,
            legend: `over ${window}`,
          })),
          { expr: `1 - pds_app:slo_objective:ratio{${A}}`, legend: "allowed above {{le}} s" },
        ),
        graph(
          {
            title: "Burn rate",
            description:
              "How many times faster than allowed the error budget is used. It pages above 14.4 over an hour and above 6 over six.",
            unit: "short",
            width: 12,
          },
          ...["1h", "6h", "3d"].map((window) => ({
            expr: `pds_app:slo_errors:ratio_rate${window}{${A}} / on (project, app) (1 - pds_app:slo_objective:ratio)`,
            legend: `over ${window}`,
          })),
        ),
      ],
    ],
    [
      "Scaling",
      [
        graph(
          {
            title: "Replicas allowed",
            description:
              "The bounds within which autoscaling moves. How many run, the service does not tell.",
            unit: "short",
            width: 8,
          },
          { expr: fact("pds_app_min_replicas"), legend: "fewest" },
          { expr: fact("pds_app_max_replicas"), legend: "most" },
          { expr: fact("pds_app_scaling_buffer_replicas"), legend: "buffer" },
        ),
        graph(
          {
            title: "Requests at once",
            description: "The most that all replicas together take at one moment.",
            unit: "short",
            width: 8,
          },
          { expr: `max(pds_app_max_replicas{${A}} * pds_app_replica_concurrency{${A}})`, legend: "at most" },
        ),
        graph(
          {
            title: "Scaling target",
            description: "Target value of the metric that autoscaling follows.",
            unit: "short",
            width: 8,
          },
          {
            expr: `max by (scaling_metric) (pds_app_scaling_target{${A}} * on (project, app) group_left (scaling_metric) max by (project, app, scaling_metric) (pds_app_info{${A}}))`,
            legend: "{{scaling_metric}}",
          },
        ),
        graph(
          { title: "A replica", description: "What each replica is given.", unit: "short", width: 8 },
          { expr: fact("pds_app_cpu_cores"), legend: "CPU cores" },
          { expr: `${fact("pds_app_memory_bytes")} / 1e9`, legend: "memory, GB" },
          { expr: fact("pds_app_gpus"), legend: "GPUs" },
        ),
        graph(
          { title: "Times of scaling", description: "Settings of the app.", unit: "s", width: 8 },
          { expr: fact("pds_app_cooldown_seconds"), legend: "cooldown" },
          { expr: fact("pds_app_evaluation_interval_seconds"), legend: "evaluation" },
          { expr: fact("pds_app_response_grace_period_seconds"), legend: "grace" },
          {
            expr: fact("pds_app_deployment_initialization_timeout_seconds"),
            legend: "initialization timeout",
          },
        ),
        graph(
          {
            title: "Cost bounds",
            description: "Dollars per hour at its fewest and most replicas.",
            unit: "currencyUSD",
            width: 8,
          },
          {
            expr: `max(pds_app_min_replicas{${A}} * pds_app_replica_cost_dollars_per_second{${A}}) * 3600`,
            legend: "fewest",
          },
          {
            expr: `max(pds_app_max_replicas{${A}} * pds_app_replica_cost_dollars_per_second{${A}}) * 3600`,
            legend: "most",
          },
        ),
      ],
    ],
  ],
  [new Marker("New build", newBuild(A), "{{latest_ready_build_id}}")],
);
