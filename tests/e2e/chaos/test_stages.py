"""Each kind of process dies in each kind of stage of a policy, and the group takes the course that it takes undisturbed.

Who is killed is back before its lease is over, and nobody's floor runs out for a minute. So nothing explains a difference: each
message of the undisturbed goal is there once, in its turn, with its words, and nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest
from nats.aio.msg import Msg

from ioa.adapters.nats.wire.embedded_server import NatsServer
from ioa.group.events import Entry, MemberJoined, Said
from ioa.group.state import Asking, Concluding, Discussing, Gathering, GroupState
from ioa.ports.group_log import StoredEntry
from ioa.protocol import subjects
from ioa.protocol.codec import decode
from ioa.protocol.goals import Reason
from ioa.protocol.ids import LOCAL, GoalId, GoalName, comm_id_of_goal
from ioa.protocol.messages import Decision, Discussion, Phase
from tests.rig.deadline import eventually
from tests.rig.fleet import CONTROL_PLANE, GROUPS, ROUTERS, WORKERS, Fleet, open_fleet
from tests.rig.log_checker import check

pytestmark = [pytest.mark.faults, pytest.mark.timeout(240), pytest.mark.blocks_loop]  # it waits for forks on a busy machine

_PATIENT = {"IOA_LEASE": "30", "IOA_RENEW_EVERY": "1", "IOA_FLOOR_TIMEOUT": "60", "IOA_TASK_LEASE": "30"}

IsThere = Callable[[Entry], bool]


def _at(state: GroupState) -> int:
    return -1 if state.course is None else state.course.node


def _asked(about: str) -> IsThere:
    return lambda entry: isinstance(entry.state.stage, Asking) and entry.state.stage.about == about


def _gathers(entry: Entry) -> bool:
    """One has answered, and another one has not."""
    stage = entry.state.stage
    return isinstance(stage, Gathering) and len(stage.seats) == 1


def _is_passed(entry: Entry) -> bool:
    course = entry.state.course
    return course is not None and course.draft is not None and course.draft.passed


def _is_rejected(entry: Entry) -> bool:
    event = entry.event
    return isinstance(event, Said) and isinstance(event.message.payload, Decision) and event.message.payload.choice == "reject"


def _in_branch(entry: Entry) -> bool:
    course = entry.state.course
    return course is not None and bool(course.agenda)


def _in_join(entry: Entry) -> bool:
    return isinstance(entry.state.stage, Discussing) and _at(entry.state) == 3


def _waits_for_person(entry: Entry) -> bool:
    return any(one.human and one.agent_id in entry.state.floor for one in entry.state.members)


def _task_runs(entry: Entry) -> bool:
    return any(task.subgroup is None for task in entry.state.open_tasks)


def _team_works(entry: Entry) -> bool:
    return any(task.subgroup is not None for task in entry.state.open_tasks)


def _is_paused(entry: Entry) -> bool:
    return entry.state.phase is Phase.PAUSED


def _invites(entry: Entry) -> bool:
    """Who has the floor is about to invite."""
    return isinstance(entry.state.stage, Discussing) and len(entry.state.members) == 2 and _at(entry.state) == 0


def _has_joined(entry: Entry) -> bool:
    return isinstance(entry.event, MemberJoined)


def _concludes(entry: Entry) -> bool:
    return isinstance(entry.state.stage, Concluding)


STAGES: Sequence[tuple[str, IsThere]] = (
    ("led", _gathers),
    ("led", _asked("exit")),
    ("led", _concludes),
    ("reviewed", _asked("speaker")),
    ("reviewed", _asked("review")),
    ("reviewed", _is_rejected),
    ("reviewed", _is_passed),
    ("reviewed", _asked("watch")),
    ("reviewed", _waits_for_person),
    ("reviewed", _gathers),
    ("forked", _in_branch),
    ("forked", _in_join),
    ("crewed", _task_runs),
    ("crewed", _team_works),
    ("crewed", _is_paused),
    ("joined", _invites),
    ("joined", _has_joined),
)
VICTIMS = {"router": ROUTERS, "groups": GROUPS, "workers": WORKERS, "all": (*ROUTERS, *GROUPS, *WORKERS)}
KINDS = tuple(dict.fromkeys(kind for kind, _ in STAGES))


@pytest.fixture
async def patient_fleet(nats_server: NatsServer, tmp_path: Path) -> AsyncIterator[Fleet]:
    """A system in which nobody is missed who comes back, and no turn is over by itself but a person's."""
    async with open_fleet(nats_server.url, tmp_path / "fleet", _PATIENT) as fleet:
        await fleet.start(*CONTROL_PLANE, *WORKERS)
        await fleet.until_online()
        yield fleet


