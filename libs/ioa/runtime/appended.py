"""What each agent has appended to groups' logs, and pushed to their members: a small message may be an entry of megabytes.

An entry carries the state of its group, so that its bytes tell what it costs, and not those of what was said. They are known when
it is appended: whoever has had more appended than he may is told when to come back before the next one is looked at.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta

import structlog

from ioa.errors import RateLimitedError
from ioa.group.events import (
    Entry,
    Event,
    GroupLaunched,
    MemberJoined,
    MemberLost,
    MemberReturned,
    MessageRefused,
    RepetitionRefused,
    Said,
    SubgroupAsked,
    SubgroupClosed,
    SubgroupOpened,
)
from ioa.group.state import GroupState
from ioa.group.tasks import bytes_asked
from ioa.ports.inspection import FILLING, SlowedCaller
from ioa.protocol.ids import AgentId
from ioa.quotas import RATES, SLOWED_FOR, Admitted, Buckets, Family, Rate
from ioa.runtime.group_quota import CLOSES

_PUSHED_PART = 16
"""An entry that is shown to so many counts for them as much as for being stored: it is not kept there."""
_COME_BACK = timedelta(seconds=5)
"""When somebody is to come back who does not listen, or who has filled the logs of all."""

_PART = 4
"""So many times what is left for logs may be one agent's: alone it has four fifths, beside another as greedy four ninths."""
_LITTLE_BYTES = 4_000_000
"""Who has had less appended has filled nothing, however little is left."""
_FORGOTTEN = 86_400.0
"""After so many seconds half of what somebody has had appended counts no more."""
_MOST_AGENTS = 16_384

_log = structlog.get_logger(__name__)


def _nobody(_caller: str, _family: Family) -> None:
    """Tell nobody."""


class Appended:
    """Counts, by agent, the bytes of what it has appended.

    Args:
        now: Tells the time in seconds; it never goes back.
        rate: How much of it one agent may, in kB.
        slowed: Is told of an agent that has more appended, once in a while.
        little_bytes: Who has had no more appended fills no logs.
    """

    def __init__(
        self,
        now: Callable[[], float],
        rate: Rate = RATES[Family.LOGS],
        slowed: Callable[[str, Family], None] = _nobody,
        little_bytes: int = _LITTLE_BYTES,
    ) -> None:
        self._now = now
        self._buckets = Buckets({Family.LOGS: rate})
        self._slowed = slowed
        self._little_bytes = little_bytes
        self._held: dict[AgentId, tuple[float, float]] = {}
        """How many bytes each agent has had stored, as of when."""
        self._told: dict[AgentId, float] = {}
        """When somebody was told last that others need the room."""

    def check(self, agent_id: AgentId) -> None:
        """See that an agent may have something appended now.

        Raises:
            RateLimitedError: It has had too much. It is told when to come back.
        """
        judged = self._buckets.judge(agent_id, Family.LOGS, self._now())
        if isinstance(judged, Admitted):
            return
        if judged.is_first:
            _log.warning("caller_slowed_down", caller=agent_id, family=Family.LOGS.value)
            self._slowed(agent_id, Family.LOGS)
        raise RateLimitedError(
            f"What {agent_id} says makes entries that are too many bytes together.",
            retry_after=_COME_BACK if judged.retry_after is None else timedelta(seconds=judged.retry_after),
            hint="Entries carry the open tasks of their group, with what these ask: have fewer open, or say them in fewer words.",
        )

    def note(self, entry: Entry, size_bytes: int) -> None:
        """Charge whoever has caused an entry of so many bytes, which is pushed to its audience."""
        agent_id, now = _caused_by(entry.event, entry.state), self._now()
        weight = size_bytes + size_bytes * len(entry.audience) // _PUSHED_PART
        self._buckets.charge(agent_id, Family.LOGS, now, answered_bytes=weight)
        if len(self._held) >= _MOST_AGENTS and agent_id not in self._held:
            del self._held[min(self._held, key=lambda one: self._bytes_of(one, now))]
        self._held[agent_id] = (self._bytes_of(agent_id, now) + size_bytes, now)

    def check_room(self, event: Event, free_bytes: int | None) -> None:
        """Put off what somebody begins who has filled the logs of all; what leads to the end of a group is always taken.

        What he has had appended here counts, the older the less, and against what is left: so who fills the logs is stopped while
        there is room for others, and nobody is as long as there is enough. He is not told to conclude: a goal would end with half
        an answer.

        Args:
            event: What is to be appended. A member is lost, and a deadline passes, whoever has filled what: it has to be said.
            free_bytes: How much is left for all; None is no bound.

        Raises:
            RateLimitedError: It leads to no end. There may be room later.
        """
        agent_id, now = _begun_by(event), self._now()
        if free_bytes is None or agent_id is None:
            return
        held = self._bytes_of(agent_id, now)
        if held <= max(self._little_bytes, _PART * free_bytes):
            return
        if agent_id not in self._told:
            _log.warning("logs_filled", agent_id=agent_id, stored_bytes=round(held))
            self._slowed(agent_id, Family.LOGS)
        self._told[agent_id] = now
        if not (isinstance(event, Said) and isinstance(event.message.payload, CLOSES)):
            raise RateLimitedError(
                f"{agent_id} has filled so much of the room for logs that others need what is left.",
                retry_after=_COME_BACK,
                hint="Conclude, or wait until there is room again.",
            )

    def slowed(self) -> Sequence[SlowedCaller]:
        """Return who was refused lately, and how often; and who fills the logs, with how many MB."""
        now = self._now()
        self._told = {agent_id: at for agent_id, at in self._told.items() if now - at <= SLOWED_FOR}
        filling = [SlowedCaller(one, FILLING, round(self._bytes_of(one, now) / 1e6)) for one in self._told]
        asking = [SlowedCaller(caller, family.value, refused) for (caller, family), refused in self._buckets.slowed(now).items()]
        return [*filling, *asking]

    def _bytes_of(self, agent_id: AgentId, now: float) -> float:
        held, at = self._held.get(agent_id, (0.0, now))
        return held * math.exp2((at - now) / _FORGOTTEN)


def _begun_by(event: Event) -> AgentId | None:
    """Whose doing an event is that may wait; None if it may not, or is nobody's."""
    match event:
        case Said():
            return event.message.header.sender
        case GroupLaunched():
            return event.charter.owner
        case MemberJoined() | SubgroupOpened():
            return event.by
        case MemberReturned():
            return event.agent_id
        case _:
            return None


def _caused_by(event: Event, state: GroupState) -> AgentId:
    """Who has caused an entry: whose doing it is, or else who asks most of what its state carries, and so the owner."""
    if (agent_id := _begun_by(event)) is not None:
        return agent_id
    match event:
        case MessageRefused() | RepetitionRefused():
            return event.by
        case MemberLost():
            return event.agent_id
        case SubgroupAsked() | SubgroupClosed() if (task := state.task(event.task_id)) is not None:
            return task.assignee
        case _:
            return _asks_most(state)


def _asks_most(state: GroupState) -> AgentId:
    asked = Counter[AgentId]()
    for task in state.open_tasks:
        asked[task.assignee] += bytes_asked(task)
    return max(asked, key=lambda agent_id: asked[agent_id]) if asked.total() else state.owner
