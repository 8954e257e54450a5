"""The conclusion: each result unchanged, and the reason for each missing result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from ioa.agent.rules.conclusion import conclude_policy
from ioa.ports.brain_types import WholeConclusion
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import Discussion, Pass, PassCause, TaskOutcome
from ioa.protocol.setup.charter import PlannedTask
from tests.unit.agent.model.machine_group import card
from tests.unit.agent.rules.group_play import OWNER, GroupPlay, artifact, charter_of, planned

SUM = planned("t1", "a", "sum of revenue by region")
CHART = planned("t2", "b", "bar chart of #1", uses=("t1",))
EXAMPLE = "1. sum of NUMBER by COLUMN in FILE.csv\n2. bar chart of #1"


async def concluded(
    play: GroupPlay, said: Mapping[str, str], failing: Sequence[str] = (), declining: Sequence[str] = ()
) -> WholeConclusion:
    """Play to the end and return the conclusion."""
    await play.run(failing=failing, said=dict(said), declining=declining)
    payload = play.last
    return WholeConclusion.model_validate(payload.model_dump())


@pytest.mark.parametrize(
    ("plan", "said", "failing", "reason", "content"),
    [
        ([SUM], {"t1": "The total is 1,234.50."}, [], Reason.CONCLUDED, "The total is 1,234.50."),
        (
            [SUM, CHART],
            {"t1": "- East: 1,234.50", "t2": "chart.png"},
            [],
            Reason.CONCLUDED,
            "## sum of revenue by region\n\n- East: 1,234.50\n\n## bar chart of #1\n\nchart.png",
        ),
        (
            [SUM, CHART],
            {"t1": "total: 7", "t2": "Nothing to draw."},
            ["t2"],
            Reason.FAILED,
            "Not done:\n- bar chart of #1 (b: Nothing to draw.)\n\n## sum of revenue by region\n\ntotal: 7",
        ),
    ],
)
async def test_results_stand_unchanged_under_their_items_and_missing_ones_are_named(
    plan: Sequence[PlannedTask], said: Mapping[str, str], failing: Sequence[str], reason: Reason, content: str
) -> None:
    """A single result has no heading; a goal with a missing part fails and keeps the results."""
    conclusion = await concluded(GroupPlay(charter_of(plan)), said, failing)
    assert (conclusion.reason, conclusion.content) == (reason, content)


async def test_agent_that_tried_is_quoted_before_agents_that_declined() -> None:
    """The reason of an agent that knows the task helps the user most."""
    play = GroupPlay(charter_of([planned("t1", "a", "sum", others=("b",))]))
    conclusion = await concluded(play, {"a": "Not mine.", "b": "No column x."}, ["a", "b"], ["a"])
    assert conclusion.content.splitlines()[:2] == ["Not done:", "- sum (b: No column x.)"]
    assert conclusion.reason is Reason.FAILED


async def test_rejected_goal_shows_an_example_of_the_nearest_agent() -> None:
    """It is the first example of the agent that gave the first reason; an example that needs a result is no goal."""
    members = [card("a", examples=("chart of #1", EXAMPLE)), card("b", examples=("greet Ada",))]
    play = GroupPlay(charter_of([planned("t1", "a", "sumz", others=("b",))], members))
    conclusion = await concluded(play, dict.fromkeys("ab", "Write sum of …"), declining="ab")
    assert conclusion.reason is Reason.NO_AGENT
    assert conclusion.content.splitlines() == [
        "Not done:",
        "- sumz (a: Write sum of …)",
        "This works, with your own words in place of those in capitals:",
        *EXAMPLE.splitlines(),
    ]


async def test_files_are_collected_once_and_listed() -> None:
    """The artifacts of all tasks that are done are attached."""
    play = GroupPlay(charter_of([SUM, planned("t2", "b", "count of rows by x")]))
    await play.speak()
    play.acknowledge()
    for task in play.state.open_tasks:
        play.finish(task, TaskOutcome.DONE, "done", [artifact("shared.csv"), artifact(f"{task.task_id}.png")])
    await play.run()
    assert [one.name for one in play.ended.artifacts] == ["shared.csv", "t1-t1.png", "t1-t2.png"]
    assert play.ended.content.endswith("Files: `shared.csv`, `t1-t1.png`, `t1-t2.png`")


FAILED = Pass(cause=PassCause.NO_USABLE_ANSWER, content="KeyError: 'x'")


@pytest.mark.parametrize(
    ("said", "reason", "content"),
    [
        (["asks", "Too long!", FAILED], Reason.FAILED, "owner, which leads the group, failed: KeyError: 'x'"),
        ([FAILED, "Go on.", "42"], Reason.CONCLUDED, "42"),
    ],
)
def test_last_words_are_the_result_under_a_policy_unless_the_leader_failed_after_them(
    said: Sequence[str | Pass], reason: Reason, content: str
) -> None:
    """The reviewer's objection is not the result."""
    play = GroupPlay(charter_of([SUM], [card("critic")]))
    for one in said:
        me = play.state.floor_holder
        assert me is not None
        other = AgentId("critic") if me == OWNER else OWNER
        play.say(me, Discussion(content=one, next_speaker=other) if isinstance(one, str) else one)
    conclusion = conclude_policy(play.view(OWNER))
    assert (conclusion.reason, conclusion.content) == (reason, content)
