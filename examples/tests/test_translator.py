"""How an agent is tested: its function alone, in a whole system, and in a group whose other members the test speaks for."""

from pathlib import Path

import pytest

from ioa import Agent, TaskContext
from ioa.testing import RecordingContext
from ioa_testkit import ScriptError, System

agent = Agent("translator", description="Translates words into French", examples=["translate bread into French"])


@agent.task
def translate(task: str, ctx: TaskContext) -> str:
    """Translate the words of a task that are known."""
    ctx.progress("looking up", 0.5)
    french = {"soup": "soupe", "bread": "pain"}
    found = [french[word] for word in task.lower().replace("'", " ").split() if word in french]
    if not found:
        raise ValueError("I know soup and bread only.")
    ctx.artifact("menu.txt", "\n".join(found))
    return ", ".join(found)


def test_the_function_alone(tmp_path: Path) -> None:
    """The context records reports and files of a task function."""
    ctx = RecordingContext(tmp_path)
    assert translate("translate soup", ctx) == "soupe"
    assert (ctx.reports, [file.name for file in ctx.artifacts]) == ([("looking up", 0.5)], ["menu.txt"])


async def test_a_goal_in_a_whole_system(ioa_system: System) -> None:
    """The agent is found by its card, leads the goal, does it, and the user gets a typed result."""
    goal = await ioa_system.run("translate soup into French", agents=[agent])
    assert goal.succeeded
    assert goal.files == {"menu.txt": b"soupe"}
    assert "soupe" in goal.content


async def test_in_a_group_with_others(ioa_system: System) -> None:
    """The other members say what the test has them say; the agent answers the task that it is given."""
    async with ioa_system.group("Print the menu", agent=agent, members=["lead", "cook"]) as group:
        lead, cook = group["lead"], group["cook"]
        await lead.says("What is on the menu?", to=cook)
        await cook.says("Soup and bread.", to=lead)
        answer = await lead.asks(agent, "translate 'soup' and 'bread' into French")
        assert (answer.content, answer.files["menu.txt"]) == ("soupe, pain", b"soupe\npain")
        assert [(report.content, report.fraction) for report in answer.progress] == [("looking up", 0.5)]
        result = await lead.concludes(f"Today: {answer.content}")
    assert result.content == "Today: soupe, pain"


async def test_failed_task_is_reported_to_the_group(ioa_system: System) -> None:
    """What the function raises is the task's failure, in words that the leader can act on."""
    async with ioa_system.group("Print the menu", agent=agent) as group:
        answer = await group["lead"].asks(agent, "translate wine into French")
    assert not answer.succeeded
    assert "I know soup and bread only." in answer.content


async def test_a_script_that_breaks_the_rules_fails(ioa_system: System) -> None:
    """An illegal message fails the test with the router's reason."""
    async with ioa_system.group("Print the menu", agent=agent, members=["lead", "cook"]) as group:
        with pytest.raises(ScriptError, match="lead holds the floor, not cook"):
            await group["cook"].says("Soup!", to="lead")
