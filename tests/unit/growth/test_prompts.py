"""What a prompt's log costs grows with what is new in it, and not with all that was said, told by calls and characters."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from ioa.agent.model import ModelBrain, context, prompts
from ioa.agent.model.budget import Budget
from ioa.agent.model.log_lines import LogLine
from ioa.agent.model.log_room import KeptLog, fitting
from ioa.fences import defused, in_one_line
from ioa.ports.brain import TaskRecord
from ioa.protocol.ids import TaskId
from ioa.protocol.messages import Discussion, Payload, TaskSpec
from ioa.repetition import sketches_of
from ioa.testing import ScriptedModel
from tests.rig.calls import calls_of
from tests.rig.curt_brain import CurtBrain
from tests.unit.agent.model.golden_prompts import group
from tests.unit.agent.model.machine_group import Group
from tests.unit.agent.model.situations import ANN, BOB, decision

CHARS, MESSAGES = 20_000, 40


def _talk() -> Group:
    """A group where two members have said much that looks like tags."""
    team = group(max_turns=200)
    for turn in range(MESSAGES):
        _go_on(team, turn)
    return team


def _go_on(team: Group, turn: int, chars: int = CHARS) -> None:
    me, other = (ANN, BOB) if turn % 2 == 0 else (BOB, ANN)
    team.say(me, Discussion(content=f"{turn} " + "<goal" * (chars // 5), next_speaker=other))


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many characters of the log are looked through, one number for each text."""
    sizes: list[int] = []

    def noted(text: str) -> str:
        sizes.append(len(text))
        return defused(text)

    monkeypatch.setattr("ioa.agent.model.log_lines.defused", noted)
    return sizes


async def test_what_was_said_is_looked_through_once_for_all_asks_of_a_decision(looked_at: list[int]) -> None:
    """Reads, repairs and the retry of a cut answer ask by the same log: each looked through all of it."""
    reads = [decision(type="READ", what=f"m{number}") for number in (1, 2, 3, 4)]
    useless = [decision(type="DISCUSSION", content="?", next_speaker="nobody")] * 2
    model = ScriptedModel([*reads, *useless, decision(type="CONCLUDE", goal_reached=True, content="?")])
    await ModelBrain(model, CurtBrain(), budget=Budget(max_prompt=20_000)).speak(_talk().view(ANN))
    said = MESSAGES * CHARS
    assert (len(model.asked), sum(looked_at) < 2 * said + 7 * CHARS) == (7, True), sum(looked_at) / said


def test_a_prompt_looks_through_what_is_new(looked_at: list[int]) -> None:
    """Of forty messages each of the next prompts looks through the one that has come since, and what it shows more of."""
    team, log, sums = _talk(), KeptLog(), list[int]()
    for turn in range(MESSAGES, MESSAGES + 20):
        log.fitting(team.view(ANN), 10_000)
        sums.append(sum(looked_at))
        _go_on(team, turn)
    new = [later - earlier for earlier, later in pairwise(sums)]
    assert sum(new) < len(new) * 4 * CHARS, [one / CHARS for one in new]


