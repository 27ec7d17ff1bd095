"""Takes whatever status the service answers with: statuses.py URL"""

import sys

from project_deployment_service_client import AuthenticatedClient
from project_deployment_service_client.api.default import create_api_key, get_app
from project_deployment_service_client.models import ApiKey, App, Error
from project_deployment_service_client.types import UNSET

client = AuthenticatedClient(base_url=sys.argv[1], token="none", httpx_args={"trust_env": False})

for status in ["200", "201", "202"]:
    reply = create_api_key.sync_detailed(status, client=client)
    assert reply.status_code == int(status), reply
    assert isinstance(reply.parsed, ApiKey) and reply.parsed.api_key == "secret", reply
    app = get_app.sync(status, "p-1-a", client=client)
    assert isinstance(app, App) and app.id == "p-1-a" and app.runtime == "other", app
    assert app.cpu is UNSET and app.error_message is UNSET, app

reply = create_api_key.sync_detailed("204", client=client)
assert reply.status_code == 204 and reply.parsed is None, reply
refused = create_api_key.sync("422", client=client)
assert isinstance(refused, Error) and refused.message == "the name is taken", refused
