"""Trace ids: kept if given, made of the goal's id if not, and the same in every message."""

from __future__ import annotations

import pytest

from ioa.protocol.ids import LOCAL, AgentId, GoalId, GoalName, MessageId
from ioa.protocol.operation.trace import span_of_message, trace_id_of, trace_of_goal

GIVEN = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
ADA = AgentId("ada")
TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"


def test_a_trace_that_was_given_is_kept() -> None:
    """Its id, its flags and its parent stay as they came."""
    assert (trace_of_goal(GoalName(LOCAL, GoalId("g")), GIVEN), trace_id_of(GIVEN)) == (GIVEN, TRACE_ID)


@pytest.mark.parametrize(
    "given",
    ["", "nonsense", "00-" + "0" * 32 + "-00f067aa0ba902b7-01", "ff" + GIVEN[2:], GIVEN.upper(), GIVEN[:-1], GIVEN + "\n"],
)
def test_what_is_no_trace_is_replaced_by_one_that_follows_from_the_goal(given: str) -> None:
    """Every process and every retry names the same trace, and another goal has another one."""
    made = trace_of_goal(GoalName(LOCAL, GoalId("g")), given)
    assert (trace_id_of(given), len(trace_id_of(made))) == ("", 32)
    assert made == trace_of_goal(GoalName(LOCAL, GoalId("g")), "") != trace_of_goal(GoalName(LOCAL, GoalId("h")), "")


def test_each_message_is_a_span_of_the_trace() -> None:
    """Spans differ by message, name the same trace, and keep its flags; the same message is the same span."""
    one, other = (span_of_message(GIVEN, ADA, MessageId(message_id)) for message_id in ("m1", "m2"))
    assert one != other and one == span_of_message(GIVEN, ADA, MessageId("m1"))
    assert one != span_of_message(GIVEN, AgentId("eve"), MessageId("m1"))
    assert [trace_id_of(span) for span in (one, other)] == [TRACE_ID, TRACE_ID]
    assert one.endswith("-00") and GIVEN[36:52] not in one


def test_without_a_trace_there_is_no_span() -> None:
    """Groups from before there were traces go on without."""
    assert span_of_message("", ADA, MessageId("m1")) == ""
