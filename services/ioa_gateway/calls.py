"""The request as handlers read it, and the class of the rows of the route table."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import KW_ONLY, dataclass, field
from datetime import timedelta
from functools import cached_property
from typing import Any, TypeVar, get_type_hints

from pydantic import BaseModel
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Message, Receive

from ioa.adapters.nats.stores.webhooks import NatsWebhooks
from ioa.beside import beside
from ioa.client.client import Client
from ioa.client.documents import told
from ioa.client.seat import PersonSeat
from ioa.errors import ForbiddenError, InvalidInputError, IoaError, NotFoundError
from ioa.group.goal_lists import GoalStatus
from ioa.group.requests import no_group
from ioa.protocol.api_keys import Scope
from ioa.protocol.codec import validate
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.ids import CommId, GoalId, GoalName, UserId, check_token, parse_goal_id
from ioa.protocol.labels import bears
from ioa.protocol.model import Instruction, Model
from ioa.protocol.texts import check_texts
from ioa.protocol.webhooks import Webhook
from ioa_gateway.callers import Caller
from ioa_gateway.event_streams import EventStreams
from ioa_gateway.keyring import Keyring
from ioa_gateway.limits import CallerLimits
from ioa_gateway.problems import Problem
from ioa_gateway.seats import Seats
from ioa_gateway.webhooks.http_post import Posting

MAX_BODY_BYTES, MAX_FILE_BYTES = 256_000, 100_000_000

MAX_ITEMS = 500
"""Questions or open turns in one response."""

T = TypeVar("T")

_ASKED_AGAIN = timedelta(minutes=30)
_MAX_TRACE_CHARS = 200

WITHIN = timedelta(seconds=3)
"""Default timeout until a response begins."""


class Nothing(Instruction):
    """No parameters, or no body."""


@dataclass(frozen=True)
class WebhookParts:
    """The parts of the gateway that webhooks need.

    Attributes:
        store: The webhooks.
        posting: Sends messages to URLs.
        draw: Returns a number of random bytes.
        making: Held while a webhook is counted and stored.
    """

    store: NatsWebhooks
    posting: Posting
    draw: Callable[[int], bytes]
    making: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(frozen=True)
class ApiCall:
    """An admitted request.

    Attributes:
        caller: The authenticated caller.
        client: The client of the caller's user.
        streams: Followed groups.
        keyring: Authenticates callers.
        limits: Limits of keys.
        hooks: The parts that webhooks need.
        path: The parameters of the path.
        session: The session cookie, if any. It is not verified on routes that need no key.
        is_secure: Whether the request used HTTPS.
        sent: The parts of the body, for a route with `takes_bytes`.
        left: Returns when the client has disconnected. The body must have been read.
        seats: Seats of people.
    """

    caller: Caller
    client: Client
    streams: EventStreams
    keyring: Keyring
    limits: CallerLimits
    hooks: WebhookParts
    path: Mapping[str, str]
    headers: Headers
    session: str | None
    is_secure: bool
    sent: AsyncIterator[bytes]
    left: Callable[[], Awaitable[None]]
    seats: Seats

    def page_read(self) -> AbstractAsyncContextManager[None]:
        """Wait for a slot of page reads, and hold it while the block runs. In the block, no other slot may be waited for."""
        return self.limits.pages.slot(self.caller.user)

    def comm_id(self) -> CommId:
        """Return the group id of the path.

        Raises:
            InvalidInputError: It is not valid.
        """
        try:
            return CommId(check_token(self.path["comm_id"]))
        except ValueError as error:
            raise InvalidInputError(str(error)) from None

    @asynccontextmanager
    async def seat(self, person: str) -> AsyncIterator[PersonSeat]:
        """Return the seat of a person that the caller may answer for.

        Raises:
            ForbiddenError: The caller may not, or the gateway has no key of the seat.
            InvalidInputError: The name is not valid.
        """
        self.caller.check_person(person)
        yield await self.seats.of(person)

    async def goal(self, user: UserId | None, goal_id: str | None = None) -> GoalName:
        """Return the name of a goal that the caller may see.

        Args:
            user: The goal's user; None: the caller's user.
            goal_id: The goal; None: the goal of the path.

        Raises:
            NotFoundError: The caller may not see the goal.
        """
        name = GoalName(user or self.caller.user, parse_goal_id(self.path["goal_id"] if goal_id is None else goal_id))
        if not self._may_know(name.owner):
            raise _no_goal(name)
        if self.caller.labels:
            await self._check_seen(name)
        return name

    @asynccontextmanager
    async def looking(self, name: GoalName, *, with_team: bool) -> AsyncIterator[GoalStatus]:
        """Read the status of a goal, and hold the slot of the read (`page_read`) while the block runs.

        Raises:
            NotFoundError: There is no such goal.
        """
        async with self.page_read():
            yield await self.client.goal(name, with_team=with_team)

    async def look(self, name: GoalName) -> GoalStatus:
        """Return the status of a goal, without its team.

        Raises:
            NotFoundError: There is no such goal.
        """
        async with self.looking(name, with_team=False) as status:
            return status

    async def webhooks(self, is_wanted: Callable[[Webhook], bool]) -> Sequence[Webhook]:
        """Return the webhooks that match."""
        async with self.page_read():
            return [hook async for hook in self.hooks.store.all() if is_wanted(hook)]

    async def group(self) -> CommId:
        """Return the id of the path's group, which the caller may see.

        Raises:
            NotFoundError: The caller may not see the group's goal.
        """
        comm_id = self.comm_id()
        if self.caller.labels or self.caller.owner is not None:
            try:
                found = await self.client.group(comm_id)
            except NotFoundError:
                raise no_group(comm_id) from None
            owner = GoalName(found.state.user, found.state.goal_id).owner
            labels = {} if found.charter is None else found.charter.labels
            if not (self._may_know(owner) and bears(labels, self.caller.labels)):
                raise no_group(comm_id)
        return comm_id

    async def while_let_in(self, waited: Awaitable[T]) -> T:
        """Wait for a result while the caller's key is valid.

        Raises:
            UnauthenticatedError: The key is no longer valid.
        """
        async with beside(self.keyring.watch(self.caller)):
            found = await waited
        self.keyring.check(self.caller)
        return found

    async def while_asked(self, waited: Awaitable[T]) -> T:
        """Wait for a result while the caller's key is valid and the client is connected.

        Raises:
            UnauthenticatedError: The key is no longer valid.
            ClientDisconnect: The client has disconnected.
        """

        async def leave() -> None:
            await self.left()
            raise ClientDisconnect

        async with beside(leave()):
            return await self.while_let_in(waited)
        raise AssertionError("the block returns, or raises")

    async def goal_id_of_words(self, entrance: str, kind: str, *words: str) -> GoalId:
        """Derive a goal's id from the caller's words. Repeated words have the same id for at least 30 and less than 60 minutes."""
        period = int(self.keyring.now().timestamp() // _ASKED_AGAIN.total_seconds())
        before, now = (self.caller.goal_id(entrance, kind, json.dumps([*words, one])) for one in (period - 1, period))
        try:
            await self.look(GoalName(self.caller.user, before))
        except NotFoundError:
            return now
        return before

    def with_caller(self, order: GoalOrder) -> GoalOrder:
        """Add the caller's labels to an order, and the trace of the request unless the order has one.

        Raises:
            ForbiddenError: The order has another value of a label.
        """
        if other := [name for name, value in self.caller.labels.items() if order.labels.get(name, value) != value]:
            raise ForbiddenError(f"This key launches goals with a label {other[0]} of its own.", hint="Leave that label out.")
        said = {name: getattr(order, name) for name in order.model_fields_set}
        if self.caller.labels:
            said["labels"] = {**order.labels, **self.caller.labels}
        if not order.traceparent and (trace := self.headers.get("traceparent", "")):
            said["traceparent"] = trace[:_MAX_TRACE_CHARS]
        return GoalOrder.model_validate(said)

    async def _check_seen(self, name: GoalName) -> None:
        try:
            goal = (await self.look(name)).record.goal
        except NotFoundError:
            raise _no_goal(name) from None
        if not bears(goal.labels, self.caller.labels):
            raise _no_goal(name)

    def _may_know(self, owner: UserId) -> bool:
        """Return whether the caller may learn that a goal of a user exists."""
        return owner == self.caller.user or self.caller.owner is None


def _no_goal(name: GoalName) -> NotFoundError:
    return NotFoundError(f"There is no goal {name}.", hint="`ioa goals` lists them.")


@dataclass(frozen=True)
class ApiRow:
    """One route.

    Attributes:
        method: The HTTP method.
        path: The path below `/v1`, with `{names}`.
        scopes: The scopes that a key needs, all of them; without any, the route needs no key.
        does: The summary of the route, in the imperative.
        handle: The handler. Its parameter `query` takes the query, and the other one after the call the body.
        read: Parses the body; None: the body is JSON of its class.
        answers: The meaning of each status that is no error.
        told: The class of the response's document, by status, for each response in JSON.
        errors: Errors of this route, in addition to errors of all routes.
        within: Timeout until the response begins.
        media_type: Media type of the response.
        headers: Headers that the route reads, with a description.
        takes_bytes: Whether the route reads `ApiCall.sent` instead of a body of JSON.
        tells: Converts a problem to the form that clients of the route expect.
    """

    method: str
    path: str
    _: KW_ONLY
    scopes: tuple[Scope, ...]
    does: str
    handle: Callable[..., Awaitable[Response]]
    read: Callable[[bytes], BaseModel] | None = None
    answers: Mapping[int, str]
    told: Mapping[int, type[BaseModel]] = field(default_factory=dict)
    errors: tuple[type[IoaError], ...] = ()
    within: timedelta = WITHIN
    media_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    takes_bytes: bool = False
    tells: Callable[[Problem], Problem] = lambda problem: problem

    @cached_property
    def _inputs(self) -> Mapping[str, type[Model]]:
        """The classes of the query and of the body, if any, by the handler's parameters."""
        return {name: kind for name, kind in get_type_hints(self.handle).items() if name not in ("call", "return")}

    @property
    def query(self) -> type[Model]:
        """The class of the query."""
        return self._inputs.get("query", Nothing)

    @property
    def body(self) -> type[Model]:
        """The class of the body."""
        return next((kind for name, kind in self._inputs.items() if name != "query"), Nothing)

    def read_body(self, data: bytes) -> BaseModel:
        """Parse the body.

        Raises:
            InvalidInputError: The body is not valid.
        """
        return validate(self.body, read_object(data)) if self.read is None else self.read(data)

    async def respond(self, call: ApiCall, query: Model, data: bytes) -> Response:
        """Parse the body and handle a request.

        Raises:
            InvalidInputError: The body is not valid.
        """
        body = self.read_body(data)
        return await self.handle(call, **{name: query if name == "query" else body for name in self._inputs})


