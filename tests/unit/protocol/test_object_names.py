"""Folders of stored files."""

from __future__ import annotations

from ioa.protocol.ids import GoalId, comm_id_of_goal
from ioa.protocol.setup.file_requests import folder_of

GOAL = GoalId("goal-1")


def test_folder_reveals_no_owner() -> None:
    """Goals and groups have different folders, and a folder contains neither id."""
    room = comm_id_of_goal(GOAL)
    folders = {folder_of(GOAL), folder_of(room), folder_of("\ud800")}
    assert len(folders) == 3
    assert not [one for one in folders for secret in (GOAL, room, room[1:]) if secret in one]
