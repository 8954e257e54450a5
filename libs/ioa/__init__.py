"""IoA, an Internet of Agents on NATS. The names below are the public API; everything else may change.

Each is loaded when it is first used (PEP 562), so that a part of the library costs no more than itself.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ioa.agent.definition import InputFile, TaskContext, UpstreamResult
    from ioa.errors import InvalidInputError, IoaError, NotFoundError, TaskError, UnavailableError
    from ioa.hosting.agent import Agent

__all__ = [
    "Agent",
    "InputFile",
    "InvalidInputError",
    "IoaError",
    "NotFoundError",
    "TaskContext",
    "TaskError",
    "UnavailableError",
    "UpstreamResult",
]

_HOMES = {
    "Agent": "ioa.hosting.agent",
    "InputFile": "ioa.agent.definition",
    "TaskContext": "ioa.agent.definition",
    "UpstreamResult": "ioa.agent.definition",
}
"""Where each name is defined; all others are errors."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES.get(name, "ioa.errors")), name)


def __dir__() -> list[str]:
    return sorted(__all__)
