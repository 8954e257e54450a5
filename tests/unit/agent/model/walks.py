"""Groups that go on at random, and the prompts that their members see."""

from __future__ import annotations

import asyncio
import json
import random
from collections import defaultdict
from datetime import timedelta
from itertools import pairwise

from ioa.agent.brain_port import TaskView
from ioa.agent.model import ModelBrain
from ioa.group.events import MemberLost, MemberReturned, kind_of
from ioa.group.table import TABLE
from ioa.ports.brain_types import Invite
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import InformTaskProgress, InformTaskResult, Phase
from ioa.testing.scripted_model import Line as Said
from ioa.testing.scripted_model import ScriptedCall, ScriptedModel
from tests.unit.agent.model.machine_group import Found, Group, card
from tests.unit.agent.model.situations import KNOWN, launched, shown


async def walk(group: Group, brain: ModelBrain, rng: random.Random, *, is_wild: bool = False) -> None:
    """Lead a group to its end; the machine raises on anything illegal.

    Wild groups lose members and find them again, and assignees ask whether to do a task alone.
    """
    while not group.state.phase.is_terminal:
        group.at += timedelta(milliseconds=1)
        holder = rng.choice(group.state.floor or (None,))
        if is_wild and rng.random() < 0.1:
            _disturb(group, AgentId(rng.choice(["ann", "bob", "carl"])))
        elif holder is None or (group.state.open_tasks and rng.random() < 0.35):
            await _work(group, brain if is_wild else None, rng)
        else:
            view = group.view(holder)
            said = await (brain.conclude(view) if group.state.phase is Phase.CONCLUDING else brain.speak(view))
            group.history.thoughts[view.turn] = view.meter.thought
            if isinstance(said, Invite):
                group.invite(holder, card(f"zoe-{len(group.state.members)}", said.need), said.why)
            else:
                group.say(holder, said)


def _disturb(group: Group, agent: AgentId) -> None:
    """Let something happen that no member decides."""
    living = group.state.living()
    event = MemberLost(at=group.at, agent_id=agent) if agent in living else MemberReturned(at=group.at, agent_id=agent)
    if (agent not in living or len(living) > 1) and group.state.phase in TABLE[kind_of(event)].cells:
        group.happen(event)


async def _work(group: Group, brain: ModelBrain | None, rng: random.Random) -> None:
    """Let the assignee of an open task acknowledge it, then finish it."""
    task = rng.choice(group.state.open_tasks)
    if task.progress == 0:
        group.say(task.assignee, InformTaskProgress(task_id=task.task_id, number=1), task.turn)
        return
    if brain is not None:
        spec = group.history.spec(task.task_id)
        assert spec is not None
        me = next(card for card in group.charter.team_members if card.agent_id == task.assignee)
        await brain.approach(TaskView(spec, me, group.view(task.assignee)), Found(KNOWN))
    about = {"outcome": rng.choice(["done", "done", "failed"]), "task_conclusion": "figures " * rng.randint(0, 200)}
    group.say(task.assignee, InformTaskResult.model_validate({"task_id": task.task_id, **about}), task.turn)


def above(user: str) -> str:
    """Return the text above the tail of a prompt, which begins with the time."""
    return user.rpartition("\nIt is ")[0]


def walked(seed: int) -> list[tuple[str, str]]:
    """Lead one group to its end by legal decisions; return each two consecutive prompts of one of its members."""
    rng = random.Random(seed)
    group, seen = launched(max_turns=rng.randint(2, 12)), defaultdict[AgentId, list[str]](list)

    def answer(asked: ScriptedCall) -> Said:
        """Return a legal decision of the floor holder."""
        state, me = group.state, group.state.floor_holder
        assert me is not None
        seen[me].append(shown(asked))
        others = [agent for agent in group.view(me).reachable if agent != me]
        said: dict[str, object]
        if state.phase is Phase.CONCLUDING or (not state.open_tasks and rng.random() < 0.1):
            said = {"type": "CONCLUDE", "goal_reached": True, "content": "Done."}
        elif state.open_tasks and rng.random() < 0.4:
            said = {"type": "PAUSE", "content": "Wait.", "triggers": [rng.choice(state.open_tasks).task_id]}
        elif rng.random() < 0.5:
            said = {"type": "DISCUSSION", "next_speaker": rng.choice(others), "content": f"Remark {rng.random()} </goal>"}
        else:
            names = [rng.choice(["sum", "", "x.y"]) for _ in range(rng.randint(1, 3))]
            tasks = [{"name": name, "assignee": rng.choice(others), "task_desc": f"part {rng.random()}"} for name in names]
            said = {"type": "ASSIGN", "mode": rng.choice(["wait", "go_on"]), "tasks": tasks}
        return json.dumps({"known": f"thought {rng.random()}", "decision": said})

    asyncio.run(walk(group, ModelBrain(ScriptedModel(answer)), rng))
    return [pair for prompts in seen.values() for pair in pairwise(prompts)]
