"""What the command costs before it does anything."""

from __future__ import annotations

import subprocess
import sys

_HEAVY = "nats rich.live rich.markdown httpx sqlite3 structlog prometheus_client ioa.runtime.process"


def test_help_imports_nothing_heavy() -> None:
    """Importing the command loads neither NATS nor logging nor what draws tables; each command does so when it runs."""
    code = f"import sys, ioa.cli.main; print([name for name in {_HEAVY.split()!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


_OF_UP = """
import sys
from importlib import import_module
from ioa.hosting import __main__
from ioa.local import services
from ioa.distribution import SERVICES
for name in SERVICES:
    import_module(f"{name.replace('-', '_')}.__main__")
print(*sys.modules)
"""


def test_a_system_without_web_imports_nothing_of_it() -> None:
    """The processes of services and agents load no web server, no other protocol, no exporter of traces and no rich."""
    done = subprocess.run([sys.executable, "-W", "error", "-c", _OF_UP], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert {name.partition(".")[0] for name in loaded}.isdisjoint(
        {"starlette", "uvicorn", "a2a", "mcp", "opentelemetry", "markdown_it", "rich"}
    )
    assert not [name for name in loaded if name.startswith("ioa_gateway.")]
    assert {"ioa_router.__main__", "ioa_groups.__main__", "ioa_registry.__main__"} <= loaded


def test_help_of_the_command_names_each_command_as_its_module_does() -> None:
    """`ioa --help` shows lines that are written apart from the modules; none is empty, and each command loads."""
    from ioa.cli.main import command_names, load_command

    assert [name for name in command_names() if not load_command(name).help] == []


def test_misspelled_command_is_rejected_with_a_suggestion() -> None:
    """The commands are known before their modules are imported."""
    from typer.testing import CliRunner

    from ioa.cli.main import app

    done = CliRunner().invoke(app, ["gaol"])
    assert (done.exit_code, "Did you mean 'goal'" in done.stderr) == (2, True)
