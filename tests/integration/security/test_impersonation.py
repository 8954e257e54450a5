"""Requests in which an agent or a user names another caller."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from ioa.errors import ForbiddenError, NotFoundError
from ioa.group.requests import AbandonGoal, InviteMember, LaunchGroup, ListMemberships, Sync
from ioa.protocol import subjects
from ioa.protocol.goals import Announced, Reason
from ioa.protocol.ids import GoalId, GoalName, PoolId
from ioa.protocol.model import Model
from ioa.protocol.registry import Acknowledged, Deregister, Lease, Register, Renew
from ioa.protocol.setup.file_requests import PutFile
from tests.integration.security.town import BOB, MALLORY, USER, Town, card

_FILE = Announced(name="a", size_bytes=1, sha256="0" * 64)


def _requests_of_bob(town: Town, goal_id: GoalId) -> Mapping[str, Model]:
    """Return a request of each kind that contains its caller, as bob sends it."""
    bob, room = town.agents[BOB], GoalName(USER, goal_id).comm_id
    goal = {"goal_id": goal_id, "user": USER, "ticket": bob.given.ticket_of(goal_id, USER)}
    return {
        subjects.REGISTER: Register(card=card(BOB, pool=BOB), session=bob.session),
        subjects.RENEW: Renew(agent_id=BOB, pool=PoolId(BOB)),
        subjects.DEREGISTER: Deregister(agent_id=BOB),
        subjects.LAUNCH: LaunchGroup.model_validate({"owner": BOB, "members": (), **goal}),
        subjects.ABANDON: AbandonGoal.model_validate({"by": BOB, "reason": Reason.FAILED, "content": "No.", **goal}),
        subjects.INVITE: InviteMember(comm_id=room, by=BOB, turn=1, agent_id=MALLORY),
        subjects.SYNC: Sync(comm_id=room, agent_id=BOB),
        subjects.MEMBERSHIPS: ListMemberships(agent_id=BOB),
        subjects.PUT_FILE: PutFile(agent_id=BOB, comm_id=room, place="a", file=_FILE, data=b"a"),
    }


async def test_request_that_names_another_caller_is_forbidden(town: Town) -> None:
    """The server permits an agent's subjects to the agent; the services compare the name in the request."""
    [goal_id] = await town.ask_for("Count to ten.")
    for name, request in _requests_of_bob(town, goal_id).items():
        with pytest.raises(ForbiddenError, match="mallory may not send a request as bob"):
            await town.agents[MALLORY].requester.request(subjects.agent(PoolId(MALLORY), MALLORY, name), request, Acknowledged)
    await town.agents[BOB].lead(goal_id, "Ten.")
    assert await town.outcome(goal_id) == (Reason.CONCLUDED, "Ten.")


async def test_waiting_goal_of_another_agent_cannot_be_taken(town: Town) -> None:
    """Without its ticket, or with a wrong ticket, it is not found; an agent cannot register in the pool of another agent."""
    [goal_id] = await town.ask_for("Count to ten.")
    mallory = town.agents[MALLORY]
    session = mallory.session.session
    for ticket in (None, "0" * 32):
        goal = {"goal_id": goal_id, "user": USER, "session": session, "ticket": ticket}
        with pytest.raises(NotFoundError):
            await mallory.network.launch(LaunchGroup.model_validate({"owner": MALLORY, "members": (), **goal}))
        with pytest.raises(NotFoundError):
            await mallory.network.abandon(
                AbandonGoal.model_validate({"by": MALLORY, "reason": Reason.FAILED, "content": "No.", **goal})
            )
    answers = set[str]()
    for room in (GoalName(USER, goal_id).comm_id, GoalName(USER, GoalId("nothing-here")).comm_id):
        with pytest.raises(NotFoundError) as unknown:
            await mallory.network.sync(Sync(comm_id=room, agent_id=MALLORY, session=session))
        answers.add(f"{unknown.value.message} {unknown.value.hint}".replace(room, "ROOM"))
    register = Register(card=card(MALLORY, pool=BOB), session=mallory.session)
    with pytest.raises(ForbiddenError):
        await mallory.requester.request(subjects.agent(PoolId(MALLORY), MALLORY, subjects.REGISTER), register, Lease)
    await town.agents[BOB].lead(goal_id, "Ten.")
    assert (await town.outcome(goal_id), len(answers)) == ((Reason.CONCLUDED, "Ten."), 1)
