"""A goal of the doctor's own, followed to its end: that processes answer pings does not tell that goals get through."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass
from datetime import timedelta

from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.cancellation import fail_after
from ioa.client.client import Client
from ioa.errors import InvalidInputError
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import GoalResult
from ioa.protocol.ids import GoalId, GoalName, parse_agent_id
from ioa.protocol.labels import PROBE

PATIENCE = timedelta(seconds=5)
"""How long each part may take before the doctor goes on without it."""

_RUNS_FOR = timedelta(seconds=1)


@dataclass(frozen=True)
class Probed:
    """How far a goal came that nobody works at.

    Attributes:
        name: Which it was.
        accepted_after: How long it took from its launch until it was on record; None if it was not in time.
        ended_after: How long it took from its deadline until it had its result; None likewise.
        in_log: Whether its end is on record, with or without a result.
        result: What it came to; None if nothing yet.
    """

    name: GoalName
    accepted_after: timedelta | None = None
    ended_after: timedelta | None = None
    in_log: bool = False
    result: GoalResult | None = None


async def send_probe(system: NatsSystemClient, patience: timedelta = PATIENCE) -> Probed:
    """Launch a goal for an agent that does not exist, and wait for a router to end it at its deadline.

    So no agent's work is spent, and the goal passes intake, the queue of timers, a router, a log and the stream of results, as
    others do. Its label keeps it out of the counts of goals. One that is late ends by itself.

    Raises:
        UnavailableError: It could not be stored.
        ForbiddenError: Whoever asks is no user.
    """
    loop, client = asyncio.get_running_loop(), Client(system)
    goal_id = GoalId(f"probe-{secrets.token_hex(16)}")
    order = GoalOrder(
        goal="A probe of ioa doctor: it is for nobody, and ends at its deadline.",
        agent=parse_agent_id(f"nobody-{secrets.token_hex(8)}"),
        timeout=_RUNS_FOR.total_seconds(),
        labels={PROBE: "doctor"},
        goal_id=goal_id,
    )
    began = loop.time()
    try:
        launched = await client.launch(order, accepted_within=patience)
    except InvalidInputError:  # it was refused, and its result says why
        name = GoalName(await system.user(), goal_id)
        return Probed(name, result=await client.result(name))
    accepted = loop.time()
    if launched.record is None:
        return Probed(launched.name)
    accepted_after = timedelta(seconds=accepted - began)
    try:
        async with fail_after((_RUNS_FOR + patience).total_seconds()):
            result = await client.result(launched.name, wait=True)
    except TimeoutError:
        return Probed(launched.name, accepted_after, in_log=bool(await client.state(launched.name)))
    ended_after = timedelta(seconds=max(0.0, loop.time() - accepted - _RUNS_FOR.total_seconds()))
    return Probed(launched.name, accepted_after, ended_after, in_log=True, result=result)
