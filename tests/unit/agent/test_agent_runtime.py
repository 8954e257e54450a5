"""Agents lead goals, follow their groups and survive what a network, a disk and a process do to them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from ioa.agent.groups.turn import MAX_INVITES
from ioa.errors import RateLimitedError, UnavailableError
from ioa.group.requests import (
    Accepted,
    Entries,
    Rejected,
    SequencedEntry,
    Sync,
)
from ioa.ports.brain_types import Invite
from ioa.protocol.agents.outcomes import ReportOutcomes
from ioa.protocol.cards import ModelReport
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId, CommId, GoalId, comm_id_of_goal
from ioa.protocol.messages import (
    ConcludeGroupDiscussion,
    InformTaskProgress,
    Message,
)
from ioa.testing.scripted_brain import ScriptedBrain
from tests.rig.deadline import eventually
from tests.rig.hostile_folders import dig
from tests.rig.memory_plane import Push
from tests.unit.agent.company import GOAL, Company, idle, leading, one_task, open_company, task, task_beside, working

ROOM = comm_id_of_goal(GOAL.goal_id)
BOTH = ("lead", "worker")


async def _open(company: Company, brain: ScriptedBrain) -> None:
    await company.start(idle("worker"))
    await company.start(idle("lead"), brain)
    assert await company.network.offer(GOAL) == ROOM


@pytest.mark.parametrize("brain", [one_task, task_beside])
async def test_goal_has_the_result_of_its_leader(company: Company, brain: Callable[[], ScriptedBrain]) -> None:
    """A leader forms its team, has a task done and concludes; files of an earlier process, however deep, are removed."""
    dig(company.folder / "worker" / ROOM, depth=100)
    await _open(company, brain())
    result = await company.result()
    assert (result.reason, result.content, await company.have_left(BOTH)) == (Reason.CONCLUDED, "All done.", True)
    assert not (company.folder / "worker" / ROOM / "d").exists()


def _lost(_to: AgentId, _entry: SequencedEntry) -> Sequence[SequencedEntry]:
    return []


def _twice(_to: AgentId, entry: SequencedEntry) -> Sequence[SequencedEntry]:
    return [entry, entry]


class _Late:
    """Holds each push back until the next one, which then comes first."""

    def __init__(self) -> None:
        self._held: dict[tuple[AgentId, CommId], SequencedEntry] = {}

    def __call__(self, to: AgentId, entry: SequencedEntry) -> Sequence[SequencedEntry]:
        held = self._held.pop((to, entry.entry.state.comm_id), None)
        if held is None:
            self._held[to, entry.entry.state.comm_id] = entry
            return []
        return [entry, held]


@pytest.mark.parametrize("push", [_lost, _twice, _Late()], ids=["lost", "twice", "out of order"])
async def test_member_with_lost_or_repeated_pushes_applies_each_entry_once(company: Company, push: Push) -> None:
    """Entries are applied in order, and no message is sent twice."""
    company.network.deliver_pushes(push)
    await _open(company, one_task())

    result = await company.result()
    kinds = [message.payload.type for message in await company.messages(ROOM)]

    assert (result.reason, await company.have_left(BOTH), [kind for kind in kinds if "PROGRESS" not in kind]) == (
        Reason.CONCLUDED,
        True,
        ["SYNC_TASK_ASSIGNMENT", "INFORM_TASK_RESULT", "CONCLUDE_GROUP_DISCUSSION", "CONCLUSION"],
    )


async def test_turn_above_its_invitations_is_refused(company: Company) -> None:
    """The brain gets the reason, and its turn continues."""
    names = ("ann", "ben", "cid", "dan")
    brain = leading(*(Invite(AgentId(name)) for name in ("ann", *names)))
    for name in names:
        await company.start(idle(name))
    await _open(company, brain)
    await company.result()
    state = await company.state(ROOM)
    assert state is not None and [one.agent_id for one in state.members] == ["lead", "worker", *names[:MAX_INVITES]]
    told = brain.views[-2].refusals
    assert [why.partition(":")[0] for why in told] == [
        "ann is in the group, or was removed from it",
        "This turn has 3 invitations, which is the maximum",
    ]


async def test_agent_repeats_requests_during_an_outage(company: Company) -> None:
    """After the outage each message is in the log once."""
    began, let_go = asyncio.Event(), asyncio.Event()

    async def work(words: str) -> str:
        began.set()
        await let_go.wait()
        return "done"

    await company.give_task(work)
    await began.wait()
    company.network.reachable = False
    let_go.set()
    launched = (await company.network.entries(ROOM))[0].entry.event.at
    await eventually(lambda: company.members["worker"].store.finished_task(ROOM, launched, task().task_id))
    company.network.reachable = True

    result = await company.result()
    ids = [message.header.message_id for message in await company.messages(ROOM)]

    assert (result.reason, len(ids) - len(set(ids)), await company.have_left(BOTH)) == (Reason.CONCLUDED, 0, True)


async def test_agent_above_its_rate_retries_after_retry_after(company: Company) -> None:
    """Each message and each read of a log is rejected twice; nothing is lost, and the pauses are respected."""
    loop = asyncio.get_running_loop()
    pause, rejected, due = timedelta(milliseconds=20), Counter[object](), dict[object, float]()
    say, sync = company.network.say, company.network.sync

    def reject(request: object) -> None:
        assert loop.time() >= due.get(request, 0.0), "retried too early"
        rejected[request] += 1
        if rejected[request] <= 2:
            due[request] = loop.time() + pause.total_seconds() * 0.9
            raise RateLimitedError("Too many requests.", retry_after=pause)

    async def limited_say(message: Message) -> Accepted | Rejected:
        if not isinstance(message.payload, InformTaskProgress):
            reject(message.header.message_id)
        return await say(message)

    async def limited_sync(request: Sync) -> Entries:
        reject((request.agent_id, request.comm_id, request.after))
        return await sync(request)

    company.network.say, company.network.sync = limited_say, limited_sync  # type: ignore[method-assign]
    await _open(company, one_task())
    assert (await company.result()).reason is Reason.CONCLUDED
    assert any(count > 2 for count in rejected.values())


async def test_message_without_an_answer_is_repeated_with_its_id(tmp_path: Path) -> None:
    """The log contains it once."""
    async with open_company(tmp_path, silence=timedelta(hours=1)) as company:
        say, answered = company.network.say, set()

        async def say_and_lose_the_first_answer(message: Message) -> Accepted | Rejected:
            answer = await say(message)
            if message.header.message_id not in answered:
                answered.add(message.header.message_id)
                raise UnavailableError("The answer was lost.")
            return answer

        company.network.deliver_pushes(lambda to, entry: [] if to == "lead" else [entry])
        company.network.say = say_and_lose_the_first_answer  # type: ignore[method-assign]
        await company.start(idle("lead"), ScriptedBrain(utterances=[ConcludeGroupDiscussion()], conclusions=one_task().conclusions))
        await company.crash("lead")
        await company.network.offer(GOAL)
        await company.launch("lead")
        await company.restart("lead")

        result = await company.result()
        sent = [message.header.message_id for message in company.network.said]
        logged = [message.header.message_id for message in await company.messages(ROOM)]

    assert (result.reason, sent, logged) == (Reason.CONCLUDED, ["m-1", "m-1", "m-2"], ["m-1", "m-2"])


async def test_group_waits_while_the_store_cannot_be_written(company: Company) -> None:
    """While an agent's memory cannot be written its groups wait, and go on by themselves afterwards."""
    began, let_go = asyncio.Event(), asyncio.Event()
    runs = []

    async def work(words: str) -> str:
        runs.append(words)
        began.set()
        await let_go.wait()
        return "done"

    worker = await company.start(working(work))
    await company.start(idle("lead"), one_task())
    await company.network.offer(GOAL)
    await began.wait()
    worker.store.usable = False
    let_go.set()
    await eventually(lambda: worker.store.refusals)
    worker.store.usable = True

    result = await company.result()

    assert (result.reason, runs, await company.have_left(BOTH)) == (Reason.CONCLUDED, ["do t1"], True)


