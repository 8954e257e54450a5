"""What a stranger's key achieves: one ordinary agent means harm, while honest agents lead goals on the same system."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from datetime import timedelta

import pytest
from nats.aio.msg import Msg

from ioa.adapters.nats.stores.goal_records import TICKET
from ioa.adapters.nats.streams.compare_and_set import stream_of
from ioa.adapters.nats.streams.topology import ANY_AGENT, CARDS, DEAD, GOALS, LOG, RESULTS, WORK
from ioa.adapters.nats.wire.connection import open_connection
from ioa.errors import ForbiddenError, NotFoundError, UnavailableError
from ioa.group.requests import AbandonGoal, LaunchGroup, Sync
from ioa.protocol import subjects
from ioa.protocol.cards import AgentStatus
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import Reason
from ioa.protocol.ids import GoalId, GoalName, PoolId, comm_id_of_goal
from ioa.protocol.load import MAX_SLOTS, Load
from ioa.protocol.registry import Lease, Register, Renew
from tests.integration.security.town import BOB, MALLORY, SOON, USER, Town, card
from tests.rig.deadline import eventually

_BRIEFLY = timedelta(milliseconds=300)


async def test_a_stranger_achieves_nothing_beyond_its_own_part(town: Town) -> None:
    """With one ordinary key nobody takes, ends or answers another's goal, draws its work, or reaches it by a forged reply."""
    goals = await town.ask_for("Count to ten.", "Count to eleven.")
    achieved = [
        *await _waiting(town, goals),
        *await _theft(town, goals),
        *await _foreign_pool(town),
        *await _forged_replies(town, goals),
    ]
    for number, goal_id in enumerate(goals):
        await town.agents[BOB].lead(goal_id, f"{number}, says bob.")
    outcomes = [await town.outcome(goal_id) for goal_id in goals]
    assert achieved == []
    assert outcomes == [(Reason.CONCLUDED, f"{number}, says bob.") for number in range(2)]


async def _theft(town: Town, goals: Sequence[GoalId]) -> list[str]:
    """Launch or abandon goals whose ids are known."""
    achieved, network, session = [], town.agents[MALLORY].network, town.agents[MALLORY].session.session
    for goal_id, ticket in itertools.product(goals, (None, "0" * 32)):
        launch = LaunchGroup(owner=MALLORY, members=(), goal_id=goal_id, user=USER, session=session, ticket=ticket)
        end = AbandonGoal(
            goal_id=goal_id, user=USER, by=MALLORY, reason=Reason.FAILED, content="No.", session=session, ticket=ticket
        )
        for name, attempt in (("launched", network.launch(launch)), ("abandoned", network.abandon(end))):
            try:
                await attempt
                achieved.append(f"{name} {goal_id}")
            except NotFoundError:
                pass
    return achieved


async def _waiting(town: Town, goals: Sequence[GoalId]) -> list[str]:
    """Learn that goals wait, by their ids."""
    network = town.agents[MALLORY].network

    async def synced(goal_id: GoalId) -> str:
        comm_id = GoalName(USER, goal_id).comm_id
        try:
            return repr(await network.sync(Sync(comm_id=comm_id, agent_id=MALLORY)))
        except NotFoundError as error:
            return f"{error.message} {error.hint}".replace(comm_id, "ROOM")

    nothing = await synced(GoalId("nothing-here"))
    told = [await synced(goal_id) for goal_id in goals]
    return [f"told of a goal that waits: {answer}" for answer in told if answer != nothing]


async def _foreign_pool(town: Town) -> list[str]:
    """Say that one is of another's pool, and idle beyond belief."""
    mallory, achieved = town.agents[MALLORY], []
    register = Register(card=card(MALLORY, pool=BOB), session=mallory.session)
    for subject in (
        subjects.agent(PoolId(BOB), MALLORY, subjects.REGISTER),
        subjects.agent(PoolId(MALLORY), MALLORY, subjects.REGISTER),
    ):
        try:
            await mallory.requester.request(subject, register, Lease, timeout=_BRIEFLY)
            achieved.append(f"registered on {subject}")
        except (ForbiddenError, UnavailableError):
            pass
    await mallory.network.renew(Renew(agent_id=MALLORY, session=mallory.session.session, load=_IDLE_BEYOND_BELIEF))

    async def told() -> list[AgentStatus]:
        agents = await town.user.agents()
        return [status for status in agents if status.load.slots > 1]

    slots = [status.load.slots for status in await eventually(told, within=SOON)]
    pools = {status.card.agent_id: status.card.pool for status in await town.user.agents()}
    achieved += [f"claimed {number} slots" for number in slots if number > MAX_SLOTS]
    return achieved + ([] if pools == {BOB: PoolId(BOB), MALLORY: PoolId(MALLORY)} else [f"pools are {pools}"])


async def _forged_replies(town: Town, goals: Sequence[GoalId]) -> list[str]:
    """Have the server's answers sent where goals, cancellations, pushes, results and logs are read."""
    client, room = town.agents[MALLORY].client, comm_id_of_goal(goals[0], USER)
    anybodys = await town.user.submit(GoalOrder(goal="Count to twelve."))
    heard: list[str] = []

    async def note(message: Msg) -> None:
        heard.append(f"{message.subject} heard an answer")

    await town.agents[BOB].client.subscribe(subjects.inbox(BOB, town.agents[BOB].nonce), cb=note)
    targets = [
        subjects.goal_of(USER),
        subjects.goal_to(USER, BOB),
        subjects.user(USER, subjects.CANCEL),
        f"ioa.v1.inbox.{BOB}",
        subjects.inbox(BOB, "0" * 32),
    ]
    targets += [
        subjects.log(room),
        subjects.result_of(GoalName(USER, goals[0])),
        subjects.dead("unreadable"),
        f"$KV.{CARDS}.{BOB}",
    ]
    async with open_connection(town.secured.settings("admin")) as admin:
        js = admin.jetstream()

        async def kept() -> dict[str, int]:
            return {
                stream: (await js.stream_info(stream)).state.last_seq for stream in (GOALS, DEAD, LOG, RESULTS, stream_of(CARDS))
            }

        await eventually(lambda: js.consumer_info(WORK, ANY_AGENT), lambda queue: queue.num_pending == 1, within=SOON)
        before = await kept()
        for target in targets:
            await client.publish(subjects.agent(PoolId(MALLORY), MALLORY, subjects.SYNC), b"", reply=target)
        # What waits for anybody is msgpack, and names a goal just as a cancellation does.
        await client.publish(
            f"$JS.API.CONSUMER.MSG.NEXT.{WORK}.{ANY_AGENT}",
            b'{"batch":1,"no_wait":true}',
            reply=subjects.user(USER, subjects.CANCEL),
        )
        queue = await client.jetstream().pull_subscribe_bind(ANY_AGENT, WORK)
        [given] = await queue.fetch(1, timeout=SOON.total_seconds())
        with pytest.raises(NotFoundError):  # group setup answers in turn: whatever was sent before has been looked at
            await town.user.group(room)
        after = await kept()
    assert TICKET in (given.headers or {}), "what waits for anybody is anybody's, by asking as itself"
    achieved = [f"{stream} took {after[stream] - before[stream]} answers" for stream in before if before[stream] != after[stream]]
    return achieved + heard + ([] if await town.user.result(anybodys) is None else ["cancelled a goal"])


_IDLE_BEYOND_BELIEF = Load.model_construct(tasks=0, groups=0, slots=10_000)
