"""Launch a goal by HTTP, with a key made for it; exit 0 if its result is right or `no_agent`; what `helm test` runs."""

import json
import os
import subprocess
import sys
import time
import uuid

import httpx

keys = [sys.executable, "-m", "ioa.cli", "keys"]
create = [*keys, "create", "--name", "helm-test", "--user", os.environ["KEY_OF"], "--expires", "1h", "--json"]
key = json.loads(subprocess.run(create, stdout=subprocess.PIPE, check=True).stdout)
headers = {"Authorization": f"Bearer {key['key']}", "Idempotency-Key": uuid.uuid4().hex}
ends = time.monotonic() + float(os.environ["TIMEOUT_SECONDS"])


def ask(method, path, **more):
    """Ask until there is an answer: a gateway is ready, and knows the key, a moment after the key was made."""
    while time.monotonic() < ends:
        try:
            answer = http.request(method, path, **more)
        except httpx.TransportError as error:
            sys.stdout.write(f"{path}: {error}\n")
        else:
            if answer.content and answer.status_code not in (401, 429, 502, 503, 504):
                return answer.raise_for_status().json()
            sys.stdout.write(f"{path}: {answer.status_code} {answer.text}\n")
        time.sleep(1)
    sys.exit("There was no result in time.")


try:
    with httpx.Client(base_url=os.environ["GATEWAY"], headers=headers, timeout=60, trust_env=False) as http:
        agent = {"agent": os.environ["AGENT"]} if os.environ["AGENT"] else {}
        launched = ask("POST", "/v1/goals", json={"goal": os.environ["GOAL"], **agent})
        result = ask("GET", f"/v1/goals/{launched['goal_id']}/result", params={"wait": 20})
finally:
    subprocess.run([*keys, "revoke", key["key_id"]], check=True)
sys.stdout.write(json.dumps(result) + "\n")
if result["reason"] != "no_agent" and os.environ["EXPECT"] not in (result["content"] or ""):
    sys.exit(f"The result does not hold {os.environ['EXPECT']!r}.")
sys.stdout.write("The gateway has given the right result, or says that there is no agent.\n")
