"""Drive a goal through a brain and the real group machine in one process: what the router does, without a network.

The agents are false in that their tasks return a sentence; everything that decides is real. A payload that the machine refuses
raises, so that a run which ends has broken no rule.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from ioa.errors import ForbiddenError
from ioa.group.events import Event, GroupLaunched, LaunchAbandoned, Said, SubgroupClosed, SubgroupOpened
from ioa.group.machine import legal_kinds, step
from ioa.group.state import Charter, Ended, GroupState, Limits, OpenTask, ParentTask
from ioa.ports.brain import Alone, Brain, Contact, GroupView, Mission, NobodyFits, TaskRecord, TaskView, Team
from ioa.protocol.cards import AgentCard
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId, CommId, GoalId, MessageId, TaskId, comm_id_of_goal, comm_id_of_task
from ioa.protocol.messages import (
    AsyncTaskAssignment,
    Header,
    InformTaskProgress,
    InformTaskResult,
    Message,
    Payload,
    SyncTaskAssignment,
    TaskOutcome,
    TaskSpec,
)
from ioa.protocol.search import Hit, Need, NeedHits, SearchResult

START = datetime(2026, 1, 1, tzinfo=UTC)


def card(agent_id: str, description: str, *, may_team_up: bool = True) -> AgentCard:
    """Make a card."""
    return AgentCard.model_validate(
        {"agent_id": agent_id, "name": agent_id, "description": description, "may_team_up": may_team_up}
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
        merged = {hit.card.agent_id: hit for hits in by_need for hit in hits.hits}
        return SearchResult(by_need=by_need, merged=tuple(merged.values()))

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
    reports: dict[TaskId, str] = field(default_factory=dict)

    @classmethod
    def launch(cls, charter: Charter) -> Group:
        """Open a group."""
        return cls(charter, step(None, GroupLaunched(at=START, charter=charter)).state)

    def happen(self, event: Event) -> None:
        """Apply an event.

        Raises:
            IllegalEventError: The machine refuses it.
        """
        self.state = step(self.state, event).state

    def say(self, sender: AgentId, payload: Payload, turn: int | None = None) -> None:
        """Send a message.

        Raises:
            IllegalEventError: The machine refuses it.
        """
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
        message = Message(header=header, payload=payload)
        self.happen(Said(at=self.at, message=message))
        self.messages.append(message)
        if isinstance(payload, SyncTaskAssignment | AsyncTaskAssignment):
            self.specs += payload.tasks
        if isinstance(payload, InformTaskResult):
            self.reports[payload.task_id] = payload.task_conclusion

    def view(self, me: AgentId) -> GroupView:
        """What a member knows."""
        return GroupView(
            me=me,
            charter=self.charter,
            state=self.state,
            messages=tuple(self.messages),
            tasks=tuple(self._record(spec) for spec in self.specs),
            legal=legal_kinds(self.state, me),
        )

    def _record(self, spec: TaskSpec) -> TaskRecord:
        task = self.state.task(spec.task_id)
        outcome = None if task is None or isinstance(task, OpenTask) else task.outcome
        return TaskRecord(spec, outcome, self.reports.get(spec.task_id, ""), ())


@dataclass
class Driver:
    """Lead goals to their end: every member decides by the same brain."""

    brain: Brain
    cards: Sequence[AgentCard]
    max_turns: int = 6
    max_depth: int = 1
    groups: list[Group] = field(default_factory=list)

    async def reach(self, goal_id: str, goal: str, owner: AgentCard) -> GroupState:
        """Form a team for a goal, launch it and lead it to a terminal phase."""
        team = await self.brain.form_team(Mission(goal, (), owner, 0), WordSearch(self.cards))
        comm_id = comm_id_of_goal(GoalId(goal_id))
        if isinstance(team, NobodyFits):
            abandoned = LaunchAbandoned(
                at=START, comm_id=comm_id, goal_id=GoalId(goal_id), by=owner.agent_id, reason=Reason.NO_AGENT, content=goal
            )
            return step(None, abandoned).state
        return await self._lead(self._charter(comm_id, goal_id, goal, owner, team, depth=0))

    async def _lead(self, charter: Charter) -> GroupState:
        group = Group.launch(charter)
        self.groups.append(group)
        while not group.state.phase.is_terminal:
            holder = group.state.floor_holder
            if holder is None:
                await self._work(group, group.state.open_tasks[0])
                continue
            view = group.view(holder)
            concluding = "CONCLUSION" in view.legal
            group.say(holder, await (self.brain.conclude(view) if concluding else self.brain.speak(view)))
            for task in group.state.open_tasks:
                if task.progress == 0:
                    group.say(task.assignee, InformTaskProgress(task_id=task.task_id, number=1), task.turn)
            if len(group.messages) % 2 and group.state.open_tasks:
                await self._work(group, group.state.open_tasks[0])
        return group.state

    async def _work(self, group: Group, task: OpenTask) -> None:
        spec = next(spec for spec in group.specs if spec.task_id == task.task_id)
        me = next(card for card in self.cards if card.agent_id == task.assignee)
        approach = await self.brain.approach(TaskView(spec, me, group.view(task.assignee)), WordSearch(self.cards))
        if isinstance(approach, Alone):
            report = InformTaskResult(
                task_id=task.task_id,
                outcome=TaskOutcome.DONE,
                task_conclusion=f"{me.name} did this and the result is 42: {approach.task_desc[:200]}",
            )
            group.say(task.assignee, report, task.turn)
            return
        subgroup = comm_id_of_task(group.state.comm_id, task.task_id)
        group.happen(SubgroupOpened(at=group.at, task_id=task.task_id, by=task.assignee, subgroup=subgroup))
        parent = ParentTask(comm_id=group.state.comm_id, task_id=task.task_id)
        depth = group.state.depth + 1
        child = self._charter(subgroup, group.state.goal_id, spec.task_desc, me, approach, depth=depth, parent=parent)
        ended = (await self._lead(child)).stage
        assert isinstance(ended, Ended)
        group.reports[task.task_id] = ended.content
        closed = SubgroupClosed(at=group.at, task_id=task.task_id, subgroup=subgroup, reason=ended.reason, content=ended.content)
        group.happen(closed)

    def _charter(
        self,
        comm_id: CommId,
        goal_id: str,
        goal: str,
        owner: AgentCard,
        team: Team,
        *,
        depth: int,
        parent: ParentTask | None = None,
    ) -> Charter:
        members = [owner, *(card for card in self.cards if card.agent_id in team.members and card.agent_id != owner.agent_id)]
        return Charter(
            comm_id=comm_id,
            goal_id=GoalId(goal_id),
            goal=goal,
            owner=owner.agent_id,
            team_members=tuple(members),
            team_up_depth=depth,
            limits=Limits(max_turns=self.max_turns, max_depth=self.max_depth, deadline=START + timedelta(hours=1)),
            parent=parent,
        )
