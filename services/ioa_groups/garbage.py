"""Setting aside what waits in the queue of goals and is no goal. Agents may ask for it; only group setup writes dead letters."""

from __future__ import annotations

from ioa.errors import ConflictError, InvalidInputError
from ioa.group.requests import SetAside
from ioa.ports.delivery import DeadLetters, DeadReason, WorkQueue
from ioa.protocol.codec import decode
from ioa.protocol.goals import Goal
from ioa.protocol.registry import Acknowledged


class QueueGarbage:
    """Answer agents that were given something that is no goal."""

    def __init__(self, work: WorkQueue, dead: DeadLetters) -> None:
        self._work = work
        self._dead = dead

    async def set_aside(self, request: SetAside) -> Acknowledged:
        """Keep a copy of a queued message as a dead letter, once; whoever asked then takes it off the queue.

        Raises:
            ConflictError: It is a goal. An agent of another version may not be able to read it, but this one's fellows are.
        """
        queued = await self._work.look(request.seq)
        if queued is None:
            return Acknowledged()
        try:
            decode(Goal, queued.data)
        except InvalidInputError as error:
            why = f"What waited in the queue of goals is none: {error.message}"
            key = f"work/{request.seq}"
            await self._dead.put(DeadReason.UNDELIVERABLE, why, subject=queued.subject, data=queued.data, key=key)
            return Acknowledged()
        # Whose it is, is not told to just anybody.
        raise ConflictError(f"Message {request.seq} of the queue is a goal: it stays there.")
