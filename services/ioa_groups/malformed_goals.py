"""Malformed messages in the work queue: group setup makes dead letters of them at an agent's request."""

from __future__ import annotations

import hashlib

from ioa.adapters.nats.stores.goal_records import NatsWorkQueue
from ioa.errors import ConflictError, InvalidInputError
from ioa.group.requests import SetAside
from ioa.ports.delivery import DeadLetters
from ioa.protocol.codec import decode
from ioa.protocol.dead_letters import DeadReason
from ioa.protocol.goals import Goal
from ioa.protocol.registry import Acknowledged


class MalformedGoals:
    """Make dead letters of queued messages that are not goals."""

    def __init__(self, work: NatsWorkQueue, dead: DeadLetters) -> None:
        self._work = work
        self._dead = dead

    async def set_aside(self, request: SetAside) -> Acknowledged:
        """Store a copy of a queued message as a dead letter, once. The agent then removes the message from the queue.

        Raises:
            ConflictError: The message is a goal, or the agent did not receive this message. Both cases have the same error, because
                an agent may name any sequence and must not learn where goals of other agents are queued.
        """
        queued = await self._work.look(request.seq)
        if queued is None or hashlib.sha256(queued.data).hexdigest() != request.sha256:
            raise _no_dead_letter(request.seq)
        try:
            decode(Goal, queued.data)
        except InvalidInputError as error:
            why = f"The queued message is not a goal: {error.message}"
            key = f"work/{request.seq}"
            await self._dead.put(DeadReason.UNDELIVERABLE, why, subject=queued.subject, data=queued.data, key=key)
            return Acknowledged()
        raise _no_dead_letter(request.seq)


def _no_dead_letter(seq: int) -> ConflictError:
    return ConflictError(f"The message {seq} of the work queue is a goal, or was not delivered to this agent.")
