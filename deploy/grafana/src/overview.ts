// All projects at a glance: what needs attention, how much, how fast, how dear.
import { APP, BY, BY_APP, Marker, PROJECTS, RELEASE, appLinks, appUp, dashboard, newBuild, perSecond } from "./frame.js";
import { below, from, graph, list, stat, table } from "./panels.js";

const P = `${RELEASE}, project=~"$project"`;
const cost = (replicas: string) =>
  `max by (${BY_APP}) (${replicas}{${P}} * pds_app_replica_cost_dollars_per_second{${P}}) * 3600`;
/** 95th percentile as the service computes it, in the slowest window. */
const p95 = `max by (${BY_APP}) (pds_app_response_time_seconds{${P}, percentile="p95", container_id=""})`;
/** Counts an app once that releases of one namespace poll, such as a pair. */
const once = (expr: string) => `max without (job) (${expr})`;
const APP_UP = appUp(P);
/** 0 where a poll of an app fails. */
const POLLS = `min by (${BY_APP}) (${APP_UP})`;
/** 0 where a poll of a target fails, also of one member of a pair, whose labels of pod and Service differ. */
const TARGETS = `min without (job) (min by (${BY_APP}, resource) (pds_up{${P}}))`;
/** Requests in the windows. */
const REQUESTS = `max by (${BY_APP}) (pds_app_window_requests{${P}, container_id=""})`;
/** Restricts to the apps with most requests, after those of which a poll fails. */
const busiest = (expr: string) =>
  `${expr} and on (${BY_APP}) topk(100, 1e15 * (1 - ${POLLS}) + (${REQUESTS} or 0 * ${POLLS}) or ${REQUESTS})`;

export const overview = dashboard(
  "pds-overview",
  "PDS overview",
  "Every project and app of the Project Deployment Service that is configured in pds-exporter.",
  PROJECTS,
  [
    [
      "Now",
      [
        stat(
          { title: "Apps", description: "Configured apps.", unit: "short", width: 4 },
          { expr: `count(${once(`group by (${BY_APP}) (${APP_UP})`)})` },
        ),
        stat(
          {
            title: "Apps in error",
            description: "Apps whose settings contain an error message.",
            unit: "short",
            width: 4,
            thresholds: from(1, "red"),
          },
          { expr: `sum(${once(`max by (${BY_APP}) (pds_app_error{${P}})`)})` },
        ),
        stat(
          {
            title: "Targets failing",
            description: "Targets whose last poll failed; each app has three, each project three.",
            unit: "short",
            width: 4,
            thresholds: from(1, "orange"),
          },
          { expr: `count(${TARGETS}) - sum(${TARGETS})` },
        ),
        stat(
          { title: "Requests", description: "Requests per second over all apps.", unit: "reqps", width: 4 },
          { expr: `sum(${once(perSecond("requests", P))})` },
        ),
        stat(
          {
            title: "Cost now",
            description:
              "Dollars per hour with all apps at their minimum, and with all at their maximum number of replicas. The service does not report how many replicas run; the actual cost lies between.",
            unit: "currencyUSD",
            width: 8,
            decimals: 2,
          },
          { expr: `sum(${once(cost("pds_app_min_replicas"))})`, legend: "at least" },
          { expr: `sum(${once(cost("pds_app_max_replicas"))})`, legend: "at most" },
        ),
      ],
    ],
    [
      "What needs attention",
      [
        list(
          {
            title: "Firing alerts",
            description: "At most 100. Needs the rules of deploy/prometheus.",
            width: 12,
          },
          `topk(100, max by (severity, alertname, ${BY}, instance, team, project, app) (ALERTS{alertstate="firing", alertname=~"Pds.*", alertname!="PdsWatchdog", ${RELEASE}, project=~"$project|"}))`,
          ["severity", "alertname", "cluster", "namespace", "job", "instance", "team", "project", "app"],
          APP,
        ),
        graph(
          {
            title: "Error budget left",
            description:
              "The ten apps with the least budget left, over 30 days or over the recorded days if they are fewer. Below 0, the objective is missed. Needs the recording rules.",
            unit: "percentunit",
            width: 12,
          },
          { expr: `bottomk(10, min without (job) (min by (${BY_APP}) (pds_app:slo_budget_left:ratio{${P}})))`, legend: "{{namespace}} {{app}}" },
        ),
      ],
    ],
    [
      "Traffic",
      [
        graph(
          {
            title: "Requests by project",
            description: "Requests per second of the ten busiest projects.",
            unit: "reqps",
            width: 12,
            stack: true,
          },
          { expr: `topk(10, sum without (app) (${once(perSecond("requests", P))}))`, legend: "{{namespace}} {{project}}" },
        ),
        graph(
          {
            title: "Slowest apps",
            description:
              "95th percentile of the response time, as the service computes it over its window; the ten slowest apps.",
            unit: "s",
            width: 12,
          },
          { expr: `topk(10, ${once(p95)})`, legend: "{{namespace}} {{app}}" },
        ),
      ],
    ],
    [
      "Apps",
      [
        table(
          {
            title: "The 100 busiest apps, failing ones first",
            description: "Click an app for its dashboard or its status page.",
            width: 24,
            height: 12,
          },
          [...BY.split(", "), "project", "app"],
          [
            {
              name: "Settings",
              expr: busiest(`max by (${BY_APP}, region, hardware) (pds_app_info{${P}})`),
              labels: ["region", "hardware"],
            },
            {
              name: "Error",
              expr: busiest(`max by (${BY_APP}) (pds_app_error{${P}})`),
              thresholds: from(1, "red"),
            },
            { name: "Requests/s", expr: busiest(perSecond("requests", P)), unit: "reqps" },
            { name: "p95", expr: busiest(p95), unit: "s" },
            { name: "$/h at most", expr: busiest(cost("pds_app_max_replicas")), unit: "currencyUSD" },
            {
              name: "Polls",
              expr: busiest(POLLS),
              thresholds: below(1, "orange"),
            },
          ],
          appLinks,
          [
            { displayName: "Polls", desc: false },
            { displayName: "Requests/s", desc: true },
          ],
        ),
      ],
    ],
  ],
  [new Marker("New build", newBuild(P), "{{namespace}} {{app}} {{latest_ready_build_id}}")],
);
