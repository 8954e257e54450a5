"""What IoA is called on PyPI, where the name `ioa` is somebody else's. The import root and the command are `ioa` all the same."""

from __future__ import annotations

from importlib import metadata

NAME = "internet-of-agents"


def installed_version() -> str:
    """Return the version that is installed."""
    return metadata.version(NAME)


def pip_install(extra: str) -> str:
    """Return the command that installs what an extra brings."""
    return f"pip install '{NAME}[{extra}]'"
