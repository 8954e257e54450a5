"""Members come and go: the floor never stays with a lost one while another lives, and no group gets stuck."""

from __future__ import annotations

import pytest

from ioa.protocol.messages import Phase
from tests.unit.group.scenario import launched


def test_a_lost_holder_is_passed_over_at_once() -> None:
    """Nobody waits for the floor's time-out, and no turn or silence is counted."""
    story = launched("ada", "bob", "eve").loses("ada")
    assert (story.holder, story.state.turns_taken, story.state.silences) == ("bob", 0, 0)


def test_a_lost_listener_changes_nothing_about_the_floor() -> None:
    """The holder goes on speaking in the same turn."""
    story = launched("ada", "bob", "eve").loses("bob")
    assert (story.holder, story.state.turn) == ("ada", 1)


def test_silence_passes_lost_members_over() -> None:
    """Only the living are asked."""
    assert launched("ada", "bob", "eve").loses("bob").timer().holder == "eve"


def test_flapping_members_do_not_end_a_group() -> None:
    """Leases that come and go are no silence: however often, the group is still there."""
    story = launched("ada", "bob")
    for _ in range(20):
        story = story.loses("ada").regains("ada").loses("bob").regains("bob")
    assert (story.phase, story.state.silences) == (Phase.DISCUSSING, 0)


def test_the_first_to_return_takes_the_floor_from_the_lost() -> None:
    """When everybody was lost, the floor does not wait for its old holder."""
    story = launched("ada", "bob", "eve").loses("bob", "eve", "ada")
    assert (story.holder, story.regains("eve").holder) == ("ada", "eve")


def test_a_holder_that_returns_keeps_its_turn() -> None:
    """It may already have sent its message."""
    story = launched("ada").loses("ada").regains("ada")
    assert (story.holder, story.state.turn, story.announces("ada").phase) == ("ada", 1, Phase.CONCLUDING)


def test_a_group_that_lost_everybody_ends_by_its_timers() -> None:
    """Two rounds of time-outs, and it is given up."""
    assert launched("ada", "bob").loses("ada", "bob").timers(4).phase is Phase.FAILED


def test_a_lost_concluding_speaker_is_passed_over() -> None:
    """Somebody else states the conclusion."""
    story = launched("ada", "bob", "eve").announces("ada").loses("ada")
    assert (story.phase, story.holder, story.concludes("bob").phase) == (Phase.CONCLUDING, "bob", Phase.CONCLUDED)


def test_the_first_to_return_concludes_if_all_were_lost() -> None:
    """A conclusion does not wait for its old speaker either."""
    story = launched("ada", "bob").announces("ada").loses("bob", "ada").regains("bob")
    assert (story.phase, story.holder) == (Phase.CONCLUDING, "bob")


@pytest.mark.parametrize("lost", [("ada",), ("ada", "bob")])
def test_the_floor_of_a_lost_assigner_goes_to_a_living_member(lost: tuple[str, ...]) -> None:
    """Its tasks return the floor to the owner, or else to who joined first."""
    story = launched("bob", "ada", "eve").says("bob", to="ada").assigns_and_waits("ada", "t2-1:eve").loses(*lost)
    assert story.finishes("t2-1").holder == ("eve" if "bob" in lost else "bob")


def test_a_forced_conclusion_falls_to_a_living_member_if_the_owner_is_lost() -> None:
    """The owner is asked first, but only if it lives."""
    story = launched("ada", "bob").says("ada", to="bob").loses("ada").out_of_budget()
    assert (story.phase, story.holder) == (Phase.CONCLUDING, "bob")
