"""Commands without a system in reach."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from ioa.cli.main import app


@pytest.mark.parametrize(
    "arguments", [["goals"], ["groups"], ["agents"], ["run", "Greet Ada"], ["goal", "show", "x"], ["agents", "search", "x"]]
)
def test_command_without_a_system_names_the_tried_address(arguments: list[str]) -> None:
    """Nothing in reach exits with 3 and names the addresses that were tried."""
    url = "nats://127.0.0.1:9"
    result = CliRunner().invoke(app, [*arguments, "--url", url, "--json"])
    error = json.loads(result.stderr)
    assert (result.exit_code, result.stdout, error["code"], url in error["message"]) == (3, "", "unavailable", True)
