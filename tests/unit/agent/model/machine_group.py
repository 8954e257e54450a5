"""A group on the real machine, without a network: a payload that the machine refuses raises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from ioa.agent.groups.group_history import GroupHistory
from ioa.agent.turn_view import TurnView
from ioa.errors import UnavailableError
from ioa.group.events import Entry, Event, GroupLaunched, MemberJoined, Said
from ioa.group.machine import step
from ioa.group.requests import SequencedEntry
from ioa.group.state import GroupState
from ioa.ports.brain_types import Contact, FileReader, Invite, NoFiles
from ioa.ports.meter import Meter
from ioa.protocol.agents.search import Hit, Need, NeedHits, SearchResult
from ioa.protocol.cards import AgentCard
from ioa.protocol.ids import AgentId, MessageId
from ioa.protocol.messages import Header, Message, Payload
from ioa.protocol.setup.charter import Charter
from tests.unit.agent.whole_conclusion import in_a_message

START = datetime(2026, 1, 1, tzinfo=UTC)


def card(agent_id: str, description: str = "does things", **more: object) -> AgentCard:
    """Return a card with the given fields."""
    return AgentCard.model_validate({"agent_id": agent_id, "name": agent_id, "description": description, **more})


@dataclass
class Found:
    """Team tools that find each agent by a word of the need, with a similarity. False in that nothing is embedded.

    Attributes:
        agents: The cards, each with its words and their similarities.
        is_away: Discovery does not answer.
        searches: Number of requests; the eleventh is refused.
    """

    agents: Sequence[tuple[AgentCard, Mapping[str, float]]]
    is_away: bool = False
    searches: int = 0

    async def search_client(self, needs: Sequence[Need]) -> SearchResult:
        """Look the needs up, best first."""
        self.searches += 1
        if self.is_away:
            raise UnavailableError("discovery is away")
        return SearchResult(by_need=tuple(NeedHits(need=need, hits=self._hits(need.text.lower())) for need in needs))

    async def contacts(self) -> Sequence[Contact]:
        """Return no contact."""
        return ()

    def _hits(self, text: str) -> tuple[Hit, ...]:
        near = [(max((words[word] for word in words if word in text), default=0.05), agent) for agent, words in self.agents]
        return tuple(Hit(card=agent, score=value, similarity=value) for value, agent in sorted(near, key=lambda pair: -pair[0]))


class Group:
    """One group as its members see it, moved by the real machine."""

    def __init__(self, charter: Charter) -> None:
        self.history = GroupHistory(charter.comm_id)
        self.at = START
        self.files: FileReader = NoFiles()
        self.happen(GroupLaunched(at=START, charter=charter))

    @property
    def state(self) -> GroupState:
        """The state of the group."""
        return self.history.state

    @property
    def charter(self) -> Charter:
        """How the group was launched, with the members that joined."""
        return self.history.charter

    def change_charter(self, **fields: object) -> None:
        """Let the charter say something else."""
        self.history.charter = self.charter.model_copy(update=fields)

    def happen(self, event: Event) -> None:
        """Apply an event.

        Raises:
            IllegalEventError: The machine refuses it.
        """
        after, cursor = step(self.history.state if self.history.is_launched else None, event), self.history.cursor
        entry = Entry(event=event, state=after.state, audience=after.audience)
        self.history.apply(SequencedEntry(seq=cursor + 1, previous_seq=cursor, entry=entry))

    def say(self, sender: AgentId, payload: Payload | Invite, turn: int | None = None) -> None:
        """Send a message a second later; an invitation is none.

        Raises:
            IllegalEventError: The machine refuses it.
        """
        assert not isinstance(payload, Invite)
        self.at += timedelta(seconds=1)
        turn = self.state.turn if turn is None else turn
        self.happen(Said(at=self.at, message=self._message(sender, in_a_message(payload), turn)))

    def invite(self, by: AgentId, newcomer: AgentCard, why: str = "") -> None:
        """Add a member, as group setup does."""
        self.happen(MemberJoined(at=self.at, card=newcomer, by=by, turn=self.state.turn, why=why))

    def view(self, me: AgentId) -> TurnView:
        """What a member knows."""
        return self.history.view(me, self.at, Meter(), files=self.files)

    def _message(self, sender: AgentId, payload: Payload, turn: int) -> Message:
        about = {"comm_id": self.state.comm_id, "sender": sender, "state": self.state.phase, "turn": turn}
        header = Header(message_id=MessageId(f"m{self.history.cursor}"), after=0, sent_at=self.at, **about)
        return Message(header=header, payload=payload)
