"""Makes every call with the client that openapi-python-client generated: client.py URL TOKEN PROJECT APP"""

import datetime
import sys

from project_deployment_service_client import AuthenticatedClient
from project_deployment_service_client.api.default import (
    branches,
    change_plan,
    create_api_key,
    delete_app,
    delete_domain,
    file_tree,
    get_app,
    list_domains,
    list_projects,
    payment_url,
    response_time,
    run_execution_time,
    unassign_domain,
    validate_domain,
    volume_alerts,
    zip_contents,
)
from project_deployment_service_client.models import (
    ChangePlanBody,
    ChangePlanBodyPlanCode,
    RunExecutionTimeResolution,
)

url, token, project, app_id = sys.argv[1:]
client = AuthenticatedClient(base_url=url, token=token, httpx_args={"trust_env": False})


def call(module, *ids, **arguments):
    reply = module.sync_detailed(*ids, client=client, **arguments)
    assert 200 <= reply.status_code < 300, (module.__name__, reply.status_code, reply.content)
    return reply.parsed


assert project in [known.id for known in call(list_projects)]
app = call(get_app, project, app_id)
assert app.id == app_id and app.runtime in ["cortex", "custom"] and isinstance(app.port, int) and float(app.cpu) > 0, app
assert call(zip_contents, project, app_id, app.latest_build_id).zip_files.additional_properties

end = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(minutes=5)
start = end - datetime.timedelta(hours=1)
times = call(response_time, project, app_id, start=start, end=end)
assert times.status == "success" and times.data.end_date == end, times
assert times.data.total_requests > 0 and times.data.percentiles.p50 <= times.data.percentiles.p99, times
assert times.data.distribution.additional_properties["1hr"] == 100, times
runs = call(run_execution_time, project, app_id, start=start, end=end, resolution=RunExecutionTimeResolution.HIGH)
assert runs.data.total_runs > 0 and runs.data.time_series[0].timestamp >= start.timestamp() - 60, runs

key = call(create_api_key, project, name="generated", expires_at=datetime.date(2999, 1, 31))
assert key.api_key and key.name == "generated" and key.expires_at.startswith("2999-01-31"), key
assert call(create_api_key, project).name == "API Key"
plan = call(change_plan, project, body=ChangePlanBody(plan_code=ChangePlanBodyPlanCode.ENTERPRISE))
assert isinstance(plan.redirect_url, str), plan
assert call(payment_url, project).startswith("http")
assert set(call(volume_alerts, project).thresholds) <= {80, 90, 95}

assert "main" in [branch.name for branch in call(branches, project, "acme", "ranker").branches]
tree = call(file_tree, project, "acme", "ranker", ref="main", path="src")
assert tree.total_count > 0 and tree.truncated is False, tree

domains = call(list_domains, project).domains
domain = next(domain for domain in domains if domain.additional_properties.get("appId"))["id"]
assert isinstance(call(validate_domain, project, domain).success, bool)
refused = delete_domain.sync(project, domain, client=client)
assert refused.message, "a domain that is assigned is not deleted"
call(unassign_domain, project, domain)
call(delete_domain, project, domain)
assert app_id in call(delete_app, project, app_id)
assert get_app.sync(project, app_id, client=client).message
