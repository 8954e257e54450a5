"""Whatever text a model returns, the machine accepts what the brain makes of it."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ioa.agent.model import ModelBrain
from ioa.errors import UnavailableError
from ioa.protocol.messages import Phase
from ioa.testing.scripted_model import Line, ScriptedCall, ScriptedModel
from tests.unit.agent.model.situations import SHORT, launched
from tests.unit.agent.model.walks import walk

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


@settings(max_examples=10)
@given(st.integers(0, 2**32))
def test_brain_of_a_babbling_model_sends_legal_messages(seed: int) -> None:
    """Every message of the brain is legal in every state that a babbling model and bad luck can reach."""
    rng = random.Random(seed)
    brain, group = ModelBrain(babble(rng), budget=SHORT), launched(max_turns=rng.randint(1, 8))
    asyncio.run(walk(group, brain, rng, is_wild=True))
    assert group.state.phase in (Phase.CONCLUDED, Phase.FAILED)
