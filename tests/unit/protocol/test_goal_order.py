"""Goals as users publish them: plain text, or JSON."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ioa.errors import InvalidInputError, PayloadTooLargeError
from ioa.protocol.goal_order import MAX_GOAL_BYTES, GoalOrder, InlineInput, parse_goal
from ioa.protocol.goals import MAX_GOAL_CHARS, Artifact, Goal
from ioa.protocol.ids import LOCAL, AgentId, GoalId, GoalName
from ioa.protocol.operation.trace import trace_of_goal

ARTIFACT = Artifact(name="a.csv", object_name="o1", size_bytes=3, sha256="0" * 64)


def test_plain_text_is_the_goal() -> None:
    """Whoever publishes a sentence has launched a goal."""
    assert parse_goal(b" Count to ten.\n") == GoalOrder(goal="Count to ten.")


def test_json_names_what_it_wants() -> None:
    """All fields that a user may set, with both forms of an input."""
    raw = {
        "goal": "Sum it",
        "goal_id": "g1",
        "agent": "csv",
        "max_turns": 5,
        "timeout": 30,
        "inputs": [{"name": "b.txt", "text": "1\n2"}, ARTIFACT.model_dump()],
    }
    assert parse_goal(json.dumps(raw).encode()) == GoalOrder(
        goal="Sum it",
        goal_id=GoalId("g1"),
        agent=AgentId("csv"),
        max_turns=5,
        timeout=30,
        inputs=(InlineInput(name="b.txt", text="1\n2"), ARTIFACT),
    )


def test_what_is_left_out_has_its_default() -> None:
    """Forty turns, an hour, and a trace of its own."""
    order = parse_goal(b'{"goal": "Count"}')
    goal_id = GoalId("g1")
    traceparent = trace_of_goal(GoalName(LOCAL, goal_id), "")
    assert order.accepted(GoalName(LOCAL, goal_id), ()) == Goal(
        goal_id=goal_id, user=LOCAL, goal="Count", max_turns=40, timeout=timedelta(hours=1), traceparent=traceparent
    )


def test_text_that_only_holds_braces_is_plain_text() -> None:
    """Only what begins with a brace is JSON; lists and numbers are words like any other."""
    goals = [parse_goal(data).goal for data in (b'say {"a": 1}', b"[1, 2]", b"42", b'"quoted"')]
    assert goals == ['say {"a": 1}', "[1, 2]", "42", '"quoted"']


def test_the_subject_may_name_the_agent() -> None:
    """The addressee stands in the subject, in the payload, or in both if they agree."""
    agents = [
        parse_goal(b"Count", "csv").agent,
        parse_goal(b'{"goal": "Count", "agent": "csv"}').agent,
        parse_goal(b'{"goal": "Count", "agent": "csv"}', "csv").agent,
        parse_goal(b"Count").agent,
    ]
    assert agents == ["csv", "csv", "csv", None]


@pytest.mark.parametrize(
    ("data", "addressee", "why"),
    [
        (b"", None, "The goal is empty"),
        (b"caf\xe9", None, "not UTF-8 text: byte 3"),
        (b'{"goal": ', None, "looks like JSON but is not"),
        (b'{"goal": ' + b"[" * 100_000, None, "looks like JSON but is not"),
        (b"{}", None, "goal: Field required"),
        (b'{"goal": "  "}', None, "goal: String should have at least 1 character"),
        (b'{"goal": "Count", "max_turn": 5}', None, "max_turn: Extra inputs are not permitted"),
        (b'{"goal": "Count", "max_turns": 0}', None, "max_turns: "),
        (b'{"goal": "Count", "timeout": NaN}', None, "timeout: "),
        (b'{"goal": "Count", "goal_id": "a.b"}', None, "goal_id: "),
        (b'{"goal": "Count", "agent": "*"}', None, "agent: "),
        (b'{"goal": "Count", "inputs": [1]}', None, "inputs.0"),
        (b'{"goal": "Count", "agent": "csv"}', "text", "addresses 'text' but the payload addresses 'csv'"),
        (b"x" * (MAX_GOAL_CHARS + 1), None, "at most 32000 characters"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_reason(data: bytes, addressee: str | None, why: str) -> None:
    """The reason goes to the dead-letter subject, and names the field."""
    with pytest.raises(InvalidInputError) as refused:
        parse_goal(data, addressee)
    assert why in str(refused.value)


def test_a_goal_that_is_too_large_is_refused_unread() -> None:
    """Files go by reference."""
    with pytest.raises(PayloadTooLargeError):
        parse_goal(b"x" * (MAX_GOAL_BYTES + 1))


@given(st.binary(max_size=300) | st.text(max_size=300).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_payload_is_a_goal_or_refused(data: bytes) -> None:
    """Nothing that is published can do more than that."""
    try:
        order = parse_goal(data)
    except InvalidInputError:
        return
    assert order.accepted(GoalName(LOCAL, GoalId("g1")), ()).goal == order.goal.strip() != ""


@given(
    st.dictionaries(
        st.sampled_from(["goal", "goal_id", "agent", "max_turns", "timeout", "inputs", "other"]),
        st.text(max_size=10) | st.integers() | st.floats() | st.none() | st.lists(st.text(max_size=5), max_size=2),
    )
)
def test_any_json_object_is_a_goal_or_refused(fields: dict[str, object]) -> None:
    """Whatever is accepted can be kept as a goal."""
    try:
        order = parse_goal(json.dumps(fields).encode())
    except InvalidInputError:
        return
    assert order.accepted(GoalName(LOCAL, GoalId("g1")), ()).max_turns == fields.get("max_turns", 40)


@pytest.mark.parametrize(("field", "value"), [("goal", " "), ("timeout", -1), ("timeuot", 5), ("inputs", [{"name": "a"}])])
def test_an_order_that_cannot_be_is_refused_in_words(field: str, value: object) -> None:
    """Who builds one in a program is told by this system's own error which field is wrong."""
    with pytest.raises(InvalidInputError, match=f"The goal cannot be read: .*{field}"):
        GoalOrder.model_validate({"goal": "Sum it", field: value})