async def test_goals_published_again_after_a_loss_conclude_again(company: Company) -> None:
    """After all streams were deleted, the same goals are led and served again."""
    goals = [GOAL.model_copy(update={"goal_id": GoalId(f"goal-{number}")}) for number in range(3)]
    await company.start(idle("worker"))
    once = one_task()
    lead = ScriptedBrain(teams=[*once.teams] * 6, utterances=[*once.utterances] * 6, conclusions=[*once.conclusions] * 6)
    await company.start(idle("lead"), lead)
    before = [(await company.has_done(goal)).reason for goal in goals]
    await eventually(lambda: all(company.sessions(agent_id) == 0 for agent_id in BOTH))

    company.network.lose_everything()
    company.network.clock.advance(timedelta(seconds=1))
    after = [(await company.has_done(goal)).reason for goal in goals]

    assert (before, after) == ([Reason.CONCLUDED] * 3, [Reason.CONCLUDED] * 3)
    await company.have_left(BOTH)
    assert [contact.tasks_done for contact in await company.members["lead"].store.contacts()] == [6]


async def test_group_whose_log_is_gone_is_left(company: Company) -> None:
    """Its task is cancelled, and the agent continues."""
    began, stopped = asyncio.Event(), asyncio.Event()

    async def work(words: str) -> str:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return "never"

    await company.give_task(work)
    await began.wait()
    company.network.lose_everything()
    await stopped.wait()

    for agent_id in BOTH:
        store = company.members[agent_id].store
        await eventually(store.open_groups, lambda groups: not groups)
    await eventually(lambda: [company.sessions(agent_id) for agent_id in BOTH] == [0, 0])


