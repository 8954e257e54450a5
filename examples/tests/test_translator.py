"""How an agent is tested: its function alone, in a whole system, and in a group with a scripted leader."""

from pathlib import Path

from ioa import Agent, GoalOrder, TaskContext, TurnView
from ioa.brain import Said, TeamLaunch
from ioa.protocol.ids import AgentId
from ioa.testing import RecordingContext, ScriptedBrain
from ioa_testkit import System

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


MENU, TEAM = GoalOrder(goal="Print the menu", agent=AgentId("lead")), TeamLaunch(members=(AgentId("translator"),))


def leader(task: str) -> Agent:
    """Return an agent that gives the translator one task, and concludes with the result."""
    lead = Agent("lead", description="Leads")

    @lead.speak
    def speak(view: TurnView) -> Said:
        if not view.tasks:
            return view.assign({"translator": task})
        return view.conclude(f"Today: {view.tasks[0].conclusion}")

    return lead


async def test_in_a_group_with_a_scripted_leader(ioa_system: System) -> None:
    """The leader gives the agent a task, and states the conclusion with its result."""
    lead = leader("translate 'soup' and 'bread' into French")
    goal = await ioa_system.run(MENU, agents=[lead, agent], brain=ScriptedBrain(teams=[TEAM]))
    assert (goal.content, goal.files) == ("Today: soupe, pain", {"menu.txt": b"soupe\npain"})


async def test_failed_task_is_reported_to_the_group(ioa_system: System) -> None:
    """What the function raises is the task's failure, in words that the leader can act on."""
    lead = leader("translate wine into French")
    goal = await ioa_system.run(MENU, agents=[lead, agent], brain=ScriptedBrain(teams=[TEAM]))
    assert "I know soup and bread only." in goal.content
