"""For whom work is done that takes turns, such as asking a model: said once where it begins, and known to whatever it comes to.

What agents of several tenants share, as one model for all of a process, sees no goal. It is not told through each question, so that
no author's model or brain has to hand it on. A task of asyncio starts with what its maker works for.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import NamedTuple

from ioa.protocol.ids import TenantId


class AskedFor(NamedTuple):
    """Whose goal something is done for.

    Attributes:
        tenant: None: the one that the process belongs to.
        user: Known by this name within the tenant alone.
    """

    tenant: TenantId | None = None
    user: str = ""


_NOBODY = AskedFor()

asked_for: ContextVar[AskedFor] = ContextVar("asked_for", default=_NOBODY)


def work_for(user: str) -> None:
    """Do what this task goes on with for a user, of the tenant for which it works."""
    asked_for.set(asked_for.get()._replace(user=user))
