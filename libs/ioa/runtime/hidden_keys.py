"""Keeping the keys of a process from other programs of its user: what an agent starts, and what runs beside it.

Keys stand in the environment, which children inherit and which others of the same user read in `/proc`, as they do the memory.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Mapping, MutableMapping

from ioa.runtime.settings import ProcessSettings, variable

_PR_SET_DUMPABLE, _NOBODY = 4, 0
_OURS = (variable("nats_seed"), variable("nats_token"), "IOA_QDRANT_API_KEY")
"""Keys that none but the process itself needs. A model's stays: the functions of agents may ask the same model."""


def hide_keys(settings: ProcessSettings, environment: MutableMapping[str, str]) -> None:
    """Take keys that have been read out of the environment, and let no program but root's read the memory of their holder (Linux).

    A process without a key stays as it is, so that its memory can be measured.
    """
    if not _holds_key(settings, environment):
        return
    for name in _OURS:
        environment.pop(name, None)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, _NOBODY)


def _holds_key(settings: ProcessSettings, environment: Mapping[str, str]) -> bool:
    return settings.has_own_key or any(name.endswith("_API_KEY") and value for name, value in environment.items())
