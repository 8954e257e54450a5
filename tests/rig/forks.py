"""The fork server of the tests. A process has one, whoever asks for it, and whoever asks first decides what it has imported."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ioa.local.fork_server import ForkServer

_PRELOADED = (
    "ioa.hosting.__main__",
    "ioa.hosting.agent",
    "ioa_registry.__main__",
    "ioa_groups.__main__",
    "ioa_router.__main__",
    "ioa_testkit.load_worker",
    "ioa_testkit.crowd_worker",
)


def fork_server(logs: Path, env: Mapping[str, str]) -> ForkServer:
    """Return a fork server that has imported what the tests' processes need, all but what discovery alone does."""
    return ForkServer(logs, env, _PRELOADED)
