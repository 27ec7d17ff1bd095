// One app: how it answers, how it runs, how it scales, what it costs.
import { DashboardLinkBuilder, DashboardLinkType } from "@grafana/grafana-foundation-sdk/dashboard";
import { BY, Marker, RELEASE, RELEASES, appUp, dashboard, newBuild, perSecond, statusPage, variable } from "./frame.js";
import { below, from, graph, heatmap, stat } from "./panels.js";

const A = `${RELEASE}, project="$project", app="$app"`;
const QUANTILES = [0.5, 0.9, 0.95, 0.99];
const bucketRate = `sum by (${BY}, le) (rate(pds_app_request_duration_seconds_bucket{${A}}[$__rate_interval]))`;
const fact = (metric: string) => `max(${metric}{${A}})`;
const cost = (replicas: string) => `max(${replicas}{${A}} * pds_app_replica_cost_dollars_per_second{${A}}) * 3600`;
/** In the time that was counted. */
const counted = `sum by (${BY}) (rate(pds_app_requests_accounted_seconds_total{${A}}[$__rate_interval]))`;
const allowed = `(1 - max(pds_app_objective_ratio{${A}}))`;

export const app = dashboard(
  "pds-app",
  "PDS app",
  "One app of the Project Deployment Service: latency, runs, replicas, cost.",
  [
    ...RELEASES,
    variable("project", "Project", appUp(RELEASE), "one"),
    variable("app", "App", appUp(`${RELEASE}, project="$project"`), "one"),
  ],
  [
    [
      "Now",
      [
        stat(
          {
            title: "Status",
            description: "The status that the service reports, or why the app is gone.",
            unit: "short",
            width: 3,
            name: true,
          },
          { expr: `max by (${BY}, status) (pds_app_status{${A}} == 1)`, legend: "{{status}}" },
          { expr: `max by (${BY}, reason) (pds_app_gone_timestamp_seconds{${A}})`, legend: "gone: {{reason}}" },
        ),
        stat(
          {
            title: "Last build",
            description: "Status of the most recent build; an older one may be in service.",
            unit: "short",
            width: 3,
            name: true,
          },
          { expr: `max by (${BY}, status) (pds_app_last_build_status{${A}} == 1)`, legend: "{{status}}" },
        ),
        stat(
          {
            title: "Hardware",
            description: "Hardware and region of a replica.",
            unit: "short",
            width: 3,
            name: true,
          },
          { expr: `max by (${BY}, hardware, region) (pds_app_info{${A}})`, legend: "{{hardware}} {{region}}" },
        ),
        stat(
          { title: "Requests", description: "Per second, from the exact counter.", unit: "reqps", width: 3 },
          { expr: perSecond("requests", A) },
        ),
        stat(
          {
            title: "Requests counted",
            description: "Requests of the last 24 hours, and of the last 30 whole days, from the exact counter. Needs the recording rules.",
            unit: "short",
            width: 3,
          },
          { expr: `max(pds_app:requests:increase1d{${A}})`, legend: "24 hours" },
          { expr: `max(sum_over_time(last_over_time(pds_app:requests:increase1d{${A}}[1h])[30d:1d]))`, legend: "30 days" },
        ),
        stat(
          {
            title: "Error budget left",
            description: "Over 30 days, or over the recorded days if they are fewer. Below 0, the objective is missed. Empty for the first day. Needs the recording rules.",
            unit: "percentunit",
            width: 3,
            thresholds: below(0, "red"),
          },
          { expr: `min(pds_app:slo_budget_left:ratio{${A}})` },
        ),
        stat(
          {
            title: "Cost now",
            description:
              "Dollars per hour with the minimum and with the maximum number of replicas. The service does not report how many replicas run; the actual cost lies between.",
            unit: "currencyUSD",
            width: 4,
            decimals: 2,
          },
          { expr: cost("pds_app_min_replicas"), legend: "at least" },
          { expr: cost("pds_app_max_replicas"), legend: "at most" },
        ),
        stat(
          {
            title: "Data age",
            description: "Time since the last successful poll of the app's stalest resource.",
            unit: "s",
            width: 2,
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
              "From exact counters; can be aggregated over time and apps. Closer thresholds of the service make them more precise.",
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
            description: "As the service computes them; precise, but they must not be averaged.",
            unit: "s",
            width: 12,
          },
          {
            expr: `max by (${BY}, percentile, window) (pds_app_response_time_seconds{${A}, container_id=""})`,
            legend: "{{percentile}} over {{window}}",
          },
        ),
        heatmap(
          {
            title: "Requests by duration",
            description: "Requests per second that ended in each bucket.",
            unit: "short",
            width: 24,
          },
          {
            expr: `${bucketRate} / on (${BY}) group_left () (${counted} > 0)`,
            legend: "{{le}}",
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
            description: "Per second of counted time: no dip while counters are behind, no peak when they return.",
            unit: "ops",
            width: 8,
          },
          { expr: perSecond("requests", A), legend: "requests" },
          { expr: perSecond("runs", A), legend: "runs" },
        ),
        graph(
          {
            title: "Run execution time",
            description: "The newest datapoint of the service.",
            unit: "s",
            width: 8,
          },
          {
            expr: `max by (${BY}, percentile) (pds_app_run_execution_time_seconds{${A}, container_id=""})`,
            legend: "{{percentile}}",
          },
        ),
        graph(
          {
            title: "Counters behind",
            description: "Time since the end of the last counted range. Counters that are far behind are hidden; then only their lag is shown.",
            unit: "s",
            width: 8,
          },
          {
            expr: `time() - max by (${BY}, resource) (pds_app_accounted_until_timestamp_seconds{${A}})`,
            legend: "{{resource}}",
          },
          {
            expr: `max by (${BY}, resource) (pds_app_accounting_behind_seconds{${A}})`,
            legend: "{{resource}}, hidden",
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
            width: 8,
          },
          ...["5m", "1h", "6h", "3d"].map((window) => ({
            expr: `max(pds_app:slo_errors:ratio_rate${window}{${A}})`,
            legend: `over ${window}`,
          })),
          { expr: `1 - max by (${BY}, threshold) (pds_app_objective_ratio{${A}})`, legend: "allowed above {{threshold}} s" },
        ),
        graph(
          {
            title: "Burn rate",
            description:
              "How many times faster than allowed the error budget is used up. An alert pages above 14.4 over one hour, or above 6 over six hours; at a lower rate, too, if 80 % or 70 % of the requests are slow. Needs the recording rules.",
            unit: "short",
            width: 8,
          },
          ...["1h", "6h", "3d"].map((window) => ({
            expr: `max(pds_app:slo_errors:ratio_rate${window}{${A}}) / ${allowed}`,
            legend: `over ${window}`,
          })),
        ),
        graph(
          {
            title: "Error budget left",
            description: "Over 30 days, or over the recorded days if they are fewer. Needs the recording rules.",
            unit: "percentunit",
            width: 8,
          },
          { expr: `min(pds_app:slo_budget_left:ratio{${A}})`, legend: "left" },
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
              "The bounds of autoscaling. The service does not report how many replicas run.",
            unit: "short",
            width: 12,
          },
          { expr: fact("pds_app_min_replicas"), legend: "fewest" },
          { expr: fact("pds_app_max_replicas"), legend: "most" },
          { expr: fact("pds_app_scaling_buffer_replicas"), legend: "buffer" },
        ),
        graph(
          {
            title: "Cost bounds",
            description: "Dollars per hour with the minimum and with the maximum number of replicas.",
            unit: "currencyUSD",
            width: 12,
          },
          { expr: cost("pds_app_min_replicas"), legend: "at least" },
          { expr: cost("pds_app_max_replicas"), legend: "at most" },
        ),
      ],
    ],
  ],
  [new Marker("New build", newBuild(A), "{{latest_ready_build_id}}")],
  [
    new DashboardLinkBuilder("Status page")
      .type(DashboardLinkType.Link)
      .url(statusPage("$project", "$app"))
      .icon("external link")
      .targetBlank(true),
  ],
);
