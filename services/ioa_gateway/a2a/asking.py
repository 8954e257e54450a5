"""Who asks by A2A, and for what."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from ioa.protocol.ids import PoolId
from ioa_gateway.calls import ApiCall

ASKED = "ioa.asked"
"""Where `AdmittedRequest` lies in the state of a call."""


@dataclass(frozen=True)
class AdmittedRequest:
    """A request that was let in.

    Attributes:
        pool: Which one it is for; None for all agents together.
        left: Returns when nobody waits for an answer any more.
    """

    call: ApiCall
    pool: PoolId | None
    base_url: str
    left: Callable[[], Awaitable[None]]


def is_old(headers: Mapping[str, str]) -> bool:
    """Whether a client speaks A2A 0.3, which has no header for it: it names no version 1."""
    return headers.get("a2a-version", "").partition(".")[0] != "1"
