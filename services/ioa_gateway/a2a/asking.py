"""Who asks by A2A, and for what."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
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
