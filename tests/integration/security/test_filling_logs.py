"""One agent says little that is stored and shown as much, or reads pages without end, while an honest one leads goals."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta

import pytest

from ioa.adapters.nats.inspection import open_inspection
from ioa.adapters.nats.topology import LOG
from ioa.beside import beside
from ioa.cli.examination import quotas_finding
from ioa.errors import IoaError
from ioa.group.requests import Accepted, LaunchGroup, Rejected, Sync
from ioa.group.state import GroupState
from ioa.ports.inspection import DROPPED
from ioa.protocol.cards import AgentCard
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.ids import AgentId, GoalName, MessageId, TaskId
from ioa.protocol.messages import AsyncTaskAssignment, Header, InformTaskProgress, Message, Payload, Phase, TaskQuestion, TaskSpec
from ioa.protocol.usage import Usage
from ioa.testing.manual_clock import NEW_YEAR
from tests.integration.security import town as towns
from tests.integration.security.secured import open_intruder, told_of, until_told
from tests.integration.security.town import BOB, MALLORY, SLACK_SECONDS, SOON, USER, Town
from tests.rig.deadline import eventually

_TASKS, _ASKING = 17, 4
"""How many tasks ask as much as they can, and how many questions are taken: together they take 100 kB of each entry."""
_SECONDS = 5.0
_MOST_A_SECOND = 3_200_000 + 12_800_000 / _SECONDS


@pytest.fixture(autouse=True)
def _of_this_release(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have agents know the rules of today."""
    of_before = towns.card

    def of_today(agent_id: AgentId, pool: str) -> AgentCard:
        return of_before(agent_id, pool)

    monkeypatch.setattr(towns, "card", of_today)


class _Leader:
    """Mallory, who leads a goal of hers with much that is asked in it."""

    def __init__(self, town: Town, state: GroupState) -> None:
        self.me, self.state = town.agents[MALLORY], state

    async def say(self, payload: Payload, name: str, usage: Usage | None = None) -> Accepted | Rejected:
        """Say something in this turn."""
        header = Header(
            message_id=MessageId(f"{self.state.comm_id}-{name}"),
            comm_id=self.state.comm_id,
            sender=MALLORY,
            state=Phase.DISCUSSING,
            turn=self.state.turn,
            after=0,
            sent_at=NEW_YEAR,
            session=self.me.session.session,
            usage=usage,
        )
        answer = await self.me.network.say(Message(header=header, payload=payload))
        if isinstance(answer, Accepted) and answer.entry is not None:
            self.state = answer.entry.entry.state
        return answer

    async def report(self, task: int) -> None:
        """Report without end that a task has cost one token more."""
        number = 0
        while True:
            number += 1
            report = InformTaskProgress(task_id=TaskId(f"t1-{task}"), number=number)
            with suppress(IoaError):
                await self.say(report, f"{task}-{number}", Usage(tokens_in=1))

    async def sync(self, _number: int) -> None:
        """Read the log from its beginning without end."""
        while True:
            with suppress(IoaError):
                await self.me.network.sync(Sync(agent_id=MALLORY, comm_id=self.state.comm_id, after=0))


async def _open(town: Town, max_tokens: int | None) -> _Leader:
    mallory = town.agents[MALLORY]
    goal_id = await town.user.launch(GoalOrder(goal="Count.", agent=MALLORY, max_tokens=max_tokens))
    await eventually(lambda: GoalName(USER, goal_id) in mallory.given.names, within=SOON)
    request = LaunchGroup(
        owner=MALLORY,
        members=(BOB,),
        goal_id=goal_id,
        user=USER,
        session=mallory.session.session,
        ticket=mallory.given.ticket_of(goal_id, USER),
    )
    leader = _Leader(town, (await mallory.network.launch(request)).state)
    tasks = [TaskSpec(task_id=TaskId(f"t1-{at + 1}"), assignee=MALLORY, task_desc="c") for at in range(_TASKS)]
    await leader.say(AsyncTaskAssignment(tasks=tuple(tasks)), "tasks")
    now, words = datetime.now(UTC), tuple(f"{at:02}" + "𐍈" * 198 for at in range(16))
    asked = {"text": "𐍈" * 2_000, "options": words, "default": words[0], "until": now + timedelta(minutes=5)}
    taken = [await leader.say(TaskQuestion(task_id=task.task_id, number=1, **asked), task.task_id) for task in tasks]
    assert [isinstance(answer, Accepted) for answer in taken] == [True] * _ASKING + [False] * (_TASKS - _ASKING)
    return leader


@asynccontextmanager
async def _at_work(leader: _Leader, what: Callable[[int], Coroutine[object, object, None]]) -> AsyncIterator[None]:
    async with beside(*(what(number) for number in range(1, 9))):
        yield


async def _stored_bytes(town: Town) -> int:
    async with open_intruder(town.secured, "admin") as admin:
        return (await admin.jetstream().stream_info(LOG)).state.bytes


@pytest.mark.parametrize(("max_tokens", "most"), [(None, 4_000_000), (10**9, _SECONDS * _MOST_A_SECOND)], ids=["free", "budget"])
async def test_small_reports_do_not_fill_the_logs(town: Town, max_tokens: int | None, most: float) -> None:
    """Without a budget what a report cost is no entry; with one entries are charged by their bytes, and who makes them is named."""
    usual, leader = await town.lead_some(), await _open(town, max_tokens)
    before = await _stored_bytes(town)
    async with open_inspection(town.secured.settings("observer"), patience=SOON) as inspection, _at_work(leader, leader.report):
        took = await town.lead_some()
        await asyncio.sleep(max(0.0, _SECONDS - took))
        named = quotas_finding([one for one in await told_of(inspection) if one.family != DROPPED]).message
    assert (await _stored_bytes(town) - before < most, "mallory" in named, "bob (" in named) == (True, True, False), named
    assert took <= 3 * usual + SLACK_SECONDS, f"undisturbed they take {usual:.3f} s"


async def test_who_reads_pages_without_end_is_slowed_down_and_named(town: Town) -> None:
    """By what it is answered: pages of a megabyte count as many, and are read for one agent after another."""
    usual, leader = await town.lead_some(), await _open(town, None)
    async with open_inspection(town.secured.settings("observer"), patience=SOON) as inspection, _at_work(leader, leader.sync):
        await until_told(
            inspection,
            lambda found: (MALLORY, "sync") in {(one.caller, one.family) for one in found},
            within=SOON,
        )
        took = await town.lead_some()
    assert took <= 3 * usual + SLACK_SECONDS, f"undisturbed they take {usual:.3f} s"
