"""Attacks on files with the key of another agent: it reads only files whose references it was shown, and its own."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Awaitable
from pathlib import Path

from ioa.adapters.nats.streams.topology import FILES
from ioa.errors import ConflictError, ForbiddenError, InvalidInputError, IoaError, NotFoundError, OverQuotaError
from ioa.group.events import files_of
from ioa.group.requests import LaunchGroup, Sync
from ioa.group.state import GroupState
from ioa.protocol import subjects
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import Announced, Artifact, Reason
from ioa.protocol.ids import CommId, GoalId, GoalName, PoolId
from ioa.protocol.messages import ConcludeGroupDiscussion, Conclusion
from ioa.protocol.setup.file_requests import PIECE_BYTES, PutFile, Stored, folder_of, whole
from tests.integration.security.town import BOB, MALLORY, USER, Agent, open_town
from tests.rig.deadline import eventually

SALES = b"1000\n2000\n" * 60_000


async def test_file_of_other_group_cannot_be_read_or_changed(tmp_path: Path) -> None:
    """An agent reads the inputs of its goal unchanged; each attack of another agent is rejected, and no other owner loses space."""
    (tmp_path / "sales.csv").write_bytes(SALES)
    async with open_town(tmp_path, (BOB, MALLORY)) as town:
        bob, mallory = town.agents[BOB], town.agents[MALLORY]
        for subject in (_description_subject("sales.csv"), f"$O.{FILES}.C.agent-{MALLORY}.1.2"):
            await mallory.client.publish(subject, json.dumps({"bucket": FILES, "nuid": "x", "size": 2}).encode())
        goal_id = await town.user.submit(GoalOrder(goal="Add.", agent=BOB), [tmp_path / "sales.csv"])
        own = await town.user.submit(GoalOrder(goal="Add.", agent=MALLORY))
        comm_id, (sales,), state = await _open(bob, goal_id)
        read = await whole(bob.network.stream_file(BOB, sales))

        achieved = await _attacks(mallory, own, comm_id, sales)

        made = await bob.network.put_file(BOB, comm_id, "sum", "sum.txt", b"3003", "text/plain", bob.session.session)
        state = await bob.say(state, ConcludeGroupDiscussion(), 0)
        await bob.say(state, Conclusion(content="Added.", artifacts=(made,)), 1)
        result = await town.user.wait_for_result(goal_id)
        assert (achieved, read) == ([], SALES)
        assert (result.reason, await town.user.fetch(made), await town.user.fetch(sales)) == (Reason.CONCLUDED, b"3003", SALES)
        largest = (await town.user.stored()).owners[0]
        assert (largest.owner, largest.size_bytes) == (f"agent-{MALLORY}", 200_000_000 + 5_000)


async def _open(agent: Agent, goal_id: GoalId) -> tuple[CommId, tuple[Artifact, ...], GroupState]:
    """Open the group of a goal that was given to an agent; returns its files."""
    await eventually(lambda: GoalName(USER, goal_id) in agent.given.names)
    ticket = agent.given.ticket_of(goal_id, USER)
    launch = LaunchGroup(owner=agent.agent_id, members=(), goal_id=goal_id, user=USER, session=agent.session.session, ticket=ticket)
    state = (await agent.network.launch(launch)).state
    sync = Sync(comm_id=state.comm_id, agent_id=agent.agent_id, session=agent.session.session)
    [entry] = (await agent.network.sync(sync)).entries
    return state.comm_id, files_of(entry.entry.event), state


async def _attacks(mallory: Agent, goal_id: GoalId, theirs: CommId, secret: Artifact) -> list[str]:
    """Read a file of another group, write into it, change what is stored, store more than was announced, and all there is."""
    network, session, achieved = mallory.network, mallory.session.session, []
    own, _, _ = await _open(mallory, goal_id)
    mine = await network.put_file(MALLORY, own, "a", "a", b"a" * 5_000, "text/plain", session)
    guesses = {
        name: secret.model_copy(update={"object_name": name})
        for name in (mine.object_name, "sales.csv", f"{folder_of(theirs)}/{'0' * 32}", secret.object_name[:-1], ">")
    }

    async def put(size: int, data: bytes, place: str) -> Stored:
        file = Announced(name="a", size_bytes=size, sha256=hashlib.sha256(data).hexdigest())
        request = PutFile(agent_id=MALLORY, comm_id=own, place=place, file=file, data=data, session=session)
        return await mallory.requester.request(subjects.agent(PoolId(MALLORY), MALLORY, subjects.PUT_FILE), request, Stored)

    attempts: dict[str, tuple[Awaitable[object], type[IoaError]]] = {
        **{f"read as {name}": (whole(network.stream_file(MALLORY, guess)), NotFoundError) for name, guess in guesses.items()},
        "wrote as a stranger": (network.put_file(MALLORY, theirs, "sum", "sum.txt", b"1", "text/plain", session), NotFoundError),
        "changed a file": (network.put_file(MALLORY, own, "a", "a", b"b" * 5_000, "text/plain", session), ConflictError),
        "stored more than announced": (put(10, b"x" * 11, "b"), InvalidInputError),
        "announced a large file": (put(200_000_000, b"x" * PIECE_BYTES, "c"), ForbiddenError),
        "filled the store": (put(100_000_000, b"x" * PIECE_BYTES, "d"), OverQuotaError),
    }
    for name, (attempt, refusal) in attempts.items():
        try:
            await attempt
            achieved.append(name)
        except refusal:
            pass
    achieved.remove("announced a large file")  # it is within what one may store, and counts at once
    return achieved


def _description_subject(name: str) -> str:
    return f"$O.{FILES}.M.{base64.urlsafe_b64encode(name.encode()).decode()}"
