"""Each process imports only the packages that it needs: imports delay its start and use memory."""

from __future__ import annotations

import subprocess
import sys

import pytest

_WEB = "starlette uvicorn a2a mcp opentelemetry markdown_it rich ioa_gateway.app"
_AGENT = "httpx nats sqlite3 mcp playwright ioa.agent.model ioa.agent.agent_runtime ioa.group ioa.react"
_HELP = "nats rich.live rich.markdown httpx sqlite3 structlog prometheus_client ioa.runtime.process"
_SERVICES = "ioa_router.__main__, ioa_groups.__main__, ioa_registry.__main__, ioa_discovery.__main__"


@pytest.mark.parametrize(
    ("imported", "absent"),
    [
        ("ioa; from ioa import Agent, ModelAgent, TaskContext", _AGENT),
        ("ioa.cli.main", _HELP),
        ("ioa.cli.main, ioa.cli.up", "nats prometheus_client"),
        (f"ioa.hosting.__main__, ioa.local.services, {_SERVICES}", _WEB),
        ("ioa.hosting.host, ioa_router.__main__", "opentelemetry"),
    ],
    ids=["file of an author", "help", "up", "services", "traced process"],
)
def test_process_imports_only_what_it_needs(imported: str, absent: str) -> None:
    """Also with an endpoint for traces."""
    code = f"import sys, {imported}; print(*sys.modules)"
    environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert set(absent.split()) & set(done.stdout.split()) == set()
