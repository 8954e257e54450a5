"""A group on the real machine, without a network: a payload that the machine refuses raises."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from ioa.agent.groups.group_history import gathering_offer
from ioa.agent.turn_view import TurnView
from ioa.errors import ForbiddenError
from ioa.group.events import Event, GroupLaunched, MemberJoined, Said, name_of
from ioa.group.machine import legal_kinds, step
from ioa.group.state import Charter, ClosedTask, GroupState
from ioa.ports.brain import Contact, FileReader, Invite, NoFiles, TaskRecord
from ioa.protocol.cards import AgentCard
from ioa.protocol.goals import Artifact
from ioa.protocol.ids import AgentId, MessageId, TaskId
from ioa.protocol.messages import (
    AsyncTaskAssignment,
    Header,
    InformTaskResult,
    Message,
    Payload,
    SyncTaskAssignment,
    TaskSpec,
    rejects_of,
)
from ioa.protocol.search import Hit, Need, NeedHits, SearchResult
from tests.unit.agent.whole_conclusion import in_a_message

START = datetime(2026, 1, 1, tzinfo=UTC)


def card(agent_id: str, description: str, *, may_team_up: bool = True) -> AgentCard:
    """Make a card."""
    return AgentCard.model_validate(
        {"agent_id": agent_id, "name": agent_id, "description": description, "may_team_up": may_team_up, "uses_model": True}
    )


@dataclass
class WordSearch:
    """Team tools over a few cards. False in that agents are found by the words they share with the need."""

    cards: Sequence[AgentCard]
    least_similarity: float = 0.45
    searches: int = 0
    known: tuple[Contact, ...] = ()

    async def search_client(self, needs: Sequence[Need]) -> SearchResult:
        """Rank the cards; the eleventh search is refused."""
        self.searches += 1
        if self.searches > 10:
            raise ForbiddenError("The ten calls are spent.")
        by_need = tuple(NeedHits(need=need, hits=self._hits(need)) for need in needs)
        return SearchResult(by_need=by_need)

    async def contacts(self) -> Sequence[Contact]:
        """List the contacts that were set."""
        return self.known

    def _hits(self, need: Need) -> tuple[Hit, ...]:
        wanted = set(re.findall(r"\w+", need.text.lower()))
        scored = [(len(wanted & set(re.findall(r"\w+", card.description.lower()))), card) for card in self.cards]
        best = sorted(scored, key=lambda pair: -pair[0])[: need.k]
        return tuple(Hit(card=card, score=score, similarity=min(1.0, self.least_similarity + score / 10)) for score, card in best)


@dataclass
class Group:
    """One group as its members see it, moved by the real machine."""

    charter: Charter
    state: GroupState
    at: datetime = START
    messages: list[Message] = field(default_factory=list)
    specs: list[TaskSpec] = field(default_factory=list)
    reports: dict[TaskId, tuple[str, tuple[Artifact, ...]]] = field(default_factory=dict)
    log: list[Message | TaskRecord] = field(default_factory=list)
    begun: set[TaskId] = field(default_factory=set)
    rejected: dict[TaskId, str] = field(default_factory=dict)
    granted: datetime = START
    files: FileReader = field(default_factory=NoFiles)
    thoughts: dict[int, str] = field(default_factory=dict)
    joined: dict[int, AgentId] = field(default_factory=dict)
    kept: defaultdict[AgentId, dict[type, Any]] = field(default_factory=lambda: defaultdict(dict))

    @classmethod
    def launch(cls, charter: Charter) -> Group:
        """Open a group."""
        return cls(charter, step(None, GroupLaunched(at=START, charter=charter)).state)

    def happen(self, event: Event) -> None:
        """Apply an event.

        Raises:
            IllegalEventError: The machine refuses it.
        """
        before, self.state = self.state, step(self.state, event).state
        self.begun |= {task.task_id for task in self.state.open_tasks}
        if isinstance(event, Said):
            self._note(event.message)
        if self.state.turn != before.turn:
            self.granted = event.at
        reported = event.message.payload if isinstance(event, Said) else None
        for task in self.state.tasks:
            was = before.task(task.task_id)
            ended = isinstance(task, ClosedTask) and not isinstance(was, ClosedTask)
            if ended and not (isinstance(reported, InformTaskResult) and reported.task_id == task.task_id):
                self.log.append(self._record(next(spec for spec in self.specs if spec.task_id == task.task_id)))

    def say(self, sender: AgentId, payload: Payload | Invite, turn: int | None = None) -> None:
        """Send a message; an invitation is none.

        Raises:
            IllegalEventError: The machine refuses it.
        """
        assert not isinstance(payload, Invite)
        self.at += timedelta(seconds=1)
        header = Header(
            message_id=MessageId(f"m{len(self.messages)}"),
            comm_id=self.state.comm_id,
            sender=sender,
            state=self.state.phase,
            turn=self.state.turn if turn is None else turn,
            after=len(self.messages),
            sent_at=self.at,
        )
        message = Message(header=header, payload=in_a_message(payload))
        self.happen(Said(at=self.at, message=message))

    def invite(self, by: AgentId, newcomer: AgentCard, why: str = "") -> None:
        """Have an agent join, as group setup does.

        Raises:
            IllegalEventError: The machine refuses it.
        """
        turn = self.state.turn
        self.happen(MemberJoined(at=self.at, card=newcomer, by=by, turn=turn, why=why))
        self.charter = self.charter.model_copy(update={"team_members": (*self.charter.team_members, newcomer)})
        self.joined[turn] = newcomer.agent_id

    def _note(self, message: Message) -> None:
        payload = message.payload
        self.messages.append(message)
        self.log.append(message)
        self.rejected |= {one.task_id: one.why for one in rejects_of(payload)}
        if isinstance(payload, SyncTaskAssignment | AsyncTaskAssignment):
            self.specs += payload.tasks
        if isinstance(payload, InformTaskResult):
            self.reports[payload.task_id] = payload.task_conclusion, payload.artifacts

    def view(self, me: AgentId) -> TurnView:
        """What a member knows."""
        return TurnView(
            me=me,
            charter=self.charter,
            state=self.state,
            messages=tuple(self.messages),
            tasks=tuple(self._record(spec) for spec in self.specs),
            legal=tuple(map(name_of, legal_kinds(self.state, me, self.at))),
            reachable=self.state.reachable(self.at),
            log=tuple(self.log),
            at=self.granted,
            files=self.files,
            thoughts=self.thoughts,
            offer=gathering_offer(self.state, me),
            joined=dict(self.joined),
            kept=self.kept[me],
        )

    def _record(self, spec: TaskSpec) -> TaskRecord:
        task = self.state.task(spec.task_id)
        text, files = self.reports.get(spec.task_id, ("", ()))
        started, rejected = spec.task_id in self.begun, self.rejected.get(spec.task_id, "")
        if not isinstance(task, ClosedTask):
            return TaskRecord(spec, None, text, files, started=started)
        return TaskRecord(spec, task.outcome, text or task.why, files, started=started, rejected=rejected)
