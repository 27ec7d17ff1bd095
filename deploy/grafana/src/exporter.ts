// The exporter itself: does it learn what it should, in time, within its limits?
import { BY, BY_APP, OF_ROW, RELEASE, RELEASES, appLinks, appUp, dashboard, variable } from "./frame.js";
import { below, from, graph, stat, table, words } from "./panels.js";

const I = `${RELEASE}, instance=~"$instance"`;
const rate = (metric: string, by: string) => `sum by (${BY}, ${by}) (rate(${metric}{${I}}[$__rate_interval]))`;
/** One exporter. */
const EXPORTER = `${BY}, instance`;
const NAMED = "{{namespace}} {{instance}}";
/** 0 where a poll of an app fails. */
const APPS = `min by (${BY_APP}, instance) (${appUp(I)})`;
/** Restricts to exporters: other programs have such series, too. */
const own = (expr: string) => `${expr} and on (${EXPORTER}) pds_exporter_build_info{${I}}`;
/** Gauges that are 1 if all is well; absent where the feature is not used. */
const IN_ORDER = [
  ["configuration", "pds_exporter_config_last_reload_successful"],
  ["web configuration", "pds_exporter_web_config_last_reload_successful"],
  ["state file", "pds_exporter_state_last_commit_successful"],
  ["restored counters", "pds_exporter_state_last_restore_successful"],
  ["token files", "pds_token_last_read_successful"],
  ["tokens accepted", "pds_token_accepted"],
] as const;
const YES_NO = words({ 0: { text: "no", color: "red" }, 1: { text: "yes", color: "green" } });

