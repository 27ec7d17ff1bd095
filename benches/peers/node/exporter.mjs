// The exporter that a JavaScript programmer would write: fetch sends requests, prom-client holds and encodes, node:http
// serves. For comparison only.
//
// usage: exporter.mjs BASE_URL SECONDS < APPS, one `project/app` a line; each app is polled every so many seconds

import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import client from "prom-client";

const APP = ["project", "app"];
const gauge = (name, ...labels) => new client.Gauge({ name, help: "h", labelNames: [...APP, ...labels] });
const counter = (name, ...labels) => new client.Counter({ name, help: "h", labelNames: [...APP, ...labels] });
const percentile = gauge("pds_app_response_time_seconds", "window", "percentile");
const within = gauge("pds_app_response_time_within_ratio", "window", "threshold");
const requests = gauge("pds_app_window_requests", "window");
const run = gauge("pds_app_run_execution_time_seconds", "percentile");
const runs = gauge("pds_app_window_runs", "window");
const requestsTotal = counter("pds_app_requests_total");
const buckets = counter("pds_app_request_duration_seconds_bucket", "le");
const runsTotal = counter("pds_app_runs_total");

const WINDOW = new URLSearchParams({ start: "2026-01-01T00:00:00Z", end: "2026-01-01T00:05:00Z" });
const STEP = new URLSearchParams({ start: "2026-01-01T00:04:00Z", end: "2026-01-01T00:05:00Z" });
const [base, seconds] = process.argv.slice(2);
const apps = readFileSync(0, "utf8").trim().split("\n").map((line) => line.split("/"));

async function get(url, range) {
  const reply = await fetch(`${url}?${range}`, { headers: { authorization: "Bearer a-token" } });
  if (!reply.ok) throw new Error(`${url}: ${reply.status}`);
  return (await reply.json()).data;
}

async function poll(project, app) {
  const url = `${base}/v2/projects/${project}/apps/${app}/metrics`;
  let data = await get(`${url}/response-time`, WINDOW);
  for (const [name, millis] of Object.entries(data.percentiles)) percentile.labels(project, app, "5m", name).set(millis / 1e3);
  for (const [name, share] of Object.entries(data.distribution)) within.labels(project, app, "5m", name).set(share / 100);
  requests.labels(project, app, "5m").set(data.total_requests);
  data = await get(`${url}/response-time`, STEP);
  requestsTotal.labels(project, app).inc(data.total_requests);
  for (const [name, share] of Object.entries(data.distribution)) {
    buckets.labels(project, app, name).inc(Math.round((share / 100) * data.total_requests));
  }
  data = await get(`${url}/run-execution-time`, WINDOW);
  for (const name of ["p50", "p90", "p99"]) run.labels(project, app, name).set(data.time_series.at(-1)[name]);
  runs.labels(project, app, "5m").set(data.total_runs);
  data = await get(`${url}/run-execution-time`, STEP);
  runsTotal.labels(project, app).inc(data.total_runs);
}

const server = createServer(async (_, reply) => reply.end(await client.register.metrics()));
server.listen(0, "127.0.0.1", () => console.log(`listening 127.0.0.1:${server.address().port}`));
for (;;) {
  const end = Date.now() + Number(seconds) * 1e3;
  const waiting = apps.values();
  await Promise.all(Array.from({ length: 32 }, async () => {
    for (const app of waiting) await poll(...app);
  }));
  await sleep(Math.max(0, end - Date.now()));
}
