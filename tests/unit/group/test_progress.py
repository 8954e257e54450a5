"""Progress that is no entry: which reports are news, and how the others are judged. `progress.txt` has what they renew."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from ioa.group.events import Said
from ioa.group.machine import needs_entry
from ioa.group.state import GroupState
from ioa.protocol.ids import TaskId
from ioa.protocol.messages import InformTaskProgress
from ioa.protocol.usage import Usage
from tests.unit.group.scenario import START, launched, said

TASKED = launched("ada", "bob", "eve").assigns_and_waits("ada", "t1-1:bob", "t1-2:eve")
AT_WORK = TASKED.progresses("t1-1")
FREE = AT_WORK.state.model_copy(
    update={"limits": AT_WORK.state.limits.model_copy(update={"max_tokens": None, "max_cost_micros": None})}
)


def report(
    number: int = 2, tokens: int = 0, sender: str = "bob", turn: int = 1, at: datetime = START, usage: Usage | None = None
) -> tuple[Said, InformTaskProgress]:
    """A report on Bob's task, that has cost some tokens; `usage` is that of the report itself."""
    payload = InformTaskProgress(task_id=TaskId("t1-1"), number=number, usage=Usage(tokens_in=tokens))
    return said(sender, payload, turn, at, usage=usage), payload


@pytest.mark.parametrize(
    ("state", "reported", "expected"),
    [
        (TASKED.state, report(1), True),
        (AT_WORK.state, report(tokens=5), True),
        (AT_WORK.state, report(usage=Usage(tokens_in=1)), True),
        (AT_WORK.state, report(), False),
        (AT_WORK.timer().state, report(), False),
        (AT_WORK.finishes("t1-1").state, report(), True),
        (AT_WORK.state, report(1), True),
        (AT_WORK.state, report(sender="eve"), True),
        (AT_WORK.state, report(at=START + timedelta(days=1)), True),
        (FREE, report(tokens=5), False),
        (FREE, report(usage=Usage(tokens_in=1)), False),
    ],
    ids=[
        "first",
        "cost",
        "own cost",
        "sign of life",
        "of a suspect",
        "closed",
        "stale",
        "not its own",
        "late",
        "cost without budget",
        "own cost without budget",
    ],
)
def test_report_that_acknowledges_or_is_charged_needs_entry(
    state: GroupState, reported: tuple[Said, InformTaskProgress], expected: bool
) -> None:
    """A mere sign of life is no entry; without a budget usage may wait for the result."""
    assert needs_entry(state, *reported) is expected
