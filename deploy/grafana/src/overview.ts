// All projects at a glance: how much, how fast, how healthy, how dear.
import { Marker, dashboard, newBuild, variable } from "./frame.js";
import { below, from, graph, stat, table } from "./panels.js";

const P = 'project=~"$project"';
/** A fact of an app, taken once however many exporters report it. */
const once = (metric: string, more = "") => `max by (project, app) (${metric}{${P}${more}})`;
/** Of the counters that the recording rules join over exporters. */
const rate = (counter: "requests" | "runs") =>
  `rate(pds_app:${counter}_total:joined{${P}}[$__rate_interval])`;
const cost = (replicas: string) =>
  `max by (project, app) (${replicas}{${P}} * pds_app_replica_cost_dollars_per_second{${P}}) * 3600`;
const quantile = (q: number, by: string) =>
  `histogram_quantile(${q}, sum by (${by}, le) (rate(pds_app_request_duration_seconds_bucket{${P}}[$__rate_interval])))`;

export const overview = dashboard(
  "pds-overview",
  "PDS overview",
  "Every project and app of the Project Deployment Service that is configured in pds-exporter.",
  [variable("project", "Project", "pds_up", true)],
  [
    [
      "Now",
      [
        stat(
          { title: "Projects", description: "Configured projects.", unit: "short", width: 3 },
          { expr: `count(count by (project) (pds_up{${P}}))` },
        ),
        stat(
          { title: "Apps", description: "Configured apps.", unit: "short", width: 3 },
          { expr: `count(count by (project, app) (pds_up{${P}, resource="app"}))` },
        ),
        stat(
          {
            title: "Apps in error",
            description: "Apps whose settings carry an error message.",
            unit: "short",
            width: 3,
            thresholds: from(1, "red"),
          },
          { expr: `sum(${once("pds_app_error")})` },
        ),
        stat(
          {
            title: "Targets failing",
            description: "Polls that failed the last time; each app has three, each project three.",
            unit: "short",
            width: 3,
            thresholds: from(1, "orange"),
          },
          { expr: `count(pds_up{${P}}) - sum(pds_up{${P}})` },
        ),
        stat(
          { title: "Requests", description: "Requests per second over all apps.", unit: "reqps", width: 3 },
          { expr: `sum(${rate("requests")})` },
        ),
        stat(
          { title: "Runs", description: "Runs per second over all apps.", unit: "ops", width: 3 },
          { expr: `sum(${rate("runs")})` },
        ),
        stat(
          {
            title: "Cost at least",
            description: "Dollars per hour with every app at its fewest replicas.",
            unit: "currencyUSD",
            width: 3,
            decimals: 2,
          },
          { expr: `sum(${cost("pds_app_min_replicas")})` },
        ),
        stat(
          {
            title: "Cost at most",
            description: "Dollars per hour with every app at its most replicas.",
            unit: "currencyUSD",
            width: 3,
            decimals: 2,
          },
          { expr: `sum(${cost("pds_app_max_replicas")})` },
        ),
      ],
    ],
    [
      "Traffic",
      [
        graph(
          {
            title: "Requests by project",
            description: "From exact counters, joined over exporters. Needs the recording rules.",
            unit: "reqps",
            width: 12,
            stack: true,
          },
          { expr: `sum by (project) (${rate("requests")})`, legend: "{{project}}" },
        ),
        graph(
          {
            title: "Busiest apps",
            description: "The ten apps with most requests per second.",
            unit: "reqps",
            width: 12,
          },
          { expr: `topk(10, ${rate("requests")})`, legend: "{{app}}" },
        ),
        graph(
          {
            title: "Response time by project",
            description:
              "95th percentile over all requests of the project, from the buckets of all its apps.",
            unit: "s",
            width: 12,
          },
          { expr: quantile(0.95, "project"), legend: "{{project}}" },
        ),
        graph(
          {
            title: "Slowest apps",
            description: "The ten apps with the highest 95th percentile.",
            unit: "s",
            width: 12,
          },
          { expr: `topk(10, ${quantile(0.95, "project, app")})`, legend: "{{app}}" },
        ),
      ],
    ],
    [
      "Service level",
      [
        graph(
          {
            title: "Slow requests",
            description:
              "Share of requests slower than the app's objective allows, over an hour; ten worst apps. Needs the recording rules.",
            unit: "percentunit",
            width: 8,
          },
          { expr: `topk(10, pds_app:slo_errors:ratio_rate1h{${P}})`, legend: "{{app}}" },
        ),
        graph(
          {
            title: "Burn rate",
            description:
              "How many times faster than allowed each app uses its error budget, over an hour; ten worst apps. Above 14.4 it pages. Needs the recording rules.",
            unit: "short",
            width: 8,
          },
          {
            expr: `topk(10, pds_app:slo_errors:ratio_rate1h{${P}} / on (project, app) (1 - pds_app:slo_objective:ratio))`,
            legend: "{{app}}",
          },
        ),
        graph(
          {
            title: "Apps by status",
            description: "As the service words it.",
            unit: "short",
            width: 8,
            stack: true,
          },
          {
            expr: `count by (status) (max by (project, app, status) (pds_app_status{${P}}))`,
            legend: "{{status}}",
          },
        ),
      ],
    ],
    [
      "Apps",
      [
        table(
          { title: "Apps", description: "Click an app for its details.", width: 24, height: 12 },
          "app",
          [
            { name: "Project", expr: `max by (project, app, region, hardware) (pds_app_info{${P}})` },
            { name: "Error", expr: `max by (app) (pds_app_error{${P}})`, thresholds: from(1, "red") },
            {
              name: "Requests/s",
              expr: `max by (app) (pds_app:requests:rate5m{${P}})`,
              unit: "reqps",
            },
            {
              name: "p95",
              expr: `histogram_quantile(0.95, sum by (app, le) (rate(pds_app_request_duration_seconds_bucket{${P}}[5m])))`,
              unit: "s",
            },
            { name: "Most replicas", expr: `max by (app) (pds_app_max_replicas{${P}})` },
            {
              name: "$/h at most",
              expr: `max by (app) (pds_app_max_replicas{${P}} * pds_app_replica_cost_dollars_per_second{${P}}) * 3600`,
              unit: "currencyUSD",
            },
            { name: "Polls", expr: `min by (app) (pds_up{${P}, app!=""})`, thresholds: below(1, "orange") },
          ],
          "/d/pds-app/pds-app?var-project=${__data.fields.project}&var-app=${__value.text}&${datasource:queryparam}",
        ),
      ],
    ],
    [
      "Projects",
      [
        graph(
          {
            title: "Storage alerts switched on",
            description: "How many of the thresholds 80, 90, 95 % email the owner. At 0 nobody is told.",
            unit: "short",
            width: 12,
          },
          {
            expr: `sum by (project) (max by (project, threshold) (pds_project_volume_alert_threshold_enabled{${P}}))`,
            legend: "{{project}}",
          },
        ),
        graph(
          { title: "Custom domains", description: "How many each project has.", unit: "short", width: 12 },
          { expr: `max by (project) (pds_project_custom_domains{${P}})`, legend: "{{project}}" },
        ),
      ],
    ],
  ],
  [new Marker("New build", newBuild('project=~"$project"'), "{{app}} {{latest_ready_build_id}}")],
);
