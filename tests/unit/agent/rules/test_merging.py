"""The conclusion: every result word for word, the final report first, and what is missing by name."""

from __future__ import annotations

import pytest

from ioa.agent.rules.merging import conclude
from ioa.protocol.goals import Reason
from ioa.protocol.messages import Conclusion, TaskOutcome
from tests.unit.agent.rules.group_play import OWNER, GroupPlay, artifact, charter_of, planned

SUM = planned("t1", "a", "compute the total in sales.csv")
CHART = planned("t2", "b", "chart the total in sales.csv", uses=("t1",))
NOBODY = (
    " Nobody here does this as it is said; an agent with a language model might. What those say who were asked:"
    "\n  - a: No text. Send one.\n  - b: No such month."
)
REPORT = planned("t3", "c", "write a report of both results", uses=("t1", "t2"))


async def concluded(play: GroupPlay, said: dict[str, str], failing: tuple[str, ...] = (), declining: str = "") -> Conclusion:
    """Play to the end and return what was concluded."""
    await play.run(failing=failing, said=said, declining=declining)
    payload = play.messages[-1].payload
    assert isinstance(payload, Conclusion)
    return payload


async def test_a_single_result_is_the_conclusion() -> None:
    """One task's conclusion is the group's, unchanged."""
    conclusion = await concluded(GroupPlay(charter_of([SUM])), {"t1": "The total is 1,234.50."})
    assert Conclusion(content="The total is 1,234.50.") == conclusion


async def test_results_are_kept_word_for_word_in_the_plans_order() -> None:
    """Each need has its heading, followed by its result."""
    other = planned("t2", "b", "count the words in notes.txt")
    conclusion = await concluded(GroupPlay(charter_of([SUM, other])), {"t1": "1,234.50", "t2": "- 42 words"})
    expected = "## Compute the total in sales.csv\n\n1,234.50\n\n## Count the words in notes.txt\n\n- 42 words"
    assert expected == conclusion.content


async def test_a_final_report_comes_first_and_nothing_twice() -> None:
    """A report of all others leads, and a result it quotes is not repeated below it."""
    said = {"t1": "total: 7", "t2": "chart.png: a bar", "t3": "# Report\n\ntotal: 7\n\nAll is well."}
    conclusion = await concluded(GroupPlay(charter_of([SUM, CHART, REPORT])), said)
    assert conclusion.content.startswith("## Write a report of both results\n\n# Report")
    assert conclusion.content.count("total: 7") == 1
    assert "chart.png: a bar" in conclusion.content


async def test_what_failed_is_said_and_what_was_reached_is_kept() -> None:
    """A need that was not fulfilled makes the conclusion a failure that names it and its cause."""
    conclusion = await concluded(
        GroupPlay(charter_of([SUM, CHART])), {"t1": "total: 7", "t2": "There is nothing to draw."}, failing=("t2",)
    )
    assert Reason.FAILED is conclusion.reason
    assert "- Chart the total in sales.csv: There is nothing to draw." in conclusion.content
    assert "total: 7" in conclusion.content


@pytest.mark.parametrize(
    ("declining", "told"),
    [
        ("", "\n  - a: No text. Send one.\n  - b: No such month."),
        ("a", " No such month. Say which."),
        ("b", " No text. Send one."),
        ("ab", NOBODY),
    ],
)
async def test_who_does_other_things_does_not_speak_for_who_tried(declining: str, told: str) -> None:
    """The reasons of those who declined are left out; if all did, the goal says that nobody here does it, and who was nearest."""
    said = {"a": "No text. Send one.", "b": "No such month. Say which."}
    conclusion = await concluded(GroupPlay(charter_of([planned("t1", "a", others=("b",))])), said, ("a", "b"), declining)
    assert conclusion.content == f"The goal was not reached:\n- Do t1:{told}"
    assert conclusion.reason == (Reason.NO_AGENT if declining == "ab" else Reason.FAILED)


async def test_files_are_collected_and_listed() -> None:
    """The artifacts of all tasks are attached once each and named in the text."""
    play = GroupPlay(charter_of([SUM, planned("t2", "b", "count rows in x.csv")]))
    await play.speak()
    play.acknowledge()
    await play.speak()
    for task in play.state.open_tasks:
        play.finish(task, TaskOutcome.DONE, "done", [artifact("shared.csv"), artifact(f"{task.task_id}.png")])
    conclusion = conclude(play.view(OWNER))
    assert [one.name for one in conclusion.artifacts] == ["shared.csv", "t1-t1.png", "t1-t2.png"]
    assert conclusion.content.endswith("Files: `shared.csv`, `t1-t1.png`, `t1-t2.png`")
