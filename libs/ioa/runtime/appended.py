"""What each agent has appended to groups' logs, and pushed to their members: a small message may be an entry of megabytes.

An entry carries the state of its group, so that its bytes tell what it costs, and not those of what was said. They are known when
it is appended: whoever has had more appended than he may is told when to come back before the next one is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ioa.errors import RateLimitedError
from ioa.group.events import (
    Entry,
    Event,
    GroupLaunched,
    LaunchAbandoned,
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
from ioa.group.tasks import open_bytes_by
from ioa.ports.group_log import StoredEntry
from ioa.ports.inspection import FILLING, SlowedCaller
from ioa.ports.store_room import SUBJECT_BYTES, StoreRoom
from ioa.protocol.codec import encode
from ioa.protocol.ids import LOCAL, AgentId, UserId
from ioa.protocol.messages import InformTaskResult
from ioa.protocol.policy import people_of
from ioa.quotas import RATES, Family, Rate
from ioa.runtime.caller_pace import COME_BACK, CallerPace, tell_nobody
from ioa.runtime.group_quota import CLOSES
from ioa.runtime.stored_shares import StoredShares

_PART_TOGETHER = 9
"""So many times what is left may be what one agent has had appended in goals of several users, or several agents in those of one:
nine tenths. Nobody can tell whose doing it is that an agent speaks much in the goals of a user: so both are stopped together,
before either is stopped with others."""
_PUSHED_PART = 16
"""An entry that is shown to so many counts for them as much as for being stored: it is not kept there."""
_PART_TO_END, _SHORT_BYTES = 9, 16_000
"""Who has filled four fifths of the logs ends his groups all the same, with messages of any length until he has nine tenths, and
then with short ones: a conclusion may have a megabyte, and it is stored as a result, too."""
_PART_FOR_RESULTS = 19
"""From nineteen twentieths on results of tasks wait as well, of which each carries its group's state: one user's goals may have
25,600 of them together. What ends a group comes once for each."""


class Appended:
    """Counts, by agent, the bytes of what it has appended.

    Args:
        now: Tells the time in seconds; it never goes back.
        rate: How much of it one agent may, in kB.
        slowed: Is told of an agent that has more appended, once in a while.
        filling: Who fills the logs of all.
    """

    def __init__(
        self,
        now: Callable[[], float],
        rate: Rate = RATES[Family.LOGS],
        slowed: Callable[[str, Family], None] = tell_nobody,
        filling: StoredShares | None = None,
    ) -> None:
        self._pace = CallerPace(now, Family.LOGS, rate, slowed)
        self._filling = filling or StoredShares(now, FILLING, slowed)
        self._together = StoredShares(now, FILLING, slowed, part=_PART_TOGETHER)

    def check(self, agent_id: AgentId) -> None:
        """See that an agent may have something appended now.

        Raises:
            RateLimitedError: It has had too much. It is told when to come back.
        """
        after = self._pace.put_off(agent_id)
        if after is None:
            return
        raise RateLimitedError(
            f"What {agent_id} says makes entries that are too many bytes together.",
            retry_after=after,
            hint="Entries carry the open tasks of their group, with what these ask: have fewer open, or say them in fewer words.",
        )

    def check_return(self, agent_id: AgentId, head: StoredEntry) -> None:
        """See that a group may be told now that a member is back.

        Who restarts is not told of in other groups later, and neither he nor who makes entries large pays for the other elsewhere:
        how often he was lost and back among such groups is counted by itself.

        Args:
            agent_id: Who is back.
            head: Where the group stands.

        Raises:
            RateLimitedError: He was lost and back too often in groups that are large by the same member.
        """
        maker = _made_large_by(head.entry.state, head.size_bytes)
        after = self._pace.put_off(_as_back(agent_id, maker))
        if after is not None:
            why = f"That {agent_id} is lost and back makes too many bytes where {maker} makes entries large."
            raise RateLimitedError(why, retry_after=after)

    def note(self, entry: Entry, size_bytes: int) -> None:
        """Charge whoever has caused an entry of so many bytes, which is pushed to its audience; a goal's last is a result, too."""
        agent_id, state = _caused_by(entry.event, entry.state, size_bytes), entry.state
        weight = size_bytes + size_bytes * len(entry.audience) // _PUSHED_PART
        is_there_or_not = isinstance(entry.event, MemberLost | MemberReturned)
        self._pace.charge(_as_back(agent_id, _made_large_by(state, size_bytes)) if is_there_or_not else agent_id, weight)
        is_result = state.phase.is_terminal and state.parent is None
        stored_bytes = (2 if is_result else 1) * size_bytes + SUBJECT_BYTES * _subjects_of(entry.event)
        for filling, who in self._who_fills(agent_id, state.user):
            filling.note(who, stored_bytes)

    def note_again(self, agent_id: AgentId, entry: Entry, size_bytes: int) -> None:
        """Charge whoever has an entry of so many bytes pushed to its audience once more; it is stored already."""
        self._pace.charge(agent_id, size_bytes * len(entry.audience) // _PUSHED_PART)

    def _who_fills(self, agent_id: AgentId, user: UserId | None) -> Sequence[tuple[StoredShares, str]]:
        """Say as whose doing an entry counts: an agent's, where users are known in the goals of each by itself."""
        if user is None or user == LOCAL:
            return [(self._filling, agent_id)]
        return [(self._filling, f"{agent_id} for {user}"), (self._together, agent_id), (self._together, user_as_filling(user))]

    def check_room(self, event: Event, user: UserId | None, room: StoreRoom | None) -> None:
        """Put off what somebody begins who has filled the logs of all; what leads to the end of a group is always taken.

        What he has had appended here counts, the older the less, and against what is left: so who fills the logs is stopped while
        there is room for others, and nobody is as long as there is enough. He is not told to conclude: a goal would end with half
        an answer.

        Args:
            event: What is to be appended. A member is lost, and a deadline passes, whoever has filled what: it has to be said.
            user: In whose goal.
            room: How much is left for all; None is no bound.

        Raises:
            RateLimitedError: It leads to no end, or in too many words. There may be room later.
        """
        if room is None or not (self._filling.may_put_off(room) or self._together.may_put_off(room)):
            return
        agent_id = _begun_by(event)
        if agent_id is None:
            return
        counted = self._who_fills(agent_id, user)
        full = [who for filling, who in counted if filling.puts_off(who, room)]
        if not full:
            return
        ends = isinstance(event, Said) and isinstance(event.message.payload, CLOSES)
        if isinstance(event, Said) and isinstance(event.message.payload, InformTaskResult):
            of_user = [one for one in counted if one[1] != agent_id]  # and not what the agent has filled in goals of others
            ends = not _has_more(_PART_FOR_RESULTS, of_user or counted, room)
        if not ends or (_has_more(_PART_TO_END, counted, room) and _is_long(event)):
            raise RateLimitedError(
                f"{full[0]} has filled so much of the room for logs that others need what is left.",
                retry_after=COME_BACK,
                hint=f"Conclude in few words ({_SHORT_BYTES:,} bytes)." if ends else "Conclude, or wait until there is room again.",
            )

    def slowed(self) -> Sequence[SlowedCaller]:
        """Return who was refused lately, and how often; and who fills the logs, with how many MB."""
        fills = dict[str, SlowedCaller]()
        for one in (*self._filling.slowed(), *self._together.slowed()):  # a user is counted in both: by goals forked for him, too
            fills[one.caller] = max(fills.get(one.caller, one), one, key=lambda counted: counted.refused)
        return [*fills.values(), *self._pace.slowed()]


def _subjects_of(event: Event) -> int:
    """How many subjects begin with an entry: a log, and a membership of each person, who may be nobody, and never take it back."""
    match event:
        case LaunchAbandoned():
            return 1
        case GroupLaunched(charter=charter):
            return 1 if charter.policy is None else 1 + len(people_of(charter.policy, charter.cast))
        case _:
            return 0


def user_as_filling(user: UserId) -> str:
    """Return how a user is called among the agents that fill logs."""
    return f"user:{user}"


def _has_more(part: int, counted: Sequence[tuple[StoredShares, str]], room: StoreRoom) -> bool:
    """Whether one of those has had more stored than so many times what is left."""
    return any(filling.is_over(filling.held(who), room, part) for filling, who in counted)


def _is_long(event: Event) -> bool:
    return isinstance(event, Said) and len(encode(event.message)) > _SHORT_BYTES


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


def _as_back(agent_id: AgentId, maker: AgentId) -> str:
    return f"{agent_id} with {maker}"


def _caused_by(event: Event, state: GroupState, size_bytes: int) -> AgentId:
    """Who has caused an entry: whose doing it is, or else who has put most into it."""
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
            return _made_large_by(state, size_bytes)


def _made_large_by(state: GroupState, size_bytes: int) -> AgentId:
    """Who has put most into an entry: by tasks and questions, and what else it has is its owner's, who set the group up."""
    held = open_bytes_by(state)
    held[state.owner] += max(0, size_bytes - held.total())
    return max(held, key=lambda agent_id: held[agent_id])
