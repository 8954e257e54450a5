"""How a group goes on that was copied from another one: its times run on from where they stood there.

The copied entries keep the times at which they happened, and nothing runs out while they are copied. So one entry, the last one,
moves all that is yet to come by as long as has passed since; every lease begins anew, since nobody has been told of its task.
Nested teams that were at work were not copied: their tasks have none from now on, and what they were lent is there again.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from ioa.group.events import CancelRequested, Event, TimerFired
from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.group.state import GroupState, Member, OfTask, OpenTask, Stage, Task


def check_may_move(state: GroupState, event: Event) -> None:
    """Refuse what would move a group that is being copied, but for its end, and for what has it go on once it is whole.

    Raises:
        IllegalEventError: The event has to wait.
    """
    if not state.copying or isinstance(event, CancelRequested) or (is_resumed(event) and state.copying == 1):
        return
    if isinstance(event, TimerFired) and event.at >= state.limits.deadline:
        return
    code = RejectionCode.NOTHING_DUE if isinstance(event, TimerFired) else RejectionCode.WRONG_PHASE
    raise IllegalEventError(code, f"The group {state.comm_id} is being copied, and goes on in a moment.")


def is_resumed(event: Event) -> bool:
    """Whether an event has a copied group go on."""
    return isinstance(event, TimerFired) and event.copied_until is not None


def resume(state: GroupState, event: Event) -> GroupState:
    """Have a copied group go on. Questions that were open still are, for as long as they were to be.

    Raises:
        IllegalEventError: The group is none that is copied.
    """
    assert isinstance(event, TimerFired) and event.copied_until is not None
    if not state.copying:
        raise IllegalEventError(RejectionCode.NOTHING_DUE, f"{state.comm_id} is not being copied.")
    late, end = event.at - event.copied_until, state.limits.deadline
    return state.model_copy(
        update={
            "stage": _stage(state.stage, late, end),
            "members": tuple([_member(member, late) for member in state.members]),
            "passes": tuple([one.model_copy(update={"since": one.since + late}) for one in state.passes]),
            "tasks": tuple([_task(state, task, event.at, late) for task in state.tasks]),
            "loans": (),
        }
    )


def _stage(stage: Stage, late: timedelta, end: datetime) -> Stage:
    changed: dict[str, object] = {}
    for name in type(stage).model_fields:
        if name in ("until", "since") and (at := getattr(stage, name)) is not None:
            changed[name] = min(at + late, end)
        elif name == "seats":
            changed[name] = tuple([seat.model_copy(update={"until": min(seat.until + late, end)}) for seat in getattr(stage, name)])
    return stage.model_copy(update=changed)


def _member(member: Member, late: timedelta) -> Member:
    return member if member.lost_at is None else member.model_copy(update={"lost_at": member.lost_at + late})


def _task(state: GroupState, task: Task, at: datetime, late: timedelta) -> Task:
    if not isinstance(task, OpenTask):
        return task
    end = state.limits.deadline
    return task.model_copy(
        update={
            "lease_until": at + state.lease_of(task.assignee),
            "deadline": None if task.deadline is None else min(task.deadline + late, end),
            "question": _question(task.question, late, end),
            "subgroup": None,
            "of_team": None,
        }
    )


def _question(question: OfTask | None, late: timedelta, end: datetime) -> OfTask | None:
    return None if question is None else question.model_copy(update={"until": min(question.until + late, end)})
