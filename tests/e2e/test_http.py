"""HTTP as a reader of the documentation tries it: `ioa up --web`, a key, and what docs/http.md says to type."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.command_line import TIMEOUT_SECONDS, CommandLine, running_system
from tests.packaging.readme_session import blocks_of

PAGE = Path(__file__).parents[2] / "docs" / "http.md"


@pytest.mark.nightly
def test_what_the_documentation_says_to_type_works(tmp_path: Path, port: int) -> None:
    """Every command of the page about HTTP succeeds on a system that was started with `--web`, and does what the page says.

    The link that was printed lets a browser in.
    """
    command = CommandLine(tmp_path)
    page = PAGE.read_text(encoding="utf-8").replace("4280", str(port))
    typed = "".join(block.body for block in blocks_of(page) if block.kind == "sh")
    script = f'set -euo pipefail\nioa() {{ {sys.executable} -m ioa.cli "$@"; }}\n{typed}'
    with running_system(command, "--pool", command.write_pool("greeter"), "--web", "--web-port", str(port)) as system:
        done = subprocess.run(
            ["bash"],
            input=script,
            cwd=tmp_path,
            env=command.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_SECONDS,
        )
        signed_in = subprocess.run(
            [
                *("curl", "--silent", "--show-error", "--fail-with-body", "--include", f"http://127.0.0.1:{port}/v1/session"),
                *("--json", json.dumps({"token": system.page.partition("?token=")[2]})),
            ],
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_SECONDS,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "set-cookie: ioa_session=ioa-up." in signed_in.stdout
    assert '{"user":"local"' in signed_in.stdout
    told = done.stdout
    said = ('"agent_id":"greeter"', '"reason":"concluded"', "event: entry\nid: ", "event: end\n", "TASK_STATE_COMPLETED", "reached")
    assert [one for one in said if one not in told] == []
    assert told.count("event: end\n") == 2
