"""The distribution on PyPI, where `ioa` is the name of another project. The import root and the command are `ioa`."""

from __future__ import annotations

from importlib import metadata

NAME = "internet-of-agents"
SERVICES = ("ioa-discovery", "ioa-groups", "ioa-registry", "ioa-router")
"""Names of the NATS services of the control plane. The package of a service has the same name, with underscores."""


def installed_version() -> str:
    """Return the installed version."""
    return metadata.version(NAME)


def pip_install(extra: str) -> str:
    """Return the command that installs an extra."""
    return f"pip install '{NAME}[{extra}]'"
