"""Makes every call with the client that openapi-python-client generated: client.py URL TOKEN PROJECT APP"""

import datetime
import enum
import importlib
import inspect
import pkgutil
import sys
import typing

from project_deployment_service_client import AuthenticatedClient
from project_deployment_service_client.api import default
from project_deployment_service_client.models import RunExecutionTimeResolution

url, token, project, app_id = sys.argv[1:]
client = AuthenticatedClient(base_url=url, token=token, httpx_args={"trust_env": False})
calls = {found.name: importlib.import_module(f"{default.__name__}.{found.name}") for found in pkgutil.iter_modules(default.__path__)}


def call(name, /, *ids, **arguments):
    reply = calls[name].sync_detailed(*ids, client=client, **arguments)
    assert 200 <= reply.status_code < 300, (name, reply.status_code, reply.content)
    return reply.parsed


def body_of(model):
    """A body with the first value of each enumeration."""
    fields = typing.get_type_hints(model)
    return model(**{name: next(iter(kind)) for name, kind in fields.items() if inspect.isclass(kind) and issubclass(kind, enum.Enum)})


app = call("get_app", project, app_id)
end = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(minutes=5)
start = end - datetime.timedelta(hours=1)
domains = call("list_domains", project).domains
domain = next(domain for domain in domains if domain.additional_properties.get("appId"))["id"]

# A new call needs a value here only if it has a parameter of a new name. Checks of single calls follow.
values = {
    "project_id": project,
    "app_id": app_id,
    "build_id": app.latest_build_id,
    "domain_id": domain,
    "owner": "acme",
    "repo": "ranker",
    "start": start,
    "end": end,
}
# Calls after which others no longer succeed. They are made below, in their order.
last = ["unassign_domain", "delete_domain", "delete_app"]
for name, module in calls.items():
    if name in last:
        continue
    hints = typing.get_type_hints(module.sync_detailed)
    parameters = inspect.signature(module.sync_detailed).parameters.values()
    required = {parameter.name for parameter in parameters if parameter.default is parameter.empty} - {"client"}
    call(name, **{parameter: body_of(hints["body"]) if parameter == "body" else values[parameter] for parameter in required})

assert project in [known.id for known in call("list_projects")]
assert app.id == app_id and app.runtime in ["cortex", "custom"] and isinstance(app.port, int) and float(app.cpu) > 0, app
assert call("zip_contents", project, app_id, app.latest_build_id).zip_files.additional_properties

times = call("response_time", project, app_id, start=start, end=end)
assert times.status == "success" and times.data.end_date == end, times
assert times.data.total_requests > 0 and times.data.percentiles.p50 <= times.data.percentiles.p99, times
assert times.data.distribution.additional_properties["1hr"] == 100, times
runs = call("run_execution_time", project, app_id, start=start, end=end, resolution=RunExecutionTimeResolution.HIGH)
assert runs.data.total_runs > 0 and runs.data.time_series[0].timestamp >= start.timestamp() - 60, runs

key = call("create_api_key", project, name="generated", expires_at=datetime.date(2999, 1, 31))
assert key.api_key and key.name == "generated" and key.expires_at.startswith("2999-01-31"), key
assert call("create_api_key", project).name == "API Key"
assert call("payment_url", project).startswith("http")
assert set(call("volume_alerts", project).thresholds) <= {80, 90, 95}

assert "main" in [branch.name for branch in call("branches", project, "acme", "ranker").branches]
tree = call("file_tree", project, "acme", "ranker", ref="main", path="src")
assert tree.total_count > 0 and tree.truncated is False, tree

assert isinstance(call("validate_domain", project, domain).success, bool)
refused = calls["delete_domain"].sync(project, domain, client=client)
assert refused.message, "a domain that is assigned is not deleted"
call("unassign_domain", project, domain)
call("delete_domain", project, domain)
assert app_id in call("delete_app", project, app_id)
assert calls["get_app"].sync(project, app_id, client=client).message
