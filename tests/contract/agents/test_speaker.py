"""An author's function that speaks in a group."""

from __future__ import annotations

from ioa import Agent, TurnView
from ioa.agent.turn_view import Said
from ioa.protocol.messages import Pass, PassCause
from ioa.testing import ScriptedBrain
from ioa_testkit import System
from tests.contract.agents.leaders import WATCH, asking, launch_team


def _agent(agent_id: str = "ann") -> Agent:
    agent = Agent(agent_id, description="Watches", examples=["watch"])
    agent.task(lambda task: "Watched.")
    return agent


async def test_speaker_function_sends_its_messages(ioa_system: System) -> None:
    """It discusses, assigns tasks and concludes; no other brain is called."""
    views: list[TurnView] = []
    agent = _agent("watcher")

    @agent.speak
    def speak(view: TurnView) -> Said:
        views.append(view)
        if not view.tasks:
            return view.assign({"watcher": "watch the door"}, say="to be sure")
        return view.conclude(f"{view.tasks[0].conclusion} All quiet.")

    goal = await ioa_system.run(WATCH, agents=[asking("watcher"), agent], brain=ScriptedBrain(teams=[launch_team("watcher")]))
    first = views[0]
    assert (goal.content, len(views)) == ("Watched. All quiet.", 2)
    assert (first.goal, "DISCUSSION" in first.legal, first.team[0].agent_id) == ("Keep watch", True, "lead")
    assert [(one.kind, one.content) for one in first.conversation] == [("message", "What do you see?")]


async def test_speaker_that_is_refused_thrice_passes(ioa_system: System) -> None:
    """The router's reason is in `refusals`; an exception and what no builder made count as well, and no rule speaks instead.

    Then the agent passes at once, and the transcript holds the reasons.
    """
    refusals: list[tuple[str, ...]] = []
    agent = _agent("watcher")

    @agent.speak
    def speak(view: TurnView) -> Said:
        refusals.append(view.refusals)
        if len(refusals) == 1:
            return view.say("Hello?", to="nobody")
        if len(refusals) == 2:
            raise ValueError("at a loss")
        return "Hello?"  # type: ignore[return-value]

    goal = await ioa_system.run(WATCH, agents=[asking("watcher"), agent], brain=ScriptedBrain(teams=[launch_team("watcher")]))
    passed = goal.messages(by="watcher")[0].payload
    assert [len(told) for told in refusals] == [0, 1, 2]
    assert "nobody" in refusals[1][0] and refusals[2][1] == "ValueError: at a loss"
    assert isinstance(passed, Pass) and passed.cause is PassCause.NO_USABLE_ANSWER
    assert [why in passed.content for why in (*refusals[2], "returned str")] == [True] * 3
