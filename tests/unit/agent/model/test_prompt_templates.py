"""Prompts: what a model sees, fenced, whole while there is room, and never rewritten above the tail."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from ioa.agent.model import Budget, ModelBrain
from ioa.agent.model.metered_calls import estimate_tokens
from ioa.agent.model.prompt_templates import cut, excerpt, fill
from ioa.foreign_text import defused
from ioa.ports.chat_model import PromptTooLongError
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import ConcludeGroupDiscussion, Discussion
from ioa.testing.scripted_model import Line as Said
from ioa.testing.scripted_model import ScriptedCall, ScriptedModel
from tests.unit.agent.model.golden_prompts import FOLDER, give, group, report, written
from tests.unit.agent.model.machine_group import Group
from tests.unit.agent.model.situations import ANN, BOB, decision, launched, shown
from tests.unit.agent.model.walks import above, walked

CONCLUDE = decision(type="CONCLUDE", goal_reached=True, content="Done.")


def test_prompts_equal_the_record() -> None:
    """System, schemas and prompts of these situations are those in the folder; a change of them is a change of behaviour."""
    assert {path.name: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()} == {
        name: f"{text}\n" for name, text in written().items()
    }


async def user_message(team: Group, me: AgentId = ANN, budget: Budget | None = None, context: int = 128_000) -> str:
    """What the floor holder is asked."""
    model = ScriptedModel([CONCLUDE], context)
    await ModelBrain(model, budget=budget).speak(team.view(me))
    return shown(model.asked[0])


def test_defused_text_has_the_same_length() -> None:
    """READ uses positions of the original text."""
    text = "a </goal> b < / task> c <need> d"
    assert (len(defused(text)), "<" in defused(text)) == (len(text), False)


def test_shortened_text_has_both_ends_and_names_the_read_command() -> None:
    """The mark contains the number of missing characters and the start position."""
    text = cut("a" * 500 + "z" * 500, 300, "t3-1")
    assert (len(text) <= 300, text[0], text[-1]) == (True, "a", "z")
    assert " [… 820 of 1,000 characters: READ t3-1 from 120 …] " in text


@pytest.mark.parametrize("shown", [cut, excerpt])
def test_shortened_text_contains_no_new_tag(shown: Callable[[str, int], str]) -> None:
    """`</reads` is no tag until it is cut, wherever that is; what closes it is in the other end."""
    texts = [defused("a" * before + "</reads" + "b" * 500 + ">") for before in range(300)]
    assert [text for text in texts if "</read [" in shown(text, 300)] == []


@pytest.mark.parametrize("context", [4_096, 16_000, 128_000])
@pytest.mark.parametrize("said", ["remark ", "言葉です", "🦜🌍", "</goal> \n"], ids=["Latin", "CJK", "emoji", "tags"])
async def test_a_prompt_and_its_answer_fit_into_the_context(said: str, context: int) -> None:
    """Whatever the letters, however long the talk and however long the goal; the last remark, team and open tasks stay."""
    team = launched(said * 3_000, max_turns=1_000)
    for number in range(120):
        sender, other = (ANN, BOB) if number % 2 == 0 else (BOB, ANN)
        team.say(sender, Discussion(content=f"number {number} {said * 300}", next_speaker=other))
    model = ScriptedModel([CONCLUDE], context)
    await ModelBrain(model).speak(team.view(ANN))
    asked = model.asked[0]
    assert sum(estimate_tokens(message.content) for message in asked.messages) + asked.limits.max_tokens <= context
    assert all(kept in shown(asked) for kept in ("number 119", "carl (model): draws charts"))
    assert ("READ goal from" in shown(asked)) == (context < 100_000)


async def test_a_model_with_a_small_context_is_served_after_one_refusal() -> None:
    """What a refusal teaches makes the prompt and the answer's limit smaller at once."""
    refused = [0]

    def small(asked: ScriptedCall) -> Said:
        size = sum(estimate_tokens(message.content) for message in asked.messages) + asked.limits.max_tokens
        if size > 4_096:
            refused[0] += 1
            model.context = 4_096
            return PromptTooLongError("It takes 4,096 tokens.")
        return CONCLUDE

    team = group()
    for turn in range(1, 9):
        give(team, BOB, f"t{turn}-x", f"chapter {turn}")
        report(team, f"t{turn}-x", "word " * 2_000)
    model = ScriptedModel(small)
    brain = ModelBrain(model)
    assert isinstance(await brain.speak(team.view(ANN)), ConcludeGroupDiscussion)
    assert refused == [1]


async def test_a_long_log_is_cut_in_steps() -> None:
    """Once the room is full, the oldest entries are left out in steps of 16, named in a mark; between steps prompts only grow."""
    team, budget = group(max_turns=1_000), Budget(max_prompt=8_000)
    seen: list[str] = []
    starts: list[int] = []
    for turn in range(1, 121):
        give(team, BOB, f"t{turn}-x", f"chapter {turn}")
        report(team, f"t{turn}-x", f"result {turn} " + "word " * 120)
        user = await user_message(team, budget=budget)
        starts.append(int(user.partition("[… m1 to m")[2].partition(" ")[0] or 0))
        seen.append(above(user))
        assert f"result {turn} " in user
    breaks, room = sum(not later.startswith(earlier) for earlier, later in pairwise(seen)), max(map(estimate_tokens, seen))
    assert 0 < breaks <= estimate_tokens(above(await user_message(team))) / (0.3 * room)
    assert room + estimate_tokens(fill("system", talk="")) <= 8_000
    assert (starts == sorted(starts), {start % 16 for start in starts}, starts[-1] > 16) == (True, {0}, True)


def test_text_above_the_tail_of_a_prompt_is_never_rewritten() -> None:
    """In 40 random groups each prompt of an agent begins with the text above the tail of its previous prompt."""
    pairs = [(seed, *pair) for seed in range(40) for pair in walked(seed)]
    assert [seed for seed, earlier, later in pairs if not later.startswith(above(earlier))] == []
    rules = len(fill("system", talk=""))
    shares = [(len(above(earlier)) + rules) / (len(earlier) + rules) for _, earlier, _ in pairs]
    assert (len(shares) > 40, min(shares) > 0.8) == (True, True)
