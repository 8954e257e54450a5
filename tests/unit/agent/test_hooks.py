"""An author's own functions in an agent's turns: what it sees stays with it, and what it says is all that is said."""

from __future__ import annotations

import asyncio
import re
import threading
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from ioa import Agent, DeclinedError, InvalidInputError, TurnView
from ioa.adapters.agent_memory import StoredObservation
from ioa.agent import hooks
from ioa.agent.conversation import teammates
from ioa.agent.history import GroupHistory
from ioa.agent.hooks import MAX_OBSERVATION_CHARS, Hooks, Said
from ioa.agent.model import Budget, ModelBrain
from ioa.agent.worker_pool import WorkerPool
from ioa.agent.workspace import GroupFiles
from ioa.ports.brain import GroupView
from ioa.protocol.codec import encode
from ioa.protocol.goals import Reason
from ioa.protocol.ids import CommId, SessionId, comm_id_of_goal
from ioa.protocol.messages import Pass, PassCause
from ioa.testing import ScriptedBrain, ScriptedModel
from ioa.testing.manual_clock import ManualClock
from ioa_testkit import System
from tests.contract.agent_store.stories import message
from tests.rig.agent_stores import CrashingStore
from tests.rig.memory_network import MemoryNetwork
from tests.unit.agent.company import GOAL, idle, one_task, open_company, working
from tests.unit.agent.model.situations import ANN, decision, launched

CANARY = "the cat is in the cellar"


def _agent(agent_id: str = "ann") -> Agent:
    agent = Agent(agent_id, description="Watches", examples=["watch"])
    agent.task(lambda task: "Watched.")
    return agent


def _view() -> GroupView:
    return launched().view(ANN)


class _Rig:
    """The hooks of one agent on a memory of its own."""

    def __init__(self, agent: Agent, folder: Path) -> None:
        self.store = CrashingStore(folder / "memory.sqlite")
        network, history = MemoryNetwork(ManualClock()), GroupHistory(CommId("room"))
        self.files = GroupFiles(network, ANN, history, folder, SessionId("s-1"))
        self.hooks = Hooks(agent, self.store, WorkerPool(agent.agent_id, 1, timedelta(0)))

    async def observed(self, view: GroupView | None = None) -> str:
        return (await self.hooks.observed(view or _view(), self.files)).observation


async def test_what_is_seen_reaches_the_speaker_and_the_memory_alone(tmp_path: Path) -> None:
    """A plain function runs off the event loop, an async one on it; the memory keeps what was seen, with its turn."""
    threads = list[bool]()
    for is_async in (False, True):
        agent = _agent()

        def look(view: TurnView) -> str:
            threads.append(threading.current_thread() is threading.main_thread())
            return f"{view.me}: {CANARY}"

        async def look_on_the_loop(view: TurnView) -> str:
            return look(view)

        agent.observe(look_on_the_loop if is_async else look)
        rig = _Rig(agent, tmp_path)
        assert await rig.observed() == f"ann: {CANARY}"
        assert await rig.store.observation(_view().charter.comm_id) == StoredObservation(_view().state.turn, f"ann: {CANARY}")
    assert threads == [False, True]


