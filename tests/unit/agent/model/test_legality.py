"""Whatever text a model returns, the machine accepts what the brain makes of it."""

from __future__ import annotations

import asyncio
import json
import random
from datetime import timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from ioa.agent.brain_port import TaskView
from ioa.agent.model import ModelBrain
from ioa.errors import UnavailableError
from ioa.group.events import Event, MemberLost, MemberReturned, kind_of
from ioa.group.table import TABLE
from ioa.ports.brain import Invite
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import InformTaskProgress, InformTaskResult, Phase, TaskOutcome
from ioa.testing.scripted_model import Line, ScriptedCall, ScriptedModel
from tests.unit.agent.model.machine_group import Group, WordSearch, card
from tests.unit.agent.model.situations import CARDS, SHORT, launched

JUNK = [
    "",
    "{",
    "null",
    "I cannot do that.",
    "```json\n{}\n```",
    '{"decision": {"type": "PAUSE", "triggers": ["t9"]}}',
    "[" * 5_000,
]
WORDS = ["add up", "draw", "", "  ", "x" * 500, "\ud800", "bob", "ann", "carl", "mallory", "PAUSE"]


def written(schema: dict[str, Any], node: dict[str, Any], rng: random.Random) -> Any:
    """Write something that looks like the schema, with a mistake here and there."""
    if "$ref" in node:
        node = schema["$defs"][node["$ref"].rsplit("/", 1)[1]]
    if options := node.get("oneOf") or node.get("anyOf"):
        return written(schema, rng.choice(options), rng)
    if rng.random() < 0.03:
        return rng.choice([None, 7, {}, [], "?"])
    match node:
        case {"const": value}:
            return value
        case {"enum": values}:
            return rng.choice(values)
        case {"type": "object", "properties": properties}:
            return {key: written(schema, inner, rng) for key, inner in properties.items() if rng.random() > 0.03}
        case {"type": "array", "items": items}:
            return [written(schema, items, rng) for _ in range(rng.randint(0, 4))]
        case {"type": "boolean"}:
            return rng.random() < 0.5
        case _:
            return rng.choice([*WORDS, f"t{rng.randint(1, 4)}-{rng.randint(1, 4)}", f"m{rng.randint(1, 4)}"])


def babble(rng: random.Random) -> ScriptedModel:
    """A model that sometimes keeps to the shape, sometimes nearly, sometimes not at all, and sometimes is not there."""

    def say(asked: ScriptedCall) -> Line:
        if rng.random() < 0.2:
            junk: list[Line] = [*JUNK, UnavailableError("down")]
            return rng.choice(junk)
        assert asked.shape is not None
        schema = asked.shape.model_json_schema()
        text = json.dumps(written(schema, schema, rng))
        return text[: rng.randint(0, len(text))] if rng.random() < 0.1 else text

    return ScriptedModel(say)


def disturb(group: Group, rng: random.Random) -> None:
    """Let something happen that no member decides."""
    agent = AgentId(rng.choice(["ann", "bob", "carl"]))
    lost = agent not in group.state.living()
    events: list[Event] = [MemberReturned(at=group.at, agent_id=agent) if lost else MemberLost(at=group.at, agent_id=agent)]
    for event in events:
        last_one = isinstance(event, MemberLost) and len(group.state.living()) < 2
        if not last_one and group.state.phase in TABLE[kind_of(event)].cells:
            group.happen(event)


async def work(group: Group, brain: ModelBrain, rng: random.Random) -> None:
    """Let the assignee of an open task acknowledge it, then finish it."""
    task = rng.choice(group.state.open_tasks)
    if task.progress == 0:
        group.say(task.assignee, InformTaskProgress(task_id=task.task_id, number=1), task.turn)
        return
    spec = next(spec for spec in group.specs if spec.task_id == task.task_id)
    me = next(card for card in group.charter.team_members if card.agent_id == task.assignee)
    await brain.approach(TaskView(spec, me, group.view(task.assignee)), WordSearch(CARDS))
    outcome = TaskOutcome.DONE if rng.random() < 0.8 else TaskOutcome.FAILED
    result = InformTaskResult.model_validate({"task_id": task.task_id, "outcome": outcome, "task_conclusion": "done"})
    group.say(task.assignee, result, task.turn)


async def live(seed: int) -> Phase:
    """Lead a group to its end while everything goes on at random; the machine raises on anything illegal."""
    rng = random.Random(seed)
    brain, group = ModelBrain(babble(rng), budget=SHORT), launched(max_turns=rng.randint(1, 8))
    while not group.state.phase.is_terminal:
        group.at += timedelta(milliseconds=1)
        holder = rng.choice(group.state.floor or (None,))
        if rng.random() < 0.1:
            disturb(group, rng)
        elif holder is None or (group.state.open_tasks and rng.random() < 0.3):
            await work(group, brain, rng)
        elif group.state.phase is Phase.CONCLUDING:
            group.say(holder, await brain.conclude(group.view(holder)))
        else:
            said = await brain.speak(group.view(holder))
            if isinstance(said, Invite):
                group.invite(holder, card(f"zoe-{len(group.joined)}", said.need), said.why)
            else:
                group.say(holder, said)
    return group.state.phase


@settings(max_examples=25)
@given(st.integers(0, 2**32))
def test_whatever_the_model_says_the_machine_accepts(seed: int) -> None:
    """Every message of the brain is legal in every state that a babbling model and bad luck can reach."""
    assert asyncio.run(live(seed)) in (Phase.CONCLUDED, Phase.FAILED)


@settings(max_examples=40)
@given(
    st.one_of(
        st.text(),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["decision", "type", "tasks", "content"]), inner),
        ).map(json.dumps),
    )
)
def test_any_text_becomes_a_legal_message(text: str) -> None:
    """Text that has nothing to do with the question ends in a legal message too."""
    group = launched()
    said = asyncio.run(ModelBrain(ScriptedModel(lambda asked: text), budget=SHORT).speak(group.view(group.state.owner)))
    assert isinstance(said, BaseModel) and not isinstance(said, Invite)
    group.say(group.state.owner, said)
