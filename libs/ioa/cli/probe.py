"""The doctor's probe: a goal that group setup accepts and offers to no agent, so that a router ends it at its deadline."""

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
from ioa.protocol.ids import GoalId, GoalName
from ioa.protocol.labels import PROBE

PATIENCE = timedelta(seconds=5)
"""Timeout of each part."""

_RUNS_FOR = timedelta(seconds=1)


@dataclass(frozen=True)
class Probed:
    """The progress of a probe.

    Attributes:
        accepted_after: Time from the launch to the goal's record; None after the timeout.
        ended_after: Time from the deadline to the result; None after the timeout.
        in_log: Whether its log contains its end, with or without a result.
        result: The result; None if there is none.
    """

    name: GoalName
    accepted_after: timedelta | None = None
    ended_after: timedelta | None = None
    in_log: bool = False
    result: GoalResult | None = None


async def send_probe(system: NatsSystemClient, patience: timedelta = PATIENCE) -> Probed:
    """Launch a goal with the label of probes, and wait for a router to end it at its deadline.

    The goal passes intake, the queue of timers, a router, a log and the stream of results, as other goals do. Because of its label,
    no agent gets it and no metric counts it.

    Raises:
        UnavailableError: It could not be stored.
        ForbiddenError: The caller is no user.
    """
    loop, client = asyncio.get_running_loop(), Client(system)
    goal_id = GoalId(f"probe-{secrets.token_hex(16)}")
    order = GoalOrder(
        goal="A probe of ioa doctor: no agent gets it, and it ends at its deadline.",
        timeout=_RUNS_FOR.total_seconds(),
        labels={PROBE: "doctor"},
        goal_id=goal_id,
    )
    began = loop.time()
    try:
        launched = await client.launch(order, accepted_within=patience)
    except InvalidInputError:  # it was rejected, and its result contains the reason
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
