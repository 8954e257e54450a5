"""Labels as people write them, and as they travel."""

from __future__ import annotations

import pytest

from ioa.errors import InvalidInputError
from ioa.protocol.codec import decode, encode
from ioa.protocol.goal_order import GoalOrder, order_of, parse_goal
from ioa.protocol.goals import Goal, read_labels, refuse_reserved
from ioa.protocol.ids import LOCAL, GoalId, GoalName


def test_labels_are_written_as_name_and_value() -> None:
    """A value may hold anything, or nothing; a name stands there once."""
    assert read_labels(["team=x", "why=a=b", "night="]) == {"team": "x", "why": "a=b", "night": ""}
    for wrong in (["team"], ["team=x", "team=y"]):
        with pytest.raises(InvalidInputError, match="is no label"):
            read_labels(wrong)
    for reserved in ("owner", "a2a-context", "agui-thread", "ioa-probe"):
        with pytest.raises(InvalidInputError, match="the system's to set"):
            refuse_reserved({reserved: "me"})


def test_a_goal_keeps_its_labels() -> None:
    """From the order to what is on record; a goal without any is written as it was before there were labels."""
    order = parse_goal(b'{"goal": "Count.", "labels": {"team": "x"}}')
    goal = order.accepted(GoalName(LOCAL, GoalId("g")), ())
    assert decode(Goal, encode(goal)).labels == goal.labels == {"team": "x"}
    plain = GoalOrder(goal="Count.")
    assert "labels" not in plain.model_dump_json() and b"labels" not in encode(plain.accepted(GoalName(LOCAL, GoalId("g")), ()))


@pytest.mark.parametrize("labels", [{"a b": ""}, {"": ""}, {"team": "x" * 201}, {f"l{number}": "" for number in range(17)}])
def test_what_is_no_label_is_refused(labels: dict[str, str]) -> None:
    """A name that is no id, a value that is too long, too many of them."""
    with pytest.raises(InvalidInputError, match="labels"):
        order_of("Count.", labels=labels)
