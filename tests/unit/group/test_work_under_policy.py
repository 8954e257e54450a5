"""Tasks and nested teams in discussions that a policy leads, predicted from docs/policies.md: floors, turns and ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from ioa.group.effects import CancelSubgroup
from ioa.group.state import OpenTask
from ioa.protocol.ids import TaskId
from ioa.protocol.messages import Decision, Discussion
from tests.unit.group.scenario import Scenario
from tests.unit.group.test_policy import A, B, C, Told, group
from tests.unit.group.test_tasks_under_policy import scoped
from tests.unit.group.test_visibility import entries

WORK: Mapping[str, Any] = {"name": "work", "roles": ["a"], "tasks": True, "max": 1}
FORK: Sequence[Mapping[str, Any]] = (
    {"name": "begin", "roles": ["a"], "take": "all", "max": 1, "then": ["left", "right"]},
    {"name": "left", "roles": ["b"], "tasks": True, "max": 1, "then": "join"},
    {"name": "right", "roles": ["c"], "max": 1, "then": "join"},
    {"name": "join", "roles": ["a"], "join": "all", "max": 1},
)

Do = Callable[[Scenario], Scenario]


def says(words: str) -> Do:
    """What is said and decided."""

    def do(story: Scenario) -> Scenario:
        told = Told(story)
        for word in words.split():
            told = told.word(word)
        return told.story

    return do


def gives(task: str) -> Do:
    """The holder gives out a task, which its assignee begins; the holder has the floor again."""
    return lambda story: story.assigns(next(iter(story.state.floor)), task).progresses(task.split(":")[0])


def nests(task_id: str) -> Do:
    """Its assignee has a nested team do it."""
    return lambda story: story.nests(task_id)


def done(task_id: str) -> Do:
    """It is done, by a nested team of two turns if there is one."""

    def do(story: Scenario) -> Scenario:
        task = story.open(task_id)
        return story.finishes(task_id) if task.subgroup is None else story.nested_ends(task_id, turns=2)

    return do


PLAYED: Mapping[str, tuple[Sequence[Mapping[str, Any]], Mapping[str, Any], Sequence[Do], str, int, int]] = {
    "a join waits for branches, and not for tasks of theirs": (
        FORK,
        {},
        (says("says"), gives(f"t2-1:{C}"), nests("t2-1"), says("says says"), done("t2-1"), says("says")),
        "left:bob left:bob left:bob join:ada join:ada concluding:ada",
        7,
        0,
    ),
    "an end by a rule takes the nested team of a branch": (
        FORK,
        {},
        (says("says"), gives(f"t2-1:{C}"), nests("t2-1"), says("says says says")),
        "left:bob left:bob left:bob concluding:ada",
        5,
        1,
    ),
    "a node that is begun anew takes back the nested team of what it gave out": (
        ({**WORK, "then": "talk"}, {"name": "talk", "roles": ["b"], "max": 1}),
        {"watchers": [{"role": "c", "node": "talk", "may": ["go"], "go": ["work"]}]},
        (gives(f"t1-1:{B}"), nests("t1-1"), says("says says"), says("decides:work")),
        "work:ada work:ada talk?eve work:ada",
        3,
        1,
    ),
    "what was given out before that node was entered goes on": (
        (
            {**WORK, "then": "mid"},
            {"name": "mid", "roles": ["b"], "max": 1, "then": "talk"},
            {"name": "talk", "roles": ["b"], "max": 1},
        ),
        {"watchers": [{"role": "c", "node": "talk", "may": ["go"], "go": ["mid"]}]},
        (gives(f"t1-1:{B}"), nests("t1-1"), says("says says says"), says("decides:mid"), done("t1-1")),
        "work:ada work:ada talk?eve mid:bob mid:bob",
        6,
        0,
    ),
    "a judge ends it over open work": (
        ({**WORK, "roles": ["a", "b"], "max": 4, "asked": "turn", "exits": [{"to": "end", "by": "c"}]},),
        {},
        (gives(f"t1-1:{B}"), nests("t1-1"), says("says"), says("decides:end")),
        "work:ada work:ada work?eve concluding:ada",
        2,
        1,
    ),
    "a judge that stays leaves work to go on": (
        ({**WORK, "roles": ["a", "b"], "max": 4, "asked": "turn", "exits": [{"to": "end", "by": "c"}]},),
        {},
        (gives(f"t1-1:{B}"), says("says decides:stay"), done("t1-1")),
        "work:ada work:bob work:bob",
        2,
        0,
    ),
    "a nested team ends while others speak side by side": (
        ({**WORK, "then": "vote"}, {"name": "vote", "roles": ["b", "c"], "turns": "together"}),
        {},
        (gives(f"t1-1:{B}"), says("says"), nests("t1-1"), says("says@eve"), done("t1-1"), says("says@bob")),
        "work:ada vote:bob+eve vote:bob+eve vote:bob vote:bob concluding:ada",
        6,
        0,
    ),
    "a hub gives out tasks between those whom it names": (
        ({**WORK, "roles": ["a", "b", "c"], "turns": {"mode": "hub", "by": "a"}, "max": 3},),
        {},
        (gives(f"t1-1:{C}"), done("t1-1"), says("says:bob"), gives(f"t3-1:{C}"), says("says"), done("t3-1"), says("says")),
        "work:ada work:ada work:bob work:bob work:ada work:ada concluding:ada",
        5,
        0,
    ),
    "who asks for the nested team is asked in another node": (
        ({**WORK, "then": "talk"}, {"name": "talk", "roles": ["b"], "max": 2}),
        {},
        (
            gives(f"t1-1:{C}"),
            nests("t1-1"),
            says("says"),
            lambda story: story.team_asks("t1-1"),
            lambda story: story.speaks(A, Decision(task_id=TaskId("t1-1"), choice="yes")),
            says("says says"),
        ),
        "work:ada work:ada talk:bob talk:bob talk:bob concluding:ada",
        4,
        1,
    ),
}


def _where(story: Scenario) -> str:
    return Told(story).where()


@pytest.mark.parametrize("name", PLAYED)
def test_work_goes_on_beside_the_course(name: str) -> None:
    """As the page says; turns of nested teams are turns of the group, and of no node."""
    nodes, top, does, floors, turns, cancelled = PLAYED[name]
    story, been, ended = group(*nodes, roles={"c": {}}, **top), list[str](), 0
    for do in does:
        story = do(story)
        been.append(_where(story))
        ended += sum(isinstance(effect, CancelSubgroup) for effect in story.effects)
    used = story.state.turns_taken + story.state.nested_turns
    assert (" ".join(been), used, ended) == (floors, turns, cancelled)
    assert not story.state.phase.is_terminal
    assert cancelled == 0 or not [task for task in story.state.tasks if isinstance(task, OpenTask)]


def test_of_a_nested_team_those_are_told_who_were_told_of_its_task() -> None:
    """That it works, and that it has ended; who only judges hears nothing of it."""
    story = scoped().assigns(A, "t1-1:joe").progresses("t1-1").nests("t1-1").nested_ends("t1-1", turns=2)
    story = story.speaks(A, Discussion(content="On."))
    assert story.policy is not None
    told = [sorted(entry.audience) for entry in entries(story.log, story.policy)]
    assert told == [[A, B, C, "joe"], *[[A, B, "joe"]] * 4, [A, B]]