async def wait_for_disconnect(receive: Receive) -> None:
    """Return when the client has disconnected. The request's body must have been read."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def replayed(request: Request, parts: AsyncIterator[bytes], check: Callable[[bytes], None]) -> Receive:
    """Read and check a whole body; return a `receive` that returns it again, for a library that reads without limits.

    Args:
        request: The request.
        parts: Its body.
        check: Raises if the body is invalid.
    """
    body = [b"".join([part async for part in parts])]
    check(body[0])

    async def receive() -> Message:
        if body:
            return {"type": "http.request", "body": body.pop(), "more_body": False}
        return await request.receive()

    return receive


def read_object(data: bytes) -> dict[str, Any]:
    """Parse a JSON object.

    Raises:
        InvalidInputError: It is not valid, is nested too deeply, or contains a text that cannot be stored.
    """
    try:
        found = json.loads(data or b"{}", parse_constant=_no_number)
        check_texts(found, "body")
    except InvalidInputError:
        raise
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"The body is no JSON: {str(error)[:200]}.") from None
    if not isinstance(found, dict):
        raise InvalidInputError("The body is no JSON object.")
    return found


def check_json(data: bytes) -> None:
    """Reject JSON that libraries fail to parse: NaN, Infinity, too long numbers and too deep nesting. Syntax errors pass.

    Raises:
        InvalidInputError: The body contains one of these.
    """
    try:
        json.loads(data, parse_constant=_no_number)
    except json.JSONDecodeError:
        pass
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"The body is no JSON: {str(error)[:200]}.") from None


def _no_number(said: str) -> None:
    """Reject NaN and Infinity, which `json` accepts and RFC 8259 does not."""
    raise ValueError(f"{said} is no number")


async def document_of_many(found: Mapping[str, Any], name: str, parts: Iterable[BaseModel]) -> Response:
    """Return a document with a long list. Other requests are handled while the list is made."""
    listed = list[dict[str, Any]]()
    for part in parts:
        listed.append(told(part))
        await asyncio.sleep(0)
    return document({**found, name: listed})


def document(found: BaseModel | Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a response with a JSON document."""
    content = told(found) if isinstance(found, BaseModel) else found
    return Response(json.dumps(content, ensure_ascii=False, separators=(",", ":")), status, headers, "application/json")
