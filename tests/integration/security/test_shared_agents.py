"""An agent that works for two tenants in one process, by a key of each, and is to both a member like others."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from statistics import median

from nats.aio.client import Client
from nats.aio.msg import Msg

from ioa.adapters.nkey_seeds import create_seed
from ioa.beside import beside
from ioa.errors import UnavailableError
from ioa.group.requests import SequencedEntry
from ioa.local.fork_server import Program
from ioa.protocol import subjects
from ioa.protocol.codec import decode, decode_value, encode, encode_value
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId, GoalName
from tests.integration.security.secured import open_intruder, open_processes
from tests.integration.security.tenants import TWO, open_tenants
from tests.integration.security.town import SOON, USER, Town, open_town_on
from tests.rig.deadline import eventually

STAR = AgentId("star")
_GOALS = 5
_PUSHES_PER_SECOND = 20
_AGENT = """
import asyncio, os, pathlib
from ioa import Agent
from ioa.brain import Alone, ConcludeGroupDiscussion, Conclusion, TeamLaunch
from ioa.ports.asked_for import asked_for

HERE = pathlib.Path(__file__).parent

def note(what):
    with (HERE / "asked_for").open("a") as file:
        print(what, *asked_for.get(), file=file)

class Patient:
    async def form_team(self, mission, tools):
        note("form")
        (HERE / mission.text).touch()
        while mission.text == "wait" and not (HERE / "go").exists():
            await asyncio.sleep(0.02)
        return TeamLaunch(members=())

    async def speak(self, view):
        note("speak")
        return ConcludeGroupDiscussion()

    async def conclude(self, view):
        return Conclusion(content=str(os.getpid()))

    async def approach(self, task, tools):
        return Alone(task_desc=task.spec.task_desc)

agent = Agent("star", description="Waits.", brain=Patient())

@agent.task
def run(task: str) -> str:
    return task
"""


async def test_an_agent_works_for_two_tenants(tmp_path: Path) -> None:
    """While all its slots of one are taken it leads the other's goal, remembers each apart, and whoever refuses it harms nobody.

    What it thinks with is asked for each in turns of its own.
    """
    (tmp_path / "star.py").write_text(_AGENT)
    (tmp_path / "unknown").write_text(create_seed())
    async with open_tenants(tmp_path, [STAR]) as (one, two), open_town_on(one, ()) as first, open_town_on(two, ()) as second:
        env = {
            "IOA_NATS_SEED": str(one.folder / STAR / STAR),
            "IOA_TENANT_SEEDS": f"{TWO}={two.folder / STAR / STAR},three={tmp_path / 'unknown'}",
            "IOA_AGENT_DATA": str(tmp_path / "agents"),
            "IOA_GOALS_AT_ONCE": "1",
        }
        async with open_processes(one, [Program(STAR, "ioa.hosting", (f"{tmp_path / 'star.py'}:agent",), env)]) as processes:
            for town in (first, second):
                await eventually(lambda town=town: _online(town), {STAR}.issuperset, within=SOON)  # type: ignore[misc]
            waiting = await first.user.launch(GoalOrder(goal="wait", agent=STAR))
            await eventually((tmp_path / "wait").exists, within=SOON)
            done = await second.outcome(await second.user.launch(GoalOrder(goal="quick", agent=STAR)))
            (tmp_path / "go").touch()
            assert [done, await first.outcome(waiting)] == [(Reason.CONCLUDED, str(processes[STAR].pid))] * 2
            listed = [[status.record.goal.name for status in (await town.user.goals()).goals] for town in (first, second)]
            assert listed[0] == [GoalName(USER, waiting)] and GoalName(USER, waiting) not in listed[1]
    memories = {str(file.relative_to(tmp_path / "agents")) for file in (tmp_path / "agents").rglob("memory.sqlite")}
    assert memories == {"star/memory.sqlite", "of.two/star/memory.sqlite"}
    asked_for = sorted((tmp_path / "asked_for").read_text().splitlines())
    assert asked_for == [f"{what} {tenant} {USER}" for what in ("form", "speak") for tenant in (None, TWO)]


async def test_what_one_tenant_pushes_holds_up_no_other(tmp_path: Path) -> None:
    """Whoever has the key of a tenant's router pushes what takes long to read: goals of another tenant go on as before."""
    (tmp_path / "star.py").write_text(_AGENT)
    async with open_tenants(tmp_path, [STAR]) as (one, two), open_town_on(one, ()) as first, open_town_on(two, ()) as second:
        env = {
            "IOA_NATS_SEED": str(one.folder / STAR / STAR),
            "IOA_TENANT_SEEDS": f"{TWO}={two.folder / STAR / STAR}",
            "IOA_AGENT_DATA": str(tmp_path / "agents"),
        }
        async with (
            open_processes(one, [Program(STAR, "ioa.hosting", (f"{tmp_path / 'star.py'}:agent",), env)]),
            open_intruder(two, "admin") as admin,
            open_intruder(two, "router") as router,
        ):
            for town in (first, second):
                await eventually(lambda town=town: _online(town), {STAR}.issuperset, within=SOON)  # type: ignore[misc]
            pushed = asyncio.Queue[Msg]()
            listening = await admin.subscribe(subjects.inbox(STAR, "*"), cb=pushed.put)
            await admin.flush()
            await second.outcome(await second.user.launch(GoalOrder(goal="quick", agent=STAR)))
            await listening.unsubscribe()
            usual = [await _seconds_for_a_goal(first) for _ in range(_GOALS)]
            async with beside(_push_long_ones(router, await pushed.get())):
                await asyncio.sleep(1.0)
                beside_it = [await _seconds_for_a_goal(first) for _ in range(_GOALS)]
            assert median(beside_it) < 10 * median(usual) + 0.5, (usual, beside_it)
            done = second.outcome(await second.user.launch(GoalOrder(goal="quick", agent=STAR)))
            assert (await done)[0] is Reason.CONCLUDED


async def _seconds_for_a_goal(town: Town) -> float:
    started = time.perf_counter()
    reason, _ = await town.outcome(await town.user.launch(GoalOrder(goal="quick", agent=STAR)))
    assert reason is Reason.CONCLUDED
    return time.perf_counter() - started


async def _push_long_ones(router: Client, push: Msg) -> None:
    """Push an entry again and again, each time of a group that is new, with as much as may travel of what nobody has asked for."""
    entry = decode(SequencedEntry, push.data)
    number = 0
    while True:
        number += 1
        state = entry.entry.state.model_copy(update={"comm_id": f"g{number}"})
        plain = decode_value(encode(entry.model_copy(update={"entry": entry.entry.model_copy(update={"state": state})})))
        plain["entry"]["state"]["more"] = [[[[]]]] * 200_000
        await router.publish(push.subject, encode_value(plain))
        await asyncio.sleep(1 / _PUSHES_PER_SECOND)


async def _online(town: Town) -> set[str]:
    try:
        return {str(status.card.agent_id) for status in await town.user.agents(online_only=True)} or {"nobody"}
    except UnavailableError:
        return {"nobody"}
