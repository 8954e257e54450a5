"""The parts of the gateway that all requests share, and the context of one authenticated request."""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, TypeVar

from fastapi import Depends, Security
from fastapi.security import HTTPBearer, SecurityScopes
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive

from ioa.adapters.nats.stores.webhook_store import NatsWebhooks
from ioa.adapters.system_clock import SystemClock
from ioa.client.client import Client
from ioa.client.seat import PersonSeat, named
from ioa.concurrency import beside
from ioa.errors import ForbiddenError, NotFoundError, UnavailableError
from ioa.group.requests import GoalStatus, GroupSnapshot, no_group
from ioa.ports.agent_network import AgentNetwork
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import bears
from ioa.protocol.ids import AgentId, CommId, GoalId, GoalName, UserId, parse_goal_id
from ioa.protocol.operation.api_keys import Scope
from ioa.protocol.setup.charter import Charter
from ioa_gateway.auth import Keyring
from ioa_gateway.caller import Caller
from ioa_gateway.event_streams import EventStreams
from ioa_gateway.key_limits import CallerLimits
from ioa_gateway.webhooks.http_post import HttpPost

MAX_ITEMS = 500
"""Questions or open turns in one response."""
_REPEATED_WORDS = timedelta(minutes=30)
_MAX_TRACE_CHARS = 200

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Gateway:
    """The parts of the gateway that all requests share.

    Attributes:
        open_seat: Opens the connection of a person's agent id.
        draw: Returns as many random bytes as requested.
        system_of: Returns the client of a user.
        is_there: Whether the gateway is connected to the system.
    """

    streams: EventStreams
    keyring: Keyring
    limits: CallerLimits
    hooks: NatsWebhooks
    http_post: HttpPost
    open_seat: Callable[[AgentId], AbstractAsyncContextManager[AgentNetwork]]
    draw: Callable[[int], bytes]
    system_of: Callable[[UserId], Client]
    is_there: Callable[[], bool]

    def call(self, caller: Caller, headers: Headers, receive: Receive) -> ApiCall:
        """Return the context of a request, or raise `UnavailableError` without a connection to the system."""
        if not self.is_there():
            raise UnavailableError("The system is out of reach.", hint="Try again soon; nothing is lost.")
        return ApiCall(**vars(self), caller=caller, client=self.system_of(caller.user), headers=headers, receive=receive)