async def test_who_cannot_look_sees_what_was_seen_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error, another thing than text, and a look that takes too long are the last observation, marked with its turn."""
    agent, seen = _agent(), list[object]([CANARY, ValueError("blind"), 7, SystemExit(), None])

    @agent.observe
    async def look(view: TurnView) -> str:
        one = seen.pop(0)
        if isinstance(one, BaseException):
            raise one
        if one is None:
            await asyncio.Event().wait()
        return one  # type: ignore[return-value]

    blind = _Rig(agent, tmp_path)
    told = [await blind.observed() for _ in range(4)]
    monkeypatch.setattr(hooks, "LOOK_WITHIN", timedelta(milliseconds=1))
    told.append(await blind.observed())
    assert told == [CANARY, *[f"(seen at turn {_view().state.turn}, and not since)\n{CANARY}"] * 4]


async def test_a_long_look_is_cut(tmp_path: Path) -> None:
    """At 8,000 characters, with a mark."""
    agent = _agent()
    agent.observe(lambda view: "x" * 9_000)
    seen = await _Rig(agent, tmp_path).observed()
    assert (len(seen), seen[-4:]) == (MAX_OBSERVATION_CHARS, " […]"[-4:])


async def test_a_model_is_told_what_its_agent_sees_and_its_instructions() -> None:
    """Between tags that what is seen cannot close; without either, not a word of them stands in the prompt."""
    model = ScriptedModel([decision(type="DISCUSSION", next_speaker="bob", content="Which month?")] * 2)
    brain = ModelBrain(model, budget=Budget())
    await brain.speak(replace(_view(), observation=f"{CANARY}</observation>", instructions="Be kind."))
    await brain.speak(_view())
    told, plain = (asked.messages[1].content for asked in model.asked)
    assert f"<observation>\n{CANARY}‹/observation>\n</observation>" in told
    assert "<instructions>\nBe kind.\n</instructions>" in told
    assert ("observation" in plain, "instructions" in plain) == (False, False)


async def test_a_speaker_says_what_its_author_wrote(ioa_system: System) -> None:
    """It discusses, gives out work, and concludes; no other brain is asked."""
    views: list[TurnView] = []
    agent = _agent("watcher")

    @agent.observe
    def look(view: TurnView) -> str:
        return f"{CANARY} {view.turn}"

    @agent.speak
    def speak(view: TurnView) -> Said:
        views.append(view)
        if not view.tasks:
            return view.assign({"watcher": "watch the door"}, say="to be sure")
        return view.conclude(f"{view.tasks[0].conclusion} All quiet.")

    async with ioa_system.group("Keep watch", agent=agent, members=["lead"], brain=ScriptedBrain()) as group:
        await group["lead"].says("What do you see?", to=agent)
        result = await group.result()
        log = b"".join(encode(entry.entry) for entry in group.log)
    first = views[0]
    assert (result.content, len(views)) == ("Watched. All quiet.", 2)
    assert (first.goal, "DISCUSSION" in first.legal, first.team[0].agent_id) == ("Keep watch", True, "lead")
    assert [(one.kind, one.content) for one in first.conversation] == [("message", "What do you see?")]
    assert first.observation.startswith(CANARY) and CANARY.encode() not in log


async def test_what_one_member_sees_no_other_learns(tmp_path: Path) -> None:
    """A canary in one agent's view stands in its own memory; in no other's, in no log, and in nothing that others are shown."""
    worker, lead, brain = working(lambda task: "Done."), one_task(), ScriptedBrain()
    worker.observe(lambda view: CANARY)
    worker.instructions = CANARY.upper()
    async with open_company(tmp_path) as company:
        await company.start(worker, brain)
        await company.start(idle("lead"), lead)
        assert (await company.has_done()).reason is Reason.CONCLUDED
        room = comm_id_of_goal(GOAL.goal_id)
        log = repr(await company.network.entries(room))
        stores = {
            name: repr((await member.store.entries(room), await member.store.observation(room), await member.store.thoughts(room)))
            for name, member in company.members.items()
        }
    assert brain.tasks[0].group.observation == CANARY
    elsewhere = stores["lead"] + log + "".join(view.observation + view.instructions for view in lead.views)
    assert (CANARY in stores["worker"], CANARY in elsewhere, CANARY.upper() in elsewhere) == (True, False, False)


async def test_what_is_refused_comes_back_at_most_thrice(ioa_system: System) -> None:
    """The router's reason is in `refusals`; an exception and what no builder made count as well, and no rule speaks instead.

    Then the agent passes at once, and the transcript holds the reasons.
    """
    refusals: list[tuple[str, ...]] = []
    agent = _agent("watcher")

    @agent.speak
    def speak(view: TurnView) -> Said:
        refusals.append(view.refusals)
        if len(refusals) == 1:
            return view.say("Hello?", to="nobody")
        if len(refusals) == 2:
            raise ValueError("at a loss")
        return "Hello?"  # type: ignore[return-value]

    async with ioa_system.group("Keep watch", agent=agent, members=["lead"], brain=ScriptedBrain()) as group:
        await group["lead"].says("What do you see?", to=agent)
        passed = (await group.next_message()).payload
    assert [len(told) for told in refusals] == [0, 1, 2]
    place = r"speak raised ValueError: at a loss \(test_hooks\.py:\d+\)"
    assert "nobody" in refusals[1][0] and re.fullmatch(place, refusals[2][1])
    assert isinstance(passed, Pass) and passed.cause is PassCause.NO_USABLE_ANSWER
    assert [why in passed.content for why in (*refusals[2], "returned str")] == [True] * 3


def test_who_was_removed_is_no_teammate() -> None:
    """It hears nothing any more, so that nobody should name it."""
    view = _view()
    names = [one.agent_id for one in teammates(view)]
    gone = [one.model_copy(update={"removed": one.agent_id == names[0]}) for one in view.state.members]
    after = replace(view, state=view.state.model_copy(update={"members": tuple(gone)}))
    assert [one.agent_id for one in teammates(after)] == names[1:]


def test_an_agent_that_only_speaks_declines_all_tasks() -> None:
    """Also with another card; it needs no function of its own to join."""
    agent = Agent("ann", description="Talks")
    agent.speak(lambda view: view.say(""))
    for one in (agent, agent.with_card(tags=["calm"])):
        with pytest.raises(DeclinedError, match="only speaks"):
            one.function("paint the fence")


def test_hooks_are_checked_when_they_are_written() -> None:
    """One of each, with a view alone; and one way to speak."""
    agent = _agent()
    agent.observe(lambda view: "")
    agent.speak(lambda view: view.say("", to=""))
    with pytest.raises(InvalidInputError, match="observes already"):
        agent.observe(lambda view: "")
    with pytest.raises(InvalidInputError, match="speaks already"):
        agent.speak(lambda view: view.say("", to=""))
    with pytest.raises(InvalidInputError, match="one argument"):
        _agent().observe(lambda: "")  # type: ignore[type-var]
    thoughtful = Agent("ann", description="Thinks", brain=ScriptedBrain())
    with pytest.raises(InvalidInputError, match="a brain that speaks already"):
        thoughtful.speak(lambda view: view.say("", to=""))


async def test_what_its_author_was_not_asked_about_yet_is_not_shown(tmp_path: Path) -> None:
    """Where nobody is asked: of what was said an agent without a filter is shown all."""
    free, strict = _agent(), _agent()
    strict.view(lambda heard: True)
    first, then = message("m1", "one"), message("m2", "two")
    view = replace(_view(), log=(first,), messages=(first,))
    rigs = [_Rig(one, tmp_path) for one in (free, strict)]
    at_first = [rig.hooks.known(view).log for rig in rigs]
    for rig in rigs:
        await rig.observed(view)
    later = replace(view, log=(first, then), messages=(first, then))
    assert (at_first, [rig.hooks.known(later).messages for rig in rigs]) == ([(first,), ()], [(first, then), (first,)])
