"""Reads of streams over the gateway's connection: few at once, round-robin by user.

nats-server disconnects a client that leaves several megabytes unread, and one read returns up to two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from contextvars import ContextVar

from ioa.fair_semaphore import FairSemaphore
from ioa.protocol.ids import UserId

MAX_READS, MAX_READS_PER_USER = 6, 3
"""Reads that run at once, of all users and of one."""
ITSELF = UserId("_itself")
"""The gateway itself. No user has this name."""
reads_for: ContextVar[UserId] = ContextVar("reads_for", default=ITSELF)
"""The user for whom a task reads."""


@contextmanager
def reading_as(user: UserId) -> Iterator[None]:
    """Read for a user while the block runs."""
    before = reads_for.set(user)
    try:
        yield
    finally:
        reads_for.reset(before)


def read_slots() -> Callable[[], AbstractAsyncContextManager[None]]:
    """Return a function that returns a slot for one read for the current user."""
    slots = FairSemaphore(MAX_READS, MAX_READS_PER_USER)
    return lambda: slots.slot(reads_for.get())