@dataclass(frozen=True, kw_only=True)
class ApiCall(Gateway):
    """The context of an authenticated request, with the parts of the gateway. `client` is the client of the caller's user."""

    caller: Caller
    client: Client
    headers: Headers
    receive: Receive

    def page_read(self) -> AbstractAsyncContextManager[None]:
        """Wait for a slot of page reads, and hold it while the block runs. In the block, no other slot may be waited for."""
        return self.limits.pages.slot(self.caller.user)

    @asynccontextmanager
    async def seat(self, person: str) -> AsyncIterator[PersonSeat]:
        """Connect the seat of a person; `ForbiddenError`: the caller may not answer, or the gateway has no key of the seat."""
        if not self.caller.answers_for(person):
            self.caller.check(f"seats:{person}")
        async with self.open_seat(named(person)) as network:
            yield PersonSeat(network, person, SystemClock())

    async def goal(self, user: UserId | None, goal_id: str) -> GoalName:
        """Return the name of a goal of a user (None: the caller's), or raise `NotFoundError` if the caller may not see it."""
        name = GoalName(user or self.caller.user, parse_goal_id(goal_id))
        if not (self._may_know(name.user) and await self.shares_labels(name)):
            raise NotFoundError(f"There is no goal {name}.", hint="`ioa goals` lists them.")
        return name

    async def shares_labels(self, name: GoalName) -> bool:
        """Return whether a goal has all labels of the caller."""
        return not self.caller.labels or bears(await self.hooks.labels(name), self.caller.labels)

    async def look(self, name: GoalName, *, with_team: bool = False) -> GoalStatus:
        """Return the status of a goal, or raise `NotFoundError`."""
        async with self.page_read():
            return await self.client.goal(name, with_team=with_team)

    async def group(self, comm_id: CommId) -> GroupSnapshot:
        """Return the status of a group, or raise `NotFoundError` if the caller may not see its goal."""
        found = await self.client.group(comm_id)
        self.check_labels(comm_id, found.charter)
        if not self._may_know(found.state.name.user):
            raise no_group(comm_id)
        return found

    def check_labels(self, comm_id: CommId, charter: Charter | None) -> None:
        """Raise `NotFoundError` unless a group has all labels of the caller."""
        if not bears({} if charter is None else charter.labels, self.caller.labels):
            raise no_group(comm_id)

    async def while_connected(self, waited: Awaitable[T]) -> T:
        """Wait for a result, or raise `ClientDisconnect` when the client disconnects. The body must have been read."""

        async def leave() -> None:
            while (await self.receive())["type"] != "http.disconnect":
                pass
            raise ClientDisconnect

        async with beside(leave()):
            return await waited
        raise AssertionError("the block returns, or raises")

    async def goal_id_of_words(self, entrance: str, kind: str, *words: str) -> GoalId:
        """Return the id of the caller's open goal with the same words, at most 30 minutes old; otherwise an unused id."""
        period, goal_id = int(self.keyring.now().timestamp() // _REPEATED_WORDS.total_seconds()), GoalId("")
        for begun in (period - 1, period):
            for number in itertools.count():
                goal_id = self.caller.goal_id(entrance, kind, json.dumps([*words, begun, number]))
                name = GoalName(self.caller.user, goal_id)
                try:
                    if (await self.look(name)).result is None:
                        return goal_id
                except NotFoundError:
                    if await self.client.result(name) is None:  # a rejected goal has only a result
                        break
        return goal_id

    def with_caller(self, order: GoalOrder) -> GoalOrder:
        """Add the caller's labels to an order, which has no other values of them, and the trace of the request by default."""
        if other := [name for name, value in self.caller.labels.items() if order.labels.get(name, value) != value]:
            raise ForbiddenError(f"This key launches goals with a label {other[0]} of its own.", hint="Leave that label out.")
        labels = {**order.labels, **self.caller.labels}
        trace = order.traceparent or self.headers.get("traceparent", "")[:_MAX_TRACE_CHARS]
        return GoalOrder.model_validate({**dict(order), "labels": labels, "traceparent": trace})

    def _may_know(self, owner: UserId) -> bool:
        """Return whether the caller may learn that a goal of a user exists."""
        return owner == self.caller.user or self.caller.owner is None


_bearer = HTTPBearer(scheme_name="key", auto_error=False)


async def _permitted(request: Request, needed: SecurityScopes, _key: Annotated[object, Depends(_bearer)]) -> ApiCall:
    call: ApiCall = request.state.call
    call.caller.check(*needed.scopes)
    return call


# The context as handlers declare it, with the scopes that the caller's key needs.
KeyCall = Annotated[ApiCall, Security(_permitted, scopes=[])]
ReadCall = Annotated[ApiCall, Security(_permitted, scopes=[Scope.GOALS_READ])]
LaunchCall = Annotated[ApiCall, Security(_permitted, scopes=[Scope.GOALS_WRITE])]
ReadLaunchCall = Annotated[ApiCall, Security(_permitted, scopes=[Scope.GOALS_READ, Scope.GOALS_WRITE])]
AgentsCall = Annotated[ApiCall, Security(_permitted, scopes=[Scope.AGENTS_READ])]
SeatsCall = Annotated[ApiCall, Security(_permitted, scopes=[Scope.SEATS])]
TeamsCall = Annotated[ApiCall, Security(_permitted, scopes=[Scope.TEAMS_WRITE])]
WebhooksCall = Annotated[ApiCall, Security(_permitted, scopes=[Scope.GOALS_READ, Scope.WEBHOOKS_WRITE])]
"""Messages of webhooks contain results of goals."""
