"""Whatever bytes arrive where a request is expected, they are one or they are refused: nothing else can come of them."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

import pytest

from ioa.errors import IoaError
from ioa.group.requests import AbandonGoal, CancelGroup, GetGroup, LaunchGroup, ListMemberships, SetAside, Sync
from ioa.protocol.codec import encode_value, receive
from ioa.protocol.goal_order import find_goal_id, parse_goal
from ioa.protocol.messages import Message
from ioa.protocol.model import Model
from ioa.protocol.registry import Deregister, GetAgents, ListAgents, Register, RemoveAgent, Renew
from ioa.protocol.search import AskIndexStatus, Search
from tests.rig.hostile_frames import HostileFrames

_FRAMES = 300
_HONEST = {
    "launch": [encode_value({"owner": "ada", "members": ["bob"], "goal_id": "g1", "session": "s", "ticket": "t", "needs": []})],
    "search": [encode_value({"needs": [{"text": "a sum"}], "filters": {"online_only": True}, "limit": 3})],
    "say": [encode_value({"header": {"comm_id": "c", "turn": 1}, "payload": {"kind": "discussion", "content": "x"}})],
    "register": [encode_value({"card": {"agent_id": "ada", "pool": "ada", "description": "adds"}, "session": {"pid": 7}})],
}


@pytest.mark.parametrize(
    "kind",
    (
        *(AbandonGoal, AskIndexStatus, CancelGroup, Deregister, GetAgents, GetGroup, LaunchGroup, ListAgents, ListMemberships),
        *(Message, Register, RemoveAgent, Renew, Search, SetAside, Sync),
    ),
)
def test_what_arrives_is_a_request_or_refused(kind: type[Model]) -> None:
    """No payload makes reading a request fail in a way that nobody foresaw."""
    frames = HostileFrames(_HONEST, random.Random(kind.__name__))
    outcomes = {_outcome(lambda: receive(kind, frames.next())) for _ in range(_FRAMES)}
    assert outcomes <= {"read", "refused"}


def test_what_is_published_as_a_goal_is_one_or_refused() -> None:
    """The same for goals, which are text or JSON, and for looking up the id of one that was refused."""
    frames = HostileFrames({"goal": [b'{"goal": "add 1 and 2", "inputs": [{"name": "a", "text": "b"}]}']}, random.Random("goal"))
    payloads = [frames.next("goal") for _ in range(_FRAMES)]
    for payload in payloads:
        find_goal_id(payload)
    outcomes = {_outcome(partial(parse_goal, payload)) for payload in payloads}
    assert outcomes == {"read", "refused"}


def _outcome(read: Callable[[], object]) -> str:
    try:
        read()
    except IoaError:
        return "refused"
    return "read"
