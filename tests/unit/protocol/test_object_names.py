"""Names of files: the same each time, in a folder of their own, and silent about whose they are."""

from __future__ import annotations

import pytest

from ioa.protocol.ids import CommId, GoalId, comm_id_of_goal
from ioa.protocol.object_names import folder_of, object_name

GOAL = GoalId("goal-1")


@pytest.mark.parametrize("name", ["sales.csv", "../../other/0-sales.csv", "\ud800", "a/b", "ü" * 255])
def test_a_file_lies_in_its_owners_folder(name: str) -> None:
    """Whatever it is called, its name has two parts, the first of which is its owner's, and stays what it is."""
    folder, last = object_name(GOAL, "0", name).split("/")
    assert (folder, last, object_name(GOAL, "0", name)) == (folder_of(GOAL), last, f"{folder}/{last}")


def test_a_name_tells_nobody_whose_the_file_is() -> None:
    """Neither the goal, nor its group, nor the file's own name stands in it."""
    room = comm_id_of_goal(GOAL)
    names = [object_name(GOAL, "0", "sales.csv"), object_name(room, "t1", "sales.csv"), object_name(CommId("c"), "t1", "sales.csv")]
    assert len(set(names)) == 3
    assert not [one for one in names for secret in (GOAL, room, room[1:], "sales") if secret in one]
