"""Launch a goal and exit 0 if its result holds what it should; what `helm test` runs."""

import json
import os
import subprocess
import sys

goal, expect, timeout = os.environ["GOAL"], os.environ["EXPECT"], os.environ["TIMEOUT_SECONDS"]
command = [sys.executable, "-m", "ioa.cli", "run", goal, "--timeout", timeout, "--out", "/tmp/out", "--json"]
command += ["--agent", os.environ["AGENT"]] if os.environ["AGENT"] else []
run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
sys.stdout.write(run.stdout)
lines = [json.loads(line) for line in run.stdout.splitlines()]
results = [line for line in lines if line.get("event") == "result"]
if run.returncode:
    sys.exit(f"The goal failed with exit code {run.returncode}.")
if expect not in results[-1]["content"]:
    sys.exit(f"The result does not hold {expect!r}.")
sys.stdout.write(f"The result holds {expect!r}.\n")
