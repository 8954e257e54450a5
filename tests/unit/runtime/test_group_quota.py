"""What one group takes of the store is bounded, and a group at its bound can be brought to its end by any router."""

from __future__ import annotations

import pytest

from ioa.group.requests import Rejected
from ioa.protocol.codec import encode
from ioa.protocol.goals import Reason
from ioa.protocol.ids import TaskId
from ioa.protocol.levels import LEVEL, TASKS_ARE_FOLDED
from ioa.protocol.messages import ConcludeGroupDiscussion, Conclusion, Discussion, InformTaskResult, SyncTaskAssignment
from ioa.protocol.policy import FormField
from ioa.protocol.policy_check import MAX_STATE_BYTES
from ioa.runtime.group_quota import GroupQuota
from tests.unit.group.scenario import specs
from tests.unit.runtime.plane import ADA, BOB, EVE, Plane


async def test_a_group_gives_out_so_many_tasks_in_all() -> None:
    """Tasks that are done, and have left the state, count too; each router says so to who gives out more, and what it can do."""
    plane = Plane(GroupQuota(tasks=3))
    await plane.open(ADA, BOB, level=TASKS_ARE_FOLDED)
    for _ in range(2):
        await plane.says(ADA, given := await _one_task(plane))
        await plane.says(BOB, InformTaskResult(task_id=given.tasks[0].task_id, task_conclusion="Done."))
    turn = (await plane.state()).turn
    two = SyncTaskAssignment(tasks=specs((f"t{turn}-1:bob", f"t{turn}-2:bob")))
    for router in (0, 1):
        refused = await plane.says(ADA, two, router=router)
        assert isinstance(refused, Rejected)
        assert (refused.code, refused.legal) == ("too_many_tasks", ("CONCLUDE_GROUP_DISCUSSION",))
        assert refused.message.startswith("This group has given out 2 tasks, and a group may give out 3.")
    assert not isinstance(await plane.says(ADA, await _one_task(plane)), Rejected)


async def test_a_group_that_has_filled_its_log_can_only_be_concluded() -> None:
    """What begins something is refused by each router; an eighth is kept for results of tasks, and the conclusion is taken."""
    plane = Plane(GroupQuota(log_bytes=40_000))
    await plane.open(ADA, BOB, level=TASKS_ARE_FOLDED)
    await plane.says(ADA, Discussion(content="a" * 32_000, next_speaker=BOB))
    await plane.says(BOB, given := await _one_task(plane))
    for router in (0, 1):
        plane.ledgers[router].forget()
    task_id: TaskId = given.tasks[0].task_id
    result = await plane.says(BOB, InformTaskResult(task_id=task_id, task_conclusion="c" * 9_000))
    refused = [await plane.says(BOB, Discussion(content="b", next_speaker=ADA), router=router) for router in (0, 1)]
    assert not isinstance(result, Rejected)
    assert [(one.code, one.legal) for one in refused if isinstance(one, Rejected)] == [
        ("too_little_left", ("CONCLUDE_GROUP_DISCUSSION",))
    ] * 2
    await plane.says(BOB, ConcludeGroupDiscussion())
    await plane.says(BOB, Conclusion(content="d" * 9_000))
    assert await plane.reason() is Reason.CONCLUDED


@pytest.mark.parametrize(("letters", "is_taken"), [(22, True), (23, False)])
async def test_a_question_carries_no_more_than_a_policy_would(letters: int, is_taken: bool) -> None:
    """Four fields of sixteen options, four bytes a letter: what is more than a policy may add to each entry is refused."""
    plane = Plane()
    await plane.open(ADA, BOB, EVE, level=LEVEL)
    before = len(encode(await plane.state()))
    fields = [
        FormField(name=f"f{at}", kind="option", options=tuple(f"{at:02}" + "𐍈" * letters for at in range(16))) for at in range(4)
    ]
    asked = await plane.says(ADA, Discussion(content="Well?", question=tuple(fields), next_speakers=(BOB, EVE)))
    assert (isinstance(asked, Rejected), len(encode(await plane.state())) - before < MAX_STATE_BYTES) == (not is_taken, True)
    if isinstance(asked, Rejected):
        assert (asked.code, "DISCUSSION" in asked.legal) == ("bad_form", True)


async def _one_task(plane: Plane) -> SyncTaskAssignment:
    return SyncTaskAssignment(tasks=specs((f"t{(await plane.state()).turn}-1:bob",)))
