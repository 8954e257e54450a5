"""The user for whose goal the current task works.

Components that agents share, such as a language model, serve users round-robin. They read the user here, so that brains and models
of authors need no parameter for it. An asyncio task inherits the value of the task that creates it.
"""

from __future__ import annotations

from contextvars import ContextVar

current_user: ContextVar[str] = ContextVar("current_user", default="")
