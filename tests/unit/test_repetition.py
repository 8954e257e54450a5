"""What counts as the same words, and that nobody is refused who says something."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest

from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.protocol.ids import AgentId, TaskId
from ioa.protocol.messages import AsyncTaskAssignment, Discussion, Pause, TaskSpec
from ioa.repetition import normalised, sketches_of
from tests.unit.group.scenario import Scenario, launched

DATA = Path(__file__).parents[1] / "data" / "repetition"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Which month?", "which  MONTH"),
        ("“Draw” a chart (of sales).", "Draw a 'chart' of [sales]!"),
        ("La maňana", "la man\u030cana"),
        ("Straße: 5", "STRASSE 5"),
        ("!!!", "!!!"),
    ],
)
def test_case_spacing_and_punctuation_do_not_count(one: str, other: str) -> None:
    """In any script that has them."""
    assert normalised(one) == normalised(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("5", "-5"),
        ("f(x)", "f x"),
        ("a.csv", "a csv"),
        ("1.5", "15"),
        ("don't", "dont"),
        ("!!!", "???"),
        ("Summe", "sum"),
        ("+1", "1"),
    ],
)
def test_signs_and_what_stands_within_a_word_count(one: str, other: str) -> None:
    """They may be all that is new."""
    assert normalised(one) != normalised(other)


def test_a_task_is_sketched_with_what_it_uses() -> None:
    """The same words on other results are another task; the order of the results makes no difference."""
    spec = TaskSpec(task_id=TaskId("t1-1"), assignee=AgentId("bob"), task_desc="Sum up.", uses=(TaskId("a"), TaskId("b")))
    turned, alone = spec.model_copy(update={"uses": spec.uses[::-1]}), spec.model_copy(update={"uses": ()})
    one, other, third = sketches_of(AsyncTaskAssignment(tasks=(spec, turned.model_copy(update={"task_id": "t1-2"}), alone)))
    assert one == other != third


def test_what_is_never_judged_has_no_sketch() -> None:
    """A pause may be tried again as often as it takes."""
    assert sketches_of(Pause(triggers=(TaskId("t1-1"),))) == ()


def _conversations() -> Iterator[list[dict[str, str]]]:
    for path in sorted(DATA.glob("*.jsonl")):
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        yield from (list(messages) for _, messages in groupby(lines, key=lambda message: message["conversation"]))


def _refused(conversation: list[dict[str, str]]) -> Iterator[bool]:
    """For each message that is no repetition, whether the machine refuses it, in a group whose floor goes as was recorded."""
    speakers = list(dict.fromkeys(message["by"] for message in conversation))
    names = {speaker: f"a{number}" for number, speaker in enumerate(speakers)}
    story = launched(*names.values(), *(["listener"] if len(names) == 1 else []), max_turns=1_000)
    for message in conversation:
        story = _hand_to(story, names[message["by"]])
        listener = next(member.agent_id for member in story.state.members if member.agent_id != story.holder)
        try:
            story = story.speaks(str(story.holder), Discussion(content=message["text"], next_speaker=listener))
            refused = False
        except IllegalEventError as refusal:
            assert refusal.code is RejectionCode.REPETITION
            refused = True
        if "of" not in message:
            yield refused


def _hand_to(story: Scenario, speaker: str) -> Scenario:
    """Nobody says anything until the floor is where it was."""
    while story.holder != speaker:
        story = story.timer()
    return story


def test_nobody_is_refused_who_says_something() -> None:
    """Of what agents have written and said to each other, and was judged to be no repetition."""
    refused = [refused for conversation in _conversations() for refused in _refused(conversation)]
    assert (len(refused) > 1_400, sum(refused)) == (True, 0)
