"""What is decoded takes up no more of a process's memory than it is counted as, of whatever many small parts it is."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable

import pytest

from ioa.group.events import Entry, Unheard, encode_entry
from ioa.group.in_memory import POLICY, STATE
from ioa.group.state import MAX_MEMBERS, GroupState
from ioa.protocol.codec import decode, decode_value, encode_value
from ioa.protocol.policy import Policy
from ioa.protocol.team import team_of
from tests.unit.group.scenario import launched

_COPIES = 5


def _taken_by(make: Callable[[], object]) -> float:
    """How many bytes one more of what a function makes takes up."""
    kept = [make()]  # what is made once for all
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        kept += [make() for _ in range(_COPIES)]
        gc.collect()
        return (tracemalloc.get_traced_memory()[0] - before) / _COPIES
    finally:
        tracemalloc.stop()


def _with_tasks(number: int) -> GroupState:
    story = launched("ada", "bob")
    tasks = [f"t1-{at}:bob" for at in range(number)]
    return story.assigns("ada", *tasks).state


STATES = {
    "as it begins": lambda: launched("ada", "bob").state,
    "tasks": lambda: _with_tasks(32),
    "members": lambda: launched(*(f"a{number}" for number in range(MAX_MEMBERS))).state,
}


@pytest.mark.parametrize("state", STATES)
def test_a_state_takes_up_no_more_than_it_is_counted_as(state: str) -> None:
    """Those were measured that have most of what is small."""
    stands = STATES[state]()
    data = encode_entry(Entry(event=Unheard(at=stands.limits.deadline), state=stands, audience=stands.living())).data
    taken = _taken_by(lambda: decode(Entry, data))
    assert STATE / 3 < taken / len(data) <= STATE


@pytest.mark.parametrize("exits", [1, 4, 22])
def test_a_policy_takes_up_no_more_than_it_is_counted_as(exits: int) -> None:
    """One of 128 nodes, with so many exits each: with 22 it is about as large as a policy may be."""
    nodes = [
        {
            "name": f"n{at}",
            "roles": ["a"],
            "max": 1,
            "exits": [*({"to": f"n{(at + to) % 128}", "when": {"visits": 1}} for to in range(1, exits + 1)), {"to": "end"}],
        }
        for at in range(128)
    ]
    policy = team_of({"team": "large", "roles": {"a": "bob"}, "nodes": nodes}).policy
    data = encode_value(policy.model_dump(mode="json"))
    taken = _taken_by(lambda: Policy.model_validate(decode_value(data)))
    assert POLICY / 3 < taken / len(data) <= POLICY