export const exporter = dashboard(
  "pds-exporter",
  "PDS exporter",
  "The health of pds-exporter: its polls, its requests to the service, its own resources.",
  [
    ...RELEASES,
    variable("instance", "Instance", `pds_exporter_build_info{${RELEASE}}`, "optional"),
  ],
  [
    [
      "Now",
      [
        stat(
          { title: "Version", description: "Of each instance.", unit: "short", width: 4, name: true },
          { expr: `count by (${BY}, version) (pds_exporter_build_info{${I}})`, legend: "{{version}}" },
        ),
        stat(
          {
            title: "Targets",
            description: "Resources of projects and apps that are polled.",
            unit: "short",
            width: 4,
          },
          { expr: `sum(pds_exporter_targets{${I}})` },
        ),
        stat(
          {
            title: "Answering",
            description: "Share of targets whose last poll succeeded.",
            unit: "percentunit",
            width: 4,
            thresholds: below(1, "orange"),
          },
          { expr: `avg(pds_up{${I}})` },
        ),
        stat(
          {
            title: "First token expires",
            description: "Time until the first token expires; empty if no token has an expiry date.",
            unit: "s",
            width: 4,
            thresholds: below(14 * 86400, "orange"),
          },
          { expr: `min(pds_token_expiry_timestamp_seconds{${I}}) - time()` },
        ),
        stat(
          {
            title: "Shards",
            description: "Scraped shards, and the configured number of shards.",
            unit: "short",
            width: 4,
          },
          { expr: `count(count by (${BY}, index) (pds_exporter_shard_info{${I}}))`, legend: "scraped" },
          { expr: `sum(max by (${BY}) (pds_exporter_shards{${I}}))`, legend: "configured" },
        ),
        stat(
          {
            title: "Clock skew",
            description: "The greatest difference between the clocks of the service and an exporter.",
            unit: "s",
            width: 4,
            thresholds: from(15, "orange"),
          },
          { expr: `max(abs(pds_api_clock_skew_seconds{${I}}))` },
        ),
      ],
    ],
    [
      "Fleet",
      [
        table(
          {
            title: "Exporters and shards",
            description:
              "Exporters that do not answer Prometheus come first, then those with the most failing targets. Click an instance for its own figures.",
            width: 24,
          },
          [...BY.split(", "), "instance"],
          [
            {
              name: "Answers",
              expr: `min by (${EXPORTER}) (up{${I}} and on (${EXPORTER}) last_over_time(pds_exporter_build_info{${I}}[1d]))`,
              thresholds: below(1, "red"),
            },
            {
              name: "Targets failing",
              expr: `count by (${EXPORTER}) (pds_up{${I}}) - sum by (${EXPORTER}) (pds_up{${I}})`,
              thresholds: from(1, "orange"),
            },
            {
              name: "Apps failing",
              expr: `count by (${EXPORTER}) (${APPS} == 0) or 0 * count by (${EXPORTER}) (pds_up{${I}})`,
              thresholds: from(1, "orange"),
            },
            { name: "Targets", expr: `count by (${EXPORTER}) (pds_up{${I}})` },
            { name: "Apps", expr: `count by (${EXPORTER}) (${APPS})` },
            { name: "Poll lag", expr: `max by (${EXPORTER}) (pds_exporter_poll_lag_seconds{${I}})`, unit: "s" },
          ],
          [
            {
              title: "Only this exporter",
              url: `/d/pds-exporter/pds-exporter?${OF_ROW}&var-instance=\${__value.text}&\${datasource:queryparam}`,
            },
          ],
          [
            { displayName: "Answers", desc: false },
            { displayName: "Targets failing", desc: true },
          ],
        ),
        table(
          {
            title: "Which exporter has which app",
            description: "A hundred apps, those with failing polls first. Click an app for its dashboard or its status page.",
            width: 24,
          },
          [...EXPORTER.split(", "), "project", "app"],
          [{ name: "Polls", expr: `bottomk(100, ${APPS})`, thresholds: below(1, "orange") }],
          appLinks,
          [{ displayName: "Polls", desc: false }],
        ),
      ],
    ],
    [
      "In order",
      [
        stat(
          {
            title: "In order",
            description:
              "Whether the last load of the configuration, write of the state file, restore and read of token files succeeded, and whether the service accepts every token. Unused features are not shown.",
            unit: "short",
            width: 24,
            mappings: YES_NO,
          },
          ...IN_ORDER.map(([legend, metric]) => ({ expr: `min(${metric}{${I}})`, legend })),
        ),
      ],
    ],
    [
      "Polls",
      [
        graph(
          { title: "Targets failing", description: "By resource.", unit: "short", width: 8 },
          {
            expr: `count by (${BY}, resource) (pds_up{${I}}) - sum by (${BY}, resource) (pds_up{${I}})`,
            legend: "{{namespace}} {{resource}}",
          },
        ),
        graph(
          {
            title: "Oldest data",
            description: "Time since the last successful poll of the stalest target of each resource.",
            unit: "s",
            width: 8,
          },
          {
            expr: `time() - min by (${BY}, resource) (pds_last_success_timestamp_seconds{${I}})`,
            legend: "{{namespace}} {{resource}}",
          },
        ),
        graph(
          {
            title: "Poll lag",
            description: "How late polls begin. A lasting lag means that the limits are too low for the load.",
            unit: "s",
            width: 8,
          },
          { expr: `max by (${EXPORTER}) (pds_exporter_poll_lag_seconds{${I}})`, legend: NAMED },
        ),
        graph(
          {
            title: "Accounting behind",
            description: "The greatest lag of an app's exact counters, and the number of apps whose counters are hidden.",
            unit: "short",
            width: 12,
          },
          {
            expr: `max by (${BY}, resource) (pds_app_accounting_behind_seconds{${I}}) or time() - min by (${BY}, resource) (pds_app_accounted_until_timestamp_seconds{${I}})`,
            legend: "{{namespace}} {{resource}}, seconds",
          },
          {
            expr: `count by (${BY}, resource) (pds_app_accounting_behind_seconds{${I}}) or 0 * count by (${BY}, resource) (pds_app_accounted_until_timestamp_seconds{${I}})`,
            legend: "{{namespace}} {{resource}}, hidden",
          },
        ),
        graph(
          {
            title: "Bugs and odd values",
            description: "Contained panics, and values in replies that violate the interface.",
            unit: "short",
            width: 12,
          },
          { expr: `sum(increase(pds_exporter_panics_total{${I}}[$__rate_interval]))`, legend: "panics" },
          {
            expr: `sum(increase(pds_api_unexpected_values_total{${I}}[$__rate_interval])) or vector(0)`,
            legend: "values",
          },
        ),
      ],
    ],
    [
      "Requests to the service",
      [
        graph(
          {
            title: "By outcome",
            description: "HTTP status, or the class of failure.",
            unit: "reqps",
            width: 8,
            stack: true,
          },
          { expr: rate("pds_api_requests_total", "code"), legend: "{{namespace}} {{code}}" },
        ),
        graph(
          {
            title: "Duration",
            description: "Time from sending a request to the end of its reply.",
            unit: "s",
            width: 8,
          },
          ...[0.5, 0.9, 0.99].map((q) => ({
            expr: `histogram_quantile(${q}, ${rate("pds_api_request_duration_seconds_bucket", "le")})`,
            legend: `{{namespace}} p${q * 100}`,
          })),
        ),
        graph(
          {
            title: "Waiting",
            description:
              "Seconds per second that requests wait for the configured limits, the pace after 429s, or the end of a pause that the service requested.",
            unit: "short",
            width: 8,
          },
          {
            expr: `${rate("pds_api_throttled_seconds_total", "resource")} or on () vector(0)`,
            legend: "{{namespace}} {{resource}}",
          },
        ),
      ],
    ],
    [
      "Process",
      [
        graph(
          { title: "CPU", description: "Cores in use.", unit: "short", width: 8 },
          {
            expr: own(rate("process_cpu_seconds_total", "instance")),
            legend: NAMED,
          },
        ),
        graph(
          { title: "Memory", description: "Resident.", unit: "bytes", width: 8 },
          {
            expr: own(`max by (${EXPORTER}) (process_resident_memory_bytes{${I}})`),
            legend: NAMED,
          },
        ),
        graph(
          {
            title: "Scrape duration",
            description: "How long Prometheus waits for /metrics.",
            unit: "s",
            width: 8,
          },
          {
            expr: own(`max by (${EXPORTER}) (scrape_duration_seconds{${I}})`),
            legend: NAMED,
          },
        ),
      ],
    ],
  ],
);
