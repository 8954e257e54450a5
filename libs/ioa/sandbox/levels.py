"""How strictly a command is confined, and which of it this machine can do: a level counts only once it has passed its self-test."""

from __future__ import annotations

import functools
import platform
import shutil
from collections.abc import Callable
from enum import StrEnum

from ioa.errors import InvalidInputError, MissingExtraError
from ioa.sandbox import landlock, seccomp

SETTING = "IOA_SANDBOX"
AUTO = "auto"


class Level(StrEnum):
    """What a sandbox is made of."""

    NONE = "none"
    """Limits, no environment, a session of its own: stops accidents."""
    LANDLOCK = "landlock"
    """Besides Landlock, a filter of system calls, no root: stops reading and writing outside, sockets, signals."""
    BWRAP = "bwrap"
    """Bubblewrap and the filter: the same in namespaces of its own, on a memory disk of fixed size."""


def missing(level: Level) -> str:
    """Say what this machine lacks for a level, as the end of a sentence; nothing if there is all of it."""
    if level is Level.NONE:
        return ""
    if level is Level.BWRAP and shutil.which("bwrap") is None:
        return "bubblewrap is missing"
    if level is Level.LANDLOCK and not landlock.this_kernel().version:
        return "this kernel has no Landlock"
    if platform.machine() not in seccomp.MACHINES:
        return f"there is no filter of system calls for {platform.machine()}"
    return ""


def choose(setting: str, failure: Callable[[Level], str]) -> Level:
    """Choose the level that a setting asks for: `auto`, which never ends at `none`, or the name of a level.

    Args:
        setting: What `IOA_SANDBOX` says.
        failure: Why a level does not hold here, as the end of a sentence; nothing if it does.

    Raises:
        InvalidInputError: The setting is no level.
        MissingExtraError: No level that may be taken holds here.
    """
    if setting == Level.NONE:
        return Level.NONE
    if setting not in (AUTO, *Level):
        raise InvalidInputError(f"{SETTING}: {setting!r} is none of {', '.join((AUTO, *Level))}.")
    reasons = []
    for level in (Level.BWRAP, Level.LANDLOCK) if setting == AUTO else (Level(setting),):
        if not (why := failure(level)):
            return level
        reasons.append(why)
    raise MissingExtraError(f"No sandbox: {' and '.join(reasons)}.", hint=f"Install bubblewrap, or set {SETTING}=none.")


@functools.cache
def level_here(setting: str) -> Level:
    """Choose the level on this machine. The self-test takes two process starts, once in this process.

    Raises:
        InvalidInputError: The setting is no level.
        MissingExtraError: No level that may be taken holds here.
    """
    from ioa.sandbox.self_test import failure  # it runs commands in the sandbox that this module describes

    return choose(setting, lambda level: missing(level) or failure(level))
