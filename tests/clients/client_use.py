"""Uses a Python client generated from the OpenAPI document."""
import os

from stint_client import AuthenticatedClient
from stint_client.api.runs import cancel_run, list_runs, submit_run
from stint_client.models import Problem, State, Submit, SubmitArgs

client = AuthenticatedClient(base_url=os.environ["STINT_URL"], token=os.environ["STINT_TOKEN"], timeout=30)

ended = submit_run.sync(client=client, body=Submit(agent="quick", args=SubmitArgs.from_dict({"what": 0.5}), wait=True))
assert ended.result == "said 0.5", ended
started = submit_run.sync_detailed(client=client, body=Submit(agent="slow"))
assert started.status_code == 201, started
page = list_runs.sync(client=client, limit=1, state=[State.SUCCEEDED, State.QUEUED, State.RUNNING])
assert len(page.runs) == 1, page
rest = list_runs.sync(client=client, before=page.next_)
assert len(rest.runs) == 1, rest
receipt = cancel_run.sync(client=client, id=started.parsed.id)
assert receipt.state == State.CANCELLED, receipt
refused = submit_run.sync(client=client, body=Submit(agent="unknown"))
assert isinstance(refused, Problem) and refused.status == 404, refused
print("done")
