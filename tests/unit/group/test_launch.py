"""What a log may begin with: launches, abandoned launches, and the charters and tasks that are rejected where they are read."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from pydantic import ValidationError

from ioa.errors import InvalidInputError
from ioa.group.events import GroupLaunched, LaunchAbandoned
from ioa.group.machine import PublishResult, ReportToParent, step
from ioa.group.rejection import IllegalEventError
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId, CommId, TaskId
from ioa.protocol.messages import TaskSpec
from ioa.protocol.setup.charter import ParentTask
from tests.unit.group.scenario import COMM, GOAL, START, charter, limits


@pytest.mark.parametrize("parent", [None, ParentTask(comm_id=CommId("root"), task_id=TaskId("t1-1"))], ids=["root", "nested"])
def test_abandoned_launch_publishes_result_or_reports_to_parent(parent: ParentTask | None) -> None:
    """A goal that got no group ends with a reason; a nested team that was never opened ends its task and not the goal."""
    about = {"comm_id": COMM, "goal_id": GOAL, "by": AgentId("ada"), "reason": Reason.NO_AGENT, "content": "Nobody counts."}
    (effect,) = step(None, LaunchAbandoned.model_validate({"at": START, "parent": parent, **about})).effects
    if parent is None:
        assert isinstance(effect, PublishResult)
        assert (effect.result.reason, effect.result.content) == (Reason.NO_AGENT, "Nobody counts.")
    else:
        assert effect == ReportToParent(parent, COMM, Reason.NO_AGENT, "Nobody counts.", ())


def test_launch_by_owner_outside_the_team_is_rejected() -> None:
    """Who opens a group is one of its members."""
    opened = charter("ada", limits=limits()).model_copy(update={"owner": AgentId("mallory")})
    with pytest.raises(IllegalEventError) as rejection:
        step(None, GroupLaunched(at=START, charter=opened))
    assert rejection.value.code == "not_a_member"


@pytest.mark.parametrize(
    "make",
    [
        lambda: charter("ada", "bob", "bob", limits=limits()),
        lambda: limits().model_validate({**limits().model_dump(), "task_lease": timedelta.max}),
        *[
            lambda team=team: TaskSpec(task_id=TaskId("t1-a"), assignee=AgentId("bob"), task_desc="…", team=team)
            for team in ("", "debate@0", "../debate")
        ],
    ],
    ids=["member twice", "lease beyond the calendar", "no team", "version 0", "path"],
)
def test_malformed_charter_or_task_is_rejected(make: Callable[[], object]) -> None:
    """Before anything is looked up by it."""
    with pytest.raises((ValidationError, InvalidInputError)):
        make()
