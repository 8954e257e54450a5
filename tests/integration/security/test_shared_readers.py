"""A user whose tasks take for ever at an agent that computes in processes of its own, beside another who asks one question."""

from __future__ import annotations

import asyncio
from pathlib import Path

from ioa.adapters.nats.system_client import open_system
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId
from tests.integration.security.secured import open_running, open_secured
from tests.integration.security.town import SOON
from tests.rig.deadline import eventually

READER = AgentId("reader")
_AGENT = """
from ioa import Agent
from ioa.idle_child import IdleChildren

CHILDREN = IdleChildren()
agent = Agent("reader", description="Reads tables aloud", examples=["read this table"])

@agent.task(of_one_user=1)
def run(task, ctx):
    return CHILDREN.call("reading.read", task, cancelled=lambda: ctx.cancelled)
"""
_READING = """
import pathlib, time

HERE = pathlib.Path(__file__).parent

def read(task):
    (HERE / "begun").open("a").write(f"{task}\\n")
    while "long" in task and not (HERE / "over").exists():
        time.sleep(0.02)
    return f"Read: {task}"
"""
_MORE_THAN_SLOTS = 6


async def test_tables_of_one_user_that_take_for_ever_do_not_hold_up_anothers(tmp_path: Path) -> None:
    """However many they are: one of them is read at a time, each in the end, and another user's in another process meanwhile."""
    (tmp_path / "reader.py").write_text(_AGENT)
    (tmp_path / "reading.py").write_text(_READING)
    begun = tmp_path / "begun"
    async with open_secured(tmp_path, [READER]) as secured:
        agents = {str(READER): secured.agent("reader", READER, READER, at=tmp_path)}
        async with open_running(secured, agents) as user, open_system(secured.settings("eve"), patience=SOON) as eve:
            orders = [GoalOrder(goal=f"read the long table {number}", agent=READER) for number in range(_MORE_THAN_SLOTS)]
            waiting = [await eve.launch(order) for order in orders]
            await eventually(begun.exists, within=SOON)
            async with asyncio.timeout(SOON.total_seconds()):
                answered = await user.wait_for_result(await user.launch(GoalOrder(goal="read the short table", agent=READER)))
            read_meanwhile = begun.read_text().splitlines()
            (tmp_path / "over").touch()
            async with asyncio.timeout(SOON.total_seconds()):
                ended = [(await eve.wait_for_result(goal_id)).reason for goal_id in waiting]
    assert (answered.reason, answered.content) == (Reason.CONCLUDED, "Read: read the short table")
    assert (len(read_meanwhile), ended) == (2, [Reason.CONCLUDED] * _MORE_THAN_SLOTS)