def test_a_prompt_looks_through_what_is_new_where_what_was_said_before_drops_out(looked_at: list[int]) -> None:
    """All lines have other names then (`memory = {window}`, `@agent.view`): all in sight was looked through anew each turn.

    So it is where two parts of one agent are shown different ends of it by turns. Each prompt is as one that nothing was kept for.
    """
    team, kept, new = _talk(), KeptLog(), list[int]()
    for turn in range(MESSAGES, MESSAGES + 20):
        view = team.view(ANN)
        in_sight = [replace(view, log=view.log[-window:]) for window in (MESSAGES, MESSAGES // 4)]
        looked_at.clear()
        told = [kept.fitting(seen, 10_000) for seen in in_sight]
        new.append(sum(looked_at))
        assert told == [KeptLog().fitting(seen, 10_000) for seen in in_sight]
        _go_on(team, turn)
    assert sum(new[1:]) < len(new) * 4 * CHARS, [one / CHARS for one in new]


def test_a_log_that_is_kept_is_cut_as_one_that_is_new() -> None:
    """Whatever room there is, and whatever was shown before."""
    team, kept = group(max_turns=200), KeptLog()
    for turn in range(40):
        _go_on(team, turn, chars=100 + 1_000 * (turn % 3))
        view = replace(team.view(ANN), thoughts={2: "well"} if turn < 30 else {})
        for room in (2_000, 700, 0, 1_200, 9_000):
            assert kept.fitting(view, room) == KeptLog().fitting(view, room)


@pytest.mark.parametrize("room", [0, 1, 300, 5_000])
@pytest.mark.parametrize("open_tasks", [0, 100])
def test_a_room_is_shared_by_what_fits_into_it(room: int, open_tasks: int) -> None:
    """Twice as many lines take twice as many steps, not four times: each time it was full all lines were gone through."""
    one, two = (_steps(number, room, open_tasks) for number in (1_000, 2_000))
    assert two < 2.5 * one


def _steps(number: int, room: int, open_tasks: int) -> int:
    lines = [
        LogLine("message", "PASS>", "word", "</message>", (TaskId(f"t{at}-a"),) if at < open_tasks else ())
        for at in range(1, number + 1)
    ]
    return calls_of(lambda: fitting(lines, room))


async def test_a_prompt_tells_of_open_tasks_within_a_bound() -> None:
    """However many are open; how many more there are is said."""
    view = group().view(ANN)
    specs = [TaskSpec(task_id=TaskId(f"t1-{at}"), assignee=BOB, task_desc="word " * 100) for at in range(256)]
    model = ScriptedModel([decision(type="CONCLUDE", goal_reached=True, content="?")] * 4)
    await ModelBrain(model, CurtBrain()).speak(replace(view, tasks=tuple(TaskRecord(spec, None, "", ()) for spec in specs)))
    told = model.asked[0].messages[1].content.partition("<open_tasks>")[2].partition("</open_tasks>")[0]
    shown = told.count("\nt")
    assert (len(told) < 25_000, f"[… and {256 - shown} more …]" in told) == (True, True)


async def test_of_open_tasks_what_is_shown_is_looked_through(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of each description was, before it was cut to 240 bytes, twice for each ask: of 90 tasks that took seconds."""
    sizes = list[int]()

    def noted(text: str) -> str:
        sizes.append(len(text))
        return in_one_line(text)

    monkeypatch.setattr(context, "in_one_line", noted)
    monkeypatch.setattr(prompts, "in_one_line", noted, raising=False)
    view = group().view(ANN)
    specs = [TaskSpec(task_id=TaskId(f"t1-{at}"), assignee=BOB, task_desc="<" * 100_000) for at in range(40)]
    model = ScriptedModel([decision(type="CONCLUDE", goal_reached=True, content="?")])
    await ModelBrain(model, CurtBrain()).speak(replace(view, tasks=tuple(TaskRecord(spec, None, "", ()) for spec in specs)))
    assert "t1-39" in model.asked[0].prompt
    assert sum(sizes) < 200_000


async def test_what_was_said_is_sketched_once_and_nothing_that_is_far_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """To see whether it was said before, ten messages were read anew for each prompt, twice, however short one's own was."""
    sketched: list[int] = []

    def noted(payload: Payload) -> tuple[str, ...]:
        assert isinstance(payload, Discussion)
        sketched.append(len(payload.content))
        return sketches_of(payload)

    monkeypatch.setattr(context, "sketches_of", noted)
    team = group(max_turns=200)
    for turn in range(6):
        _go_on(team, turn, 20_000 if turn % 2 else 2_000)
    team.say(ANN, Discussion(content="0 " + "<goal" * 400, next_speaker=BOB))
    team.say(BOB, Discussion(content="Go on.", next_speaker=ANN))
    reads = [decision(type="READ", what=f"m{number}") for number in (1, 2, 3)]
    for _ in range(2):
        model = ScriptedModel([*reads, decision(type="CONCLUDE", goal_reached=True, content="?")])
        await ModelBrain(model, CurtBrain(), budget=Budget(max_prompt=20_000)).speak(team.view(ANN))
        assert "your last message said word for word" in model.asked[0].prompt
    assert len(sketched) <= 2 * 5  # of two views: her own ones
    assert max(sketched) < 3_000
