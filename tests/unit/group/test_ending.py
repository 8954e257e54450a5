"""How groups end, and what they owe the world when they do."""

from __future__ import annotations

from datetime import timedelta

import pytest
from pydantic import ValidationError

from ioa.group.effects import PublishResult, owed_effects
from ioa.group.events import LaunchAbandoned, TimerFired
from ioa.group.machine import step
from ioa.group.state import Ended
from ioa.protocol.goals import Artifact, GoalResult, Reason
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import ConcludeGroupDiscussion, Conclusion, Phase, TaskOutcome
from tests.unit.group.scenario import COMM, GOAL, START, Scenario, charter, launched, limits


def _result(story: Scenario) -> GoalResult:
    (effect,) = story.effects
    assert isinstance(effect, PublishResult)
    return effect.result


def test_a_conclusion_publishes_the_goals_result() -> None:
    """The one result says what was concluded, in which group and after how many turns."""
    story = launched("ada", "bob").says("ada", to="bob").announces("bob").concludes("bob")
    assert _result(story) == GoalResult(
        goal_id=GOAL, reason=Reason.CONCLUDED, content="Ten.", comm_id=COMM, turns=1, finished_at=START
    )


def test_a_conclusion_may_come_with_its_announcement() -> None:
    """One message ends the group with its result and files."""
    file = Artifact(name="ten.txt", object_name="room/t1-1/ten.txt", size_bytes=3, sha256="0" * 64)
    conclusion = Conclusion(content="Ten.", artifacts=(file,))
    story = launched("ada", "bob").says("ada", to="bob").speaks("bob", ConcludeGroupDiscussion(conclusion=conclusion))
    ended = (_result(story).reason, _result(story).content, _result(story).artifacts)
    assert (story.phase, ended) == (Phase.CONCLUDED, (Reason.CONCLUDED, "Ten.", (file,)))


def test_a_conclusion_of_one_message_may_be_a_failure() -> None:
    """The group ends with the reason that its words give."""
    conclusion = Conclusion(content="Nobody knows.", reason=Reason.NO_AGENT)
    story = launched("ada").speaks("ada", ConcludeGroupDiscussion(conclusion=conclusion))
    assert (story.phase, _result(story).reason, _result(story).content) == (Phase.FAILED, Reason.NO_AGENT, "Nobody knows.")


def test_who_may_not_conclude_only_announces() -> None:
    """A holder that was lost when it spoke gives way to a living member, as it does without a conclusion in its message."""
    story = launched("ada", "bob", "eve").loses("bob").says("ada", to="bob")
    story = story.speaks("bob", ConcludeGroupDiscussion(conclusion=Conclusion(content="Ten.")))
    assert (story.phase, story.holder) == (Phase.CONCLUDING, "ada")


def test_a_forced_conclusion_may_say_that_the_goal_was_reached() -> None:
    """Then the result is a success that names the limit."""
    expected = Reason.CONCLUDED, Reason.BUDGET, Phase.CONCLUDED
    story = launched("ada", "bob").out_of_budget().concludes("ada")
    assert (_result(story).reason, _result(story).limit, story.phase) == expected


@pytest.mark.parametrize("reason", [Reason.NO_AGENT, Reason.FAILED])
def test_a_conclusion_may_say_that_the_goal_was_not_reached(reason: Reason) -> None:
    """Then the group has failed, for the reason stated."""
    story = launched("ada").announces("ada").concludes("ada", reason)
    assert (story.phase, _result(story).reason) == (Phase.FAILED, reason)


def test_the_deadline_ends_the_group_whatever_it_does() -> None:
    """Tasks that are open are cancelled."""
    story = launched("ada", "bob").assigns_and_waits("ada", "t1-1:bob").after(86_400)
    story = story.happens(TimerFired(at=story.now))
    assert (_result(story).reason, story.outcome("t1-1")) == (Reason.DEADLINE, TaskOutcome.CANCELLED)


def test_a_cancelled_group_cancels_its_tasks() -> None:
    """Cancelling is legal whatever runs."""
    story = launched("ada", "bob").assigns("ada", "t1-1:bob").cancelled()
    assert (story.phase, story.outcome("t1-1"), _result(story).reason) == (
        Phase.CANCELLED,
        TaskOutcome.CANCELLED,
        Reason.CANCELLED,
    )


def test_a_spent_budget_forces_the_owner_to_conclude() -> None:
    """The answer is kept, the reason is the budget."""
    story = launched("ada", "bob").says("ada", to="bob").out_of_budget().concludes("ada", Reason.FAILED)
    assert (_result(story).reason, _result(story).content) == (Reason.BUDGET, "Ten.")


def test_a_forced_conclusion_nobody_states_keeps_its_reason() -> None:
    """Silence after a spent budget is still the budget's fault."""
    assert _result(launched("ada").out_of_budget().timer()).reason is Reason.BUDGET


def test_silence_before_a_forced_conclusion_does_not_shorten_it() -> None:
    """Everybody is asked anew for the conclusion."""
    assert launched("ada", "bob").timers(3).out_of_budget().state.silences == 0


def test_what_an_ended_group_owes_follows_from_its_state_alone() -> None:
    """A router that looks at it later pays the same."""
    story = launched("ada", "bob").assigns("ada", "t1-1:bob").nests("t1-1").cancelled()
    assert owed_effects(story.state) == story.effects


def test_an_open_group_owes_nothing() -> None:
    """There is no result before the end."""
    assert owed_effects(launched("ada").state) == ()


def test_an_abandoned_launch_publishes_the_goals_result() -> None:
    """A goal that got no group ends with a reason all the same, and its log takes no launch afterwards."""
    event = LaunchAbandoned(
        at=START, comm_id=COMM, goal_id=GOAL, by=AgentId("ada"), reason=Reason.NO_AGENT, content="Nobody counts."
    )
    transition = step(None, event)
    assert (transition.state.stage, [type(effect) for effect in transition.effects]) == (
        Ended(reason=Reason.NO_AGENT, content="Nobody counts.", ended_at=START),
        [PublishResult],
    )


def test_a_team_names_each_member_once() -> None:
    """A member that counts twice would be asked twice."""
    with pytest.raises(ValidationError, match="names one member twice"):
        charter("ada", "bob", "bob", limits=limits())


def test_no_time_out_is_longer_than_a_year() -> None:
    """A deadline beyond the calendar would stop the machine."""
    with pytest.raises(ValidationError, match="less than or equal"):
        limits().model_validate({**limits().model_dump(), "task_lease": timedelta.max})