async def test_failed_session_is_opened_again(company: Company) -> None:
    """After an unexpected error the agent pauses and follows the group again."""
    failures = iter([RuntimeError("odd"), RuntimeError("odd")])
    sync = company.network.sync

    async def failing(request: Sync) -> Entries:
        if request.agent_id == "worker":
            for failure in failures:
                raise failure
        return await sync(request)

    company.network.sync = failing  # type: ignore[method-assign]
    company.network.deliver_pushes(_lost)
    await company.start(idle("worker"))
    await company.start(idle("lead"), one_task())
    assert (await company.has_done()).reason is Reason.CONCLUDED


async def test_agent_with_a_model_reports_it_in_card_and_renewals(company: Company) -> None:
    """The card contains a patience of at most a minute, and each renewal the failures of the model."""

    class Modelled(ScriptedBrain):
        model, failures, patience = "large", 2, timedelta(minutes=10)

    await company.start(idle("lead"), Modelled())
    view, lead = company.network.plane.view, AgentId("lead")
    report = await eventually(lambda: view.model(lead))
    record = view.card(lead)
    assert report == ModelReport(name="large", failures=2)
    assert record is not None and (record.card.speaks, record.card.patience) == ("model", timedelta(minutes=1))


@pytest.mark.parametrize("is_served", [True, False], ids=["served", "away"])
async def test_leader_of_an_ended_group_stores_and_reports_outcomes(company: Company, is_served: bool) -> None:
    """The store and discovery count the task; without discovery the agent leaves the group too."""

    async def nobody_answers(request: ReportOutcomes) -> None:
        raise UnavailableError("Nobody serves it.")

    if not is_served:
        company.network.report_outcomes = nobody_answers  # type: ignore[method-assign]
    await _open(company, one_task())
    await company.result()
    [met] = await eventually(company.members["lead"].store.contacts)
    await eventually(lambda: company.sessions("lead") == 0)
    assert (met.card.agent_id, met.tasks_done, met.tasks_failed) == ("worker", 1, 0)
    reported = [(one.pool, one.need, one.done) for one in company.network.outcomes.kept.values()]
    assert reported == ([("worker", "do t1", True)] if is_served else [])
