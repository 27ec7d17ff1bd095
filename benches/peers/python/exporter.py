"""The exporter that a Python programmer would write: aiohttp sends requests, prometheus_client holds and encodes. For
comparison only.

usage: exporter.py BASE_URL SECONDS < APPS, one `project/app` a line; each app is polled every so many seconds
"""

import asyncio
import sys
import time

import aiohttp
from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.exposition import generate_latest

REGISTRY = CollectorRegistry()
APP = ["project", "app"]
PERCENTILE = Gauge("pds_app_response_time_seconds", "h", [*APP, "window", "percentile"], registry=REGISTRY)
WITHIN = Gauge("pds_app_response_time_within_ratio", "h", [*APP, "window", "threshold"], registry=REGISTRY)
REQUESTS = Gauge("pds_app_window_requests", "h", [*APP, "window"], registry=REGISTRY)
RUN = Gauge("pds_app_run_execution_time_seconds", "h", [*APP, "percentile"], registry=REGISTRY)
RUNS = Gauge("pds_app_window_runs", "h", [*APP, "window"], registry=REGISTRY)
REQUESTS_TOTAL = Counter("pds_app_requests_total", "h", APP, registry=REGISTRY)
BUCKETS = Counter("pds_app_request_duration_seconds_bucket", "h", [*APP, "le"], registry=REGISTRY)
RUNS_TOTAL = Counter("pds_app_runs_total", "h", APP, registry=REGISTRY)

WINDOW = {"start": "2026-01-01T00:00:00Z", "end": "2026-01-01T00:05:00Z"}
STEP = {"start": "2026-01-01T00:04:00Z", "end": "2026-01-01T00:05:00Z"}


async def get(session, url, query):
    async with session.get(url, params=query, headers={"authorization": "Bearer a-token"}) as reply:
        reply.raise_for_status()
        return (await reply.json())["data"]


async def poll(session, base, project, app):
    of_app = f"{base}/v2/projects/{project}/apps/{app}/metrics"
    data = await get(session, f"{of_app}/response-time", WINDOW)
    for percentile, millis in data["percentiles"].items():
        PERCENTILE.labels(project, app, "5m", percentile).set(millis / 1e3)
    for threshold, share in data["distribution"].items():
        WITHIN.labels(project, app, "5m", threshold).set(share / 100)
    REQUESTS.labels(project, app, "5m").set(data["total_requests"])
    data = await get(session, f"{of_app}/response-time", STEP)
    REQUESTS_TOTAL.labels(project, app).inc(data["total_requests"])
    for threshold, share in data["distribution"].items():
        BUCKETS.labels(project, app, threshold).inc(round(share / 100 * data["total_requests"]))
    data = await get(session, f"{of_app}/run-execution-time", WINDOW)
    for percentile in ("p50", "p90", "p99"):
        RUN.labels(project, app, percentile).set(data["time_series"][-1][percentile])
    RUNS.labels(project, app, "5m").set(data["total_runs"])
    data = await get(session, f"{of_app}/run-execution-time", STEP)
    RUNS_TOTAL.labels(project, app).inc(data["total_runs"])


async def poll_for_ever(base, seconds, apps):
    connector = aiohttp.TCPConnector(limit=32)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def worker(waiting):
            for app in waiting:
                await poll(session, base, *app)

        while True:
            end = time.monotonic() + seconds
            waiting = iter(apps)
            await asyncio.gather(*(worker(waiting) for _ in range(32)))
            await asyncio.sleep(max(0, end - time.monotonic()))


async def main(base, seconds):
    apps = [line.strip().split("/") for line in sys.stdin if line.strip()]
    server = web.Application()
    server.router.add_get("/metrics", lambda _: web.Response(body=generate_latest(REGISTRY)))
    runner = web.AppRunner(server)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print("listening", "127.0.0.1:%d" % site._server.sockets[0].getsockname()[1], flush=True)
    await poll_for_ever(base, seconds, apps)


asyncio.run(main(sys.argv[1], float(sys.argv[2])))
