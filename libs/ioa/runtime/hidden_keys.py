"""Protection of a process's keys: child processes inherit the environment, and programs of the same user can read it."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Mapping, MutableMapping

from ioa.runtime.known_settings import variable
from ioa.runtime.settings import ProcessSettings

_PR_SET_DUMPABLE, _NOBODY = 4, 0
_OURS = (variable("nats_seed"), variable("nats_token"), "IOA_QDRANT_API_KEY")
"""Keys that only the process needs. The key of a model stays: functions of agents may use the same model."""


def hide_keys(settings: ProcessSettings, environment: MutableMapping[str, str]) -> None:
    """Remove the keys from the environment, and make the memory of the process unreadable for other programs (Linux).

    A process without a key is not changed, so that its memory can be measured.
    """
    if not _holds_key(settings, environment):
        return
    for name in _OURS:
        environment.pop(name, None)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, _NOBODY)


def _holds_key(settings: ProcessSettings, environment: Mapping[str, str]) -> bool:
    return settings.has_own_key or any(name.endswith("_API_KEY") and value for name, value in environment.items())
