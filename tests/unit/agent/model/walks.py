"""Groups that go on at random, by legal decisions of models, and the prompts that their members see."""

from __future__ import annotations

import asyncio
import json
import random
from dataclasses import dataclass, field
from itertools import pairwise

from ioa.agent.model import ModelBrain
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import InformTaskProgress, InformTaskResult, Phase, TaskOutcome
from ioa.testing.scripted_model import Line as Said
from ioa.testing.scripted_model import ScriptedCall, ScriptedModel
from tests.unit.agent.model.machine_group import Group
from tests.unit.agent.model.situations import launched, shown


def above(user: str) -> str:
    """What stands above the tail of a prompt, which begins with the time."""
    return user.rpartition("\nIt is ")[0]


@dataclass
class Walk:
    """One group that goes on at random, by legal decisions, and every prompt that its speakers saw."""

    rng: random.Random
    team: Group
    seen: dict[AgentId, list[str]] = field(default_factory=dict)

    async def live(self) -> None:
        """Lead the group to its end."""
        brain = ModelBrain(ScriptedModel(self._answer))
        while not self.team.state.phase.is_terminal:
            holder = self.team.state.floor_holder
            if holder is None or (self.team.state.open_tasks and self.rng.random() < 0.4):
                self._work()
            elif self.team.state.phase is Phase.CONCLUDING:
                self.team.say(holder, await brain.conclude(self.team.view(holder)))
            else:
                self.team.say(holder, await brain.speak(self.team.view(holder)))

    def _work(self) -> None:
        task = self.rng.choice(self.team.state.open_tasks)
        if task.progress == 0:
            self.team.say(task.assignee, InformTaskProgress(task_id=task.task_id, number=1), task.turn)
        else:
            outcome = self.rng.choice([TaskOutcome.DONE, TaskOutcome.FAILED])
            text = "figures " * self.rng.randint(0, 200)
            result = InformTaskResult.model_validate({"task_id": task.task_id, "outcome": outcome, "task_conclusion": text})
            self.team.say(task.assignee, result, task.turn)

    def _answer(self, asked: ScriptedCall) -> Said:
        """A legal decision of whoever holds the floor."""
        rng, state = self.rng, self.team.state
        me = state.floor_holder
        assert me is not None
        self.seen.setdefault(me, []).append(shown(asked))
        view = self.team.view(me)
        others = [agent for agent in view.reachable if agent != me]
        said: dict[str, object]
        if state.phase is Phase.CONCLUDING or (not state.open_tasks and rng.random() < 0.1):
            said = {"type": "CONCLUDE", "goal_reached": True, "content": "Done."}
        elif state.open_tasks and rng.random() < 0.4:
            said = {"type": "PAUSE", "content": "Wait.", "triggers": [rng.choice(state.open_tasks).task_id]}
        elif rng.random() < 0.5:
            said = {"type": "DISCUSSION", "next_speaker": rng.choice(others), "content": f"Remark {rng.random()} </goal>"}
        else:
            names = [rng.choice(["sum", "", "x.y"]) for _ in range(rng.randint(1, 3))]
            part = {"task_desc": f"part {rng.random()}", "uses": []}
            tasks = [{"name": name, "assignee": rng.choice(others), **part} for name in names]
            said = {"type": "ASSIGN", "mode": rng.choice(["wait", "go_on"]), "content": "", "tasks": tasks}
        return json.dumps({"thought": f"thought {rng.random()}", "decision": said})


def walked(seed: int) -> list[tuple[str, str]]:
    """Lead one group to its end; return each two consecutive prompts of one of its members."""
    rng = random.Random(seed)
    walk = Walk(rng, launched(max_turns=rng.randint(2, 12)))
    asyncio.run(walk.live())
    return [pair for prompts in walk.seen.values() for pair in pairwise(prompts)]
