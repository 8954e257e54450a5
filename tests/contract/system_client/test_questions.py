"""What groups and tasks ask the user of their goal, as a program sees and answers it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ioa.errors import ConflictError, InvalidInputError, NotFoundError
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.ids import MessageId, TaskId
from ioa.protocol.messages import AskUser, InformTaskProgress, SyncTaskAssignment, TaskQuestion, TaskSpec
from ioa_testkit.planes import Plane
from tests.contract.system_client.members import ADA, BOB, GOAL, ROOM, Members, say
from tests.rig.deadline import eventually

TASK = TaskId("t2-count")


def asks(**other: Any) -> dict[str, Any]:
    """A question that waits for half an hour."""
    until = datetime.now(UTC) + timedelta(minutes=30)
    return {"text": "Shall I?", "options": ("yes", "no"), "default": "no", "until": until, **other}


async def test_what_waits_for_the_user_is_listed_and_answered_once(plane: Plane, members: Members) -> None:
    """A program sees what groups and tasks ask, and is told what counted when it comes too late."""
    client = plane.client
    await plane.client.submit(GoalOrder(goal_id=GOAL, goal="Count."))
    await members.launch()
    await say(plane, MessageId("m1"), ADA, AskUser(**asks()), ROOM)
    (waiting,) = await eventually(client.waiting, lambda found: len(found) == 1)
    assert (waiting.asker, waiting.text, waiting.options, waiting.task_id) == (ADA, "Shall I?", ("yes", "no"), None)
    assert [waiting] == list(await client.waiting(waiting.goal))
    with pytest.raises(InvalidInputError, match="none of the options"):
        await client.answer(waiting.item, "perhaps")
    await client.answer(waiting.item, "yes")
    await client.answer(waiting.item, "yes")
    with pytest.raises(ConflictError, match="has answered 'yes'"):
        await client.answer(waiting.item, "no")
    given = SyncTaskAssignment(tasks=(TaskSpec(task_id=TASK, assignee=BOB, task_desc="Count."),))
    await say(plane, MessageId("m2"), ADA, given, ROOM)
    await say(plane, MessageId("m3"), BOB, InformTaskProgress(task_id=TASK, number=1), ROOM)
    soon = datetime.now(UTC) + timedelta(seconds=0.5)
    await say(plane, MessageId("m4"), BOB, TaskQuestion(**asks(until=soon), task_id=TASK, number=1, role="operator"), ROOM)
    (asked,) = await client.waiting(waiting.goal)
    assert (asked.task_id, asked.role, asked.asker) == (TASK, "operator", BOB)
    await eventually(lambda: client.waiting(waiting.goal), lambda found: not found)
    with pytest.raises(ConflictError, match="Question 1 of task t2-count does not wait for an answer"):
        await client.answer(asked.item, "yes")
    with pytest.raises(InvalidInputError, match=r"GROUP\.TASK\.NUMBER"):
        await client.answer("nothing", "yes")
    with pytest.raises(NotFoundError):
        await client.answer("nothing.1", "yes")
