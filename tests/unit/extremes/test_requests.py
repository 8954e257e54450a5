"""Whatever stands in a field of a request, it is refused with a reason, or answered: nothing fails that nobody foresaw."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from itertools import groupby
from typing import Any

import pytest

from ioa.errors import Fault, IoaError, row_of
from ioa.group.events import Entry, encode_entry
from ioa.group.requests import LaunchGroup
from ioa.protocol.codec import decode, encode, receive
from ioa.protocol.ids import LOCAL, CommId
from ioa.protocol.messages import SyncTaskAssignment
from ioa.protocol.model import Model
from ioa.protocol.subjects import say
from ioa.testing.memory_outcomes import MemoryOutcomes
from ioa_discovery.assessment import Assessor
from ioa_discovery.search.experience import Experience
from tests.unit.extremes.logged import no_bug_logged
from tests.unit.extremes.places import EXTREMES, Whole, changed, packed
from tests.unit.group.scenario import specs
from tests.unit.growth.readers import requests
from tests.unit.growth.shapes import Shape
from tests.unit.growth.sweep import TOLD
from tests.unit.runtime.plane import ADA, BOB, GOAL, ROOM, TICKET, Plane

_TASK = "t1-1"
_FITTING: Mapping[str, Any] = {
    **dict.fromkeys(("agent_id", "owner", "by", "sender"), ADA),
    "assignee": BOB,
    "members": [BOB],
    "agent_ids": [ADA],
    "pool": ADA,
    "user": LOCAL,
    "comm_id": ROOM,
    "goal_id": GOAL,
    "ticket": TICKET,
    "task_id": _TASK,
    "session": None,
    "previous": None,
    "proof": None,
    "standing": None,
    "parent": None,
    "policy": "",
    "cast": [],
}
"""What makes a request one that is carried out."""
_SPARED = frozenset(
    {"AskCalloutStatus", "AskIndexStatus", "AskStoreStanding", "AskStored", "ListTeams", "Readmit", "RemoveAgent", "Search"}
)
"""What nothing can be asked by, what an admin alone may ask, and needs, which the sweep of texts reads."""


def _bases(kind: type[Model]) -> Iterator[Any]:
    """Valid requests: the least there is, and with all fields, once for each shape that something in it may have."""
    told = {**_FITTING, **TOLD.get(kind.__name__, {})}
    made = [Shape(kind, {name: one for name, one in told.items() if name in TOLD.get(kind.__name__, {})}).least()]
    made += [Whole(kind, told, pick).least() for pick in range(13 if kind.__name__ == "Message" else 2)]
    seen: list[Any] = []
    for base in made:
        if base not in seen and (data := packed(base)) is not None and _is_read(kind, data):
            seen.append(base)
            yield base


def _cases(kind: type[Model]) -> Iterator[tuple[str, bytes]]:
    extremes, tried = (*EXTREMES, *Whole(kind).bounds()), list[tuple[str, Any]]()
    for base in _bases(kind):
        parts = [name for name in base if (name, base[name]) not in tried]
        tried += [(name, base[name]) for name in parts]
        for place, value in changed(base, extremes, parts):
            if (data := packed(value)) is not None:
                yield place, data


def _is_read(kind: type[Model], data: bytes) -> bool:
    try:
        receive(kind, data)
    except IoaError:
        return False
    return True


@pytest.mark.parametrize("name", requests())
def test_what_stands_in_a_field_is_read_or_refused(name: str) -> None:
    """What is read is written again as the same, also as JSON; what is refused is its sender's fault."""
    kind, count = requests()[name], 0
    for place, data in _cases(kind):
        try:
            found = receive(kind, data)
        except IoaError as error:
            assert row_of(error).fault is Fault.CALLER, place
            continue
        assert receive(kind, encode(found)) == found, place
        json.dumps(found.model_dump(mode="json", exclude={"data"}), allow_nan=False)
        count += 1
    assert count or not kind.model_fields


def test_every_request_is_tried() -> None:
    """Those that are not carried out here are named."""
    assert requests().keys() - _answering(Plane()).keys() == _SPARED


@pytest.mark.blocks_loop  # what is sent is made on it
@pytest.mark.parametrize("name", sorted(requests().keys() - _SPARED))
async def test_what_stands_in_a_field_is_answered(name: str) -> None:
    """It is carried out or refused by an error of this system's, and what is stored by it can be read."""
    kind = requests()[name]
    for _, of_place in groupby(_cases(kind), key=lambda case: case[0].partition(" = ")[0]):
        with no_bug_logged():
            plane = await _at_work()
            answer = _answering(plane)[name]
            for place, data in of_place:
                if _is_read(kind, data):
                    try:
                        await answer(data)
                    except IoaError:
                        pass
                    except Exception as error:
                        raise AssertionError(place) from error
            await _check(plane)


async def _at_work() -> Plane:
    """A plane in which Ada leads a goal with a budget, and Bob has a task."""
    plane = Plane()
    await plane.join(ADA, BOB)
    await plane.accept(max_tokens=1_000)
    await plane.setup.launch(LaunchGroup(owner=ADA, members=(BOB,), goal_id=GOAL, ticket=TICKET))
    await plane.says(ADA, SyncTaskAssignment(tasks=specs((f"{_TASK}:{BOB}",))))
    return plane


async def _check(plane: Plane) -> None:
    """See that all that was appended can be read, and that the goal ends at its deadline at the latest."""
    for comm_id in plane.log.comm_ids():
        for stored in await plane.entries(CommId(comm_id)):
            decode(Entry, encode_entry(stored.entry).data)
    await plane.run_timers()
    assert (await plane.state()).phase.is_terminal


def _answering(plane: Plane) -> Mapping[str, Callable[[bytes], Awaitable[object]]]:
    """What answers each request, as the services have it."""
    clock = plane.clock
    assessor = Assessor(plane.log, plane.view, MemoryOutcomes(), clock, plane.sessions, Experience(clock))
    of_anybody: Mapping[str, Callable[[Any], Awaitable[Model]]] = {
        "Register": plane.registry.register,
        "Renew": plane.registry.renew,
        "Deregister": plane.registry.deregister,
        "GetAgents": plane.registry.get,
        "ListAgents": plane.registry.list,
        "LaunchGroup": plane.setup.launch,
        "InviteMember": plane.setup.invite,
        "AbandonGoal": plane.setup.abandon,
        "GetGroup": plane.setup.get,
        "ListMemberships": plane.setup.memberships,
        "Sync": plane.log_pages.sync,
        "SetAside": plane.garbage.set_aside,
        "Prune": plane.janitor.prune,
        "GetTeam": plane.teams.get,
        "GetFile": plane.files.get,
        "PutFile": plane.files.put,
        "GetUpload": plane.files.get_upload,
        "PutUpload": plane.files.put_upload,
        "ReportOutcomes": assessor.report,
    }
    of_users: Mapping[str, Callable[[Any, Any], Awaitable[Model]]] = {
        "CancelGroup": plane.setup.cancel,
        "AnswerQuestion": plane.setup.answer,
        "PutTeam": plane.teams.put,
    }
    return {
        **{name: partial(_answered, requests()[name], method) for name, method in of_anybody.items()},
        **{name: partial(_answered, requests()[name], partial(method, LOCAL)) for name, method in of_users.items()},
        "Message": partial(plane.routers[0].say, say(ROOM, ADA)),
    }


async def _answered(kind: type[Model], method: Callable[[Any], Awaitable[Model]], data: bytes) -> bytes:
    async with asyncio.timeout(5):
        return encode(await method(receive(kind, data)))
