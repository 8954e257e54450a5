"""What agents are told whose version does not name its pool when it asks, and which nobody would hear otherwise."""

from __future__ import annotations

from ioa.errors import ForbiddenError
from ioa.protocol.subjects import parse_caller


async def refuse_old(subject: str, _data: bytes) -> bytes:
    """Refuse one, whatever it asks, with what to do.

    Raises:
        ForbiddenError: Always.
    """
    raise ForbiddenError(
        f"{parse_caller(subject)} runs on a version of IoA that is too old for this system: it does not say of which pool it is.",
        hint="Upgrade it. Where agents have keys, `ioa credentials upgrade` tells nats-server what those of this version may do.",
    )
