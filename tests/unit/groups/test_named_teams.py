"""Teams under names: who may put them, how many are kept, and what becomes of goals that name one."""

from __future__ import annotations

import json

import pytest

from ioa.errors import InvalidInputError, OverQuotaError, PayloadTooLargeError
from ioa.protocol import subjects
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import Reason
from ioa.protocol.ids import LOCAL, UserId
from ioa.protocol.teams.stored_teams import PutTeam, TeamReference
from ioa_groups import named_teams as named_teams
from ioa_groups.named_teams import Teams
from tests.contract.system_client.test_named_teams import debate
from tests.rig.memory_teams import MemoryTeams
from tests.unit.runtime.plane import GOAL, Plane

ANNA, EVE = UserId("anna"), UserId("eve")


async def test_newest_versions_of_a_limited_number_of_teams_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Old ones go, so that no user fills the store; what goes is told by what there is."""
    monkeypatch.setattr(named_teams, "MAX_NAMES", 3)
    monkeypatch.setattr(named_teams, "VERSIONS_KEPT", 2)
    store = MemoryTeams()
    teams = Teams(store, (plane := Plane()).clock, plane.storage)
    for most in range(1, 5):
        await teams.put(ANNA, PutTeam(team=debate(most=most)))
    assert sorted(row.version for row in await store.rows()) == [3, 4]
    for number in (1, 2):
        await teams.put(ANNA, PutTeam(team=debate(f"team-{number}")))
    with pytest.raises(OverQuotaError, match="3 teams"):
        await teams.put(ANNA, PutTeam(team=debate("one-more")))
    await teams.put(EVE, PutTeam(team=debate("one-more")))
    await teams.put(ANNA, PutTeam(team=debate()))


async def test_what_no_name_can_be_is_refused() -> None:
    """A name stands in references and keys; a team that no goal could hold is not kept."""
    teams = Plane().teams
    with pytest.raises(InvalidInputError, match="This is not a valid name of a team: 'two sides'"):
        await teams.put(ANNA, PutTeam(team=debate("two sides")))
    large = debate().model_copy(update={"goal": "ü" * 130_000})
    with pytest.raises(PayloadTooLargeError, match="256,000 are the most"):
        await teams.put(ANNA, PutTeam(team=large))


async def test_goal_and_team_fit_into_a_launch_together(plane: Plane) -> None:
    """What each may have alone can be too much for the group's first entry: it is told at once, not when the group is to open."""
    await plane.teams.put(ANNA, PutTeam(team=debate().model_copy(update={"goal": "x" * 250_000})))
    data = json.dumps({"goal": "\U0001f300" * 30_000, "goal_id": GOAL, "team": "debate"}, ensure_ascii=False).encode()
    await plane.intake.accept(subjects.goal_of(LOCAL), data, "1")
    [letter] = plane.dead.letters
    assert "the team debate@1 have 37" in letter.why and "360,000 are the most" in letter.why
    assert (await plane.reason(), plane.goals.all()) == (Reason.FAILED, [])


@pytest.mark.parametrize("written", ["", "a b", "a@0", "a@1@2", "a" * 65])
def test_what_names_no_team_is_refused(written: str) -> None:
    """Where it is written, with what may be written instead."""
    with pytest.raises(InvalidInputError):
        GoalOrder(goal="x", team=written)


def test_a_reference_is_read_as_it_is_written() -> None:
    """The name alone means every version, in which the newest is taken; with a version it means that one."""
    for written in ("debate", "debate@12"):
        assert str(TeamReference.parse(written)) == written
    assert TeamReference.parse("debate").means(TeamReference.parse("debate@2"))
    assert not TeamReference.parse("debate@1").means(TeamReference.parse("debate@2"))
