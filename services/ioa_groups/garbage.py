"""Setting aside what waits in the queue of goals and is no goal. Agents may ask for it; only group setup writes dead letters."""

from __future__ import annotations

import hashlib

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
            ConflictError: It is a goal, which an agent of another version may not be able to read, or nothing is there that the
                asker was given. These are answered alike: any agent may ask for any place, and is not to learn where goals or
                anything else of others wait.
        """
        queued = await self._work.look(request.seq)
        if queued is None or hashlib.sha256(queued.data).hexdigest() != request.sha256:
            raise _nothing_to_set_aside(request.seq)
        try:
            decode(Goal, queued.data)
        except InvalidInputError as error:
            why = f"What waited in the queue of goals is none: {error.message}"
            key = f"work/{request.seq}"
            await self._dead.put(DeadReason.UNDELIVERABLE, why, subject=queued.subject, data=queued.data, key=key)
            return Acknowledged()
        raise _nothing_to_set_aside(request.seq)


def _nothing_to_set_aside(seq: int) -> ConflictError:
    return ConflictError(f"Place {seq} of the queue of goals holds nothing to set aside.")