def _words_of(kind: str) -> str:
    """What goals end in that pass through all stages of their kind: drafts are rejected, and watchers asked, by these words."""
    return f"{kind}-1"


async def _killed_in(fleet: Fleet, goal_id: GoalId, kind: str, is_there: IsThere, victims: Sequence[str]) -> None:
    """Publish a goal, kill some when its log shows that it is somewhere, and start them again."""
    reached = asyncio.Event()

    async def hear(message: Msg) -> None:
        if not reached.is_set() and is_there(decode(Entry, message.data)):
            for name in victims:  # all at once: while one is waited for to be dead, another one would lead the group on
                fleet.freeze(name)
            reached.set()

    subscription = await fleet.client.subscribe(subjects.log(GoalName(LOCAL, goal_id).comm_id), cb=hear)
    await fleet.publish(goal_id, kind, seed=_words_of(kind))
    await eventually(reached.is_set)
    for name in victims:
        await fleet.kill(name)
    await subscription.unsubscribe()
    await fleet.start(*victims)


class _Turn(NamedTuple):
    """What was said or decided: in which turn and node, by whom by its roles, and in which words."""

    turn: int
    roles: tuple[int, ...]
    node: int
    words: str


def _course(log: Sequence[StoredEntry]) -> list[_Turn]:
    """What was said and decided, in order; side by side, where no order is promised, in that of roles. Of tasks nothing."""
    course = []
    for before, stored in pairwise(log):
        state, event = before.entry.state, stored.entry.event
        if isinstance(event, Said) and isinstance(event.message.payload, Discussion | Decision):
            header = event.message.header
            roles = state.members[state.number_of(header.sender)].roles
            course.append(_Turn(header.turn, roles, _at(state), event.message.payload.content))
    return sorted(course, key=lambda one: (one.turn, one.roles))


@pytest.mark.parametrize("victims", VICTIMS.values(), ids=VICTIMS)
async def test_a_group_takes_the_same_course_whoever_dies_in_whichever_stage(patient_fleet: Fleet, victims: Sequence[str]) -> None:
    """Nothing is lost, said twice, or left to a timer; each goal has one result, which is right, and all records are exact."""
    fleet = patient_fleet
    undisturbed = {kind: GoalId(f"quiet-{kind}") for kind in KINDS}
    for kind, goal_id in undisturbed.items():
        await fleet.publish(goal_id, kind, seed=_words_of(kind))
    quiet = await fleet.evidence()
    for kind, is_there in STAGES:
        assert any(is_there(stored.entry) for stored in quiet.logs[comm_id_of_goal(undisturbed[kind])]), (kind, is_there)
    goals = {GoalId(f"goal-{number}"): stage for number, stage in enumerate(STAGES)}
    for goal_id, (kind, is_there) in goals.items():
        await _killed_in(fleet, goal_id, kind, is_there, victims)
        await fleet.rest()
    evidence = await fleet.evidence()
    assert check(evidence) == []
    assert {result.reason for result in evidence.results} == {Reason.CONCLUDED}
    for goal_id, (kind, _) in goals.items():
        wanted, taken = (_course(evidence.logs[comm_id_of_goal(one)]) for one in (undisturbed[kind], goal_id))
        if kind == "crewed":  # its turns are numbered by how soon tasks were done, and words follow from turns
            wanted, taken = ([one._replace(turn=0, words="") for one in course] for course in (wanted, taken))
        assert taken == wanted, goal_id
