"""Ending with the process that started this one, however that died, so that nothing is left behind (prctl(2), Linux)."""

from __future__ import annotations

import ctypes
import sys
from signal import Signals

_PR_SET_PDEATHSIG = 1


def end_with_parent(by: Signals) -> None:
    """Ask the kernel for this signal when the parent dies."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, by)
